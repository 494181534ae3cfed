// Package cluster counts rate limits for several nodes: in counters that they share, and alone when those cannot be
// reached.
//
// Every charge is made in the shared counters and, when it had room there, in this node's own. So a node that loses the
// others knows its own past calls. And a server whose clock was set forward opens no window: each node still holds its
// own calls to the limit. Its own clock may forget up to a second later than the server's. A server that lost its
// counters charges nothing for a node until the node has reported its past calls.
//
// A step waits for the server until the deadline at most. After three failures in a row no call asks the server until a
// background look was answered in time again. Meanwhile a node does what its [Failure] says. The calls that it lets
// through alone are charged to the shared counters when they are back.
package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/internal/ratelimit/window"
	"github.com/durward-gateway/durward/storage"
)

// Failure says how a node acts while the shared counters cannot be reached.
type Failure string

// Values of Failure.
const (
	// Local holds each node to its share: the limit divided by the last known number of nodes, at least 1.
	Local Failure = "local"
	// Closed refuses every call that has a limit.
	Closed Failure = "closed"
	// Open holds each node to the whole limit: n nodes together let through n times the limit.
	Open Failure = "open"
)

// Mode says how exactly nodes count together.
type Mode string

// Modes of counting together.
const (
	// Exact asks the shared counters for every call: no 60 s hold more than the limit.
	Exact Mode = "exact"
	// Share lets nodes take small leases, so that most calls need no exchange: no 60 s hold more than 1.05 times the
	// limit.
	Share Mode = "share"
)

// ErrClosed says that a step needs the shared counters and must not be made alone.
var ErrClosed = errors.New("the counters that nodes share cannot be reached")

// Options holds the dependencies and settings of a Coordinator. Counters and Own are required.
type Options struct {
	Counters storage.SharedCounters // closed with the Coordinator
	Own      *window.Counters       // of this node; their maker sweeps them
	Ledger   *Ledger                // what Counters' server knows of Own; nil: nothing
	Failure  Failure                // "": Local
	Mode     Mode                   // "": Exact
	Nodes    int64                  // number of nodes until the shared counters say so; 0: 1
	Deadline time.Duration          // of one step; 0: 20 ms
	Now      func() time.Time       // monotonic; nil: time.Now
	Log      *slog.Logger           // nil: nothing is logged

	// Changed is called when the node begins to count alone, and when that ends. Alone is called for each step that it
	// made alone. Both may be nil.
	Changed func(degraded bool)
	Alone   func()
}

const (
	defaultDeadline = 20 * time.Millisecond
	// statusDeadline is for exchanges that no call waits for.
	statusDeadline = time.Second
	// startDeadline is the time for which New waits for the shared counters.
	startDeadline = 2 * time.Second
	// probeInterval is the interval at which unreachable counters are tried.
	probeInterval = 250 * time.Millisecond
)

// Coordinator is a limit.Coordinator over counters that nodes share. It is safe for concurrent use.
type Coordinator struct {
	counters storage.SharedCounters
	own      *window.Counters
	failure  Failure
	deadline time.Duration
	now      func() time.Time
	log      *slog.Logger
	changed  func(bool)
	alone    func()

	node      string
	census    census
	breaker   breaker
	leases    *leases // nil in mode Exact
	ledger    *Ledger
	ready     chan struct{} // holds a value when there may be corrections to deliver
	gathering gathering

	stop   context.CancelFunc
	ending sync.WaitGroup
}

