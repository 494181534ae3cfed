package app

import (
	"errors"
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/durward-gateway/durward/internal/ratelimit/admission"
	"github.com/durward-gateway/durward/internal/ratelimit/cluster"
	"github.com/durward-gateway/durward/modules/app/metrics"
	"github.com/durward-gateway/durward/modules/app/process"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage"
)

func (a *App) loadCoordinator(ctx caddy.Context) error {
	if a.CoordinatorRaw == nil {
		return nil
	}
	guest, err := ctx.LoadModule(a, "CoordinatorRaw")
	if err != nil {
		return fmt.Errorf("loading coordinator: %w", err)
	}
	a.coordinator = guest.(CoordinatorOpener)
	return nil
}

// coordination holds the counters that nodes share. nil: this node counts alone.
type coordination struct {
	lifetime
	coordinator *cluster.Coordinator
}

// use keeps the counters open until unpin is called. The caller holds a configuration that has them.
func (c *coordination) use() (unpin func()) {
	if c == nil || !c.pin() {
		return func() {}
	}
	return c.unpin
}

// Destruct closes the counters after the last call that uses them.
func (c *coordination) Destruct() error {
	c.retire()
	return nil
}

// acquireCoordination opens the counters that the configuration asks for, or takes those of the configuration before.
// It comes after the store's resources.
func (a *App) acquireCoordination() error {
	open := a.openCounters()
	if open == nil {
		a.resources.limits.CountWith("")
		return nil
	}
	where := "the store's"
	if a.coordinator != nil {
		where = a.coordinator.Key()
	}
	ledger := a.resources.limits.CountWith(where)
	key := "coordination/" + digest(where, a.resourceKey, a.LimitRules)
	value, _, err := pool.LoadOrNew(key, func() (caddy.Destructor, error) {
		shared, err := open()
		if _, trying := process.Trial(); trying && shared != nil {
			err, shared = errors.Join(err, shared.Close()), nil // it would make its tables
		}
		if err != nil || shared == nil {
			return &coordination{lifetime: lifetime{close: func() {}}}, err
		}
		return newCoordination(a, ledger, shared), nil
	})
	if err != nil {
		return fmt.Errorf("opening the counters of rate limits: %w", err)
	}
	a.coordinationID, a.coordination = key, value.(*coordination)
	return nil
}

// openCounters returns the function that opens shared counters; nil when there are none.
func (a *App) openCounters() func() (storage.SharedCounters, error) {
	if a.coordinator != nil {
		return func() (storage.SharedCounters, error) { return a.coordinator.Counters(a.store) }
	}
	if store, ok := a.store.(CounterStore); ok {
		return store.Counters
	}
	return nil
}

func newCoordination(a *App, ledger *cluster.Ledger, shared storage.SharedCounters) *coordination {
	rules := settings.LimitRules{}
	if a.LimitRules != nil {
		rules = *a.LimitRules
	}
	c := &coordination{coordinator: cluster.New(cluster.Options{
		Counters: shared, Own: a.resources.limits.Counters(), Ledger: ledger, Failure: cluster.Failure(rules.OnStoreFailure), Mode: cluster.Mode(rules.Mode), Nodes: rules.Nodes,
		Now: time.Now, Log: a.slogger, Alone: metrics.CountAlone,
		Changed: metrics.SetAlone,
	})}
	c.close = func() { _ = c.coordinator.Close() } // counters are not durable
	return c
}

func (a *App) releaseCoordination() error {
	if a.coordination == nil {
		return nil
	}
	a.coordination = nil
	_, err := pool.Delete(a.coordinationID)
	return err
}

// newAdmitter makes the admitter of this configuration.
func (a *App) newAdmitter() *admission.Admitter {
	options := admission.Options{Book: a.resources.limits, Refused: metrics.CountLimited, Log: a.slogger}
	if a.coordination != nil {
		options.Coordinator = a.coordination.coordinator
	}
	return admission.New(options)
}
