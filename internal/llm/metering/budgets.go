package metering

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/storage"
)

// budgetSet holds the budgets of an organization at one time. It is never changed.
type budgetSet struct {
	sequence uint64           // a set that was read later has a higher number
	epoch    cache.Epoch      // in which the set was read
	budgets  []storage.Budget // the enabled ones
	index    *limit.Index
	// kept holds all budgets, each with the scope and period of its spends. After a change of scope or period the store
	// has forgotten the spends.
	kept map[string]storage.BudgetTarget
	byID map[string]*storage.Budget // of budgets
}

var setSequence atomic.Uint64

// set returns the organization's budgets from the cache.
func (m *Meter) set(ctx context.Context, organization string) (*budgetSet, error) {
	return m.sets.Get(ctx, cache.NewKey(organization, "budgets"), func(ctx context.Context) (*budgetSet, error) {
		s := &budgetSet{sequence: setSequence.Add(1), epoch: m.epochs.Current(organization), kept: make(map[string]storage.BudgetTarget), byID: make(map[string]*storage.Budget)}
		all, err := m.store.Budgets(ctx, organization)
		if err != nil {
			return nil, fmt.Errorf("reading budgets: %w", err)
		}
		var scoped []limit.Scoped
		for _, b := range all {
			s.kept[b.ID] = b.Target()
			if b.Enabled {
				s.budgets = append(s.budgets, b)
				scoped = append(scoped, limit.Scoped{Scope: b.Scope, Traffic: storage.TrafficLLM})
			}
		}
		for i := range s.budgets {
			s.byID[s.budgets[i].ID] = &s.budgets[i]
		}
		s.index = limit.NewIndex(scoped)
		return s, nil
	})
}

// ledger holds the known spending of an organization that has budgets.
type ledger struct {
	set      *budgetSet
	counters map[spender]*counter
	since    time.Time // spends of earlier periods were not read
	loaded   time.Time
	used     time.Time
}

// counter holds the spending of one subject from a budget in a period.
type counter struct {
	of spender
	// spent is the amount in the store plus the amount in the book.
	spent    int64
	reserved int64 // for running calls
	holds    int   // number of running calls
	alerted  bool
	gone     bool // the budget no longer exists, or its id now belongs to another one
}

// ledger returns an organization's ledger with its present set. It reads the store's numbers when the budgets may have
// changed. While calls go on, the goroutine reads them again.
func (m *Meter) ledger(ctx context.Context, organization string, now time.Time) (*ledger, *budgetSet, error) {
	current := func(good func(*budgetSet) bool) (*ledger, *budgetSet) {
		m.mu.Lock()
		defer m.mu.Unlock()
		l := m.ledgers[organization]
		if l == nil || !good(l.set) || storage.BudgetMonth.Start(now).Before(l.since) {
			return nil, nil
		}
		l.used = now
		return l, l.set
	}
	epoch := m.epochs.Current(organization)
	if l, set := current(func(s *budgetSet) bool { return s.epoch == epoch }); l != nil {
		return l, set, nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout) // a deadline of its own: other calls wait for this visit too
	defer cancel()
	read, err := m.set(ctx, organization)
	if err != nil {
		return nil, nil, err
	}
	if len(read.budgets) > 0 {
		if err := m.enter(ctx); err != nil {
			return nil, nil, fmt.Errorf("reading what was spent of budgets: %w", err)
		}
		defer m.leave()
	}
	// Another call may have read the same set meanwhile, or a newer one.
	if l, set := current(func(s *budgetSet) bool { return s.sequence >= read.sequence }); l != nil {
		return l, set, nil
	}
	if len(read.budgets) == 0 {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.open(organization, read, nil, time.Time{}, now), read, nil
	}
	l, err := m.load(ctx, organization, read, now)
	return l, read, err
}

