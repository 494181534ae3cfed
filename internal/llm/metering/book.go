package metering

import (
	"strings"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	// largeBook is the number of rows that are sent before their regular time.
	largeBook = 1_000
	// maxRows bounds the rows in memory while the store is away. Beyond it, new rows do not name the caller. Their
	// number is then bounded by the models of the organizations.
	maxRows = 100_000
	// maxBatch bounds the rows, and the spends, of one batch.
	maxBatch = 2_000
)

// book holds the recorded data that is not in a batch yet. Batches that were cut never change and are no part of it.
type book struct {
	rows map[row]*storage.UsageCounts
	// spends holds the amounts spent from budgets, by organization.
	spends   map[string]map[spent]int64
	coarse   int64
	underway int // rows of batches that may not be in the store yet
}

// row names the caller, the model and the hour of some usage.
type row struct {
	organization, user, key, agent, alias, model string
	hour                                         int64 // of the Unix epoch
}

// spender is a subject that spends from a budget in a period.
type spender struct {
	budget, subject string
	start           int64 // of the period, in Unix seconds
}

// spent is a spender of a budget, with the target of that budget. A budget with a changed target counts as another one.
type spent struct {
	spender
	target storage.BudgetTarget
}

func newBook() book {
	return book{rows: make(map[row]*storage.UsageCounts), spends: make(map[string]map[spent]int64)}
}

// write adds a call, and reports whether there is enough for a batch.
func (b *book) write(c *Call, at time.Time, n storage.UsageCounts) (large bool) {
	s := &c.Subject
	r := row{c.Organization, s.UserID, s.APIKeyID, s.AgentID, text(s.Alias), text(s.Model), at.Unix() / 3600}
	sum := b.rows[r]
	if sum == nil && len(b.rows) >= maxRows {
		b.coarse += n.Requests
		r.user, r.key, r.agent = "", "", ""
		sum = b.rows[r]
	}
	if sum == nil {
		sum = new(storage.UsageCounts)
		b.rows[r] = sum
	}
	sum.Requests = add(sum.Requests, n.Requests)
	sum.InputTokens = add(sum.InputTokens, n.InputTokens)
	sum.OutputTokens = add(sum.OutputTokens, n.OutputTokens)
	sum.CachedTokens = add(sum.CachedTokens, n.CachedTokens)
	sum.Cost = add(sum.Cost, n.Cost)
	return len(b.rows) >= largeBook
}

// text returns a name in a form that every database accepts: one refused row would keep all others from the store.
func text(name string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(name, "\x00", "\uFFFD"), "\uFFFD")
}

func (b *book) spend(organization string, s spent, cost int64) {
	if cost == 0 {
		return
	}
	spends := b.spends[organization]
	if spends == nil {
		spends = make(map[spent]int64)
		b.spends[organization] = spends
	}
	spends[s] = add(spends[s], cost)
}

// cut takes a batch out of the book; nil when there is nothing.
func (b *book) cut() *storage.UsageBatch {
	if len(b.rows) == 0 && len(b.spends) == 0 {
		return nil
	}
	batch := new(storage.UsageBatch)
	for r, sum := range b.rows {
		if len(batch.Usage) == maxBatch {
			break
		}
		batch.Usage = append(batch.Usage, storage.Usage{
			OrganizationID: r.organization, Hour: time.Unix(r.hour*3600, 0).UTC(), UserID: r.user, APIKeyID: r.key, AgentID: r.agent,
			Alias: r.alias, Model: r.model, UsageCounts: *sum,
		})
		delete(b.rows, r)
	}
	for organization, spends := range b.spends {
		for s, cost := range spends {
			if len(batch.Spends) == maxBatch {
				break
			}
			batch.Spends = append(batch.Spends, storage.BudgetSpend{
				OrganizationID: organization, BudgetID: s.budget, Subject: s.subject, Start: time.Unix(s.start, 0).UTC(), Cost: cost, Target: s.target,
			})
			delete(spends, s)
		}
		if len(spends) == 0 {
			delete(b.spends, organization)
		}
	}
	b.underway += len(batch.Usage)
	return batch
}
