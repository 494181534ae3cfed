package window

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// naive models a counter as a list of events.
type naive struct{ events []event }

type event struct {
	at     time.Duration
	slot   int64
	amount int64
}

// used returns the sum of the slots that a window of 60 s before now touches.
func (n *naive) used(now time.Duration) (sum int64) {
	for _, e := range n.events {
		if e.slot >= int64((now-Width)/slotWidth) && now >= Width || now < Width {
			sum += e.amount
		}
	}
	return sum
}

// inAnyWindow returns the largest sum in any closed 60 s that end at an event.
func (n *naive) inAnyWindow() (most int64) {
	for i, last := range n.events {
		sum := int64(0)
		for _, e := range n.events[:i+1] {
			if last.at-e.at <= Width {
				sum += e.amount
			}
		}
		most = max(most, sum)
	}
	return most
}

// TestAgainstReference compares counters with lists of events, for any order of steps of any length.
func TestAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		start := c.now()
		w := New(c.now)
		const counters = 3
		keys := make([]Key, counters)
		limits := make([]int64, counters)
		lists := make([]naive, counters)
		for i := range keys {
			keys[i] = key("p", string(rune('a'+i)))
			limits[i] = rapid.Int64Range(0, 60).Draw(t, "limit")
		}
		type reservation struct {
			at      Slot
			which   int
			amount  int64
			charged int // number of its event
		}
		var open []reservation
		pause := rapid.OneOf(
			rapid.Int64Range(0, int64(3*time.Second)),
			rapid.Int64Range(int64(59*time.Second), int64(62*time.Second)),
			rapid.Int64Range(0, int64(200*time.Second)),
		)
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			now := c.now().Sub(start)
			switch rapid.IntRange(0, 9).Draw(t, "step") {
			case 0, 1, 2, 3, 4: // charge a part of the counters
				var charges []Charge
				var which []int
				fits := true
				for i := range keys {
					if rapid.Bool().Draw(t, "take") {
						amount := rapid.Int64Range(0, 20).Draw(t, "amount")
						charges = append(charges, Charge{Key: keys[i], Amount: amount, Limit: limits[i]})
						which = append(which, i)
						fits = fits && lists[i].used(now)+max(amount, 1) <= limits[i]
					}
				}
				states := make([]State, len(charges))
				if w.Look(charges, states) != fits {
					t.Fatalf("a look says %v", !fits)
				}
				looked := append([]State(nil), states...)
				at, ok := w.Charge(charges, states)
				if ok != fits {
					t.Fatalf("charged: %v, the list says %v", ok, fits)
				}
				for j, i := range which {
					if ok {
						lists[i].events = append(lists[i].events, event{now, int64(now / slotWidth), charges[j].Amount})
						open = append(open, reservation{at, i, charges[j].Amount, len(lists[i].events) - 1})
					} else if states[j] != looked[j] {
						t.Fatalf("a look says %+v, a charge %+v", looked[j], states[j])
					}
					if states[j].Used != lists[i].used(now) {
						t.Fatalf("%d used, the list says %d", states[j].Used, lists[i].used(now))
					}
					if wait := states[j].Wait; wait > 0 && max(charges[j].Amount, 1) <= limits[i] {
						need := max(charges[j].Amount, 1)
						if lists[i].used(now+wait)+need > limits[i] || lists[i].used(now+wait-1)+need <= limits[i] {
							t.Fatalf("wait %v is not the earliest", wait)
						}
					}
				}
			case 5, 6: // settle
				if len(open) == 0 {
					continue
				}
				at := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				r := open[at]
				open = append(open[:at], open[at+1:]...)
				actual := rapid.Int64Range(0, 30).Draw(t, "actual")
				w.Correct(r.at, []Correction{{Key: keys[r.which], Delta: actual - r.amount}})
				l := &lists[r.which]
				if actual <= r.amount {
					l.events[r.charged].amount = actual
				} else {
					l.events = append(l.events, event{now, int64(now / slotWidth), actual - r.amount})
				}
			case 7:
				w.Sweep()
			default:
				c.turn(time.Duration(pause.Draw(t, "pause")))
			}
			now = c.now().Sub(start)
			for i := range keys {
				if got, want := w.Used(keys[i]), lists[i].used(now); got != want {
					t.Fatalf("counter %d holds %d, the list %d", i, got, want)
				}
			}
			var sum, want int64
			for _, m := range w.Members(NewDigest("p")) {
				sum += m.Used
			}
			for i := range lists {
				want += lists[i].used(now)
			}
			if sum != want {
				t.Fatalf("the group holds %d, the lists %d", sum, want)
			}
		}
	})
}

// TestNeverMoreInAnyMinute covers T05: no 60 s hold more than the limit, for any calls, and a refused call would have
// exceeded it within 61 s.
func TestNeverMoreInAnyMinute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		start := c.now()
		w := New(c.now)
		k := key("k", "")
		limit := rapid.Int64Range(1, 40).Draw(t, "limit")
		var passed naive
		for range rapid.IntRange(1, 300).Draw(t, "calls") {
			amount := rapid.Int64Range(1, 6).Draw(t, "amount")
			now := c.now().Sub(start)
			if _, ok := w.Charge([]Charge{{Key: k, Amount: amount, Limit: limit}}, nil); ok {
				passed.events = append(passed.events, event{now, 0, amount})
			} else {
				var sum int64
				for _, e := range passed.events {
					if now-e.at < Longest {
						sum += e.amount
					}
				}
				if sum+amount <= limit {
					t.Fatalf("refused at %v with %d of %d in 61 s", now, sum, limit)
				}
			}
			c.turn(time.Duration(rapid.Int64Range(0, int64(9*time.Second)).Draw(t, "pause")))
		}
		if most := passed.inAnyWindow(); most > limit {
			t.Fatalf("%d in a minute, limit %d", most, limit)
		}
	})
}
