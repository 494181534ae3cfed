package metering

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/storage"
)

// Refusal names the budget that has no room for a call. When several budgets have none, it names the one that takes
// longest to have some.
type Refusal struct {
	Budget   storage.Budget
	Subject  string // the subject with this share, when the budget counts each subject apart
	Spent    int64
	Reserved int64 // for running calls
	Estimate int64 // expected cost of the call
	// RetryAfter is the time until the period ends. It is short when only running calls hold the rest of the budget.
	RetryAfter time.Duration
}

// whileRunning is the wait for a call that running calls have left no room for. Those may end at any time.
const whileRunning = time.Second

// Seconds returns RetryAfter in whole seconds, rounded up, at least 1.
func (r *Refusal) Seconds() int64 { return max(int64((r.RetryAfter+time.Second-1)/time.Second), 1) }

// SetHeader sets Retry-After (RFC 9110 section 10.2.3).
func (r *Refusal) SetHeader(h http.Header) { h.Set("Retry-After", strconv.FormatInt(r.Seconds(), 10)) }

// Message returns the text for the caller. It has no amounts: those are for administrators.
func (r *Refusal) Message() string {
	switch {
	case r.Spent >= r.Budget.Amount:
		return fmt.Sprintf("The budget of this %s is spent. Retry-After says in how many seconds the next one begins.", r.Budget.Period)
	case add(r.Spent, r.Estimate) > r.Budget.Amount:
		return fmt.Sprintf("What is left of the budget of this %s may not be enough for this request. Ask for fewer tokens.", r.Budget.Period)
	}
	return fmt.Sprintf("What is left of the budget of this %s is set aside for requests that are running. Try again when they have ended.", r.Budget.Period)
}

// Reserve reserves the call's estimated cost in every budget that applies to it. Exactly one of its results is not nil:
// a hold, a refusal (nothing was reserved), or an error. A call must not be let through on an error.
//
// A budget with HardStop refuses when it is spent. It also refuses when the sum of spent amount, reserved amounts and
// the estimate of this call exceeds it. However many calls come at once, a budget is exceeded only by the error of the
// estimates. A call to a model that costs nothing, or has no price, takes nothing from a budget, and no budget refuses
// it.
func (m *Meter) Reserve(ctx context.Context, c Call, prices *Prices) (*Hold, *Refusal, error) {
	h := &Hold{meter: m, call: c, at: m.now()}
	if h.price, h.priced = prices.Of(c.Kind, c.Subject.ProviderName, c.Subject.Model); !h.priced {
		m.missed(&c)
	}
	h.call.Subject.Traffic = storage.TrafficLLM
	h.estimate = h.price.Cost(Tokens{Input: c.Input, Output: c.Output})
	for {
		l, set, err := m.ledger(ctx, c.Organization, h.at)
		if err != nil {
			return nil, nil, err
		}
		hits := set.index.Match(&h.call.Subject)
		if len(hits) == 0 {
			return h, nil, nil
		}
		refused, changed := m.chargeFrom(h, l, set, hits)
		switch {
		case changed: // look for the budgets again
		case refused != nil:
			return nil, refused, nil
		default:
			return h, nil, nil
		}
	}
}

// chargeFrom does the same as charge with the budgets of a set, unless they have changed since the set was read.
func (m *Meter) chargeFrom(h *Hold, l *ledger, set *budgetSet, hits []limit.Hit) (refused *Refusal, changed bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ledgers[h.call.Organization] != l || l.set != set {
		return nil, true
	}
	return m.charge(h, l, hits), false
}

// charge reserves the cost. The caller holds the lock.
func (m *Meter) charge(h *Hold, l *ledger, hits []limit.Hit) *Refusal {
	var refused *Refusal
	counters := make([]*counter, len(hits))
	for i, hit := range hits {
		b := &l.set.budgets[hit.Index]
		of := spender{b.ID, text(hit.Subject), b.Period.Start(h.at).Unix()}
		c := l.counters[of]
		if c == nil {
			c = &counter{of: of}
		}
		counters[i] = c
		if !b.HardStop || h.price == (Price{}) || c.spent < b.Amount && add(add(c.spent, c.reserved), h.estimate) <= b.Amount {
			continue
		}
		r := &Refusal{Budget: *b, Subject: hit.Subject, Spent: c.spent, Reserved: c.reserved, Estimate: h.estimate, RetryAfter: whileRunning}
		if c.spent >= b.Amount || add(c.spent, h.estimate) > b.Amount {
			r.RetryAfter = periodEnd(b.Period, h.at).Sub(h.at)
		}
		if refused == nil || r.RetryAfter > refused.RetryAfter {
			refused = r
		}
	}
	if refused != nil {
		m.stats.Refused++
		return refused
	}
	h.aside = h.estimate
	for _, c := range counters {
		h.aside = min(h.aside, math.MaxInt64-c.reserved)
	}
	for _, c := range counters {
		c.reserved += h.aside
		c.holds++
		l.counters[c.of] = c
	}
	h.charges = counters
	return nil
}

// periodEnd returns the end of the period that contains t.
func periodEnd(p storage.BudgetPeriod, t time.Time) time.Time {
	start := p.Start(t)
	if p == storage.BudgetMonth {
		return start.AddDate(0, 1, 0)
	}
	return start.AddDate(0, 0, 1)
}

// Alert says that AlertPercent of a budget is spent.
type Alert struct {
	Organization string
	Budget       storage.Budget
	Subject      string // the spender, when the budget counts each subject apart
	Start        time.Time
	Spent        int64
}

// spend counts a call's cost in its budgets. The caller holds the lock.
func (m *Meter) spend(h *Hold, cost int64) {
	for _, c := range h.charges {
		if c.gone {
			continue
		}
		c.spent = add(c.spent, cost)
		set := m.ledgers[h.call.Organization].set // running calls keep their ledger
		m.book.spend(h.call.Organization, spent{c.of, set.kept[c.of.budget]}, cost)
		m.watch(h.call.Organization, set.byID[c.of.budget], c)
	}
}

// reached reports whether the alert share of a budget is spent.
func reached(b *storage.Budget, spent int64) bool {
	if b.AlertPercent <= 0 {
		return false
	}
	percent := int64(b.AlertPercent)
	return spent > 0 && spent >= b.Amount/100*percent+b.Amount%100*percent/100
}

// watch queues an alert when a budget has reached its share. There is one alert for each budget, subject and period,
// and another one after the budget was raised. The caller holds the lock.
func (m *Meter) watch(organization string, b *storage.Budget, c *counter) {
	is := reached(b, c.spent)
	if is && !c.alerted {
		m.stats.Alerts++
		m.alerts = append(m.alerts, Alert{Organization: organization, Budget: *b, Subject: c.of.subject, Start: time.Unix(c.of.start, 0).UTC(), Spent: c.spent})
		m.hurry()
	}
	c.alerted = is
}
