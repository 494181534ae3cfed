package cluster

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/durward-gateway/durward/internal/ratelimit/window"
	"github.com/durward-gateway/durward/storage"
)

const (
	// mostPending bounds the corrections that wait for the server. Further corrections are lost: their estimates stay.
	mostPending = 100_000
	// portion is the number of corrections in one exchange.
	portion = 500
)

// pending holds corrections that the shared counters do not have yet.
type pending struct {
	delivering sync.Mutex

	mu  sync.Mutex
	all map[correction]*change
}

// correction identifies the charge to correct. The second 0 means a charge that must still be made.
type correction struct {
	key window.Key
	at  uint32
}

type change struct {
	delta int64
	since time.Time // time of the latest; after one window it has no effect
}

// wake makes this Coordinator deliver pending corrections.
func (c *Coordinator) wake() {
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

// forget drops the pending corrections that drop reports true for.
func (p *pending) forget(drop func(correction) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.all, func(owed correction, _ *change) bool { return drop(owed) })
}

// owe queues a correction of the shared counters. at is 0 for a charge that they do not have yet.
func (c *Coordinator) owe(key window.Key, at uint32, delta int64) {
	if delta == 0 {
		return
	}
	delta = min(max(delta, -window.Max), window.Max)
	if delta > 0 {
		at = 0
	}
	p := &c.ledger.pending
	p.mu.Lock()
	defer p.mu.Unlock()
	name := correction{key, at}
	owed := p.all[name]
	if owed == nil {
		if delta < 0 && at == 0 || len(p.all) >= mostPending {
			return // it was delivered meanwhile, and stays as it was reserved
		}
		if p.all == nil {
			p.all = make(map[correction]*change)
		}
		owed = new(change)
		p.all[name] = owed
	}
	owed.delta, owed.since = min(owed.delta+delta, window.Max), c.now()
	if at == 0 && owed.delta <= 0 {
		delete(p.all, name)
		return
	}
	c.wake()
}

// take returns some of the pending corrections.
func (c *Coordinator) take() (out []storage.CounterCorrection) {
	p := &c.ledger.pending
	p.mu.Lock()
	defer p.mu.Unlock()
	now := c.now()
	for name, owed := range p.all {
		if len(out) == portion {
			break
		}
		delete(p.all, name)
		delta := owed.delta
		if name.at == 0 { // an hour's charges may have added up meanwhile; only a minute of them counts
			delta = min(delta, c.own.Used(name.key))
		}
		if delta != 0 && now.Sub(owed.since) < window.Longest {
			out = append(out, storage.CounterCorrection{Key: storage.CounterKey(name.key), At: name.at, Delta: delta})
		}
	}
	return out
}

// deliver sends corrections to the shared counters.
func (c *Coordinator) deliver(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			c.Flush(context.WithoutCancel(ctx))
			return
		case <-c.ready:
			c.Flush(ctx)
		}
	}
}

// Flush sends pending corrections to the shared counters now, unless these cannot be reached.
func (c *Coordinator) Flush(ctx context.Context) {
	c.ledger.pending.delivering.Lock()
	defer c.ledger.pending.delivering.Unlock()
	for !c.breaker.isOpen() {
		epoch := c.known()
		if epoch == 0 {
			return
		}
		corrections := c.take()
		if len(corrections) == 0 {
			return
		}
		err := c.ask(ctx, statusDeadline, func(ctx context.Context) error { return c.counters.Correct(ctx, epoch, corrections) })
		if err == nil {
			continue
		}
		if errors.Is(err, storage.ErrCountersLost) {
			return // they are recalled with this node's own counters
		}
		c.log.Debug("correcting rate limits", slog.Any("error", err))
		// The correction may have been made. A double charge refuses too much for a minute; a double refund would let
		// too much through.
		for _, k := range corrections {
			if k.Delta > 0 {
				c.owe(window.Key(k.Key), 0, k.Delta)
			}
		}
		if ctx.Err() != nil {
			return // the breaker does not count exchanges that end with their context: this would go on for ever
		}
	}
}
