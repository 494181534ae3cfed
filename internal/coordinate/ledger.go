package coordinate

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/internal/window"
	"github.com/durward-gateway/durward/storage"
)

// tellings is how many portions are told before the node beats again, so that the others do not take it for gone.
const tellings = 10

// Ledger is what a server's counters know of this node's own. It outlives Coordinators, as those do: a new one would tell
// again what the one before has charged.
type Ledger struct {
	known atomic.Int64 // the epoch in which they know what the own ones hold; 0: in none

	telling  sync.Mutex // held by the Coordinator that tells
	recalled recalled
}

// recalled is what a node's own counters held when it heard that an epoch does not know it.
type recalled struct {
	epoch storage.CounterEpoch
	at    time.Time
	rest  []window.Spent // not told yet
}

// known is the epoch in which counters know what this node has let through.
func (c *Coordinator) known() storage.CounterEpoch {
	return storage.CounterEpoch(c.ledger.known.Load())
}

// tell has counters of an epoch know what this node has let through, and reports whether they do. What is left is told the
// next time.
func (c *Coordinator) tell(ctx context.Context, epoch storage.CounterEpoch) bool {
	l := c.ledger
	if epoch == c.known() {
		return true
	}
	if !l.telling.TryLock() {
		return false
	}
	defer l.telling.Unlock()
	if epoch != l.recalled.epoch {
		l.known.Store(0) // should the one before come back, it does not know what has passed since
		l.recalled = recalled{epoch: epoch, at: c.now(), rest: c.recall()}
	}
	for n := 0; len(l.recalled.rest) > 0; n++ {
		if n == tellings || !c.tellSome(ctx) {
			return false
		}
	}
	l.known.Store(int64(epoch))
	l.recalled = recalled{}
	return true
}

// recall is what this node has let through within the window, by its own counters. What waits to be corrected is in that:
// charges are forgotten before their sum is taken and refunds after it, so that what is under way is told twice rather than
// not at all.
func (c *Coordinator) recall() []window.Spent {
	c.pending.delivering.Lock()
	defer c.pending.delivering.Unlock()
	c.pending.forget(func(owed correction) bool { return owed.at == 0 })
	spent := c.own.Spent(mostPending)
	c.pending.forget(func(correction) bool { return true })
	return spent
}

// tellSome tells one portion.
func (c *Coordinator) tellSome(ctx context.Context) bool {
	r := &c.ledger.recalled
	n := min(len(r.rest), portion)
	later := uint32(min(c.now().Sub(r.at), time.Hour) / time.Second)
	some := make([]storage.CounterSpent, 0, n)
	for _, s := range r.rest[:n] {
		// The server's seconds begin at other moments than this node's: one later, so that nothing is forgotten early.
		age := max(s.Age+later, 1) - 1
		if age < uint32(window.Width/time.Second) {
			some = append(some, storage.CounterSpent{Key: storage.CounterKey(s.Key), Age: age, Amount: min(s.Amount, window.Max)})
		}
	}
	ctx, cancel := context.WithTimeout(ctx, statusDeadline)
	defer cancel()
	if c.counters.Restore(ctx, r.epoch, some) != nil {
		return false
	}
	r.rest = r.rest[n:]
	return true
}

// gatherTime is for how long a node waits for others to tell an epoch that it has not seen before what they have let
// through. Whoever has not come back by then counts as gone.
const gatherTime = 10 * time.Second

// gathering is who has to have told an epoch before it is counted in. It belongs to the background.
type gathering struct {
	epoch storage.CounterEpoch
	nodes int // that were there before
	since time.Time
}

// gathered reports whether all nodes that were there before are there, and all that are there have told what they let through.
func (c *Coordinator) gathered(beat storage.CounterBeat) bool {
	g, now := &c.gathering, c.now()
	if beat.Epoch != g.epoch {
		before := 0 // nobody knows that of a node that starts
		if g.epoch != 0 {
			before = int(c.census.count())
		}
		*g = gathering{epoch: beat.Epoch, nodes: before, since: now}
	}
	if now.Sub(g.since) >= gatherTime {
		return true
	}
	if beat.Told < beat.Nodes || beat.Nodes < g.nodes {
		c.census.hold(now)
		return false
	}
	g.nodes = 0 // they were all there
	return true
}

// lost has this node count alone until counters know again what nodes have let through.
func (c *Coordinator) lost() {
	if c.breaker.trip() {
		c.tellDegraded(storage.ErrCountersLost)
	}
}
