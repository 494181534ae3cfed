package metering

import (
	"math"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// TestRefusals checks why a budget of 100 has no room for a call, and for how long.
func TestRefusals(t *testing.T) {
	midnight := time.Date(2026, 3, 18, 0, 0, 0, 0, time.UTC).Sub(noon)
	const (
		spends = "The budget of this day is spent. Retry-After says in how many seconds the next one begins."
		little = "What is left of the budget of this day may not be enough for this request. Ask for fewer tokens."
		held   = "What is left of the budget of this day is set aside for requests that are running. Try again when they have ended."
	)
	for name, c := range map[string]struct {
		spent, running, asked int64
		message               string // "": the call passes
		retry                 time.Duration
	}{
		"all of it":                      {0, 0, 100, "", 0},
		"more than it":                   {0, 0, 101, little, midnight},
		"what is left":                   {40, 0, 60, "", 0},
		"more than is left":              {40, 0, 61, little, midnight},
		"what is not set aside":          {40, 30, 30, "", 0},
		"what is set aside":              {40, 30, 31, held, whileRunning},
		"all that is left, one runs":     {40, 30, 60, held, whileRunning},
		"more than is left, and one run": {40, 30, 61, little, midnight},
		"nothing, of the last one":       {99, 0, 0, "", 0},
		"nothing, with nothing left":     {100, 0, 0, spends, midnight},
		"one, with nothing left":         {100, 0, 1, spends, midnight},
		"one, with all of it running":    {0, 100, 1, held, whileRunning},
	} {
		store := newMemory()
		store.put(budget("b", wholeOrganization, storage.BudgetDay, 100))
		d := newDesk(t, store)
		d.use(c.spent)
		if c.running > 0 {
			d.reserve(call(c.running))
		}
		if c.message == "" {
			d.reserve(call(c.asked))
			continue
		}
		r := d.refuse(call(c.asked))
		if r.Message() != c.message || r.RetryAfter != c.retry || r.Spent != c.spent || r.Reserved != c.running || r.Estimate != c.asked {
			t.Errorf("%s: %+v: %s", name, r, r.Message())
		}
		if s := d.Stats(); s.Refused != 1 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// TestTheLongestIsTold checks that of two spent budgets, the refusal names the one that takes longer, in whatever order
// they are checked.
func TestTheLongestIsTold(t *testing.T) {
	day, month := budget("day", wholeOrganization, storage.BudgetDay, 100), budget("month", wholeOrganization, storage.BudgetMonth, 100)
	for _, order := range [][]storage.Budget{{day, month}, {month, day}} {
		store := newMemory()
		for _, b := range order {
			store.put(b)
		}
		d := newDesk(t, store)
		d.use(100)
		if r := d.refuse(call(1)); r.Budget.ID != "month" {
			t.Errorf("%+v", r)
		}
	}
}

// TestChangedMeanwhile charges a call to budgets that have changed, or were forgotten, since they were read: it must
// not be charged.
func TestChangedMeanwhile(t *testing.T) {
	store := newMemory()
	store.put(budget("b", wholeOrganization, storage.BudgetDay, 100))
	d := newDesk(t, store)
	l, set, err := d.ledger(t.Context(), acme, noon)
	if err != nil {
		t.Fatal(err)
	}
	h := &Hold{meter: d.Meter, call: call(60), at: noon, estimate: 60, price: Price{Input: 1}}
	h.call.Subject.Traffic = storage.TrafficLLM
	hits := set.index.Match(&h.call.Subject)
	charge := func(want bool) {
		t.Helper()
		refused, changed := d.chargeFrom(h, l, set, hits)
		if refused != nil || changed != want || (len(h.charges) > 0) == want {
			t.Errorf("%+v, changed: %v, charged %d", refused, changed, len(h.charges))
		}
	}
	store.epochs.Bump(acme)
	if now, other, err := d.ledger(t.Context(), acme, noon); now != l || other == set || err != nil {
		t.Fatal("the budgets were not read again")
	}
	charge(true)
	l.set = set
	delete(d.ledgers, acme)
	charge(true)
	d.ledgers[acme] = l
	charge(false)
}

func TestReached(t *testing.T) {
	for _, c := range []struct {
		amount  int64
		percent int
		spent   int64
		want    bool
	}{
		{100, 80, 79, false}, {100, 80, 80, true}, {100, 80, 1000, true}, {100, 0, 100, false}, {100, 0, 0, false}, {100, 1, 0, false}, {100, 1, 1, true},
		{0, 80, 0, false}, {0, 80, 1, true}, {3, 50, 1, true}, {199, 50, 98, false}, {199, 50, 99, true},
		{math.MaxInt64, 100, math.MaxInt64 - 1, false}, {math.MaxInt64, 100, math.MaxInt64, true},
	} {
		if got := reached(&storage.Budget{Amount: c.amount, AlertPercent: c.percent}, c.spent); got != c.want {
			t.Errorf("%+v", c)
		}
	}
}
