package coordinate

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/internal/window"
	"github.com/durward-gateway/durward/storage"
)

// Ledger is what a server's counters know of this node's own, and what they have to hear. It outlives Coordinators, as those
// do: a new one would tell again what the one before has charged.
type Ledger struct {
	pending pending

	told  atomic.Int64 // the epoch whose counters know what the own ones hold; 0: none do
	known atomic.Int64 // the epoch whose counters know that of all nodes, and are counted in; 0: none

	nodes atomic.Int64 // how many were last known; 0: nobody knows

	telling  sync.Mutex // held by the Coordinator that tells
	recalled recalled
}

// recalled is what a node's own counters held when it heard that an epoch does not know it.
type recalled struct {
	epoch storage.CounterEpoch
	at    time.Time
	rest  []window.Spent // not told yet
}

// known is the epoch that steps are made in.
func (c *Coordinator) known() storage.CounterEpoch {
	return storage.CounterEpoch(c.ledger.known.Load())
}

// told is the epoch whose counters know what this node has let through.
func (c *Coordinator) told() storage.CounterEpoch {
	return storage.CounterEpoch(c.ledger.told.Load())
}

// tell has counters of an epoch know what this node has let through, and reports whether they do. What is left is told the
// next time, so that others hear in between that this node lives.
func (c *Coordinator) tell(ctx context.Context, epoch storage.CounterEpoch) bool {
	l := c.ledger
	if epoch == c.told() {
		return true
	}
	if !l.telling.TryLock() {
		return false
	}
	defer l.telling.Unlock()
	if epoch == c.told() { // by another one meanwhile
		return true
	}
	if epoch != l.recalled.epoch {
		// Should the epoch before come back, it does not know what has passed since.
		l.known.Store(0)
		l.told.Store(0)
		l.recalled = recalled{epoch: epoch, at: c.now(), rest: c.recall()}
	}
	for begun := c.now(); len(l.recalled.rest) > 0; {
		if !c.tellSome(ctx) || c.now().Sub(begun) >= beatInterval && len(l.recalled.rest) > 0 {
			return false
		}
	}
	l.told.Store(int64(epoch))
	l.recalled = recalled{}
	return true
}

// recall is what this node has let through within the window, by its own counters. What waits to be corrected is in that:
// charges are forgotten before the sum is taken, and refunds after it. Both are owed so that what is under way meanwhile is
// told twice rather than not at all.
func (c *Coordinator) recall() []window.Spent {
	p := &c.ledger.pending
	p.delivering.Lock()
	defer p.delivering.Unlock()
	p.forget(func(owed correction) bool { return owed.at == 0 })
	spent := c.own.Spent(mostPending)
	p.forget(func(owed correction) bool { return owed.at != 0 })
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

const (
	// gatherTime is for how long a node waits for others to tell an epoch that it has not seen before what they have let
	// through, while the server answers. Whoever has not come back by then counts as gone.
	gatherTime = 10 * time.Second
	// noticeTime is how old an epoch has to be before a node that starts believes that everybody has noticed it.
	noticeTime = beatInterval + probeInterval
)

// gathering is who has to have told an epoch before it is counted in. It belongs to the background.
type gathering struct {
	epoch       storage.CounterEpoch
	nodes       int // that were there before; 0: nobody knows, or they are all there or gone
	since, last time.Time
}

// gathered reports whether all nodes that were there before are there, and all that are there have told what they let
// through.
func (c *Coordinator) gathered(beat storage.CounterBeat, before int64) bool {
	g, now := &c.gathering, c.now()
	started := g.epoch == 0
	switch {
	case started:
		g.since = now
	case beat.Epoch != g.epoch:
		*g = gathering{epoch: beat.Epoch, nodes: int(before), since: now}
	case now.Sub(g.last) > storage.NodeLife: // nobody could tell anything
		g.since = now
	}
	g.last = now
	if started && beat.Age >= 0 && beat.Age < noticeTime {
		return false
	}
	g.epoch = beat.Epoch
	if now.Sub(g.since) >= gatherTime {
		g.nodes = 0
		return true
	}
	if beat.Told < beat.Nodes || beat.Nodes < g.nodes {
		c.census.hold(now)
		return false
	}
	g.nodes = 0
	return true
}

// lost has this node count alone until counters know again what nodes have let through.
func (c *Coordinator) lost() {
	if c.breaker.trip() {
		c.tellDegraded(storage.ErrCountersLost)
	}
}
