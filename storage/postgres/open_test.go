package postgres

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
	"github.com/durward-gateway/durward/storage/records"
)

// execute runs a statement outside the store.
func execute(t *testing.T, dsn, statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// Nodes that start at once on an empty database: one of them migrates, all of them can work.
func TestOpenAtOnce(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			s, err := Open(t.Context(), dsn, Options{MaxConns: MinConns})
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			if err := s.Ping(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// TestTablesAppearTogether looks at a database while another node makes its tables there, and takes them back: it never has
// tables without durward's first one. A node that saw them so would take the database for another program's, and end.
func TestTablesAppearTogether(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	connect := func() *pgx.Conn {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
		return conn
	}
	var made atomic.Bool
	var all sync.WaitGroup
	for range 4 {
		conn := connect()
		all.Go(func() {
			for !made.Load() {
				var ours, others int
				if err := conn.QueryRow(t.Context(), hasMigrationsSQL).Scan(&ours, &others); err != nil || ours == 0 && others > 0 {
					t.Errorf("%d tables without the first one, %v", others, err)
					return
				}
			}
		})
	}
	defer func() {
		made.Store(true)
		all.Wait()
	}()
	conn := connect()
	for range 300 {
		for _, statement := range []string{`CREATE TABLE schema_migrations (); CREATE TABLE servers ()`, `DROP TABLE schema_migrations, servers`} {
			if _, err := conn.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	empty, foreign := pgtest.Database(t), pgtest.Database(t)
	execute(t, pgtest.Superuser(t, foreign), `CREATE TABLE invoices (id BIGINT)`)
	for _, c := range []struct {
		name, dsn string
		opts      Options
		want      error
		says      string
	}{
		{"a schema that may not be made", empty, Options{KeepSchema: true}, ErrSchema, "migrate on"},
		{"the database of another program", foreign, Options{}, ErrSchema, "another program"},
		{"too few connections", empty, Options{MaxConns: MinConns - 1}, nil, "too few"},
		{"an address that cannot be read", "postgres://user:secret-word@host:port/", Options{}, nil, "address"},
		{"nobody there", "postgres://user:secret-word@127.0.0.1:1/durward", Options{}, storage.ErrUnavailable, "cannot be reached"},
		{"a database that is not there", strings.Replace(empty, "/durward_", "/other_", 1), Options{}, storage.ErrUnavailable, "does not exist"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Open(t.Context(), c.dsn, c.opts)
			if err == nil {
				_ = s.Close()
				t.Fatal("it was opened")
			}
			if c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
			if strings.Contains(err.Error(), "secret-word") {
				t.Errorf("the password is told: %v", err)
			}
		})
	}
}

// schema describes columns, constraints, indexes and policies.
func schema(t *testing.T, s *Store) []string {
	t.Helper()
	return texts(t, s, records.Everyone, `
		SELECT table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable FROM information_schema.columns WHERE table_schema = current_schema()
		UNION ALL SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint WHERE connamespace = current_schema()::regnamespace
		UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema()
		UNION ALL SELECT tablename || ' ' || policyname || ' ' || qual FROM pg_policies WHERE schemaname = current_schema() ORDER BY 1`)
}

// Z-F09: every step can be taken back and made again.
func TestMigrateForwardAndBack(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	steps, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	schemas := map[int][]string{len(steps): schema(t, s)}
	for version := len(steps) - 1; version >= 0; version-- {
		if err := s.migrateTo(t.Context(), steps, version); err != nil {
			t.Fatal(err)
		}
		schemas[version] = schema(t, s)
	}
	if tables := texts(t, s, records.Everyone, `SELECT tablename::text FROM pg_tables WHERE schemaname = current_schema()`); len(tables) != 1 {
		t.Errorf("what is left of an empty schema is %v", tables)
	}
	for version := range len(steps) {
		if err := s.migrateTo(t.Context(), steps, version+1); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(schemas[version+1], schema(t, s)); diff != "" {
			t.Errorf("version %d made again (-before +after)\n%s", version+1, diff)
		}
	}
	seed(t, s, "a")
}
