package window

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// clock is a time that tests move.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) turn(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func key(group, member string) Key { return NewKey(NewDigest(group), NewDigest(member)) }

func TestDigestsTellFieldsApart(t *testing.T) {
	seen := map[Digest][]string{}
	for _, fields := range [][]string{{}, {""}, {"", ""}, {"a"}, {"ab"}, {"a", "b"}, {"b", "a"}, {"", "ab"}, {"ab", ""}, {"a\x00b"}} {
		d := NewDigest(fields...)
		if other, is := seen[d]; is {
			t.Errorf("%q and %q are one", fields, other)
		}
		seen[d] = fields
	}
	if k := key("g", "m"); k.group() != NewDigest("g") || k.member() != NewDigest("m") {
		t.Error("halves of a key")
	}
}

// TestSpent checks that amounts are returned second by second for as long as they count, and add up to the counters'
// values.
func TestSpent(t *testing.T) {
	c := newClock()
	w := New(c.now)
	keys := []Key{key("g", "a"), key("g", "b"), key("h", "a")}
	took := make(map[Spent]bool) // Age: the second
	for second := range uint32(200) {
		for i, k := range keys {
			if amount := int64(second)*7%5 + int64(i); int(second)%(i+2) == 0 && second < 120 && amount > 0 {
				w.Charge([]Charge{{Key: k, Amount: amount, Limit: Max}}, nil)
				took[Spent{k, second, amount}] = true
			}
		}
		sums := make(map[Key]int64)
		for _, s := range w.Spent(1 << 20) {
			if s.Age > span || !took[Spent{s.Key, second - s.Age, s.Amount}] {
				t.Fatalf("second %d: %+v was not", second, s)
			}
			sums[s.Key] += s.Amount
		}
		for _, k := range keys {
			if sums[k] != w.Used(k) {
				t.Fatalf("second %d: %d were told of, %d count", second, sums[k], w.Used(k))
			}
		}
		if n := len(w.Spent(5)); n > 5 || second == 60 && n != 5 {
			t.Errorf("%d of at most 5", n)
		}
		c.turn(time.Second)
	}
}

// TestEdgesOfAWindow covers T05: a burst on both sides of the edge of a window passes once.
func TestEdgesOfAWindow(t *testing.T) {
	for _, first := range []time.Duration{0, 1, 400 * time.Millisecond, time.Second - 1} {
		c := newClock()
		w := New(c.now)
		k := key("p", "u")
		one := []Charge{{Key: k, Amount: 1, Limit: 100}}
		state := make([]State, 1)
		c.turn(first)
		start := c.now()
		for i := range 100 {
			if _, ok := w.Charge(one, state); !ok || state[0] != (State{Used: int64(i + 1)}) {
				t.Fatalf("call %d: %v %+v", i, ok, state[0])
			}
		}
		for _, later := range []time.Duration{0, 1, time.Second, 59900 * time.Millisecond, time.Minute - 1, time.Minute} {
			c.turn(later - c.now().Sub(start))
			if _, ok := w.Charge(one, state); ok || state[0].Used != 100 {
				t.Fatalf("%v: %v after: %v %+v", first, later, ok, state[0])
			}
			if w.Look(one, state) || state[0].Used != 100 {
				t.Fatalf("%v: a look %v after: %+v", first, later, state[0])
			}
		}
		if state[0].Wait <= 0 || state[0].Wait > time.Second {
			t.Fatalf("wait %v", state[0].Wait)
		}
		wait := state[0].Wait
		c.turn(wait - 1)
		if _, ok := w.Charge(one, state); ok || state[0].Wait != 1 {
			t.Fatalf("just before: %v %+v", ok, state[0])
		}
		c.turn(1)
		if !w.Look(one, state) || state[0].Used != 0 {
			t.Fatalf("%v: %+v when waited", first, state[0])
		}
		if _, ok := w.Charge(one, state); !ok || state[0].Used != 1 {
			t.Fatalf("%v: %v %+v when waited", first, ok, state[0])
		}
	}
}

// TestRefusedChargesNothing checks that one full counter refuses the whole charge, at any position.
func TestRefusedChargesNothing(t *testing.T) {
	for full := range 3 {
		c := newClock()
		w := New(c.now)
		keys := []Key{key("a", ""), key("b", ""), key("c", "")}
		if _, ok := w.Charge([]Charge{{Key: keys[full], Amount: 5, Limit: 5}}, nil); !ok {
			t.Fatal("filling")
		}
		var charges []Charge
		for _, k := range keys {
			charges = append(charges, Charge{Key: k, Amount: 2, Limit: 5})
		}
		states := make([]State, 3)
		if _, ok := w.Charge(charges, states); ok {
			t.Fatal("passed")
		}
		for i, k := range keys {
			want := int64(0)
			if i == full {
				want = 5
			}
			if got := w.Used(k); got != want || states[i].Used != want || (states[i].Wait > 0) != (i == full) {
				t.Errorf("full %d: counter %d holds %d, %+v", full, i, got, states[i])
			}
		}
		if w.Len() != 1 {
			t.Errorf("%d counters: a refusal made some", w.Len())
		}
	}
}

