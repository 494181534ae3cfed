package postgres

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

// addsSQL is a possible step of a next version that only adds, to every table.
const addsSQL = `DO $$ DECLARE of TEXT; BEGIN
	FOR of IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename <> 'schema_migrations' ORDER BY 1 LOOP
		EXECUTE format('ALTER TABLE %I ADD COLUMN next_word TEXT COLLATE "C" NOT NULL DEFAULT ''unsaid''', of);
		EXECUTE format('CREATE INDEX %I ON %I (next_word)', of || '_next', of);
	END LOOP;
END $$;
CREATE TABLE next_things (
	id              TEXT COLLATE "C" NOT NULL PRIMARY KEY,
	organization_id TEXT COLLATE "C" NOT NULL REFERENCES organizations (id)
)`

// nextVersions returns the steps of the next version, and of the one after it, which lets only programs write that
// know it.
func nextVersions(t *testing.T) (adds, changes []migration) {
	t.Helper()
	known, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	n := len(known)
	adds = append(known, migration{version: n + 1, name: "adds", oldest: n, up: addsSQL})
	changes = append(adds, migration{version: n + 2, name: "changes", oldest: n + 2, up: `ALTER TABLE connections RENAME COLUMN reason TO cause`})
	return adds, changes
}

func upgrade(t *testing.T, s *Store, steps []migration) {
	t.Helper()
	if err := s.migrateTo(t.Context(), steps, len(steps)); err != nil {
		t.Fatal(err)
	}
}

// Z-F09: a node of the next version changes the schema while nodes of this one read and write, and none of them
// fails. They do not touch the new version's data, and when it moves on to a schema that they do not know any more
// they only read.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	adds, changes := nextVersions(t)
	dsn := pgtest.Database(t)
	nodes := map[string]*Store{"one": openAt(t, dsn, Options{Timeout: patient}), "other": openAt(t, dsn, Options{Timeout: patient})}
	c := seed(t, nodes["one"], "a")
	servers := storage.ServerFilter{OrganizationID: c.OrganizationID, Page: storage.PageRequest{Number: 1, Limit: 10}}
	stop := make(chan struct{})
	var load sync.WaitGroup
	var edits atomic.Int64
	for name, s := range nodes {
		for range 2 {
			load.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					_, err := s.UpdateConnection(t.Context(), c.ConnectionKey, func(_ context.Context, c *storage.Connection) error {
						c.Reason += "x"
						return nil
					})
					if err == nil {
						edits.Add(1)
						_, err = s.Connection(t.Context(), c.ConnectionKey)
					}
					if err == nil {
						_, err = s.Servers(t.Context(), servers)
					}
					if err != nil {
						t.Errorf("node %s, after %d edits: %v", name, edits.Load(), err)
						return
					}
				}
			})
		}
	}
	further := func() {
		t.Helper()
		for until := edits.Load() + 60; edits.Load() < until && !t.Failed(); {
			if err := nodes["one"].Ping(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	further()
	upgrade(t, openAt(t, dsn, Options{Timeout: patient}), adds)
	execute(t, pgtest.Superuser(t, dsn), `UPDATE connections SET next_word = 'said'`)
	further()
	nodes["late"] = openAt(t, dsn, Options{Timeout: patient})
	close(stop)
	load.Wait()
	if after, err := nodes["late"].Connection(t.Context(), c.ConnectionKey); err != nil || after.Reason != strings.Repeat("x", int(edits.Load())) {
		t.Errorf("%d edits, %d are there, %v", edits.Load(), len(after.Reason), err)
	}
	for table, want := range map[string]string{"connections": "said", "servers": "unsaid"} {
		if words := pgtest.Texts(t, dsn, `SELECT next_word FROM `+table); len(words) != 1 || words[0] != want {
			t.Errorf("%s: %q instead of %q", table, words, want)
		}
	}

	upgrade(t, nodes["late"], changes)
	nodes["too late"] = openAt(t, dsn, Options{})
	for name, s := range nodes {
		if page, err := s.Servers(t.Context(), servers); err != nil || len(page.Items) != 1 {
			t.Errorf("node %s reads: %v", name, err)
		}
		_, err := s.DeleteServer(untold(t.Context()), c.OrganizationID, c.ServerID, "", start)
		if !errors.Is(err, ErrSchema) || !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), "newer durward") {
			t.Errorf("node %s writes: %v", name, err)
		}
		if err := s.Ping(t.Context()); !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("node %s says that it can write: %v", name, err)
		}
	}
}
