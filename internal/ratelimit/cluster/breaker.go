package cluster

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// breaker keeps callers from waiting for a server that does not answer. Only the background goroutine closes it again.
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

// failed counts a failure and reports whether the breaker opens with it.
func (b *breaker) failed() bool {
	return b.failures.Add(1) >= mostFailures && b.trip()
}

// trip opens the breaker, and reports whether it was closed.
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
		err := c.join(ctx)
		if err == nil {
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

// live says that this node lives, learns the number of living nodes, and tries a server that did not answer.
func (c *Coordinator) live(ctx context.Context) {
	probes, beats := time.NewTicker(probeInterval), time.NewTicker(beatInterval)
	defer probes.Stop()
	defer beats.Stop()
	missed := 0 // in a row; failed calls say more about the counters, and are counted apart
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
			epoch, complete, err := c.beat(ctx)
			switch {
			case err == nil && (epoch != c.told() || !complete):
				missed = 0
				c.lost()
			case err == nil || ctx.Err() != nil:
				missed = 0
				c.wake() // the Coordinator before may have left corrections
			default:
				if missed++; missed >= mostFailures && c.breaker.trip() {
					missed = 0
					c.tellDegraded(err)
				}
			}
		}
	}
}

// beat says that this node lives. complete reports whether the counters of the epoch include the past calls of all
// nodes.
func (c *Coordinator) beat(ctx context.Context) (epoch storage.CounterEpoch, complete bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, statusDeadline)
	defer cancel()
	told := c.told()
	if told == 0 && c.own.Len() == 0 {
		told = storage.AnyEpoch // there is nothing to report
	}
	asked, before := c.now(), c.census.count()
	beat, err := c.counters.Beat(ctx, c.node, told)
	if err != nil {
		return 0, false, err
	}
	c.census.told(int64(beat.Nodes), asked, c.now())
	c.ledger.nodes.Store(c.census.count())
	return beat.Epoch, c.gathered(beat, before), nil
}

// join beats, and reports this node's past calls to the counters. It returns no error once the counters have those of
// all nodes.
func (c *Coordinator) join(ctx context.Context) error {
	epoch, complete, err := c.beat(ctx)
	if err != nil {
		return err
	}
	if !c.tell(ctx, epoch) || !complete {
		return storage.ErrCountersLost
	}
	c.ledger.known.Store(int64(epoch))
	return nil
}

// probe closes the breaker when the server has all past calls, and answers as fast as calls need it.
func (c *Coordinator) probe(ctx context.Context) {
	if c.join(ctx) != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.deadline)
	defer cancel()
	if _, err := c.counters.Look(ctx, c.known(), make([]storage.CounterCharge, 1), make([]storage.CounterState, 1)); err != nil {
		return
	}
	c.breaker.close()
	c.log.Info("rate limits are counted together again", slog.Int64("nodes", c.census.count()))
	if c.changed != nil {
		c.changed(false)
	}
	c.wake()
}
