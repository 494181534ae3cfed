// Package readiness knows whether requests should be sent to this node: its memory, its store, and its clock.
package readiness

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/ratelimit/overload"
	"github.com/durward-gateway/durward/storage"
)

// ErrOverloaded reports that the process is so short of memory that it refuses every call.
var ErrOverloaded = errors.New("memory is short")

// Readiness judges one configuration of the node.
type Readiness struct {
	overload *overload.Meter
	look     func(context.Context) error
	clock    *Clock
	stored   atomic.Bool
}

// Options holds what is judged.
type Options struct {
	// Overload measures the pressure on memory; nil: never measured.
	Overload *overload.Meter
	// Look returns the store's failure.
	Look func(context.Context) error
	// Clock compares the node's clock with the database's; nil: they agree.
	Clock *Clock
	// Stored reports that the read-only templates of the server directory are stored already.
	Stored bool
}

// New makes the readiness of a configuration.
func New(o Options) *Readiness {
	r := &Readiness{overload: o.Overload, look: o.Look, clock: o.Clock}
	r.stored.Store(o.Stored)
	return r
}

// Stored notes that the read-only templates of the server directory are stored.
func (r *Readiness) Stored() { r.stored.Store(true) }

// Check returns the reason why requests should not be sent here: ErrOverloaded, a *ClockError, or a problem of the
// store. It returns nil when there is none.
func (r *Readiness) Check(ctx context.Context) error {
	if r.overload.Level() == overload.Critical {
		return ErrOverloaded
	}
	stored := r.stored.Load()
	if err := r.look(ctx); err != nil && (!stored || !errors.Is(err, storage.ErrReadOnly)) {
		return err
	}
	if !stored {
		return &storage.UnavailableError{Reason: "the server directory is not stored yet"}
	}
	return r.clock.ready()
}

// ReadOnly returns the reason why the store takes no writes at present although the node is ready; "" when it takes
// them.
func (r *Readiness) ReadOnly(ctx context.Context) string {
	if err := r.look(ctx); errors.Is(err, storage.ErrReadOnly) {
		return Reason(err)
	}
	return ""
}

// Reason returns the public reason why the store cannot be used.
func Reason(err error) string {
	if known := new(storage.UnavailableError); errors.As(err, &known) {
		return known.Reason
	}
	if errors.Is(err, storage.ErrUnavailable) {
		return "it does not answer, the gateway's log says why"
	}
	return "it cannot be worked with as it is, the gateway's log says why"
}

// Refusal returns the answer of /readyz while the store, or its clock, is the problem.
func Refusal(err error) *gateway.ServiceError {
	if apart := new(ClockError); errors.As(err, &apart) {
		return gateway.ClockNotReady(apart.Error(), clockMend)
	}
	return gateway.StoreNotReady(Reason(err))
}
