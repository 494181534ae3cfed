package coordinate

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// breaker keeps callers from waiting for a server that does not answer. Only the background closes it again.
type breaker struct {
	failures atomic.Int32 // in a row
	open     atomic.Bool
}

const mostFailures = 3

func (b *breaker) isOpen() bool { return b.open.Load() }

func (b *breaker) answered() {
	if b.failures.Load() != 0 {
		b.failures.Store(0)
	}
}

// failed reports whether it opens with this failure.
func (b *breaker) failed() bool {
	return b.failures.Add(1) >= mostFailures && b.trip()
}

// trip opens it, and reports whether it was closed.
func (b *breaker) trip() bool { return b.open.CompareAndSwap(false, true) }

func (b *breaker) close() {
	b.failures.Store(0)
	b.open.Store(false)
}

// begin waits a while for the shared counters.
func (c *Coordinator) begin(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, startDeadline)
	defer cancel()
	retry := time.NewTicker(probeInterval / 10)
	defer retry.Stop()
	for {
		epoch, err := c.beat(ctx)
		if err == nil {
			c.epoch.Store(int64(epoch)) // the configuration before may have counted there, with the same counters of this node
			return
		}
		select {
		case <-retry.C:
		case <-ctx.Done():
			c.breaker.open.Store(true)
			c.tellDegraded(err)
			return
		}
	}
}

// live says that this node lives, learns how many others do, and tries a server that did not answer.
func (c *Coordinator) live(ctx context.Context) {
	probes, beats := time.NewTicker(probeInterval), time.NewTicker(beatInterval)
	defer probes.Stop()
	defer beats.Stop()
	missed := 0 // beats in a row: those of calls say more of the counters, and are counted apart
	for {
		select {
		case <-ctx.Done():
			return
		case <-probes.C:
			if c.leases != nil {
				c.returnLeases()
			}
			if c.breaker.isOpen() {
				c.probe(ctx)
			}
		case <-beats.C:
			if c.breaker.isOpen() {
				continue
			}
			epoch, err := c.beat(ctx)
			switch {
			case err == nil && epoch != c.known():
				missed = 0
				c.lost(storage.ErrCountersLost)
			case err == nil || ctx.Err() != nil:
				missed = 0
			default:
				if missed++; missed >= mostFailures && c.breaker.trip() {
					missed = 0
					c.tellDegraded(err)
				}
			}
		}
	}
}

func (c *Coordinator) beat(ctx context.Context) (storage.CounterEpoch, error) {
	ctx, cancel := context.WithTimeout(ctx, statusDeadline)
	defer cancel()
	asked := c.now()
	nodes, epoch, err := c.counters.Beat(ctx, c.node)
	if err == nil {
		c.census.told(int64(nodes), asked, c.now())
	}
	return epoch, err
}

// probe closes the breaker when the server knows what it has to know, and answers as fast as calls need it.
func (c *Coordinator) probe(ctx context.Context) {
	epoch, err := c.beat(ctx)
	if err != nil || !c.restored(ctx, epoch) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.deadline)
	defer cancel()
	if _, err := c.counters.Look(ctx, make([]storage.CounterCharge, 1), make([]storage.CounterState, 1)); err != nil {
		return
	}
	c.endRestoring()
	c.breaker.close()
	c.log.Info("rate limits are counted together again", slog.Int64("nodes", c.census.count()))
	if c.changed != nil {
		c.changed(false)
	}
	c.pending.wake()
}
