package postgres

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

// TestInspectRights checks that an error with which a start would end is reported before it.
func TestInspectRights(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	super := pgtest.Superuser(t, dsn)
	execute(t, super, `CREATE TABLE invoices (id BIGINT)`)
	f, err := Inspect(t.Context(), dsn, time.Now)
	if err != nil || f.ForeignTables != 1 {
		t.Errorf("%d tables of another program, %v", f.ForeignTables, err)
	}
	execute(t, super, `DROP TABLE invoices`)
	// These are the rights in PostgreSQL 15 of users who do not own the database.
	execute(t, super, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I OWNER TO %I', current_database(), current_user);
		EXECUTE format('ALTER DATABASE %I CONNECTION LIMIT 30', current_database()); END $$`)
	execute(t, super, `ALTER SCHEMA public OWNER TO CURRENT_USER; REVOKE ALL ON SCHEMA public FROM PUBLIC; GRANT USAGE ON SCHEMA public TO PUBLIC`)
	f, err = Inspect(t.Context(), dsn, time.Now)
	if err != nil || f.MayCreate || f.Owner == f.User || f.Owner == "" || f.DatabaseConnections != 30 {
		t.Errorf("somebody else's database: %+v, %v", f, err)
	}
	if _, err := Open(t.Context(), dsn, Options{}); !errors.Is(err, ErrSchema) || !strings.Contains(err.Error(), "OWNER TO") {
		t.Errorf("opening it: %v", err)
	}
}

// TestInspect looks at an empty database, one of durward's, and one that is being copied into.
func TestInspect(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	inspect := func(dsn string) Facts {
		t.Helper()
		f, err := Inspect(t.Context(), dsn, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := inspect(dsn)
	if f.SchemaVersion != 0 || f.KnownVersion != knownVersion || f.Bypasses || f.Standby || f.Pooled || f.Arriving || f.Encoding != "UTF8" ||
		f.Fsync != "off" || f.SynchronousCommit != "on" || f.MaxConnections < 10 || f.ServerVersion < 140000 || f.User == "" || !f.OpenToAll {
		t.Errorf("an empty database: %+v", f)
	}
	if !f.MayCreate || f.Owner != f.User || f.Schema != "public" || f.Database == "" || f.ForeignTables != 0 || f.RoleConnections != -1 || f.DatabaseConnections != -1 {
		t.Errorf("rights in an empty database: %+v", f)
	}
	if drift := time.Since(f.Now); drift < -time.Minute || drift > 10*time.Minute {
		t.Errorf("its clock is off by %v", drift)
	}
	execute(t, dsn, `DO $$ BEGIN EXECUTE format('REVOKE CONNECT ON DATABASE %I FROM PUBLIC', current_database()); END $$`)
	if inspect(dsn).OpenToAll {
		t.Error("everybody may connect")
	}
	s := openAt(t, dsn, Options{})
	if f := inspect(dsn); f.SchemaVersion != knownVersion || f.OldestWriter == 0 || f.Arriving {
		t.Errorf("durward's database: %+v", f)
	}
	execute(t, dsn, makeArrivalSQL)
	if f := inspect(pgtest.Superuser(t, dsn)); !f.Arriving || !f.Bypasses {
		t.Errorf("as a superuser, with an arrival: %+v", f)
	}
	if tables, err := s.Tables(t.Context()); err != nil || len(tables) < 30 {
		t.Errorf("%d tables, %v", len(tables), err)
	}
	if _, err := Inspect(t.Context(), "postgres://user:secret-word@127.0.0.1:1/durward", time.Now); !errors.Is(err, storage.ErrUnavailable) ||
		strings.Contains(err.Error(), "secret-word") {
		t.Errorf("nobody there: %v", err)
	}
}