func TestOneKeyTwiceAddsUp(t *testing.T) {
	w := New(newClock().now)
	other, k := key("o", ""), key("k", "")
	states := make([]State, 3)
	charges := []Charge{{Key: k, Amount: 3, Limit: 5}, {Key: other, Amount: 1, Limit: 5}, {Key: k, Amount: 3, Limit: 5}}
	if _, ok := w.Charge(charges, states); ok || w.Used(k) != 0 || w.Used(other) != 0 {
		t.Fatalf("passed: %d %d", w.Used(k), w.Used(other))
	}
	if states[2].Wait <= 0 || states[0].Used != 0 {
		t.Errorf("%+v", states)
	}
	charges[2].Amount = 2
	if _, ok := w.Charge(charges, states); !ok || w.Used(k) != 5 || w.Used(other) != 1 {
		t.Fatalf("refused: %d %d", w.Used(k), w.Used(other))
	}
}

func TestAmountsAndLimitsAtTheirEnds(t *testing.T) {
	const huge = 1<<63 - 1
	for _, test := range []struct {
		amount, limit int64
		ok            bool
		used          int64
	}{
		{1, 0, false, 0}, {0, 0, false, 0}, {-5, 0, false, 0}, {1, -1, false, 0}, {0, 1, true, 0}, {-5, 1, true, 0}, {1, 1, true, 1},
		{2, 1, false, 0}, {huge, huge, false, 0}, {Max, huge, true, Max}, {Max + 1, huge, false, 0}, {huge, 10, false, 0},
	} {
		w := New(newClock().now)
		k := key("k", "")
		states := make([]State, 1)
		if _, ok := w.Charge([]Charge{{Key: k, Amount: test.amount, Limit: test.limit}}, states); ok != test.ok || w.Used(k) != test.used {
			t.Errorf("%+v: %v, %d", test, ok, w.Used(k))
		}
		if test.ok == (states[0].Wait > 0) || states[0].Wait > Longest {
			t.Errorf("%+v: %+v", test, states[0])
		}
		for range 300 {
			w.Correct(0, []Correction{{Key: k, Delta: huge}})
		}
		if u := w.Used(k); u < 0 {
			t.Errorf("%+v: %d after corrections", test, u)
		}
		w.Correct(0, []Correction{{Key: k, Delta: -huge - 1}})
		if u := w.Used(k); u < 0 {
			t.Errorf("%+v: %d after a refund", test, u)
		}
	}
}

// TestCorrections checks that a refund goes to the second of its charge and never below zero, and that an addition
// counts now.
func TestCorrections(t *testing.T) {
	c := newClock()
	w := New(c.now)
	k := key("k", "")
	charge := func(amount int64) Slot {
		t.Helper()
		at, ok := w.Charge([]Charge{{Key: k, Amount: amount, Limit: 1000}}, nil)
		if !ok {
			t.Fatal("refused")
		}
		return at
	}
	want := func(n int64) {
		t.Helper()
		if got := w.Used(k); got != n {
			t.Fatalf("%d used, want %d", got, n)
		}
	}
	first := charge(100)
	c.turn(10 * time.Second)
	second := charge(200)
	c.turn(10 * time.Second)
	charge(50)
	w.Correct(second, []Correction{{Key: k, Delta: -150}})
	want(200)
	w.Correct(first, []Correction{{Key: k, Delta: -500}}) // no more than the second holds
	want(100)
	w.Correct(second+3, []Correction{{Key: k, Delta: -10}}) // nothing was charged then
	want(100)
	w.Correct(1<<31, []Correction{{Key: k, Delta: -10}}) // a second in the future
	want(100)
	c.turn(51 * time.Second) // 71 s: the second's slot is gone, the third's is there
	want(50)
	w.Correct(second, []Correction{{Key: k, Delta: -10}})
	want(50)
	w.Correct(second, []Correction{{Key: k, Delta: 2000}}) // beyond the limit, because it was used
	want(2050)
	if _, ok := w.Charge([]Charge{{Key: k, Amount: 1, Limit: 1000}}, nil); ok {
		t.Error("a charge above the limit")
	}
	c.turn(61 * time.Second)
	want(0)
	w.Correct(first, []Correction{{Key: key("unknown", ""), Delta: -10}})
	if w.Len() != 1 {
		t.Errorf("%d counters", w.Len())
	}
	w.Correct(first, []Correction{{Key: key("unknown", ""), Delta: 10}})
	if w.Len() != 2 {
		t.Errorf("%d counters", w.Len())
	}
}