// load reads the spent amounts. The caller holds the visit, so that nothing is counted twice or missed between the
// amounts read and those in the book.
func (m *Meter) load(ctx context.Context, organization string, set *budgetSet, now time.Time) (*ledger, error) {
	if err := m.send(ctx); err != nil { // a batch on its way may or may not be in the store
		return nil, fmt.Errorf("flushing usage: %w", err)
	}
	since := storage.BudgetMonth.Start(now)
	spends, err := m.store.BudgetSpends(ctx, organization, since)
	if err != nil {
		return nil, fmt.Errorf("reading what was spent of budgets: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.open(organization, set, spends, since, now), nil
}

// open sets an organization's ledger to the amounts read. The caller holds the lock.
func (m *Meter) open(organization string, set *budgetSet, spends []storage.BudgetSpend, since, now time.Time) *ledger {
	l := m.ledgers[organization]
	if l == nil {
		l = &ledger{counters: make(map[spender]*counter), used: now}
		m.ledgers[organization] = l
	}
	m.install(organization, l, set, spends, now)
	l.since, l.loaded = since, now
	m.start()
	return l
}

// install sets the counters to the amounts of the store and the book. Running calls keep their counters.
func (m *Meter) install(organization string, l *ledger, set *budgetSet, spends []storage.BudgetSpend, now time.Time) {
	pending := m.dropGone(organization, l, set)
	l.set = set
	fresh := make(map[*counter]bool)
	over := func(s spender) bool { return s.start < set.byID[s.budget].Period.Start(now).Unix() }
	count := func(s spender, cost int64) {
		if set.byID[s.budget] == nil {
			return
		}
		c := l.counters[s]
		if c == nil && over(s) {
			return
		}
		if c == nil {
			c = &counter{of: s}
			l.counters[s] = c
			fresh[c] = true
		}
		c.spent = add(c.spent, cost)
	}
	for _, s := range spends {
		count(spender{s.BudgetID, s.Subject, s.Start.Unix()}, s.Cost)
	}
	for s, cost := range pending {
		count(s.spender, cost)
	}
	for _, c := range l.counters {
		if c.holds == 0 && (c.spent == 0 || over(c.of)) {
			delete(l.counters, c.of)
			continue
		}
		if fresh[c] { // the alert for it was already sent by the spender's node
			c.alerted = reached(set.byID[c.of.budget], c.spent)
		}
		m.watch(organization, set.byID[c.of.budget], c)
	}
}

// dropGone drops counters and spends of budgets that no longer exist or have another scope. It empties the other
// counters, and returns the spends that are not stored yet.
func (m *Meter) dropGone(organization string, l *ledger, set *budgetSet) map[spent]int64 {
	for _, c := range l.counters {
		id := c.of.budget
		if set.byID[id] == nil || l.set.kept[id] != set.kept[id] {
			c.gone = true
			delete(l.counters, c.of)
		}
		c.spent = 0
	}
	pending := m.book.spends[organization]
	for s := range pending {
		if s.target != set.kept[s.budget] {
			delete(pending, s)
		}
	}
	if len(pending) == 0 {
		delete(m.book.spends, organization)
	}
	return pending
}

// refresh reads the spent amounts of busy organizations again, because other nodes spend too. It drops organizations
// without activity.
func (m *Meter) refresh(ctx context.Context) error {
	now := m.now()
	var stale []string
	m.mu.Lock()
	for organization, l := range m.ledgers {
		switch {
		case now.Sub(l.used) > forgetAfter && !l.busy():
			delete(m.ledgers, organization)
		case len(l.set.budgets) > 0 && l.used.After(l.loaded) && now.Sub(l.loaded) >= refreshEvery:
			stale = append(stale, organization)
		}
	}
	m.mu.Unlock()
	for _, organization := range stale {
		if err := m.reload(ctx, organization, now); err != nil {
			return err
		}
	}
	return nil
}

func (l *ledger) busy() bool {
	for _, c := range l.counters {
		if c.holds != 0 {
			return true
		}
	}
	return false
}

func (m *Meter) reload(ctx context.Context, organization string, now time.Time) error {
	set, err := m.set(ctx, organization)
	if err != nil {
		return err
	}
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.leave()
	if !m.wants(organization, set) {
		return nil
	}
	_, err = m.load(ctx, organization, set, now)
	return err
}

// wants reports whether an organization has a ledger whose budgets are not newer than these.
func (m *Meter) wants(organization string, set *budgetSet) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.ledgers[organization]
	return l != nil && l.set.sequence <= set.sequence
}
