package app

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/durward-gateway/durward/internal/ratelimit/admission"
	"github.com/durward-gateway/durward/internal/ratelimit/cluster"
	"github.com/durward-gateway/durward/storage"
)

// LimitRules holds the rules by which nodes that share counters count rate limits.
type LimitRules struct {
	// The behaviour of a node while the counters that nodes share cannot be reached: `local` holds it to the limit divided
	// by the number of nodes, `closed` refuses limited calls with 503, `open` holds it to the whole limit. Default:
	// `local`.
	OnStoreFailure string `json:"on_store_failure,omitempty"`
	// `exact` asks the shared counters for every call; `share` lets nodes take small leases; at most 5 % too much gets
	// through. Default: `exact`.
	Mode string `json:"mode,omitempty"`
	// The number of nodes. A node uses it until it has reached the shared counters for the first time: with `local` it
	// holds the limit divided by this. Default: 1, so that a node that starts while the counters are away holds whole
	// limits.
	Nodes int64 `json:"nodes,omitempty"`
}

// mostNodes bounds Nodes.
const mostNodes = 1000

var (
	limitFailures = []string{string(cluster.Local), string(cluster.Closed), string(cluster.Open)}
	limitModes    = []string{string(cluster.Exact), string(cluster.Share)}
)

// Set sets an option of the Caddyfile.
func (r *LimitRules) Set(word, value string) error {
	var field *string
	var known []string
	switch word {
	case "nodes":
		if r.Nodes != 0 {
			return fmt.Errorf("%s may be given once", word)
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 1 || n > mostNodes {
			return fmt.Errorf("nodes takes a number from 1 to %d", mostNodes)
		}
		r.Nodes = n
		return nil
	case "on_store_failure":
		field, known = &r.OnStoreFailure, limitFailures
	case "mode":
		field, known = &r.Mode, limitModes
	default:
		return fmt.Errorf("unrecognized word %q in limits; known are mode, nodes, on_store_failure", word)
	}
	if *field != "" {
		return fmt.Errorf("%s may be given once", word)
	}
	if !slices.Contains(known, value) {
		return fmt.Errorf("%s takes one of %s", word, strings.Join(known, ", "))
	}
	*field = value
	return nil
}

func (r *LimitRules) check() error {
	if r == nil {
		return nil
	}
	if r.OnStoreFailure != "" && !slices.Contains(limitFailures, r.OnStoreFailure) {
		return fmt.Errorf("limits: on_store_failure takes one of %s", strings.Join(limitFailures, ", "))
	}
	if r.Nodes < 0 || r.Nodes > mostNodes {
		return fmt.Errorf("limits: nodes takes a number from 1 to %d", mostNodes)
	}
	if r.Mode != "" && !slices.Contains(limitModes, r.Mode) {
		return fmt.Errorf("limits: mode takes one of %s", strings.Join(limitModes, ", "))
	}
	return nil
}

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
		if _, trying := Trial(); trying && shared != nil {
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
	rules := LimitRules{}
	if a.LimitRules != nil {
		rules = *a.LimitRules
	}
	c := &coordination{coordinator: cluster.New(cluster.Options{
		Counters: shared, Own: a.resources.limits.Counters(), Ledger: ledger, Failure: cluster.Failure(rules.OnStoreFailure), Mode: cluster.Mode(rules.Mode), Nodes: rules.Nodes,
		Now: time.Now, Log: a.slogger, Alone: limitAlone.Inc,
		Changed: func(degraded bool) {
			if degraded {
				limitDegraded.Inc()
			} else {
				limitDegraded.Dec()
			}
		},
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
	options := admission.Options{Book: a.resources.limits, Refused: countLimited, Log: a.slogger}
	if a.coordination != nil {
		options.Coordinator = a.coordination.coordinator
	}
	return admission.New(options)
}
