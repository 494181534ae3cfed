package app

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/durward-gateway/durward/internal/audit/record"
	"github.com/durward-gateway/durward/internal/llm/metering"
	"github.com/durward-gateway/durward/storage"
)

// Usage is a configuration's view of the usage of models, its cost, and the budgets. A nil Usage, which only tests
// have, lets everything through and records nothing.
type Usage struct {
	meter  *metering.Meter
	prices *metering.Prices
	audit  *record.Recorder
	log    *slog.Logger
}

// usageBook is the part of Usage that outlives configurations.
type usageBook struct {
	meter *metering.Meter
	// told is the configuration that hears of alerts, and logs: the one that started last.
	told atomic.Pointer[Usage]
}

// usageDirectory is the directory for entries that are not stored yet. It is in the data directory, with one part for
// each store.
const usageDirectory = "usage"

// makeUsage makes the book. A configuration that is only tried has a directory of its own. Closing the book stores the
// entries it finds there: entries of the real directory would go into the store of the trial, and be lost.
func (r *resources) makeUsage(opener StoreOpener) (err error) {
	dir := filepath.Join(caddy.AppDataDir(), "durward")
	if local, ok := opener.(DataDirectory); ok {
		dir = local.DataDirectory()
	}
	if tried, trying := Trial(); trying {
		dir = tried
	}
	r.usage.meter, err = metering.New(metering.Options{
		Store: r.store, Dir: filepath.Join(dir, usageDirectory, digest(opener.Key())[:16]), Epochs: r.epochs, Alert: r.usage.alert, Log: r.usage.log,
	})
	if err != nil {
		return err
	}
	usageCounters.watch(r.usage.meter)
	r.closers = append(r.closers, func() {
		r.usage.meter.Close()
		usageCounters.forget(r.usage.meter)
	})
	return nil
}

func (b *usageBook) log() *slog.Logger {
	if u := b.told.Load(); u != nil {
		return u.log
	}
	return slog.New(slog.DiscardHandler)
}

func (b *usageBook) alert(a metering.Alert) {
	if u := b.told.Load(); u != nil {
		u.alert(a)
	}
}

// newUsage makes the Usage and reads the prices.
func (a *App) newUsage(core *Core) (*Usage, error) {
	u := &Usage{meter: a.resources.usage.meter, prices: metering.Shipped(), audit: core.Audit, log: a.slogger}
	if development := a.Development(); development != nil {
		prices, err := u.prices.With(development.Models().Prices)
		if err != nil {
			return nil, fmt.Errorf("prices of development mode: %w", err)
		}
		u.prices = prices
	}
	if a.Prices == "" {
		return u, nil
	}
	if !IsReference(a.Prices) {
		return nil, fmt.Errorf("prices: %q is not a reference such as {file./path}", a.Prices)
	}
	table, err := resolve(a.Prices)
	if err != nil {
		return nil, fmt.Errorf("prices: %w", err)
	}
	if u.prices, err = u.prices.With([]byte(table)); err != nil {
		return nil, fmt.Errorf("prices %s: %w", a.Prices, err)
	}
	return u, nil
}

// listen makes the configuration the one that hears of alerts.
func (u *Usage) listen(r *resources) {
	r.usage.told.Store(u)
	r.usage.meter.Start()
}

// Reserve reserves the estimated cost of a call to a model in the budgets that apply to it, as metering.Meter.Reserve
// does. On an error it is not known whether there is room: the call must not be made.
func (u *Usage) Reserve(ctx context.Context, c metering.Call) (*metering.Hold, *metering.Refusal, error) {
	if u == nil {
		return nil, nil, nil
	}
	return u.meter.Reserve(ctx, c, u.prices)
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
	if err := u.meter.Flush(ctx); err != nil {
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