// New makes a Coordinator. It waits a while for the shared counters, and begins alone without them.
func New(o Options) *Coordinator {
	if o.Deadline <= 0 {
		o.Deadline = defaultDeadline
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Failure == "" {
		o.Failure = Local
	}
	c := &Coordinator{
		counters: o.Counters, own: o.Own, failure: o.Failure, deadline: o.Deadline, now: o.Now, log: o.Log,
		changed: o.Changed, alone: o.Alone, node: rand.Text(),
	}
	if c.ledger = o.Ledger; c.ledger == nil {
		c.ledger = new(Ledger)
	}
	if o.Mode == Share {
		c.leases = newLeases(o.Now)
	}
	if c.census.nodes = c.ledger.nodes.Load(); c.census.nodes == 0 {
		c.census.nodes = o.Nodes
	}
	c.ready = make(chan struct{}, 1)
	running, stop := context.WithCancel(context.Background())
	c.stop = stop
	c.begin(running)
	c.ending.Go(func() { c.live(running) })
	c.ending.Go(func() { c.deliver(running) })
	return c
}

// Close ends the Coordinator and closes the shared counters.
func (c *Coordinator) Close() error {
	c.stop()
	c.ending.Wait()
	if c.breaker.isOpen() && c.changed != nil {
		c.changed(false)
	}
	return c.counters.Close()
}

// Degraded reports whether this node counts alone.
func (c *Coordinator) Degraded() bool { return c.breaker.isOpen() }

// FailsOpen reports whether this node holds itself to whole limits while it counts alone.
func (c *Coordinator) FailsOpen() bool { return c.failure == Open }

// step holds the charges of one step in the types of the shared counters.
type step struct {
	charges []storage.CounterCharge
	states  []storage.CounterState
}

var steps = sync.Pool{New: func() any { return new(step) }}

func (s *step) fill(charges []window.Charge) {
	s.charges, s.states = s.charges[:0], s.states[:0]
	for i := range charges {
		s.charges = append(s.charges, storage.CounterCharge{
			Key:    storage.CounterKey(charges[i].Key),
			Amount: min(max(charges[i].Amount, 0), window.Max+1),
			Limit:  min(max(charges[i].Limit, 0), window.Max),
		})
		s.states = append(s.states, storage.CounterState{})
	}
}

func (s *step) tell(states []window.State) {
	for i := range s.states {
		states[i] = window.State(s.states[i])
	}
}

// Charge implements limit.Coordinator.
func (c *Coordinator) Charge(ctx context.Context, charges []window.Charge, states []window.State) (limit.Verdict, error) {
	if c.breaker.isOpen() {
		return c.chargeAlone(charges, states)
	}
	var at uint32
	var ok bool
	var err error
	if c.leases != nil {
		at, ok, err = c.chargeLeases(ctx, c.known(), charges, states)
	} else {
		at, ok, err = c.chargeShared(ctx, c.known(), charges, states)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return limit.Verdict{}, ctx.Err() // the caller no longer waits
	case err != nil:
		return c.chargeAlone(charges, states)
	case !ok:
		return limit.Verdict{}, nil
	}
	here, ok := c.own.Charge(charges, nil)
	if !ok {
		c.own.Look(charges, states)
		// The shared counters know less than this node alone.
		for i := range charges {
			c.owe(charges[i].Key, at, -charges[i].Amount)
		}
		return limit.Verdict{}, nil
	}
	return limit.Verdict{OK: true, At: slot(at, here)}, nil
}

// chargeShared makes one step in the shared counters.
func (c *Coordinator) chargeShared(ctx context.Context, epoch storage.CounterEpoch, charges []window.Charge, states []window.State) (at uint32, ok bool, err error) {
	s := steps.Get().(*step)
	defer steps.Put(s)
	s.fill(charges)
	err = c.ask(ctx, c.deadline, func(ctx context.Context) (err error) {
		at, ok, err = c.counters.Charge(ctx, epoch, s.charges, s.states)
		return err
	})
	if err == nil {
		s.tell(states)
	}
	return at, ok, err
}

// slot joins the second of the shared counters and that of this node's own. The first is 0 for a charge that was made
// alone.
func slot(shared uint32, own window.Slot) window.Slot { return window.Slot(shared)<<32 | own }

func sharedSecond(at window.Slot) uint32 { return uint32(at >> 32) }

// Look implements limit.Coordinator.
func (c *Coordinator) Look(ctx context.Context, charges []window.Charge, states []window.State) (limit.Verdict, error) {
	if c.breaker.isOpen() {
		return c.lookAlone(charges, states)
	}
	if c.leases != nil && c.leases.cover(c.known(), charges) {
		return limit.Verdict{OK: c.own.Look(charges, states)}, nil
	}
	s := steps.Get().(*step)
	defer steps.Put(s)
	s.fill(charges)
	var ok bool
	err := c.ask(ctx, c.deadline, func(ctx context.Context) (err error) {
		ok, err = c.counters.Look(ctx, c.known(), s.charges, s.states)
		return err
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return limit.Verdict{}, ctx.Err()
	case err != nil:
		return c.lookAlone(charges, states)
	}
	s.tell(states)
	return limit.Verdict{OK: ok}, nil
}

// ask makes an exchange and reports its outcome to the breaker.
func (c *Coordinator) ask(ctx context.Context, deadline time.Duration, f func(ctx context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	err := f(bounded)
	switch {
	case err == nil:
		c.breaker.answered()
	case errors.Is(err, storage.ErrCountersLost):
		c.lost()
	case ctx.Err() != nil: // the caller's doing, which says nothing about the server
	case c.breaker.failed():
		c.tellDegraded(err)
	}
	return err
}

func (c *Coordinator) tellDegraded(err error) {
	c.log.Warn("rate limits are counted alone", slog.String("on_store_failure", string(c.failure)),
		slog.Int64("nodes", c.census.count()), slog.Any("error", err))
	if c.changed != nil {
		c.changed(true)
	}
}

// Correct implements limit.Coordinator. Refunds are queued before this node's own counters have them, and charges
// after. When the own counters are recalled in between, the other nodes hear of too much and not of too little.
func (c *Coordinator) Correct(at window.Slot, corrections []window.Correction) {
	for _, k := range corrections {
		if k.Delta < 0 {
			c.owe(k.Key, sharedSecond(at), k.Delta)
		}
	}
	c.own.Correct(at, corrections)
	for _, k := range corrections {
		if k.Delta > 0 {
			c.owe(k.Key, sharedSecond(at), k.Delta)
		}
	}
}

// Used implements limit.Coordinator.
func (c *Coordinator) Used(ctx context.Context, keys []window.Key, used []int64) (limit.Verdict, error) {
	if !c.breaker.isOpen() {
		shared := make([]storage.CounterKey, len(keys))
		for i, k := range keys {
			shared[i] = storage.CounterKey(k)
		}
		err := c.ask(ctx, statusDeadline, func(ctx context.Context) error { return c.counters.Used(ctx, c.known(), shared, used) })
		if err == nil || ctx.Err() != nil {
			return limit.Verdict{OK: err == nil}, err
		}
	}
	for i, k := range keys {
		used[i] = c.own.Used(k)
	}
	return limit.Verdict{OK: true, Degraded: true}, nil
}

// Members implements limit.Coordinator.
func (c *Coordinator) Members(ctx context.Context, group window.Digest) ([]window.Member, error) {
	if !c.breaker.isOpen() {
		var found []storage.CounterMember
		err := c.ask(ctx, statusDeadline, func(ctx context.Context) (err error) {
			found, err = c.counters.Members(ctx, c.known(), group)
			return err
		})
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil {
			members := make([]window.Member, len(found))
			for i, m := range found {
				members[i] = window.Member{Member: m.Member, Used: m.Used}
			}
			return members, nil
		}
	}
	return c.own.Members(group), nil
}

// Interface guards
var _ limit.Coordinator = (*Coordinator)(nil)
