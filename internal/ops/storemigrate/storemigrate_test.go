package storemigrate_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/durward-gateway/durward/internal/ops/storemigrate"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/postgres"
	"github.com/durward-gateway/durward/storage/postgres/counters"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
	"github.com/durward-gateway/durward/storage/sqlite"
	"github.com/durward-gateway/durward/storage/sqlite/sqlitetest"
	"github.com/durward-gateway/durward/storage/storagetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.Main{M: m}) }

// patient is the time that a statement may take on a busy machine.
const patient = time.Minute

// filled returns a SQLite store with n rows in every table, and a function that changes it from outside.
func filled(t *testing.T, n int) (path string, execute func(query string, args ...any)) {
	t.Helper()
	path = sqlitetest.Path(t)
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{Timeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	tables, err := s.Tables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	with := func(f func(db *sql.DB)) {
		db, err := sql.Open("sqlite", "file:"+path+"?_foreign_keys=1")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		f(db)
	}
	with(func(db *sql.DB) { storagetest.FillTables(t, db, tables, n, nil) })
	return path, func(query string, args ...any) {
		with(func(db *sql.DB) {
			if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func openSource(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.OpenExclusively(t.Context(), path, sqlite.Options{Timeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func openTarget(t *testing.T, dsn string) *postgres.Arrival {
	t.Helper()
	a, err := postgres.OpenArrival(t.Context(), dsn, postgres.Options{Timeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

func openGateway(t *testing.T, dsn string) (*postgres.Store, error) {
	t.Helper()
	s, err := postgres.Open(t.Context(), dsn, postgres.Options{Timeout: patient})
	if err == nil {
		t.Cleanup(func() { _ = s.Close() })
	}
	return s, err
}

// notMoved lists the tables that are not copied, with the reason.
var notMoved = map[string]string{
	"schema_migrations": "the history of the database's own schema",
	"change_log":        "what the database's own readers have yet to hear of",
}

// TestEveryTableIsMoved checks that every table, also of a future migration, is copied or listed in notMoved.
func TestEveryTableIsMoved(t *testing.T) {
	t.Parallel()
	path, _ := filled(t, 1)
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		if notMoved[name] == "" {
			all = append(all, name)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	result, err := storemigrate.Copy(t.Context(), openSource(t, path), openTarget(t, pgtest.Database(t)), storemigrate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var moved []string
	for _, m := range result.Tables {
		if m.Rows == 0 {
			t.Errorf("no row of %s was there to be copied", m.Table)
		}
		moved = append(moved, m.Table)
	}
	slices.Sort(all)
	slices.Sort(moved)
	if diff := cmp.Diff(all, moved); diff != "" {
		t.Errorf("tables (-there +moved)\n%s", diff)
	}
}

// TestCopy checks that a copy with repeated interruptions continues at its last row, and ends with the same rows on
// both sides.
func TestCopy(t *testing.T) {
	t.Parallel()
	const rows = 600 // of each table: two pages
	path, _ := filled(t, rows)
	dsn := pgtest.Database(t)
	source := openSource(t, path)
	if _, err := sqlite.Open(t.Context(), path, sqlite.Options{Timeout: time.Millisecond}); err == nil {
		t.Error("a gateway can start on a store that is being copied")
	}
	var result storemigrate.Result
	interruptions, done := 0, int64(0)
	for stopAt := int64(500); ; stopAt += 4_500 {
		ctx, cancel := context.WithCancel(t.Context())
		target := openTarget(t, dsn)
		var err error
		result, err = storemigrate.Copy(ctx, source, target, storemigrate.Options{Progress: func(p storemigrate.Progress) {
			if p.Done > p.All || p.Rows > p.Total || p.Total != rows {
				t.Errorf("progress %+v", p)
			}
			if p.Step == storemigrate.Copying {
				done = p.Done
			}
			if p.Done >= stopAt {
				cancel()
			}
		}})
		cancel()
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if _, err := openGateway(t, dsn); !errors.Is(err, postgres.ErrArriving) || !errors.Is(err, postgres.ErrSchema) {
			t.Fatalf("a gateway starts on half a store: %v", err)
		}
		if err := target.Close(); err != nil {
			t.Fatal(err)
		}
		interruptions++
	}
	if interruptions < 3 || !result.Resumed || done != rows*int64(len(result.Tables)) {
		t.Errorf("%d interruptions, resumed %v, %d rows", interruptions, result.Resumed, done)
	}
	gateway, err := openGateway(t, dsn)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := gateway.Tables(t.Context())
	if err != nil || len(tables) != len(result.Tables) {
		t.Fatal(tables, err)
	}
	for _, table := range tables {
		n, err := gateway.CountRows(t.Context(), table)
		if err != nil || n != rows {
			t.Errorf("%s has %d rows, error %v", table.Name, n, err)
		}
		// Compare row by row, with code that Copy does not use.
		here, err := source.Rows(t.Context(), table, nil, rows)
		if err != nil {
			t.Fatal(err)
		}
		there, err := gateway.Rows(t.Context(), table, nil, rows)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(here, there); diff != "" || len(here) != rows {
			t.Errorf("%s: %d rows (-source +target)\n%.2000s", table.Name, len(here), diff)
		}
	}
}

// TestRefuses checks the sources that must not be copied, and the targets that must not be copied into.
func TestRefuses(t *testing.T) {
	t.Parallel()
	path, execute := filled(t, 3)
	other, _ := filled(t, 4)
	dsn := pgtest.Database(t)

	running, err := sqlite.Open(t.Context(), path, sqlite.Options{Timeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.OpenExclusively(t.Context(), path, sqlite.Options{}); !errors.Is(err, sqlite.ErrInUse) {
		t.Errorf("beside a gateway: %v", err)
	}
	if err := running.Close(); err != nil {
		t.Fatal(err)
	}

	target := openTarget(t, dsn)
	if _, err := postgres.OpenArrival(t.Context(), dsn, postgres.Options{}); !errors.Is(err, postgres.ErrCopying) {
		t.Errorf("a second copy at the same time: %v", err)
	}
	interrupted, cancel := context.WithCancel(t.Context())
	source := openSource(t, path)
	if _, err := storemigrate.Copy(interrupted, source, target, storemigrate.Options{Progress: func(storemigrate.Progress) { cancel() }}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := storemigrate.Copy(t.Context(), openSource(t, other), target, storemigrate.Options{}); !errors.Is(err, postgres.ErrOtherSource) {
		t.Errorf("another source: %v", err)
	}

	// The source changes between two attempts, in rows that have arrived already.
	if err := source.Close(); err != nil {
		t.Fatal(err)
	}
	execute(`UPDATE organizations SET slug = 'changed'||id`)
	execute(`UPDATE epochs SET epoch = epoch + 1`)
	source = openSource(t, path)
	if _, err := storemigrate.Copy(t.Context(), source, target, storemigrate.Options{}); !errors.Is(err, storemigrate.ErrDiffers) {
		t.Fatalf("the source has changed: %v", err)
	}
	if _, err := openGateway(t, dsn); !errors.Is(err, postgres.ErrArriving) {
		t.Errorf("a gateway starts on a copy that differs: %v", err)
	}
	if result, err := storemigrate.Copy(t.Context(), source, target, storemigrate.Options{Anew: true}); err != nil || result.Resumed {
		t.Fatalf("anew: %v", err)
	}
	if _, err := storemigrate.Copy(t.Context(), source, target, storemigrate.Options{}); !errors.Is(err, postgres.ErrNotEmpty) {
		t.Errorf("a copy onto a copy: %v", err)
	}
	if _, err := storemigrate.Copy(t.Context(), source, target, storemigrate.Options{Anew: true}); !errors.Is(err, postgres.ErrNotEmpty) {
		t.Errorf("anew, onto what is no copy under way: %v", err)
	}

	empty, err := sqlite.Open(t.Context(), sqlitetest.Path(t), sqlite.Options{Timeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	defer empty.Close()
	if _, err := storemigrate.Copy(t.Context(), empty, target, storemigrate.Options{}); !errors.Is(err, storemigrate.ErrNothing) {
		t.Errorf("an empty store: %v", err)
	}
}

// TestCountersMayBeThere checks that counters of rate limits do not count as content of a store. A gateway makes them
// before it learns that it must not start yet.
func TestCountersMayBeThere(t *testing.T) {
	t.Parallel()
	path, _ := filled(t, 3)
	dsn := pgtest.Database(t)
	shared, err := counters.New(dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	if _, err := shared.Beat(t.Context(), "node", storage.AnyEpoch); err != nil {
		t.Fatal(err)
	}
	if _, err := storemigrate.Copy(t.Context(), openSource(t, path), openTarget(t, dsn), storemigrate.Options{}); err != nil {
		t.Fatal(err)
	}
}

// TestTextThatCannotBeKept covers Q01: text that PostgreSQL cannot keep is named, and never changed.
func TestTextThatCannotBeKept(t *testing.T) {
	t.Parallel()
	path, execute := filled(t, 3)
	execute(`UPDATE servers SET name = 'a' || char(0) || 'b' WHERE id = (SELECT min(id) FROM servers)`)
	_, err := storemigrate.Copy(t.Context(), openSource(t, path), openTarget(t, pgtest.Database(t)), storemigrate.Options{})
	if !errors.Is(err, storage.ErrText) || !strings.Contains(err.Error(), "servers.name") || !strings.Contains(err.Error(), "server-") {
		t.Errorf("%v", err)
	}
}

// TestSecretsOpenAfterTheMove checks that nothing is decrypted on the way, and that the same master key opens it at the
// target.
func TestSecretsOpenAfterTheMove(t *testing.T) {
	t.Parallel()
	path := sqlitetest.Path(t)
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{Timeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	master, err := seal.ParseMasterKey(seal.NewMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	ring, err := seal.OpenKeyring(t.Context(), []seal.MasterKey{master}, s, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if _, err := s.ResolveOrganization(ctx, storage.OrganizationClaim{Issuer: "https://id.example.com", ID: "o"}, now); err != nil {
		t.Fatal(err)
	}
	provider := storage.LLMProvider{ID: "p", OrganizationID: "o", Name: "P", Kind: "openai", CreatedAt: now, UpdatedAt: now}
	place := seal.AD{Table: "llm_providers", Column: "secret", Organization: "o", Record: "p"}
	if provider.SealedSecret, err = ring.Seal([]byte("sk-canary"), place); err != nil {
		t.Fatal(err)
	}
	if err := s.CreateLLMProvider(ctx, storage.ConfiguredModels{}, provider); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	dsn := pgtest.Database(t)
	target := openTarget(t, dsn)
	if _, err := storemigrate.Copy(ctx, openSource(t, path), target, storemigrate.Options{}); err != nil {
		t.Fatal(err)
	}
	gateway, err := openGateway(t, dsn)
	if err != nil {
		t.Fatal(err)
	}
	there, err := seal.OpenKeyring(ctx, []seal.MasterKey{master}, gateway, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	set, err := gateway.ModelSet(ctx, "o")
	if err != nil || len(set.Providers) != 1 {
		t.Fatal(fmt.Sprint(set), err)
	}
	if plain, err := there.Open(set.Providers[0].SealedSecret, place); err != nil || string(plain) != "sk-canary" {
		t.Errorf("%q, %v", plain, err)
	}
	wrong, err := seal.ParseMasterKey(seal.NewMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := seal.OpenKeyring(ctx, []seal.MasterKey{wrong}, gateway, func() time.Time { return now }); err == nil {
		t.Error("another master key opens the store")
	}
}
