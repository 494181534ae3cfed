package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Server is a PostgreSQL server of its own, for tests that stop it.
type Server struct {
	folder     string
	postgres   string // the binary
	port       int
	credential *syscall.Credential // nil: our own
	process    *os.Process
	ended      chan struct{}
	output     bytes.Buffer // of the server; read when ended is closed
}

// NewServer starts a server that is stopped and removed when the test ends.
func NewServer(tb testing.TB) *Server {
	tb.Helper()
	s, err := start()
	if err != nil {
		tb.Fatal("starting PostgreSQL: ", err)
	}
	tb.Cleanup(func() {
		if err := s.remove(); err != nil {
			tb.Error("stopping PostgreSQL: ", err)
		}
	})
	makeRole(tb, s.admin())
	exec(tb, s.admin(), `CREATE DATABASE durward OWNER `+role)
	return s
}

// URL returns the address of the server's one database.
func (s *Server) URL() string {
	return fmt.Sprintf("postgres://%s:%s@127.0.0.1:%d/durward?sslmode=disable", role, password, s.port)
}

// Superuser returns the address of the database for a user without restrictions.
func (s *Server) Superuser() string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/durward?sslmode=disable", s.port)
}

func (s *Server) admin() string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", s.port)
}

// start makes a cluster and runs it.
func start() (_ *Server, err error) {
	initdb, err := binary("initdb")
	if err != nil {
		return nil, err
	}
	s := &Server{}
	if s.postgres, err = binary("postgres"); err != nil {
		return nil, err
	}
	if s.credential, err = credential(); err != nil {
		return nil, err
	}
	if s.folder, err = os.MkdirTemp("", "durward-pg-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(s.folder))
		}
	}()
	if s.credential != nil {
		if err := os.Chown(s.folder, int(s.credential.Uid), int(s.credential.Gid)); err != nil {
			return nil, err
		}
	}
	// The locale does not sort by bytes: nothing may depend on it.
	cmd := osexec.Command(initdb, "--pgdata="+s.data(), "--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8",
		"--locale=C.UTF-8", "--locale-provider=icu", "--icu-locale=en-US")
	cmd.SysProcAttr, cmd.Dir = &syscall.SysProcAttr{Credential: s.credential}, s.folder
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	if s.port, err = freePort(); err != nil {
		return nil, err
	}
	return s, s.run()
}

func (s *Server) data() string { return filepath.Join(s.folder, "data") }

// run starts the server and waits until it answers.
func (s *Server) run(settings ...string) error {
	args := []string{"-D", s.data(), "-p", strconv.Itoa(s.port)}
	for _, setting := range append([]string{"listen_addresses=127.0.0.1", "unix_socket_directories=" + s.folder, "fsync=off",
		"full_page_writes=off", "max_connections=400", "shared_buffers=64MB", "autovacuum=off"}, settings...) {
		args = append(args, "-c", setting)
	}
	s.output.Reset()
	s.ended = make(chan struct{})
	started := make(chan error)
	go func() {
		// The server dies with the thread that started it, so that a test binary that is killed leaves none.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		cmd := osexec.Command(s.postgres, args...)
		cmd.SysProcAttr, cmd.Dir = &syscall.SysProcAttr{Credential: s.credential}, s.folder
		dieWithParent(cmd.SysProcAttr)
		cmd.Stdout, cmd.Stderr = &s.output, &s.output
		err := cmd.Start()
		s.process = cmd.Process
		started <- err
		if err == nil {
			_ = cmd.Wait() // its output says why
			close(s.ended)
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, s.admin())
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-s.ended:
			return fmt.Errorf("the server ended: %s", s.output.Bytes())
		default:
		}
		if ctx.Err() != nil {
			return errors.Join(err, s.signal(syscall.SIGQUIT))
		}
		runtime.Gosched()
	}
}

// Stop stops the server as a crash does.
func (s *Server) Stop(tb testing.TB) {
	tb.Helper()
	if err := s.signal(syscall.SIGQUIT); err != nil {
		tb.Fatal(err)
	}
}

