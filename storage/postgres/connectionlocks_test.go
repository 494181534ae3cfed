package postgres

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

// A12: edits of one connection exclude each other over nodes; other connections are not held up.
func TestEditsAreExclusiveOverNodes(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	nodes := []*Store{openAt(t, dsn, Options{Timeout: patient}), openAt(t, dsn, Options{Timeout: patient}), openAt(t, dsn, Options{Timeout: patient})}
	c := seed(t, nodes[0], "a")
	other := seed(t, nodes[0], "b")
	var all sync.WaitGroup
	var inside sync.Mutex
	for i := range 30 {
		all.Go(func() {
			_, err := nodes[i%3].UpdateConnection(t.Context(), c.ConnectionKey, func(ctx context.Context, c *storage.Connection) error {
				if !inside.TryLock() {
					t.Error("two edits run at once")
					return errors.New("not alone")
				}
				defer inside.Unlock()
				if i == 0 {
					if _, err := nodes[1].UpdateConnection(ctx, other.ConnectionKey, func(context.Context, *storage.Connection) error { return nil }); err != nil {
						t.Error(err)
					}
				}
				c.Reason += "x"
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	c, err := nodes[2].Connection(t.Context(), c.ConnectionKey)
	if err != nil || c.Reason != strings.Repeat("x", 30) {
		t.Errorf("%d of 30 edits are there, error %v", len(c.Reason), err)
	}
}

// A12: a node whose connection broke has lost its locks. When another one edits meanwhile, the second writer is refused,
// and nothing is overwritten.
func TestEditUnderALostLock(t *testing.T) {
	t.Parallel()
	server := pgtest.NewServer(t)
	first, second := openAt(t, server.URL(), Options{Timeout: patient}), openAt(t, server.URL(), Options{Timeout: patient})
	c := seed(t, first, "a")
	edit := func(reason string) func(context.Context, *storage.Connection) error {
		return func(_ context.Context, c *storage.Connection) error { c.Reason = reason; return nil }
	}
	_, err := first.UpdateConnection(t.Context(), c.ConnectionKey, func(ctx context.Context, c *storage.Connection) error {
		server.Exec(t, `SELECT pg_terminate_backend(l.pid) FROM pg_locks l WHERE l.locktype = 'advisory'`)
		if _, err := second.UpdateConnection(ctx, c.ConnectionKey, edit("second")); err != nil {
			t.Error(err)
		}
		return edit("first")(ctx, c)
	})
	wantUnavailable(t, err, "another node changed")
	got, err := first.Connection(t.Context(), c.ConnectionKey)
	if err != nil || got.Reason != "second" {
		t.Errorf("%q, error %v", got.Reason, err)
	}
	if _, err := first.UpdateConnection(t.Context(), c.ConnectionKey, edit("third")); err != nil {
		t.Error(err)
	}
}

// A12: a database that is away when the provider has answered takes the new tokens when it is back. The edit keeps its turn
// until then.
func TestEditOutlivesARestart(t *testing.T) {
	t.Parallel()
	server := pgtest.NewServer(t)
	s := openAt(t, server.URL(), Options{Timeout: patient})
	c := seed(t, s, "a")
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	var starts sync.WaitGroup
	_, err := s.UpdateConnection(ctx, c.ConnectionKey, func(_ context.Context, c *storage.Connection) error {
		server.Stop(t)
		starts.Go(func() { server.Start(t) })
		c.SealedCredential = []byte("rotated")
		return nil
	})
	starts.Wait()
	if err != nil {
		t.Fatal(err)
	}
	got, err := openAt(t, server.URL(), Options{Timeout: patient}).Connection(t.Context(), c.ConnectionKey)
	if err != nil || string(got.SealedCredential) != "rotated" {
		t.Errorf("%q, error %v", got.SealedCredential, err)
	}
}

// A12: a caller that gives up while a lock is asked for does not end the locks of others. Their refresh token is at
// the provider, and another node would send it again.
func TestEditsOutliveWhoGivesUp(t *testing.T) {
	t.Parallel()
	server := pgtest.NewServer(t)
	first, second := openAt(t, server.URL(), Options{Timeout: patient}), openAt(t, server.URL(), Options{Timeout: patient})
	c := seed(t, first, "a")
	release, err := first.edits.acquire(t.Context(), c.ConnectionKey, patient)
	if err != nil {
		t.Fatal(err)
	}
	const slow = `SELECT $1::bigint IS NOT NULL FROM pg_sleep(1)`
	given, giveUp := context.WithCancel(t.Context())
	asked := make(chan error)
	go func() {
		_, err := first.edits.ask(given, slow, 0, patient)
		asked <- err
	}()
	for len(first.edits.turn) == 0 {
		runtime.Gosched()
	}
	server.Exec(t, `SELECT pg_sleep(0.3)`)
	giveUp()
	if err := <-asked; err != nil {
		t.Error(err)
	}
	other := c.ConnectionKey
	other.ServerID = "another"
	if _, err := first.edits.acquire(given, other, patient); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*editPoll)
	defer cancel()
	if _, err := second.edits.acquire(ctx, c.ConnectionKey, patient); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("another node edits meanwhile: %v", err)
	}
	release()
	release, err = second.edits.acquire(t.Context(), c.ConnectionKey, patient)
	if err != nil {
		t.Fatal(err)
	}
	release()
}
