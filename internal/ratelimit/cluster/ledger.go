package cluster

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/internal/ratelimit/window"
	"github.com/durward-gateway/durward/storage"
)

// Ledger records what a server's counters know of this node's own counters, and what they still have to be told. It
// outlives Coordinators, because the own counters do: a new Coordinator would otherwise report the charges of the one
// before again.
type Ledger struct {
	pending pending

	told  atomic.Int64 // the epoch whose counters include this node's own ones; 0: none does
	known atomic.Int64 // the epoch whose counters include those of all nodes, and in which charges are made; 0: none

	nodes atomic.Int64 // last known number of nodes; 0: not known

	telling  sync.Mutex // held by the Coordinator that reports
	recalled recalled
}

// recalled holds the values of a node's own counters at the moment when it learned that an epoch lacks them.
type recalled struct {
	epoch storage.CounterEpoch
	at    time.Time
	rest  []window.Spent // not reported yet
}

// known returns the epoch in which steps are made.
func (c *Coordinator) known() storage.CounterEpoch {
	return storage.CounterEpoch(c.ledger.known.Load())
}

// told returns the epoch whose counters include the calls that this node has let through.
func (c *Coordinator) told() storage.CounterEpoch {
	return storage.CounterEpoch(c.ledger.told.Load())
}

// tell reports this node's past calls to the counters of an epoch, and returns whether they are complete. It reports
// one portion at a time; the rest follows on the next call, so that other nodes hear in between that this node lives.
func (c *Coordinator) tell(ctx context.Context, epoch storage.CounterEpoch) bool {
	l := c.ledger
	if epoch == c.told() {
		return true
	}
	if !l.telling.TryLock() {
		return false
	}
	defer l.telling.Unlock()
	if epoch == c.told() { // another Coordinator did it meanwhile
		return true
	}
	if epoch != l.recalled.epoch {
		// If the earlier epoch comes back, it lacks the calls since then.
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

// recall returns the amounts that this node has let through within the window, by its own counters. Pending corrections
// are included in them: pending charges are forgotten before the sum is taken, and pending refunds after it. Both are
// recorded as owed in an order that counts calls under way twice rather than not at all.
func (c *Coordinator) recall() []window.Spent {
	p := &c.ledger.pending
	p.delivering.Lock()
	defer p.delivering.Unlock()
	p.forget(func(owed correction) bool { return owed.at == 0 })
	spent := c.own.Spent(mostPending)
	p.forget(func(owed correction) bool { return owed.at != 0 })
	return spent
}

// tellSome reports one portion.
func (c *Coordinator) tellSome(ctx context.Context) bool {
	r := &c.ledger.recalled
	n := min(len(r.rest), portion)
	later := uint32(min(c.now().Sub(r.at), time.Hour) / time.Second)
	some := make([]storage.CounterSpent, 0, n)
	for _, s := range r.rest[:n] {
		// The server's seconds begin at other moments than this node's. One second later makes sure that nothing is
		// forgotten early.
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
	// gatherTime is the time for which a node waits, while the server answers, for other nodes to report their past
	// calls to a new epoch. A node that has not come back by then counts as gone.
	gatherTime = 10 * time.Second
	// noticeTime is the age of an epoch at which a node that starts believes that every node has noticed the epoch.
	noticeTime = beatInterval + probeInterval
)

// gathering tracks which nodes must report to an epoch before charges are made in it. It belongs to the background
// goroutine.
type gathering struct {
	epoch       storage.CounterEpoch
	nodes       int // number of nodes before; 0: not known, or they are all there or gone
	since, last time.Time
}

// gathered reports whether all former nodes are there, and all present nodes have reported their past calls.
func (c *Coordinator) gathered(beat storage.CounterBeat, before int64) bool {
	g, now := &c.gathering, c.now()
	started := g.epoch == 0
	switch {
	case started:
		g.since = now
	case beat.Epoch != g.epoch:
		*g = gathering{epoch: beat.Epoch, nodes: int(before), since: now}
	case now.Sub(g.last) > storage.NodeLife: // no node could report anything
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

// lost makes this node count alone until the counters again include the past calls of the nodes.
func (c *Coordinator) lost() {
	if c.breaker.trip() {
		c.tellDegraded(storage.ErrCountersLost)
	}
}
