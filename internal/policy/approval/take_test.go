package approval_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/storage"
)

// TestTakeOnce covers M15: of 1,000 attempts to use one approval exactly one succeeds, and the next round's proof is
// good once too.
func TestTakeOnce(t *testing.T) {
	e := newEngine(new(memory), new(approval.Bell), nil)
	a, err := e.Request(t.Context(), call())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Decide(t.Context(), console, a.ID, true); err != nil {
		t.Fatal(err)
	}
	race := func(c *approval.Call, id string) (taken storage.Approval, n int64) {
		var wg sync.WaitGroup
		var count atomic.Int64
		var got atomic.Pointer[storage.Approval]
		for range 1000 {
			wg.Go(func() {
				if a, err := e.Take(t.Context(), c, id); err == nil {
					count.Add(1)
					got.Store(&a)
				}
			})
		}
		wg.Wait()
		return *got.Load(), count.Load()
	}
	used, n := race(call(), a.ID)
	if n != 1 {
		t.Fatalf("taken %d times", n)
	}
	id, round, err := e.Prolong(t.Context(), &used, call())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Take(t.Context(), call(), id); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("a round's approval is good for a call without it: %v", err)
	}
	next := call()
	next.Round = round
	taken, n := race(next, id)
	if n != 1 || taken.DecidedVia != storage.ChannelOutOfBand || taken.DecidedClient != "console" {
		t.Errorf("taken %d times: %+v", n, taken)
	}
}
