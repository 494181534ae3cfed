// Package pgtest gives tests a PostgreSQL: one server for a test binary, started from the installed binaries in a
// temporary folder, and an empty database for each test. DURWARD_TEST_DATABASE_URL is the URL of another server to
// use; its user must be a superuser.
package pgtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// urlVariable names a server that is used instead of our own.
const urlVariable = "DURWARD_TEST_DATABASE_URL"

// role is the user as whom tests connect: row-level security does not apply to a superuser.
const role = "durward_test"

// timeout bounds a start, a stop and a statement; on an idle machine each takes a second at most.
const timeout = 2 * time.Minute

// shared is the server of this test binary.
var shared struct {
	sync.Mutex
	server *Server
	admin  string // the URL of the user who makes databases
	// filled is the name of the database that Copy copies; "" until it is made.
	filled string
}

// Main runs the tests of a binary and stops the server that Database started. In TestMain it replaces m:
// goleak.VerifyTestMain(pgtest.Main{M: m}).
type Main struct{ M *testing.M }

// Run implements goleak.TestingM.
func (m Main) Run() int {
	code := m.M.Run()
	shared.Lock()
	defer shared.Unlock()
	if err := clean(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return 1
	}
	return code
}

// clean removes the shared server. On a server of somebody else it drops the database of Copy.
func clean() error {
	if shared.server != nil {
		return shared.server.remove()
	}
	if shared.filled == "" {
		return nil
	}
	return run(shared.admin, `DROP DATABASE `+shared.filled+` WITH (FORCE)`)
}

// Database makes an empty database and returns its URL. It is dropped when the test ends.
func Database(tb testing.TB) string {
	tb.Helper()
	admin := sharedAdmin(tb)
	name := makeDatabase(tb, admin, "template0")
	tb.Cleanup(func() { dropDatabase(tb, admin, name) })
	return address(tb, admin, role, name)
}

// Copy makes a database like one that fill has filled, and returns its URL. It is dropped when the test ends. Only the
// first call of a test binary calls fill, with the URL of an empty database that nobody may use when fill has returned.
func Copy(tb testing.TB, fill func(url string) error) string {
	tb.Helper()
	admin := sharedAdmin(tb)
	name := makeDatabase(tb, admin, filled(tb, admin, fill))
	tb.Cleanup(func() { dropDatabase(tb, admin, name) })
	return address(tb, admin, role, name)
}

// filled returns the name of the database that is copied. Main drops it, when the server is not its own.
func filled(tb testing.TB, admin string, fill func(url string) error) string {
	tb.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.filled == "" {
		name := makeDatabase(tb, admin, "template0")
		if err := fill(address(tb, admin, role, name)); err != nil {
			dropDatabase(tb, admin, name)
			tb.Fatal("filling a database: ", err)
		}
		shared.filled = name
	}
	return shared.filled
}

func makeDatabase(tb testing.TB, admin, template string) (name string) {
	tb.Helper()
	name = "durward_" + strings.ToLower(rand.Text())
	exec(tb, admin, `CREATE DATABASE `+name+` OWNER `+role+` TEMPLATE `+template)
	return name
}

func dropDatabase(tb testing.TB, admin, name string) {
	tb.Helper()
	exec(tb, admin, `DROP DATABASE `+name+` WITH (FORCE)`)
}

// Superuser returns the URL of a database of Database for a user to whom row-level security does not apply.
func Superuser(tb testing.TB, database string) string {
	tb.Helper()
	u, err := url.Parse(database)
	if err != nil {
		tb.Fatal(err)
	}
	admin, err := url.Parse(sharedAdmin(tb))
	if err != nil {
		tb.Fatal(err)
	}
	u.User = admin.User
	return u.String()
}

func sharedAdmin(tb testing.TB) string {
	tb.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.admin != "" {
		return shared.admin
	}
	if admin := os.Getenv(urlVariable); admin != "" {
		makeRole(tb, admin)
		shared.admin = admin
		return admin
	}
	s, err := start()
	if err != nil {
		tb.Fatal("starting PostgreSQL: ", err)
	}
	shared.server, shared.admin = s, s.admin()
	makeRole(tb, shared.admin)
	return shared.admin
}

// password is the role's on other servers; our own servers trust everybody on this machine.
const password = "durward-test"

func makeRole(tb testing.TB, admin string) {
	tb.Helper()
	exec(tb, admin, `DO $$ BEGIN
		IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = '`+role+`') THEN CREATE ROLE `+role+` LOGIN PASSWORD '`+password+`'; END IF;
	EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$`)
}

// address returns the URL of a database for a user.
func address(tb testing.TB, admin, user, database string) string {
	tb.Helper()
	u, err := url.Parse(admin)
	if err != nil {
		tb.Fatal(err)
	}
	u.User = url.UserPassword(user, password)
	u.Path = "/" + database
	return u.String()
}

// exec runs a statement on a connection of its own.
func exec(tb testing.TB, dsn, statement string) {
	tb.Helper()
	if err := run(dsn, statement); err != nil {
		tb.Fatal(err)
	}
}

func run(dsn, statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, statement)
	return err
}
