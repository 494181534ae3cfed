package metering

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// settled returns an organization's set once the cache keeps it: from then on every caller gets this one.
func (d *desk) settled(organization string) *budgetSet {
	d.t.Helper()
	var last *budgetSet
	for range 1_000_000 {
		set, err := d.set(context.Background(), organization)
		if err != nil {
			d.t.Fatal(err)
		}
		if set == last {
			return set
		}
		last = set
	}
	d.t.Fatal("the cache keeps nothing")
	return nil
}

// TestClockGoesBack turns the clock back into a month whose spends were not read. They must not be available a second
// time.
func TestClockGoesBack(t *testing.T) {
	store := newMemory()
	store.put(budget("b", wholeOrganization, storage.BudgetMonth, 100))
	other := newDesk(t, store)
	other.use(100)
	other.flush()
	d := newDesk(t, store)
	april := time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC)
	d.clock.set(april)
	d.use(10)
	d.clock.set(april.Add(-time.Nanosecond))
	if r := d.refuse(call(10)); r.Spent != 100 {
		t.Errorf("%+v", r)
	}
}

// TestVisitsWait checks that callers with a budget wait for a running visit, and that others do not.
func TestVisitsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		store.put(budget("b", wholeOrganization, storage.BudgetDay, 100))
		d := newDesk(t, store)
		defer d.Close()
		if err := d.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		ask := func(organization string) (*Hold, error) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			c := call(1)
			c.Organization = organization
			h, _, err := d.Reserve(ctx, c, even)
			return h, err
		}
		if h, err := ask(acme); h != nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, %v", h, err)
		}
		if h, err := ask("without budgets"); h == nil || err != nil {
			t.Errorf("a call without budgets waits for the visit: %v", err)
		}
		d.leave()
		if h, err := ask(acme); h == nil || err != nil {
			t.Errorf("%v", err)
		}
	})
}

// TestReadOnce lets several calls wait for the first reading of the spends: one reads them for all.
func TestReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		store.put(budget("b", wholeOrganization, storage.BudgetDay, 100))
		d := newDesk(t, store)
		defer d.Close()
		d.settled(acme)
		if err := d.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 4 {
			go func() {
				if _, _, err := d.Reserve(context.Background(), call(1), even); err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		d.leave()
		synctest.Wait()
		if store.spendReads != 1 {
			t.Errorf("it was read %d times", store.spendReads)
		}
	})
}

// TestRefreshWithoutSettling checks that a node with long calls learns what others spend, although none of its own
// calls has ended.
func TestRefreshWithoutSettling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		store.put(budget("b", wholeOrganization, storage.BudgetDay, 100))
		one, two := newDesk(t, store), newDesk(t, store)
		defer one.Close()
		defer two.Close()
		two.reserve(call(1))
		two.clock.set(noon.Add(refreshEvery))
		two.reserve(call(1))
		one.use(90)
		one.flush()
		time.Sleep(flushEvery + time.Millisecond)
		synctest.Wait()
		if r := two.refuse(call(20)); r.Spent != 90 || r.Reserved != 2 {
			t.Errorf("%+v", r)
		}
	})
}

// TestReadAgain reads the spends again while a call runs. The call's reserved amount must stay reserved, even when the
// budget's period is over, or the budget is off, at the call's end.
func TestReadAgain(t *testing.T) {
	start := func() (*desk, *Hold) {
		store := newMemory()
		store.put(budget("b", wholeOrganization, storage.BudgetDay, 100))
		d := newDesk(t, store)
		return d, d.reserve(call(60))
	}
	t.Run("with nothing spent", func(t *testing.T) {
		d, running := start()
		d.store.epochs.Bump(acme)
		if r := d.refuse(call(60)); r.Reserved != 60 || r.Spent != 0 {
			t.Errorf("%+v", r)
		}
		running.Release()
		d.use(100)
	})
	t.Run("after midnight", func(t *testing.T) {
		d, running := start()
		d.use(30)
		d.clock.set(noon.AddDate(0, 0, 1))
		d.store.epochs.Bump(acme)
		d.use(1)
		asReserved(running)
		if d.alerted() != 1 || d.told[0].Spent != 90 || !d.told[0].Start.Equal(storage.BudgetDay.Start(noon)) {
			t.Errorf("%+v", d.told)
		}
	})
	t.Run("with the budget off", func(t *testing.T) {
		d, running := start()
		b := budget("b", wholeOrganization, storage.BudgetDay, 100)
		b.Enabled = false
		d.store.put(b)
		d.use(1000)
		if !asReserved(running) {
			t.Error("it was settled before")
		}
		d.flush()
		if got := d.store.spent("b"); got != 0 {
			t.Errorf("%d was spent of a budget that is off", got)
		}
	})
}

