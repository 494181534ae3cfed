package metering

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/durward-gateway/durward/storage"
)

// TestEverythingEnds goes once through all work of a Meter. A lock that is never released, or an endless loop, stops it
// here within seconds, and not at the time-out of all tests.
func TestEverythingEnds(t *testing.T) {
	hangs := time.AfterFunc(10*time.Second, func() {
		debug.SetTraceback("all")
		panic("a Meter hangs")
	})
	defer hangs.Stop()
	for _, dir := range []string{"", t.TempDir()} {
		store := newMemory()
		store.put(budget("b", storage.Scope{Type: storage.ScopeUser}, storage.BudgetDay, 100))
		earlier := in(t, store, dir)
		earlier.use(2)
		earlier.flush()
		earlier.use(4)
		earlier.save()
		earlier.kill()
		d := in(t, store, dir)
		d.use(10)
		d.reserve(call(1)).Release()
		d.refuse(call(100))
		free := call(1_000)
		free.Organization = "without budgets"
		asReserved(d.reserve(free))
		free.Subject.Model = poison
		asReserved(d.reserve(free))
		d.save()
		d.use(10)
		store.fail(always(away))
		if err := d.Flush(t.Context()); !errors.Is(err, errAway) {
			t.Errorf("flushed: %v", err)
		}
		d.use(70)
		if d.alerted() != 1 {
			t.Error("nobody was told")
		}
		store.fail(always(works))
		d.flush()
		d.clock.set(noon.Add(refreshEvery))
		d.use(1)
		if err := d.round(); err != nil {
			t.Error(err)
		}
		d.Start()
		d.use(1)
		d.Close()
		spent := int64(94)
		if dir != "" {
			spent = 98 // the killed process has left the rest
		}
		if n := store.total(); n.Cost != 1_000+spent || store.spent("b") != spent || d.Stats().Aside != 1 {
			t.Errorf("used %+v, spent %d", n, store.spent("b"))
		}
	}
}

// TestCut takes all of a book, with any content, in a bounded number of batches.
func TestCut(t *testing.T) {
	for name, c := range map[string]struct{ rows, spends, organizations, batches int }{
		"nothing":           {0, 0, 1, 0},
		"a row":             {1, 0, 1, 1},
		"a spend":           {1, 1, 1, 1},
		"spends alone":      {0, 3, 1, 1},
		"of three":          {6, 6, 3, 1},
		"a batch":           {maxBatch, maxBatch, 1, 1},
		"more rows":         {maxBatch + 1, 1, 1, 2},
		"more spends":       {1, 2*maxBatch + 1, 1, 3},
		"spends of many":    {1, 2*maxBatch + 1, 7, 3},
		"two whole batches": {2 * maxBatch, 2 * maxBatch, 2, 2},
	} {
		b := newBook()
		for i := range c.rows {
			of := call(1)
			of.Subject.UserID = fmt.Sprint(i)
			if large := b.write(&of, noon, storage.UsageCounts{Requests: 1}); large != (i+1 >= largeBook) {
				t.Errorf("%s: after %d rows: large: %v", name, i+1, large)
			}
		}
		for i := range c.spends {
			b.spend(fmt.Sprint(i%c.organizations), spent{spender: spender{budget: fmt.Sprint(i)}}, 1)
		}
		batches, rows, spends := 0, 0, 0
		for batch := b.cut(); batch != nil; batch = b.cut() {
			if batches++; batches > 10 {
				t.Fatalf("%s: there is always one more batch", name)
			}
			if len(batch.Usage) > maxBatch || len(batch.Spends) > maxBatch {
				t.Errorf("%s: a batch of %d rows and %d spends", name, len(batch.Usage), len(batch.Spends))
			}
			rows, spends = rows+len(batch.Usage), spends+len(batch.Spends)
		}
		if rows != c.rows || spends != c.spends || batches != c.batches || b.underway != c.rows || len(b.spends) != 0 {
			t.Errorf("%s: %d batches of %d rows and %d spends, %d under way, %d organizations left", name, batches, rows, spends, b.underway, len(b.spends))
		}
	}
}

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
	asReserved(late) // its usage is not known; it counts in the hour in which it began
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

