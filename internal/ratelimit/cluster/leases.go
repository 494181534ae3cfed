package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/durward-gateway/durward/internal/ratelimit/window"
	"github.com/durward-gateway/durward/storage"
)

// leases holds units that this node has charged to the shared counters and not used yet. A lease is one part in twenty
// of the limit, divided by the number of nodes, and ends a second after its charge. Units that are used late count from
// the time of the charge. So 60 s can exceed the limit by the leases that were open when they began, one part in
// twenty.
type leases struct {
	now func() time.Time

	mu     sync.Mutex
	all    map[window.Key]*lease
	coming map[window.Key]bool // a lease is being requested for the key
}

type lease struct {
	epoch storage.CounterEpoch // of the counters with the charge
	left  int64
	at    uint32 // second of the charge
	until time.Time
	used  int64 // in the shared counter, at the time of the charge
	most  int64 // limit at the time of the charge
}

const (
	leasePart = 20
	leaseFor  = time.Second
	// mostLeases bounds the number of leases; beyond it nothing is leased.
	mostLeases = 100_000
)

func newLeases(now func() time.Time) *leases {
	return &leases{now: now, all: make(map[window.Key]*lease), coming: make(map[window.Key]bool)}
}

// covers reports whether a lease has enough for a charge. The limit and the counters must not have changed.
func (l *lease) covers(epoch storage.CounterEpoch, charge *window.Charge, now time.Time) bool {
	return l != nil && l.epoch == epoch && now.Before(l.until) && l.most == charge.Limit && l.left >= max(charge.Amount, 1)
}

// cover reports whether every charge has a lease.
func (l *leases) cover(epoch storage.CounterEpoch, charges []window.Charge) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	for i := range charges {
		if !l.all[charges[i].Key].covers(epoch, &charges[i], now) {
			return false
		}
	}
	return true
}

// take uses leases for all charges, or for none. at is the earliest second of their charges.
func (l *leases) take(epoch storage.CounterEpoch, charges []window.Charge, states []window.State) (at uint32, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	for i := range charges {
		charge := &charges[i]
		held := l.all[charge.Key]
		if !held.covers(epoch, charge, now) {
			for j := range charges[:i] { // a key may occur twice: return the units taken
				l.all[charges[j].Key].left += max(charges[j].Amount, 0)
			}
			return 0, false
		}
		held.left -= max(charge.Amount, 0)
		states[i] = window.State{Used: held.used - held.left}
		if at == 0 || held.at < at {
			at = held.at
		}
	}
	return at, true
}

// chargeLeases charges from leases. Where they are not enough it charges the shared counters, and takes new leases in
// the same step when there is room. Only one caller at a time does so for each counter: otherwise concurrent callers
// would lease away each other's room.
func (c *Coordinator) chargeLeases(ctx context.Context, epoch storage.CounterEpoch, charges []window.Charge, states []window.State) (at uint32, ok bool, err error) {
	if at, ok := c.leases.take(epoch, charges, states); ok {
		return at, true, nil
	}
	if extra := c.lease(charges); extra != nil {
		defer c.leases.end(charges, extra)
		more := make([]window.Charge, len(charges))
		for i, charge := range charges {
			charge.Amount = max(charge.Amount, 0) + extra[i]
			more[i] = charge
		}
		if at, ok, err = c.chargeShared(ctx, epoch, more, states); err != nil {
			return 0, false, err
		}
		if ok {
			for i := range charges {
				if extra[i] > 0 {
					c.keep(charges[i].Key, &lease{epoch: epoch, left: extra[i], at: at, used: states[i].Used, most: charges[i].Limit})
					states[i].Used -= extra[i]
				}
			}
			return at, true, nil
		}
	}
	if at, ok, err = c.chargeShared(ctx, epoch, charges, states); err != nil || ok {
		return at, ok, err
	}
	mine := make([]window.State, len(states))
	if at, ok := c.leases.take(epoch, charges, mine); ok { // a lease has come meanwhile, and filled the counter
		copy(states, mine)
		return at, true, nil
	}
	return 0, false, nil
}

// lease returns the amounts to lease with each charge. nil means nothing, as long as other nodes may divide by a number
// without this one.
func (c *Coordinator) lease(charges []window.Charge) (extra []int64) {
	if !c.census.settled(c.now()) {
		return nil
	}
	return c.leases.begin(charges, c.census.count())
}

// begin returns the amounts to lease with each charge, and marks the keys as being leased. nil: nothing.
func (l *leases) begin(charges []window.Charge, nodes int64) (extra []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range charges {
		charge := &charges[i]
		size := min(charge.Limit, window.Max) / leasePart / nodes
		if size <= 0 || l.coming[charge.Key] || len(l.all) >= mostLeases {
			continue
		}
		if extra == nil {
			extra = make([]int64, len(charges))
		}
		extra[i], l.coming[charge.Key] = size, true
	}
	return extra
}

func (l *leases) end(charges []window.Charge, extra []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range charges {
		if extra[i] > 0 {
			delete(l.coming, charges[i].Key)
		}
	}
}

// keep stores a new lease, and gives back the rest of the one before.
func (c *Coordinator) keep(key window.Key, held *lease) {
	held.until = c.now().Add(leaseFor)
	c.leases.mu.Lock()
	before := c.leases.all[key]
	c.leases.all[key] = held
	c.leases.mu.Unlock()
	if before != nil {
		c.giveBack(key, before)
	}
}

// giveBack gives back the rest of a lease, unless the counters with its charge are lost.
func (c *Coordinator) giveBack(key window.Key, held *lease) {
	if held.epoch == c.known() {
		c.owe(key, held.at, -held.left)
	}
}

// returnLeases gives back the rest of leases that have ended.
func (c *Coordinator) returnLeases() {
	l := c.leases
	l.mu.Lock()
	now := l.now()
	ended := make(map[window.Key]*lease)
	for key, held := range l.all {
		if !now.Before(held.until) {
			ended[key] = held
			delete(l.all, key)
		}
	}
	l.mu.Unlock()
	for key, held := range ended {
		c.giveBack(key, held)
	}
}
