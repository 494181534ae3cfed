package window

import "time"

// counter holds the amount of the last second with a charge, and the amounts of earlier seconds, oldest first. Most
// charges fall into a second that was charged already, and touch only the first words.
//
// It takes 88 bytes, and 8 more for each earlier busy second.
type counter struct {
	key     Key
	present int64  // charged in the second named by last
	earlier int64  // the sum of older
	older   []slot // of the seconds last-span to last-1, ascending, each once
	last    uint32 // the latest second that was charged or refused
	next    uint32 // next in the chain of its hash: 1 + position; 0 ends the chain
	kin     uint32 // next in the chain of its group's hash
}

// slot holds the amount of one second: the amount shifted by eight, with the low eight bits of the second. All slots of
// a counter lie within span seconds of each other, so eight bits tell them apart.
type slot uint64

const maxSlot = 1<<55 - 1

func pack(second uint32, amount int64) slot { return slot(amount)<<8 | slot(uint8(second)) }

func (s slot) amount() int64 { return int64(s >> 8) }

// age returns the seconds from the slot's second to second. The two lie within 255 of each other.
func (s slot) age(second uint32) uint32 { return uint32(uint8(second) - uint8(s)) }

func (n *counter) total() int64 { return n.present + n.earlier }

// advance moves the counter to second and drops the slots that no longer count.
func (n *counter) advance(second uint32) {
	if second <= n.last {
		return
	}
	if second-n.last > span {
		n.older = n.older[:0]
		n.present, n.earlier, n.last = 0, 0, second
		return
	}
	n.forget(second)
	if n.present > 0 {
		if len(n.older) == cap(n.older) {
			n.resize(len(n.older) + 1)
		}
		n.older = append(n.older, pack(n.last, n.present))
		n.earlier += n.present
		n.present = 0
	}
	n.last = second
}

// forget drops the slots that have left the window at second. Ages are counted in a byte, so second must be at most 255-span
// after last.
func (n *counter) forget(second uint32) {
	drop := 0
	for drop < len(n.older) && n.older[drop].age(second) > span {
		n.earlier -= n.older[drop].amount()
		drop++
	}
	if drop > 0 {
		n.older = n.older[:copy(n.older, n.older[drop:])]
	}
}

// sizes holds the capacities of older. Times eight they are the sizes that the allocator uses anyway.
var sizes = [...]int{0, 2, 4, 8, 12, 20, 32, 44, int(span)}

// fitting returns the smallest of sizes for length slots.
func fitting(length int) int {
	for _, size := range sizes {
		if size >= length {
			return size
		}
	}
	return length
}

// resize gives older room for length slots.
func (n *counter) resize(length int) {
	if length == 0 {
		n.older = nil
		return
	}
	n.older = append(make([]slot, 0, fitting(length)), n.older...)
}

// add charges amount in the counter's last second.
func (n *counter) add(amount int64) { n.present = min(n.present+amount, maxSlot) }

// refund takes back an amount that was charged in a second, at most what is there.
func (n *counter) refund(second uint32, amount int64) {
	switch {
	case second == n.last:
		n.present -= min(n.present, amount)
	case second < n.last && n.last-second <= span:
		for i, s := range n.older {
			if uint8(s) == uint8(second) {
				back := min(s.amount(), amount)
				n.older[i] -= slot(back) << 8
				n.earlier -= back
				return
			}
		}
	}
}

// used returns the amount that counts at a second. It leaves the counter unchanged, because a look is not a use.
func (n *counter) used(second uint32) int64 {
	switch {
	case second <= n.last:
		return n.total()
	case second-n.last > span:
		return 0
	}
	used := n.total()
	for _, s := range n.older {
		if s.age(second) <= span {
			break
		}
		used -= s.amount()
	}
	return used
}

// spent appends the amounts that count at a second, without changing the counter.
func (n *counter) spent(out []Spent, second uint32) []Spent {
	second = max(second, n.last)
	if second-n.last > span {
		return out
	}
	for _, s := range n.older {
		if age := s.age(second); age <= span && s.amount() > 0 {
			out = append(out, Spent{Key: n.key, Age: age, Amount: s.amount()})
		}
	}
	if n.present > 0 {
		out = append(out, Spent{Key: n.key, Age: second - n.last, Amount: n.present})
	}
	return out
}

// wait returns the time from since until need fits below limit, or Longest when it never does. The counter may be nil.
func (n *counter) wait(need, limit int64, since time.Duration) time.Duration {
	if n == nil || need > limit {
		return Longest
	}
	over := n.total() + need - limit
	until := n.last
	for _, s := range n.older {
		if over -= s.amount(); over <= 0 {
			until = n.last - s.age(n.last)
			break
		}
	}
	return time.Duration(until+span+1)*slotWidth - since
}
