package postgres

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

// Z-F01: a store whose database is unavailable can be made. Nothing is read or written until it is connected, and
// listeners for changes can be registered before.
func TestConnectLater(t *testing.T) {
	t.Parallel()
	server := pgtest.NewServer(t)
	server.Stop(t)
	s, err := New(server.URL(), Options{Timeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var told int
	s.OnChange(func(string) { told++ })
	for range 2 {
		wantReason(t, s.Connect(t.Context()), "cannot be reached")
	}
	unconnected := func() {
		t.Helper()
		key := storage.ConnectionKey{OrganizationID: "a", UserID: "b", ServerID: "c"}
		_, reading := s.DataKeys(t.Context())
		_, authenticating := s.Organization(t.Context(), "a")
		_, deleting := s.DeleteConnection(t.Context(), key)
		for _, err := range []error{s.Ping(t.Context()), reading, authenticating, deleting, s.AddDataKey(t.Context(), storage.DataKey{Version: 1})} {
			if !errors.Is(err, storage.ErrUnavailable) {
				t.Errorf("before it was connected to: %v", err)
			}
		}
	}
	unconnected()
	server.Start(t)
	unconnected() // without its schema, and without a word from other nodes

	// Rate limits were faster.
	server.Exec(t, `CREATE TABLE durward_counters_1 (key bytea); CREATE TABLE durward_nodes_3 (node text)`)
	for range 2 {
		if err := s.Connect(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ResolveOrganization(t.Context(), storage.OrganizationClaim{Issuer: "i", ID: "o"}, time.Now()); err != nil {
		t.Fatal(err)
	}
}

// The public reason of a failed connection says what to check, and names nothing.
func TestConnectReasons(t *testing.T) {
	t.Parallel()
	server := pgtest.NewServer(t)
	for change, reason := range map[string]string{
		"user": "refuses the gateway's user or password", "database": "no such database", "port": "cannot be reached", "connections": "no connection left",
	} {
		t.Run(change, func(t *testing.T) {
			dsn, err := url.Parse(server.URL())
			if err != nil {
				t.Fatal(err)
			}
			switch change {
			case "user":
				dsn.User = url.UserPassword("mallory", "secret-word")
			case "database":
				dsn.Path = "/somewhere-else"
			case "port":
				dsn.Host = "127.0.0.1:1"
			case "connections":
				server.Exec(t, `CREATE ROLE crowded LOGIN CONNECTION LIMIT 0`)
				dsn.User = url.User("crowded")
			}
			s, err := New(dsn.String(), Options{Timeout: patient})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			err = s.Connect(t.Context())
			wantReason(t, err, reason)
			if strings.Contains(err.Error(), "secret-word") {
				t.Errorf("the password is told: %v", err)
			}
		})
	}
	for _, c := range []struct {
		prepare, reason string
	}{
		{`UPDATE schema_migrations SET oldest_writer = 1000`, "newer durward"},
		{`ALTER ROLE durward_test SET default_transaction_read_only = on`, "read-only"},
	} {
		openAt(t, server.URL(), Options{Timeout: patient}) // makes the schema
		server.Exec(t, c.prepare)
		s := openAt(t, server.URL(), Options{Timeout: patient})
		wantReason(t, s.AddDataKey(t.Context(), storage.DataKey{Version: 1}), c.reason)
		server.Exec(t, `UPDATE schema_migrations SET oldest_writer = 1`)
	}
}

// wantReason checks that the store is unavailable, and the public reason.
func wantReason(t *testing.T, err error, says string) {
	t.Helper()
	var away *storage.UnavailableError
	if !errors.Is(err, storage.ErrUnavailable) || !errors.As(err, &away) || !strings.Contains(away.Reason, says) {
		t.Errorf("the error is %v, not one of which is told: %s", err, says)
		return
	}
	for _, name := range []string{"127.0.0.1", "durward_test", "mallory", "crowded", "somewhere"} {
		if strings.Contains(away.Reason, name) {
			t.Errorf("%q names %s", away.Reason, name)
		}
	}
}

// TestStoodStill checks that a transaction of a node that stood still too long is over, and that nothing of it was
// committed: it is made again, and a caller after its time limit gets the error of an unavailable store.
func TestStoodStill(t *testing.T) {
	ended := &pgconn.PgError{Severity: "FATAL", Code: codeIdleTransaction}
	if !worthRetrying(ended) {
		t.Error("it is not made again")
	}
	if err := translateCode(ended); !errors.Is(err, storage.ErrUnavailable) {
		t.Error(err)
	}
}
