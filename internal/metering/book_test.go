package metering

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/durward-gateway/durward/storage"
)

func TestUsageIsWrittenDown(t *testing.T) {
	d := newDesk(t, newMemory())
	c := call(100)
	for range 2 {
		d.reserve(c).Settle(Tokens{Input: 100, Cached: 40, Output: 7})
	}
	d.clock.set(noon.Add(59 * time.Minute))
	late := d.reserve(c)
	c.Uncounted, c.Subject.UserID, c.Subject.Alias = true, "", "a\x00\xff"
	d.reserve(c).Settle(Tokens{Input: 5, Output: -9})
	d.reserve(c).Release()
	d.clock.set(noon.Add(61 * time.Minute))
	asReserved(late) // nobody learnt what it used; it counts in the hour in which it began
	d.flush()
	row := func(user, alias string) storage.Usage {
		return storage.Usage{OrganizationID: acme, Hour: noon, UserID: user, APIKeyID: "key", AgentID: "agent", Alias: alias, Model: "m"}
	}
	want := map[storage.Usage]storage.UsageCounts{
		row("alice", "fast"):     {Requests: 3, InputTokens: 300, CachedTokens: 80, OutputTokens: 14, Cost: 2*(60+70) + 100},
		row("", "a\uFFFD\uFFFD"): {InputTokens: 5, Cost: 5},
	}
	if diff := cmp.Diff(want, d.store.usage); diff != "" {
		t.Error(diff)
	}
	if s := d.Stats(); s != (Stats{Batches: 1}) {
		t.Errorf("%+v", s)
	}
}

func TestHoldsEndOnce(t *testing.T) {
	store := newMemory()
	store.put(budget("b", wholeOrganization, storage.BudgetDay, 100))
	d := newDesk(t, store)
	for _, end := range []func(*Hold) bool{func(h *Hold) bool { return h.Settle(Tokens{Input: 1}) }, (*Hold).Release, asReserved} {
		h := d.reserve(call(10))
		if !end(h) {
			t.Error("the first to end it was not the first")
		}
		if h.Settle(Tokens{Input: 50}) || h.Release() || asReserved(h) {
			t.Error("it ended twice")
		}
	}
	d.flush()
	if got := store.spent("b"); got != 11 {
		t.Errorf("spent %d, want 11", got)
	}
	d.reserve(call(89)).Release()
	var none *Hold
	if none.Settle(Tokens{}) || none.Release() {
		t.Error("nil was the first")
	}
}

func TestUnpriced(t *testing.T) {
	d := newDesk(t, newMemory())
	c := call(1)
	c.Subject.Model = "of nobody's table"
	for range 3 {
		d.reserve(c).Settle(Tokens{Input: 1e9})
	}
	d.flush()
	if s := d.Stats(); s.Unpriced != 3 || len(d.unknown) != 1 {
		t.Errorf("%+v, %d models", s, len(d.unknown))
	}
	if n := d.store.total(); n.Cost != 0 || n.Requests != 3 || n.InputTokens != 3e9 {
		t.Errorf("%+v", n)
	}
}

// TestExactlyOnce: attempts fail before and after they are committed, calls go on meanwhile, and in the end the store has
// what was used, once. No batch is sent as anything else than before.
func TestExactlyOnce(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		store := newMemory()
		store.put(budget("org", wholeOrganization, storage.BudgetMonth, math.MaxInt64))
		store.put(budget("users", storage.Scope{Type: storage.ScopeUser}, storage.BudgetDay, math.MaxInt64))
		d := newDesk(t, store)
		defer d.Close()
		faults := rapid.SampledFrom([]fault{works, away, lostItsWord})
		now, wantCost := noon, int64(0)
		var want storage.UsageCounts
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			switch rapid.IntRange(0, 4).Draw(r, "step") {
			case 0:
				f := faults.Draw(r, "fault")
				store.fail(always(f))
				_ = d.Flush(context.Background())
				store.fail(always(works))
			case 1:
				now = now.Add(time.Duration(rapid.IntRange(1, 30).Draw(r, "minutes")) * time.Minute)
				d.clock.set(now)
			case 2:
				store.epochs.Bump(acme) // something was written, and everything is read again
			default:
				c := call(rapid.Int64Range(0, 1000).Draw(r, "estimate"))
				c.Subject.UserID = rapid.SampledFrom([]string{"alice", "bob", ""}).Draw(r, "user")
				used := Tokens{Input: rapid.Int64Range(0, 1000).Draw(r, "input"), Output: rapid.Int64Range(0, 1000).Draw(r, "output")}
				d.reserve(c).Settle(used)
				cost := used.Input + 10*used.Output
				wantCost += cost
				want = plus(want, storage.UsageCounts{Requests: 1, InputTokens: used.Input, OutputTokens: used.Output, Cost: cost})
			}
			known := int64(0)
			d.mu.Lock()
			if l := d.ledgers[acme]; l != nil {
				for of, c := range l.counters {
					if of.budget == "org" {
						known += c.spent
					}
				}
				if known != wantCost {
					r.Fatalf("known to have spent %d, want %d", known, wantCost)
				}
			}
			d.mu.Unlock()
		}
		d.flush()
		if got := store.total(); got != want {
			r.Fatalf("%+v, want %+v", got, want)
		}
		if got := store.spent("org"); got != wantCost {
			r.Fatalf("spent %d, want %d", got, wantCost)
		}
		if len(store.changed) > 0 {
			r.Fatalf("sent again as something else: %v", store.changed)
		}
	})
}

