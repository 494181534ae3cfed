package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/storage"
)

// runSQL runs SQL on the file beside the store, as another program would.
func runSQL(t *testing.T, path, query string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), query); err != nil {
		t.Fatal(err)
	}
}

func reopen(t *testing.T, path string) error {
	t.Helper()
	s, err := Open(t.Context(), path, Options{})
	if err == nil {
		err = s.Close()
	}
	return err
}

func TestOpenGrowsNoTree(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "mistyped")
	if err := reopen(t, filepath.Join(missing, "data", "durward.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("made %s: %v", missing, err)
	}
}

func TestOpenMakesPrivateFiles(t *testing.T) {
	t.Parallel()
	// Characters that mean something in a SQLite URI are part of the name here.
	dir := filepath.Join(t.TempDir(), "a b?mode=memory#%41&x")
	path := filepath.Join(dir, "durward.db")
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	check := func() {
		t.Helper()
		for name, want := range map[string]fs.FileMode{dir: 0o700, path: 0o600, path + "-wal": 0o600, path + "-shm": 0o600} {
			info, err := os.Stat(name)
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm() != want {
				t.Errorf("%s has mode %v, want %v", name, info.Mode().Perm(), want)
			}
		}
	}
	check()
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if err := os.Chmod(name, 0o664); err != nil { //nolint:gosec // what Open has to correct
			t.Fatal(err)
		}
	}
	if err := reopen(t, path); err != nil {
		t.Fatal(err)
	}
	check()
}

func TestOpenSettings(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	for _, c := range []struct {
		db              *sql.DB
		pragma, setting string
	}{
		{s.writer, `PRAGMA journal_mode`, "wal"},
		{s.writer, `PRAGMA synchronous`, "2"}, // FULL: the log is synced on every commit
		{s.writer, `PRAGMA foreign_keys`, "1"},
		{s.writer, `PRAGMA secure_delete`, "1"},
		{s.writer, `PRAGMA trusted_schema`, "0"},
		{s.readers, `PRAGMA query_only`, "1"},
		{s.readers, `PRAGMA trusted_schema`, "0"},
	} {
		var got string
		if err := c.db.QueryRowContext(t.Context(), c.pragma).Scan(&got); err != nil || got != c.setting {
			t.Errorf("%s is %q (%v), want %q", c.pragma, got, err, c.setting)
		}
	}
	if _, err := s.readers.ExecContext(t.Context(), `DELETE FROM data_keys`); err == nil {
		t.Error("a reader could write")
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	t.Run("Z-F09 a newer schema", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "durward.db")
		if err := reopen(t, path); err != nil {
			t.Fatal(err)
		}
		runSQL(t, path, `INSERT INTO schema_migrations (version, name) VALUES (9999, 'from the future')`)
		err := reopen(t, path)
		if !errors.Is(err, ErrSchema) || !strings.Contains(err.Error(), "9999") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("another program's database", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "other.db")
		runSQL(t, path, `CREATE TABLE servers (id TEXT)`)
		if err := reopen(t, path); !errors.Is(err, ErrSchema) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a file that is no database", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "text.db")
		if err := os.WriteFile(path, []byte(strings.Repeat("not a database ", 1000)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := reopen(t, path); err == nil {
			t.Error("opened")
		}
	})
	t.Run("a directory", func(t *testing.T) {
		if err := reopen(t, t.TempDir()); err == nil {
			t.Error("opened")
		}
	})
	t.Run("an ended context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := Open(ctx, filepath.Join(t.TempDir(), "durward.db"), Options{}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// schema reads the text of all tables and indexes.
func schema(t *testing.T, db *sql.DB) (text string) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), `SELECT COALESCE(group_concat(sql, char(10)), '')
		FROM (SELECT sql FROM sqlite_master WHERE name NOT LIKE 'sqlite%' AND name <> 'schema_migrations' ORDER BY name)`).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}