// Start starts a server that was stopped, with more settings ("name=value").
func (s *Server) Start(tb testing.TB, settings ...string) {
	tb.Helper()
	if err := s.run(settings...); err != nil {
		tb.Fatal("starting PostgreSQL: ", err)
	}
}

// Exec runs a statement as the superuser.
func (s *Server) Exec(tb testing.TB, statement string) {
	tb.Helper()
	exec(tb, s.Superuser(), statement)
}

// Query runs a statement as the superuser, and returns the first column of its one row, as text.
func (s *Server) Query(tb testing.TB, statement string) (text string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.Superuser())
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, `SELECT (`+statement+`)::text`).Scan(&text); err != nil {
		tb.Fatal(err)
	}
	return text
}

// Dump writes the server's database into a file (pg_dump), as a user to whom row-level security does not apply.
func (s *Server) Dump(tb testing.TB, file string) {
	tb.Helper()
	s.client(tb, "pg_dump", "--format=custom", "--file="+file, "--dbname="+s.Superuser())
}

// Restore reads a file of Dump into the server's database (pg_restore), which is empty.
func (s *Server) Restore(tb testing.TB, file string) {
	tb.Helper()
	s.client(tb, "pg_restore", "--exit-on-error", "--single-transaction", "--dbname="+s.Superuser(), file)
}

// client runs a program of PostgreSQL as the user of the tests.
func (s *Server) client(tb testing.TB, name string, arguments ...string) {
	tb.Helper()
	program, err := binary(name)
	if err != nil {
		tb.Fatal(err)
	}
	if output, err := osexec.Command(program, arguments...).CombinedOutput(); err != nil {
		tb.Fatalf("%s: %v: %s", name, err, output)
	}
}

// NewStandby starts a server that follows this one (streaming replication), until it is promoted or the test ends.
func (s *Server) NewStandby(tb testing.TB) *Server {
	tb.Helper()
	backup, err := binary("pg_basebackup")
	if err != nil {
		tb.Fatal(err)
	}
	standby := &Server{postgres: s.postgres, credential: s.credential}
	if standby.folder, err = os.MkdirTemp("", "durward-pg-"); err != nil { //nolint:usetesting // another user's: the test's folder is closed to it
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := standby.remove(); err != nil {
			tb.Error("stopping PostgreSQL: ", err)
		}
	})
	if s.credential != nil {
		if err := os.Chown(standby.folder, int(s.credential.Uid), int(s.credential.Gid)); err != nil {
			tb.Fatal(err)
		}
	}
	cmd := osexec.Command(backup, "--pgdata="+standby.data(), "--no-sync", "--checkpoint=fast", "--wal-method=stream", "--write-recovery-conf",
		fmt.Sprintf("--dbname=postgres://postgres@127.0.0.1:%d", s.port))
	cmd.SysProcAttr, cmd.Dir = &syscall.SysProcAttr{Credential: s.credential}, standby.folder
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%v: %s", err, out)
	}
	if standby.port, err = freePort(); err != nil {
		tb.Fatal(err)
	}
	standby.Start(tb)
	return standby
}

// signal ends the server and waits until it has ended.
func (s *Server) signal(signal syscall.Signal) error {
	if s.ended == nil {
		return nil // it was never started
	}
	select {
	case <-s.ended:
		return nil
	default:
	}
	if err := s.process.Signal(signal); err != nil {
		return err
	}
	<-s.ended
	return nil
}

func (s *Server) remove() error {
	return errors.Join(s.signal(syscall.SIGQUIT), os.RemoveAll(s.folder))
}

// binary finds a program of PostgreSQL where distributions put it.
func binary(name string) (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err == nil && len(found) > 0 {
		slices.Sort(found)
		return found[len(found)-1], nil
	}
	if path, err := osexec.LookPath(name); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("%s is not installed: run `make setup`", name)
}

// freePort returns a port that was free a moment ago.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
