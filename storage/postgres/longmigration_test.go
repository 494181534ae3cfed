package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

// TestLongMigration checks that the time limit for opening a store cuts off no migration, nor the wait for another
// node's: it would begin anew each time, and never end.
func TestLongMigration(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	other, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.WithoutCancel(t.Context()))
	run := func(statement string, args ...any) {
		t.Helper()
		if _, err := other.Exec(t.Context(), statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	run(`SELECT pg_advisory_lock($1)`, int64(migrationLock)) // the other node migrates
	const opening = 2 * time.Second
	begun, ended := make(chan int, 1), make(chan error, 1)
	s, err := New(dsn, Options{Migrating: func(from, to int) { begun <- to - from }, opening: opening})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	go func() { ended <- s.Connect(t.Context()) }()
	select {
	case steps := <-begun:
		if steps != knownVersion {
			t.Errorf("%d steps", steps)
		}
	case err := <-ended:
		t.Fatalf("connected with %v", err)
	}
	run(`SELECT pg_sleep($1)`, (2 * opening).Seconds()) // the database's clock is the one that runs
	select {
	case err := <-ended:
		t.Fatalf("cut: %v", err)
	default:
	}
	run(`SELECT pg_advisory_unlock($1)`, int64(migrationLock))
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestOthersMigrate checks that the others stay ready, for reads, while one node changes the schema, and that a
// starting one says what it waits for.
func TestOthersMigrate(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	s := openAt(t, dsn, Options{})
	c := seed(t, s, "a")
	late, err := New(dsn, Options{Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	other, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.WithoutCancel(t.Context()))
	migrating, err := other.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrating.Exec(t.Context(), aloneSQL); err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(t.Context()); !errors.Is(err, storage.ErrReadOnly) {
		t.Errorf("not ready: %v", err)
	}
	wantUnavailable(t, s.Ping(t.Context()), textMigrating)
	wantUnavailable(t, late.Connect(t.Context()), textMigrating)
	if err := read(s, c); err != nil {
		t.Error(err)
	}
	if err := migrating.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Ping(t.Context()), late.Connect(t.Context())); err != nil {
		t.Error(err)
	}
}