// TestUnpriced checks that each model without a price is logged once, up to the number that is remembered.
func TestUnpriced(t *testing.T) {
	d, log := noted(t, newMemory(), "")
	c := call(1)
	c.Subject.Model = "of nobody's table"
	for range 3 {
		d.reserve(c).Settle(Tokens{Input: 1e9})
	}
	d.flush()
	if s := d.Stats(); s.Unpriced != 3 {
		t.Errorf("%+v", s)
	}
	if n := d.store.total(); n.Cost != 0 || n.Requests != 3 || n.InputTokens != 3e9 {
		t.Errorf("%+v", n)
	}
	logged := func(want int) {
		t.Helper()
		if n := strings.Count(log.String(), "level=WARN"); n != want || len(d.unknown) != want {
			t.Errorf("%d were logged and %d are remembered, want %d", n, len(d.unknown), want)
		}
	}
	logged(1)
	for i := range maxUnknown - 2 {
		c.Subject.Model = fmt.Sprint("model ", i)
		d.reserve(c).Release()
	}
	logged(maxUnknown - 1)
	for i := range 3 {
		c.Subject.Model = fmt.Sprint("one more ", i)
		d.reserve(c).Release()
	}
	logged(maxUnknown)
	d.reserve(call(1)).Release()
	logged(maxUnknown)
}

// TestExactlyOnce lets attempts fail before and after they are committed, while calls go on. In the end the store must
// have all usage once. No batch may be sent again with other content.
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
				store.epochs.Bump(acme) // a write happened, and everything is read again
			default:
				c := call(rapid.Int64Range(0, 1000).Draw(r, "estimate"))
				c.Subject.UserID = rapid.SampledFrom([]string{"alice", "bob", ""}).Draw(r, "user")
				used := Tokens{Input: rapid.Int64Range(0, 1000).Draw(r, "input"), Output: rapid.Int64Range(0, 1000).Draw(r, "output")}
				d.reserve(c).Settle(used)
				cost := used.Input + 10*used.Output
				wantCost += cost
				want = plus(want, storage.UsageCounts{Requests: 1, InputTokens: used.Input, OutputTokens: used.Output, Cost: cost})
			}
			if known := d.known("org"); known >= 0 && known != wantCost {
				r.Fatalf("known to have spent %d, want %d", known, wantCost)
			}
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

// TestBoundedMemory checks that with the store away and too many rows, only the names of callers are lost.
func TestBoundedMemory(t *testing.T) {
	b := newBook()
	c := call(1)
	for i := range maxRows + 5000 {
		c.Subject.UserID = fmt.Sprint(i)
		b.write(&c, noon, storage.UsageCounts{Requests: 1, Cost: 1})
	}
	c.Subject.UserID = "7" // this user has a row already
	b.write(&c, noon, storage.UsageCounts{Requests: 1, Cost: 1})
	var sum storage.UsageCounts
	for _, n := range b.rows {
		sum = plus(sum, *n)
	}
	if len(b.rows) != maxRows+1 || b.coarse != 5000 || sum.Requests != maxRows+5001 || sum.Cost != sum.Requests {
		t.Errorf("%d rows, %d coarse, %+v", len(b.rows), b.coarse, sum)
	}
	if s := (&Meter{book: b}).Stats(); s.Rows != maxRows+1 || s.Coarse != 5000 {
		t.Errorf("%+v", s)
	}
}

// TestTimes checks that usage is sent within seconds. A store that is away is asked less and less often, and a large
// book does not change that.
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

// TestFlushGivesUp checks that a caller who waits for a silent store leaves when its context ends.
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
