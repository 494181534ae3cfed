// Package window counts the use of the last 60 seconds, exactly, for very many counters at once.
//
// Time is divided into slots of one second on the monotonic clock of the process, so that a step of the wall clock
// opens no window and locks nobody out (attack T06). A window of 60 s touches 61 slots. The oldest slot counts in full
// until all of it has passed. So a unit is forgotten 60 to 61 s after its charge, never earlier. No period of 60 s,
// wherever it starts, holds more than the limit (attack T05).
//
// [Counters.Charge] checks and charges several counters in one step, all or none. It reads the clock while it holds the
// locks of all of them: a goroutine that is delayed on its way in cannot charge a second that has passed.
//
// Nothing here starts a goroutine. The owner of the counters calls [Counters.Sweep] now and then.
package window

import (
	"hash/maphash"
	"math/bits"
	"time"
)

// Width is the length of the window.
const Width = time.Minute

const (
	slotWidth = time.Second
	span      = uint32(Width / slotWidth) // a slot counts while its age in seconds is at most this
	idle      = 2 * span                  // a sweep removes a counter whose last charge is older, in seconds
)

// Max is the greatest limit and amount; greater ones count as Max. Sums of it cannot overflow.
const Max = 1<<48 - 1

// Longest is the longest wait in a [State]. After it a counter without new charges is empty.
const Longest = Width + slotWidth

// Slot is the second of a charge, counted from the making of the Counters, in its low 32 bits. The high 32 bits are
// free for a caller that keeps counters elsewhere too.
type Slot uint64

// Charge asks one counter to take an amount.
type Charge struct {
	Key    Key
	Amount int64 // below 0 counts as 0; 0 charges nothing but needs room for one
	Limit  int64 // within a window; with 0 and below the counter takes nothing
}

// need returns the room that the charge needs.
func (c *Charge) need() int64 { return min(max(c.Amount, 1), Max+1) }

func (c *Charge) amount() int64 { return min(max(c.Amount, 0), Max) }

func (c *Charge) limit() int64 { return min(max(c.Limit, 0), Max) }

// State holds the outcome of one charge.
type State struct {
	Used int64         // in the window, including this charge when it was made
	Wait time.Duration // 0: this counter had room; else the time until it has room, if nobody charges it meanwhile
}

// Correction changes an earlier charge.
type Correction struct {
	Key   Key
	Delta int64 // below 0: given back in the slot of the charge; above 0: charged now, without regard to the limit
}

// Counters is a set of counters. It is safe for concurrent use.
type Counters struct {
	now    func() time.Time
	start  time.Time
	seed   maphash.Seed
	shards [shardCount]shard
}

// New makes an empty set. now must return a monotonic reading, as time.Now, its default, does.
func New(now func() time.Time) *Counters {
	if now == nil {
		now = time.Now
	}
	return &Counters{now: now, start: now(), seed: maphash.MakeSeed()}
}

// elapsed returns the time since the start, and its second.
func (c *Counters) elapsed() (time.Duration, uint32) {
	d := max(c.now().Sub(c.start), 0)
	return d, uint32(d / slotWidth)
}

func (c *Counters) hash(k *Key) uint64 { return maphash.Bytes(c.seed, k[:]) }

// groupHash returns the hash that selects the group chain of a key within its shard.
func (c *Counters) groupHash(k *Key) uint32 { return uint32(maphash.Bytes(c.seed, k[:digestSize])) }

// shardSet holds the shards of one step. Every step locks them in the order of the set, so all steps use one order.
type shardSet [shardCount / 64]uint64

func (s *shardSet) add(i uint64) { s[i/64] |= 1 << (i % 64) }

func (s *shardSet) lock(c *Counters) {
	for w, word := range s {
		for ; word != 0; word &= word - 1 {
			c.shards[w*64+bits.TrailingZeros64(word)].mu.Lock()
		}
	}
}

func (s *shardSet) unlock(c *Counters) {
	for w, word := range s {
		for ; word != 0; word &= word - 1 {
			c.shards[w*64+bits.TrailingZeros64(word)].mu.Unlock()
		}
	}
}

// inline is the number of charges in one step that need no allocation.
const inline = 16