// Every migration can be undone, step by step, and done again.
func TestMigrationsDownAndUp(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	steps, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	want := schema(t, s.writer)
	for i := len(steps) - 1; i >= 0; i-- {
		down, err := migrationFiles.ReadFile("migrations/" + steps[i].name + ".down.sql")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.writer.ExecContext(t.Context(), string(down)); err != nil {
			t.Fatalf("undoing %s: %v", steps[i].name, err)
		}
	}
	if left := schema(t, s.writer); left != "" {
		t.Fatalf("left over:\n%s", left)
	}
	if _, err := s.writer.ExecContext(t.Context(), `DELETE FROM schema_migrations`); err != nil {
		t.Fatal(err)
	}
	if err := migrate(t.Context(), s.writer); err != nil {
		t.Fatal(err)
	}
	if got := schema(t, s.writer); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Of several that open an empty file at once, one migrates and all work.
func TestOpenConcurrently(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "durward.db")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			s, err := Open(t.Context(), path, Options{Timeout: time.Minute})
			if err != nil {
				t.Error(err)
				return
			}
			defer s.Close()
			if err := s.AddDataKey(t.Context(), storage.DataKey{Version: i + 1, Wrapped: []byte{1}}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestCloseTwiceAndAfter(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Ping(t.Context()); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

// A file of the former schema is brought up to date together with its contents.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "durward.db")
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := seedConnection(t, s)
	agent, approval := seedApproval(t, s, want.ConnectionKey)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	steps, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	newest := steps[len(steps)-1]
	down, err := migrationFiles.ReadFile("migrations/" + newest.name + ".down.sql")
	if err != nil {
		t.Fatal(err)
	}
	runSQL(t, path, fmt.Sprintf(`%s; DELETE FROM schema_migrations WHERE version = %d`, down, newest.version))
	if s, err = Open(t.Context(), path, Options{}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	u, err := s.User(t.Context(), want.OrganizationID, want.UserID)
	if err != nil || !u.RevokedAt.IsZero() || !u.LoggedOutAt.IsZero() {
		t.Errorf("got %+v, %v", u, err)
	}
	if got, err := s.Connection(t.Context(), want.ConnectionKey); err != nil || string(got.SealedCredential) != string(want.SealedCredential) {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := s.Agent(t.Context(), want.OrganizationID, agent.ID); err != nil || !cmp.Equal(got, agent) {
		t.Errorf("got %+v, %v, want %+v", got, err, agent)
	}
	if got, err := s.Approval(t.Context(), want.OrganizationID, approval.ID, approval.CreatedAt); err != nil || !cmp.Equal(got, approval) {
		t.Errorf("got %+v, %v, want %+v", got, err, approval)
	}
	// The tables that were made anew refer to each other.
	if err := s.DeleteAgent(t.Context(), want.OrganizationID, agent.ID, want.UserID, approval.CreatedAt); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Approval(t.Context(), want.OrganizationID, approval.ID, approval.CreatedAt); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("the approval of an agent that is gone: %v", err)
	}
}

// seedApproval stores an agent, and an approval of a call of its user's.
func seedApproval(t *testing.T, s *Store, key storage.ConnectionKey) (storage.Agent, storage.Approval) {
	t.Helper()
	at := time.UnixMicro(1_700_000_000_000_000).UTC()
	agent := storage.Agent{ID: "agent", OrganizationID: key.OrganizationID, ApprovalChannel: storage.ChannelInBand, CreatedAt: at, UpdatedAt: at, Application: storage.Application{
		ID: "application", OrganizationID: key.OrganizationID, Issuer: "https://id.example.com", ExternalID: "client", Name: "Client", CreatedAt: at, UpdatedAt: at,
	}}
	if err := s.CreateAgent(t.Context(), agent); err != nil {
		t.Fatal(err)
	}
	approval, err := s.CreateApproval(t.Context(), storage.Approval{
		ID: "approval", OrganizationID: key.OrganizationID, UserID: key.UserID, AgentID: agent.ID, Client: "client", ServerID: key.ServerID, Tool: "delete",
		Binding: []byte("binding"), ArgumentsDigest: "digest", SealedArguments: []byte("sealed"), PolicyID: "policy", PolicyRevision: 7, Rule: "rule",
		Channel: storage.ChannelInBand, Status: storage.ApprovalPending, ExpiresAt: at.Add(time.Hour), CreatedAt: at,
	}, storage.AskLimits{Pending: 10})
	if err != nil {
		t.Fatal(err)
	}
	return agent, approval
}