func TestMembersOfAGroup(t *testing.T) {
	c := newClock()
	w := New(c.now)
	for g := range 5 {
		for m := range 1000 {
			k := NewKey(NewDigest("g", string(rune('a'+g))), NewDigest("m", string(rune(m))))
			if _, ok := w.Charge([]Charge{{Key: k, Amount: int64(g + 1), Limit: 10}}, nil); !ok {
				t.Fatal("refused")
			}
		}
	}
	for g := range 5 {
		got := map[Digest]int64{}
		for _, m := range w.Members(NewDigest("g", string(rune('a'+g)))) {
			got[m.Member] += m.Used
		}
		if len(got) != 1000 || got[NewDigest("m", string(rune(7)))] != int64(g+1) {
			t.Errorf("group %d: %d members", g, len(got))
		}
	}
	if got := w.Members(NewDigest("unknown")); len(got) != 0 {
		t.Errorf("%v", got)
	}
	c.turn(61 * time.Second)
	if got := w.Members(NewDigest("g", "a")); len(got) != 0 {
		t.Errorf("%d after their window", len(got))
	}
}

// TestSweep checks that counters without charges are removed after two windows. Looks keep none alive, and the others
// stay unchanged.
func TestSweep(t *testing.T) {
	c := newClock()
	w := New(c.now)
	charge := func(group string, n int) {
		for m := range n {
			w.Charge([]Charge{{Key: NewKey(NewDigest(group), NewDigest("m", string(rune(m)))), Amount: 1, Limit: 100}}, nil)
		}
	}
	charge("old", 3000)
	c.turn(50 * time.Second)
	charge("new", 500)
	c.turn(70 * time.Second)
	if n := w.Sweep(); n != 0 || w.Len() != 3500 {
		t.Fatalf("%d swept at two windows, %d left", n, w.Len())
	}
	charge("new", 100)
	for m := range 3000 {
		w.Used(NewKey(NewDigest("old"), NewDigest("m", string(rune(m)))))
	}
	c.turn(time.Second)
	if n := w.Sweep(); n != 3000 || w.Len() != 500 {
		t.Fatalf("%d swept, %d left", n, w.Len())
	}
	if n := w.Sweep(); n != 0 {
		t.Fatalf("%d swept again", n)
	}
	if got := w.Members(NewDigest("new")); len(got) != 100 {
		t.Errorf("%d members hold something", len(got))
	}
	charge("new", 500)
	if got := w.Members(NewDigest("new")); len(got) != 500 || w.Len() != 500 {
		t.Errorf("%d members of %d", len(got), w.Len())
	}
	c.turn(time.Hour)
	if n := w.Sweep(); n != 500 || w.Len() != 0 || w.Used(key("new", "")) != 0 {
		t.Errorf("%d swept at the end, %d left", n, w.Len())
	}
	charge("new", 10)
	if w.Len() != 10 {
		t.Errorf("%d counters", w.Len())
	}
}

// TestWallClockSteps covers T06: the clock of the process has a monotonic reading, which no step of the wall clock
// moves. A clock that goes back anyway neither opens a window nor breaks a counter.
func TestWallClockSteps(t *testing.T) {
	if start := New(nil).start; start == start.Round(0) {
		t.Error("the default clock has no monotonic reading")
	}
	c := newClock()
	w := New(c.now)
	k := key("k", "")
	c.turn(2 * time.Hour)
	at, _ := w.Charge([]Charge{{Key: k, Amount: 10, Limit: 10}}, nil)
	c.turn(-time.Hour)
	if _, ok := w.Charge([]Charge{{Key: k, Amount: 1, Limit: 10}}, nil); ok || w.Used(k) != 10 {
		t.Error("a window opened")
	}
	w.Correct(at, []Correction{{Key: k, Delta: -4}})
	w.Sweep()
	if w.Used(k) != 6 {
		t.Errorf("%d used", w.Used(k))
	}
}

// TestDefaultClock runs a minute with a clock like the real one.
func TestDefaultClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(nil)
		one := []Charge{{Key: key("k", ""), Amount: 1, Limit: 1}}
		if _, ok := w.Charge(one, nil); !ok {
			t.Fatal("refused")
		}
		<-time.After(time.Minute)
		if _, ok := w.Charge(one, nil); ok {
			t.Error("passed within the minute")
		}
		<-time.After(time.Second)
		if _, ok := w.Charge(one, nil); !ok {
			t.Error("refused after it")
		}
	})
}
