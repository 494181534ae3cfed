// Package admission decides whether rate limits let a call go on, and settles what the call used. It does not know how
// a refusal is answered.
package admission

import (
	"context"
	"log/slog"

	"github.com/durward-gateway/durward/internal/ratelimit/cluster"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/storage"
)

// Options holds the dependencies of an Admitter. Book is required.
type Options struct {
	Book *Book
	// Coordinator counts together with other nodes; nil: this node counts alone.
	Coordinator *cluster.Coordinator
	// Refused counts a call that a limit refused: its kind of traffic, the place of the refusal, and the counted unit. nil:
	// nobody counts.
	Refused func(traffic storage.TrafficType, where string, measure limit.Measure)
	// Log tells about results of tools that could not be counted; nil: nothing does.
	Log *slog.Logger
}

// Admitter decides about calls in the way of one configuration. It is safe for concurrent use. A nil Admitter, which
// only tests have, does not count with other nodes.
type Admitter struct {
	book        *Book
	engine      *limit.Engine
	coordinator *cluster.Coordinator
	refused     func(traffic storage.TrafficType, where string, measure limit.Measure)
	log         *slog.Logger
}

// New makes an admitter over a book, which must stay open as long as the admitter is used.
func New(o Options) *Admitter {
	a := &Admitter{book: o.Book, coordinator: o.Coordinator, refused: o.Refused, log: o.Log}
	if a.coordinator != nil {
		a.engine = limit.NewEngine(a.coordinator)
	} else {
		a.engine = limit.NewEngine(limit.Local{Counters: o.Book.counters})
	}
	if a.refused == nil {
		a.refused = func(storage.TrafficType, string, limit.Measure) {}
	}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	return a
}

// Engine returns the engine that counts calls, in the counters that enforce limits.
func (a *Admitter) Engine() *limit.Engine { return a.engine }

// Means returns the mean sizes of the answers of aliases of models.
func (a *Admitter) Means() *limit.Means { return a.book.means }

// Matched returns the limits that count a caller's traffic now. See [Book.Matched].
func (a *Admitter) Matched(ctx context.Context, organization string, s *limit.Subject) (*limit.Matched, error) {
	return a.book.Matched(ctx, organization, s)
}

// Status returns the limits of an organization with their use in the last minute. Errors are the store's and the
// coordinator's.
func (a *Admitter) Status(ctx context.Context, organization string) ([]limit.Status, error) {
	set, err := a.book.Set(ctx, organization)
	if err != nil {
		return nil, err
	}
	return a.engine.Status(ctx, set)
}

// StatusOf returns the limits that count a subject, with their use in the last minute. Errors are the store's and the
// coordinator's.
func (a *Admitter) StatusOf(ctx context.Context, organization string, s *limit.Subject) ([]limit.Status, error) {
	set, err := a.book.Set(ctx, organization)
	if err != nil {
		return nil, err
	}
	return a.engine.StatusOf(ctx, set, s)
}

// FailsOpen reports whether this node allows whole limits, and not only its share, while it counts alone.
func (a *Admitter) FailsOpen() bool {
	return a != nil && a.coordinator != nil && a.coordinator.FailsOpen()
}

// Shared reports whether this node counts together with others.
func (a *Admitter) Shared() bool { return a != nil && a.coordinator != nil }

// Degraded reports whether this node counts alone although it should count with others.
func (a *Admitter) Degraded() bool {
	return a != nil && a.coordinator != nil && a.coordinator.Degraded()
}