func TestLargeBooksAreCut(t *testing.T) {
	d := newDesk(t, newMemory())
	d.store.put(budget("users", storage.Scope{Type: storage.ScopeUser}, storage.BudgetDay, math.MaxInt64))
	d.store.fail(always(works))
	const n = 2*maxBatch + 100
	for i := range n {
		c := call(1)
		c.Subject.UserID = fmt.Sprint(i)
		d.mu.Lock()
		d.book.write(&c, noon, storage.UsageCounts{Requests: 1, Cost: 1})
		d.book.spend(acme, spent{
			spender{"users", c.Subject.UserID, storage.BudgetDay.Start(noon).Unix()},
			storage.BudgetTarget{Scope: storage.Scope{Type: storage.ScopeUser}, Period: storage.BudgetDay},
		}, 1)
		d.mu.Unlock()
	}
	d.flush()
	if got, spent := d.store.total(), d.store.spent("users"); got.Requests != n || spent != n {
		t.Errorf("%+v, spent %d", got, spent)
	}
	if s := d.Stats(); s.Batches != 3 || s.Rows != 0 {
		t.Errorf("%+v", s)
	}
	for name, b := range d.store.sent {
		if len(b.Usage) > maxBatch || len(b.Spends) > maxBatch {
			t.Errorf("batch %s has %d rows and %d spends", name, len(b.Usage), len(b.Spends))
		}
	}
}

// TestBoundedMemory: with the store away and more rows than there is room for, who made a call is forgotten, and nothing
// else.
func TestBoundedMemory(t *testing.T) {
	b := newBook()
	c := call(1)
	for i := range maxRows + 5000 {
		c.Subject.UserID = fmt.Sprint(i)
		b.write(&c, noon, storage.UsageCounts{Requests: 1, Cost: 1})
	}
	var sum storage.UsageCounts
	for _, n := range b.rows {
		sum = plus(sum, *n)
	}
	if len(b.rows) != maxRows+1 || b.coarse != 5000 || sum.Requests != maxRows+5000 || sum.Cost != sum.Requests {
		t.Errorf("%d rows, %d coarse, %+v", len(b.rows), b.coarse, sum)
	}
}

// TestTimes: what was used is sent within seconds; a store that is away is asked less and less often, and a large book does
// not change that.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		d := newDesk(t, store)
		d.use(1)
		time.Sleep(flushEvery + time.Millisecond)
		synctest.Wait()
		if n := store.total(); n.Requests != 1 {
			t.Fatalf("%+v after %s", n, flushEvery)
		}
		attempts := 0
		store.fail(func() fault { attempts++; return away })
		d.use(1)
		for i := range 2 * largeBook {
			c := call(1)
			c.Subject.UserID = fmt.Sprint(i)
			d.reserve(c).Settle(Tokens{Input: 1})
		}
		synctest.Wait()
		attempts = 0 // reads of budgets are attempts too
		before := d.Stats().Failures
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if attempts < 10 || attempts > 20 {
			t.Errorf("%d attempts in ten minutes", attempts)
		}
		store.fail(always(works))
		time.Sleep(longestPause * flushEvery)
		synctest.Wait()
		if n := store.total(); n.Requests != 2*largeBook+2 {
			t.Errorf("%+v", n)
		}
		if s := d.Stats(); s.Failures != before+int64(attempts) || s.Rows != 0 {
			t.Errorf("%+v, %d attempts", s, attempts)
		}
		d.use(1)
		for i := range largeBook {
			c := call(1)
			c.Subject.UserID = fmt.Sprint(i)
			d.reserve(c).Settle(Tokens{Input: 1})
		}
		synctest.Wait() // a large book does not wait for its time
		if n := store.total(); n.Requests < 3*largeBook {
			t.Errorf("%+v", n)
		}
		d.Close()
	})
}

func TestCloseSendsWhatIsLeft(t *testing.T) {
	store := newMemory()
	d := newDesk(t, store)
	d.use(1)
	store.fail(always(lostItsWord))
	if err := d.Flush(t.Context()); err == nil {
		t.Error("it worked")
	}
	d.use(1)
	store.fail(always(works))
	d.Close()
	d.Close()
	if n := store.total(); n.Requests != 2 {
		t.Errorf("%+v", n)
	}
}

// TestFlushGivesUp: somebody who waits for a store that does not answer goes when they want to.
func TestFlushGivesUp(t *testing.T) {
	d := newDesk(t, newMemory())
	if err := d.enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Flush(ctx); err == nil {
		t.Error("it did not")
	}
	d.leave()
}
