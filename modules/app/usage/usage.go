// Package usage keeps the books of used models over all configurations of a process, and tells operators when a budget is
// nearly spent.
package usage

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/durward-gateway/durward/internal/audit/record"
	"github.com/durward-gateway/durward/internal/llm/metering"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage"
)

// Usage is a configuration's view of the usage of models, its cost, and the budgets. A nil Usage, which only tests
// have, lets everything through and records nothing.
type Usage struct {
	book   *Book
	prices *metering.Prices
	audit  *record.Recorder
	log    *slog.Logger
}

// Options holds the parts that a Usage works with.
type Options struct {
	Book *Book
	// Audit records alerts of budgets; nil: nothing records them.
	Audit *record.Recorder
	Log   *slog.Logger
	// Development is a table of prices that take precedence over the shipped ones; nil for none.
	Development []byte
	// Prices is a reference to the operator's table, which takes precedence over both; "" for none.
	Prices string
}

// New reads the prices. Errors are those of reading them.
func New(o Options) (*Usage, error) {
	u := &Usage{book: o.Book, prices: metering.Shipped(), audit: o.Audit, log: o.Log}
	if o.Development != nil {
		prices, err := u.prices.With(o.Development)
		if err != nil {
			return nil, fmt.Errorf("prices of development mode: %w", err)
		}
		u.prices = prices
	}
	if o.Prices == "" {
		return u, nil
	}
	if !settings.IsReference(o.Prices) {
		return nil, fmt.Errorf("prices: %q is not a reference such as {file./path}", o.Prices)
	}
	table, err := settings.Resolve(o.Prices)
	if err != nil {
		return nil, fmt.Errorf("prices: %w", err)
	}
	if u.prices, err = u.prices.With([]byte(table)); err != nil {
		return nil, fmt.Errorf("prices %s: %w", o.Prices, err)
	}
	return u, nil
}

// Listen makes this configuration the one that hears of alerts, and starts the meter.
func (u *Usage) Listen() {
	u.book.told.Store(u)
	u.book.meter.Start()
}

// Reserve reserves the estimated cost of a call to a model in the budgets that apply to it, as metering.Meter.Reserve
// does. On an error it is not known whether there is room: the call must not be made.
func (u *Usage) Reserve(ctx context.Context, c metering.Call) (*metering.Hold, *metering.Refusal, error) {
	if u == nil {
		return nil, nil, nil
	}
	return u.book.meter.Reserve(ctx, c, u.prices)
}

// Spendings returns the budgets that a subject spends, see metering.Meter.Spendings.
func (u *Usage) Spendings(ctx context.Context, organization string, subject limit.Subject) ([]metering.Spending, error) {
	if u == nil {
		return nil, nil
	}
	return u.book.meter.Spendings(ctx, organization, subject)
}

// flushForReaders is the longest time that a reader of the books waits for this node's last entries.
const flushForReaders = 2 * time.Second

// Flush writes this node's entries to the store, for a reader of the books. When that fails, the reader sees the
// earlier state: the entries are kept, and written later.
func (u *Usage) Flush(ctx context.Context) {
	if u == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, flushForReaders)
	defer cancel()
	if err := u.book.meter.Flush(ctx); err != nil {
		u.log.Warn("usage that is shown lacks this node's last calls", "error", err)
	}
}

// alert tells operators that a budget is nearly spent: a line in the log, and a record for the organization.
func (u *Usage) alert(a metering.Alert) {
	u.log.Warn("a budget is nearly spent", "organization_id", a.Organization, "budget_id", a.Budget.ID, "alert_percent", a.Budget.AlertPercent,
		"period", string(a.Budget.Period), "since", a.Start)
	if u.audit == nil {
		return
	}
	detail := map[string]any{
		"budget_id": a.Budget.ID, "name": record.Short(a.Budget.Name), "period": string(a.Budget.Period), "period_start": a.Start.Format(time.RFC3339),
		"alert_percent": a.Budget.AlertPercent, "amount_billionths": a.Budget.Amount, "spent_billionths": a.Spent,
	}
	if a.Subject != "" {
		detail["subject"] = record.Short(a.Subject)
	}
	if err := u.audit.Event(context.Background(), a.Organization, storage.AuditEntry{Event: "budget.alert", Outcome: "ok", Detail: detail}); err != nil {
		u.log.Error("recording an alert of a budget", "error", err)
	}
}
