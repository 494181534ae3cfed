package coordinate

import (
	"context"
	"time"

	"github.com/durward-gateway/durward/internal/window"
	"github.com/durward-gateway/durward/storage"
)

// gatherTime is for how long a node goes on alone after it has told empty counters what it has let through: every other
// one has noticed, by its next beat at the latest, and told them too.
const gatherTime = time.Second

// restoring is what counters that have come back empty have to be told by this node. It belongs to the background.
type restoring struct {
	epoch storage.CounterEpoch
	rest  []storage.CounterSpent
	told  time.Time // when the last of it was; zero: there was nothing to tell
}

func (c *Coordinator) known() storage.CounterEpoch { return storage.CounterEpoch(c.epoch.Load()) }

// lost has this node count alone until the counters know again what it has let through.
func (c *Coordinator) lost(err error) {
	if c.breaker.trip() {
		c.tellDegraded(err)
	}
}

// restored reports whether counters of an epoch know what nodes have let through. It tells them.
func (c *Coordinator) restored(ctx context.Context, epoch storage.CounterEpoch) bool {
	r := &c.restoring
	if epoch != c.known() {
		if epoch != r.epoch {
			*r = restoring{epoch: epoch, rest: c.recall()}
		}
		if c.restore(ctx) != nil {
			return false // what is left is told next time
		}
		r.told = c.now()
		c.epoch.Store(int64(epoch))
	}
	return r.told.IsZero() || c.now().Sub(r.told) >= gatherTime
}

// recall is what this node has let through within the window, by its own counters. It is all that others have to know, up
// to now: what waits to be corrected is in it.
func (c *Coordinator) recall() []storage.CounterSpent {
	c.pending.mu.Lock()
	c.pending.all = nil
	c.pending.mu.Unlock()
	own := c.own.Spent(mostPending)
	out := make([]storage.CounterSpent, len(own))
	for i, s := range own {
		// The seconds of the server begin at other moments than this node's: one later, so that nothing is forgotten early.
		out[i] = storage.CounterSpent{Key: storage.CounterKey(s.Key), Age: max(s.Age, 1) - 1, Amount: min(s.Amount, window.Max)}
	}
	return out
}

func (c *Coordinator) restore(ctx context.Context) error {
	r := &c.restoring
	for len(r.rest) > 0 {
		n := min(len(r.rest), portion)
		bounded, cancel := context.WithTimeout(ctx, statusDeadline)
		err := c.counters.Restore(bounded, r.epoch, r.rest[:n])
		cancel()
		if err != nil {
			return err
		}
		r.rest = r.rest[n:]
	}
	return nil
}

// endRestoring forgets leases that were charged to counters which are lost.
func (c *Coordinator) endRestoring() {
	if !c.restoring.told.IsZero() && c.leases != nil {
		c.leases.forget()
	}
	c.restoring = restoring{}
}