// Charge makes all of charges when each has room, and none otherwise. Charges to one key add up. states is nil or as
// long as charges, and receives the outcome of each. When ok is false at least one state has a Wait; the longest is the
// time after which to try again. [Counters.Correct] needs the slot.
func (c *Counters) Charge(charges []Charge, states []State) (at Slot, ok bool) {
	var hashRoom [inline]uint64
	var foundRoom [inline]*counter
	hashes, found := hashRoom[:0], foundRoom[:0]
	var set shardSet
	for i := range charges {
		h := c.hash(&charges[i].Key)
		hashes = append(hashes, h)
		set.add(shardOf(h))
	}
	set.lock(c)
	defer set.unlock(c)
	since, second := c.elapsed()
	ok = true
	for i := range charges {
		n := c.shards[shardOf(hashes[i])].find(hashes[i], &charges[i].Key)
		found = append(found, n)
		var used int64
		if n != nil {
			n.advance(second)
			used = n.total()
		}
		wait := time.Duration(0)
		if used+charges[i].need() > charges[i].limit() {
			ok = false
			wait = n.wait(charges[i].need(), charges[i].limit(), since)
		}
		if states != nil {
			states[i] = State{Used: used, Wait: wait}
		}
	}
	if !ok {
		return Slot(second), false
	}
	for i := range charges {
		n := found[i]
		if n == nil {
			n = c.shards[shardOf(hashes[i])].get(c, hashes[i], &charges[i].Key, second)
			found[i] = n
		}
		if n.total()+charges[i].need() > charges[i].limit() { // an earlier charge of the same key took the room
			if states != nil {
				states[i].Wait = n.wait(charges[i].need(), charges[i].limit(), since)
			}
			for j, n := range found[:i] {
				n.refund(n.last, charges[j].amount()) //nolint:gosec // found has as many elements as charges had before i
			}
			for j := range states {
				states[j].Used = orNone(found[j]).total()
			}
			return Slot(second), false
		}
		n.add(charges[i].amount())
		if states != nil {
			states[i].Used = n.total()
		}
	}
	return Slot(second), true
}

var none counter // holds nothing, is never written

func orNone(n *counter) *counter {
	if n == nil {
		return &none
	}
	return n
}

// Look does the same as [Counters.Charge] but charges nothing and makes no counter. It takes one lock after the other,
// so the states of several counters may be from slightly different moments. It reads the clock once, before the locks,
// because it charges nothing.
func (c *Counters) Look(charges []Charge, states []State) (ok bool) {
	ok = true
	since, second := c.elapsed()
	for i := range charges {
		h := c.hash(&charges[i].Key)
		s := &c.shards[shardOf(h)]
		s.mu.Lock()
		n := orNone(s.find(h, &charges[i].Key))
		state := State{Used: n.used(second)}
		if state.Used+charges[i].need() > charges[i].limit() {
			ok = false
			state.Wait = n.wait(charges[i].need(), charges[i].limit(), since)
		}
		s.mu.Unlock()
		if states != nil {
			states[i] = state
		}
	}
	return ok
}

// Correct settles an earlier charge at a slot with its real amount. An amount given back is taken from that slot, at
// most what the slot holds. It is dropped when the slot no longer counts. No counter goes below zero, and none gains
// room that it would not have had.
func (c *Counters) Correct(at Slot, corrections []Correction) {
	for i := range corrections {
		k := &corrections[i]
		h := c.hash(&k.Key)
		s := &c.shards[shardOf(h)]
		s.mu.Lock()
		switch {
		case k.Delta < 0:
			if n := s.find(h, &k.Key); n != nil {
				n.refund(uint32(at), -max(k.Delta, -Max))
			}
		case k.Delta > 0:
			_, second := c.elapsed()
			n := s.get(c, h, &k.Key, second)
			n.advance(second)
			n.add(min(k.Delta, Max))
		}
		s.mu.Unlock()
	}
}

// Used returns the amount that a counter holds in the present window.
func (c *Counters) Used(k Key) int64 {
	h := c.hash(&k)
	s := &c.shards[shardOf(h)]
	s.mu.Lock()
	defer s.mu.Unlock()
	_, second := c.elapsed()
	return orNone(s.find(h, &k)).used(second)
}

// Member is one counter of a group.
type Member struct {
	Member Digest
	Used   int64
}

// Members returns the counters of a group that hold something, in no order. It takes one lock after the other.
func (c *Counters) Members(group Digest) []Member {
	k := NewKey(group, Digest{})
	h := c.groupHash(&k)
	var out []Member
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		_, second := c.elapsed()
		out = s.members(out, h, group, second)
		s.mu.Unlock()
	}
	return out
}

// Spent holds the amount that a counter took in one second of the present window.
type Spent struct {
	Key    Key
	Age    uint32 // seconds since that second
	Amount int64
}

// Spent returns the amounts of all counters, second by second, in no order. It returns at most that many. It takes one
// lock after the other.
func (c *Counters) Spent(most int) []Spent {
	var out []Spent
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		_, second := c.elapsed()
		for p := range s.n {
			if len(out) >= most {
				break
			}
			out = s.at(p).spent(out, second)
		}
		s.mu.Unlock()
	}
	return out[:min(len(out), most)]
}

// Len returns the number of stored counters.
func (c *Counters) Len() int {
	n := 0
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		n += int(s.n)
		s.mu.Unlock()
	}
	return n
}

// Sweep removes the counters without a charge for two windows, gives back memory that busier times needed, and returns
// the number removed. It holds one lock at a time, for about 0.5 ms at a million counters. Call it every 10 to 60 s.
func (c *Counters) Sweep() int {
	n := 0
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		_, second := c.elapsed()
		n += s.sweep(c, second)
		s.mu.Unlock()
	}
	return n
}
