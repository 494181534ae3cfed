package coordinate

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/durward-gateway/durward/internal/window"
	"github.com/durward-gateway/durward/storage"
)

const (
	// mostPending bounds the corrections that wait for the server. What is beyond is lost: estimates stay.
	mostPending = 100_000
	// portion is how many corrections go out in one exchange.
	portion = 500
)

// pending is corrections that the shared counters do not know yet.
type pending struct {
	delivering sync.Mutex

	mu  sync.Mutex
	all map[correction]*change
}

// correction identifies what to correct. The second 0 means a charge still to be made.
type correction struct {
	key window.Key
	at  uint32
}

type change struct {
	delta int64
	since time.Time // the latest; a window later it is of no use
}

// wake has this Coordinator deliver what waits.
func (c *Coordinator) wake() {
	select {
	case c.ready <- struct{}{}:
	default:
	}
}

// forget drops what waits and is like that.
func (p *pending) forget(drop func(correction) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.all, func(owed correction, _ *change) bool { return drop(owed) })
}

// owe has the shared counters corrected later. at is 0 for what they do not have yet.
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

// take gives some of what waits.
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
		if name.at == 0 { // an hour's charges may have added up meanwhile, of which a minute's count
			delta = min(delta, c.own.Used(name.key))
		}
		if delta != 0 && now.Sub(owed.since) < window.Longest {
			out = append(out, storage.CounterCorrection{Key: storage.CounterKey(name.key), At: name.at, Delta: delta})
		}
	}
	return out
}

// deliver brings corrections to the shared counters.
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

// Flush brings what waits to the shared counters now, unless they cannot be reached.
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
		// It may have been made. Charging twice refuses too much for a minute; giving back twice would let too much through.
		for _, k := range corrections {
			if k.Delta > 0 {
				c.owe(window.Key(k.Key), 0, k.Delta)
			}
		}
		if ctx.Err() != nil {
			return // the breaker hears nothing of exchanges that end with their context: this would go on for ever
		}
	}
}
