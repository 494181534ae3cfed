package admission

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/ratelimit/window"
)

// TestEqualSets checks that a write which changes no limit leaves the set as it is: it remembers the names of subjects.
func TestEqualSets(t *testing.T) {
	g := newGate(t, rate(everybody, 10, 0))
	set := func() any {
		t.Helper()
		s, err := g.book.Set(t.Context(), acme)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := set()
	g.set(g.limits...)
	if set() != first {
		t.Error("equal limits are compiled again")
	}
	g.set(rate(everybody, 11, 0))
	if set() == first {
		t.Error("changed limits are not compiled")
	}
	g.set()
	set()
	if len(g.book.last) != 0 {
		t.Error("the limits of an organization without limits are kept")
	}
}

// TestLedgers checks that the ledger of a counter server is kept until another server counts.
func TestLedgers(t *testing.T) {
	g := newGate(t)
	first := g.book.CountWith("a")
	if g.book.CountWith("a") != first {
		t.Error("a reload drops the ledger")
	}
	if g.book.CountWith("") == first || g.book.CountWith("a") == first {
		t.Error("a server that did not count meanwhile gets the old ledger")
	}
}

// TestSweeping checks that counters which nobody charges any more are deleted, and that their number is told.
func TestSweeping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []int
		counters := window.New(time.Now)
		book, err := NewBook(new(cache.Epochs), new(stored), counters, func(delta int) { told = append(told, delta) })
		if err != nil {
			t.Fatal(err)
		}
		charge := func(name string) {
			key := window.NewKey(window.NewDigest(name), window.Digest{})
			counters.Charge([]window.Charge{{Key: key, Amount: 1, Limit: 10}}, make([]window.State, 1))
		}
		charge("a")
		charge("b")
		time.Sleep(sweepLimits)
		synctest.Wait()
		time.Sleep(10 * sweepLimits)
		synctest.Wait()
		charge("c")
		time.Sleep(sweepLimits)
		synctest.Wait()
		book.Close()
		changes := told[:0]
		for _, delta := range told {
			if delta != 0 {
				changes = append(changes, delta)
			}
		}
		if diff := cmp.Diff([]int{2, -2, 1, -1}, changes); diff != "" {
			t.Error(diff)
		}
	})
}
