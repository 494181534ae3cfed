package postgres

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

// Through pgbouncer in session mode the store works as without it.
func TestPoolerSession(t *testing.T) {
	t.Parallel()
	server := pgtest.NewServer(t)
	address := server.Pooler(t, "session")
	facts, err := Inspect(t.Context(), address, time.Now)
	if err != nil || facts.Pooled {
		t.Errorf("%+v, %v", facts, err)
	}
	one, other := openAt(t, address, Options{MaxConns: MinConns, Timeout: patient}), openAt(t, address, Options{MaxConns: MinConns, Timeout: patient})
	heard := make(chan string, 100)
	other.OnChange(func(organization string) { heard <- organization })
	c := seed(t, one, "a")
	deadline := time.After(patient)
	for told := false; !told; {
		select {
		case of := <-heard:
			told = of == c.OrganizationID
		case <-deadline:
			t.Fatal("a change through a pooler is not heard")
		}
	}
	var editing, edits atomic.Int32
	var all sync.WaitGroup
	for i := range 10 {
		store := []*Store{one, other}[i%2]
		all.Go(func() {
			_, err := store.UpdateConnection(t.Context(), c.ConnectionKey, func(_ context.Context, c *storage.Connection) error {
				if editing.Add(1) > 1 {
					t.Error("two edits of one connection at once")
				}
				defer editing.Add(-1)
				c.Reason += "x"
				edits.Add(1)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if after, err := other.Connection(t.Context(), c.ConnectionKey); err != nil || after.Reason != strings.Repeat("x", 10) || edits.Load() != 10 {
		t.Errorf("%d edits, %q, %v", edits.Load(), after.Reason, err)
	}
}

// A pooler in transaction mode is refused: edits would not be exclusive, and other nodes would not be heard.
func TestPoolerTransaction(t *testing.T) {
	t.Parallel()
	server := pgtest.NewServer(t)
	address := server.Pooler(t, "transaction")
	facts, err := Inspect(t.Context(), address, time.Now)
	if err != nil || !facts.Pooled {
		t.Errorf("%+v, %v", facts, err)
	}
	for range 2 {
		s, err := Open(t.Context(), address, Options{Timeout: patient})
		if err == nil {
			_ = s.Close()
			t.Fatal("it was opened")
		}
		if !errors.Is(err, ErrPooled) || errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), "session mode") {
			t.Error(err)
		}
	}
}
