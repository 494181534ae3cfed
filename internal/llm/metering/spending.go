package metering

import (
	"context"
	"time"

	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/storage"
)

// Spending holds the amount that a subject has spent of a budget in the present period.
type Spending struct {
	Budget   storage.Budget
	Apart    bool // the subject has the budget to itself
	Start    time.Time
	Spent    int64
	Reserved int64 // for running calls
}

// Spendings returns the budgets that a subject spends, with the amounts that decide about its next call.
func (m *Meter) Spendings(ctx context.Context, organization string, subject limit.Subject) ([]Spending, error) {
	subject.Traffic = storage.TrafficLLM
	now := m.now()
	l, set, err := m.ledger(ctx, organization, now)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Spending
	for _, hit := range set.index.Match(&subject) {
		b := set.budgets[hit.Index]
		s := Spending{Budget: b, Apart: hit.Subject != "", Start: b.Period.Start(now)}
		if c := l.counters[spender{b.ID, text(hit.Subject), s.Start.Unix()}]; c != nil {
			s.Spent, s.Reserved = c.spent, c.reserved
		}
		all = append(all, s)
	}
	return all, nil
}