// TestCountersAreForgotten reads the spends again. Counters without spending or calls, and of past periods, must be
// dropped.
func TestCountersAreForgotten(t *testing.T) {
	store := newMemory()
	store.put(budget("b", storage.Scope{Type: storage.ScopeUser}, storage.BudgetDay, 100))
	d := newDesk(t, store)
	of := func(user string) Call {
		c := call(5)
		c.Subject.UserID = user
		return c
	}
	counters := func() int {
		store.epochs.Bump(acme)
		asReserved(d.reserve(of("alice")))
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.ledgers[acme].counters)
	}
	for i := range 9 {
		d.reserve(of(fmt.Sprint(i))).Release()
	}
	if n := counters(); n != 1 {
		t.Errorf("%d counters are kept after calls that were released", n)
	}
	asReserved(d.reserve(of("bob")))
	d.flush()
	if n := counters(); n != 2 {
		t.Errorf("%d counters are kept of those who spend", n)
	}
	d.clock.set(noon.AddDate(0, 0, 1))
	if n := counters(); n != 1 {
		t.Errorf("%d counters are kept on the next day", n)
	}
}

// TestNothingLeftToSend drops spends of another scope: no batch is made of the empty rest.
func TestNothingLeftToSend(t *testing.T) {
	store := newMemory()
	store.put(budget("b", wholeOrganization, storage.BudgetDay, 100))
	d := newDesk(t, store)
	d.book.spend(acme, spent{spender: spender{budget: "b"}}, 1)
	d.reserve(call(1)).Release()
	d.flush()
	if s := d.Stats(); s.Batches != 0 {
		t.Errorf("%+v", s)
	}
}

// TestRefresh checks which organizations are forgotten, and whose spends are read again.
func TestRefresh(t *testing.T) {
	store := newMemory()
	d := newDesk(t, store)
	now := noon.Add(time.Hour)
	cases := map[string]struct {
		used, loaded  time.Duration // ago
		free, running bool
		want          string
	}{
		"busy":                {used: 0, loaded: refreshEvery, want: "read again"},
		"busy too":            {used: 0, loaded: refreshEvery, want: "read again"},
		"just read":           {used: 0, loaded: refreshEvery - 1, want: "kept"},
		"not used since":      {used: refreshEvery, loaded: refreshEvery, want: "kept"},
		"without budgets":     {used: 0, loaded: refreshEvery, free: true, want: "kept"},
		"idle":                {used: forgetAfter, loaded: forgetAfter, want: "kept"},
		"idle for too long":   {used: forgetAfter + 1, loaded: forgetAfter + 1, want: "forgotten"},
		"idle, without any":   {used: forgetAfter + 1, loaded: forgetAfter + 1, free: true, want: "forgotten"},
		"idle, but one runs":  {used: forgetAfter + 1, loaded: forgetAfter + 1, running: true, want: "kept"},
		"idle, and one comes": {used: forgetAfter + 1, loaded: forgetAfter + 2, running: true, want: "read again"},
	}
	for organization, c := range cases {
		if !c.free {
			b := budget(organization, wholeOrganization, storage.BudgetDay, 100)
			b.OrganizationID = organization
			store.put(b)
		}
		of := call(1)
		of.Organization = organization
		d.clock.set(now.Add(-c.loaded))
		if h := d.reserve(of); !c.running {
			h.Release()
		}
		d.mu.Lock()
		d.ledgers[organization].used = now.Add(-c.used)
		d.mu.Unlock()
	}
	d.clock.set(now)
	if err := d.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for organization, c := range cases {
		l, got := d.ledgers[organization], "kept"
		switch {
		case l == nil:
			got = "forgotten"
		case l.loaded.Equal(now):
			got = "read again"
		}
		if got != c.want {
			t.Errorf("%s: it is %s, want %s", organization, got, c.want)
		}
	}
}

// TestRefreshFails checks that the goroutine also notices from a read that the store is away.
func TestRefreshFails(t *testing.T) {
	store := newMemory()
	store.put(budget("b", wholeOrganization, storage.BudgetDay, 100))
	d := newDesk(t, store)
	d.reserve(call(1)).Release()
	d.clock.set(noon.Add(refreshEvery))
	d.reserve(call(1)).Release()
	store.fail(always(away))
	if err := d.round(); !errors.Is(err, errAway) {
		t.Errorf("%v", err)
	}
}

// TestReload reads the spends again, unless the organization was forgotten meanwhile or its ledger has newer budgets.
func TestReload(t *testing.T) {
	store := newMemory()
	store.put(budget("b", wholeOrganization, storage.BudgetDay, 100))
	d := newDesk(t, store)
	now := noon.Add(time.Hour)
	reload := func(organization string) *ledger {
		t.Helper()
		if err := d.reload(t.Context(), organization, now); err != nil {
			t.Fatal(err)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.ledgers[organization]
	}
	set := d.settled(acme)
	if l := reload(acme); l != nil {
		t.Error("an organization that was forgotten has a ledger again")
	}
	d.reserve(call(1)).Release()
	newer := *set
	newer.sequence++
	d.mu.Lock()
	d.ledgers[acme].set = &newer
	d.mu.Unlock()
	if l := reload(acme); l.set != &newer || l.loaded.Equal(now) {
		t.Error("older budgets have replaced newer ones")
	}
	d.mu.Lock()
	d.ledgers[acme].set = set
	d.mu.Unlock()
	if l := reload(acme); !l.loaded.Equal(now) {
		t.Error("it was not read again")
	}
}
