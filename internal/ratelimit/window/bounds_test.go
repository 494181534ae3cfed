package window

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// counterOf returns a key's counter as stored.
func counterOf(w *Counters, k Key) *counter {
	h := w.hash(&k)
	return w.shards[shardOf(h)].find(h, &k)
}

// many returns keys of one group, enough for every shard to have several.
func many(group string) []Key {
	keys := make([]Key, 20*shardCount)
	for i := range keys {
		keys[i] = key(group, fmt.Sprint(i))
	}
	return keys
}

func chargeOne(t *testing.T, w *Counters, amount int64, keys ...Key) Slot {
	t.Helper()
	var charges []Charge
	for _, k := range keys {
		charges = append(charges, Charge{Key: k, Amount: amount, Limit: Max})
	}
	at, ok := w.Charge(charges, nil)
	if !ok {
		t.Fatal("refused")
	}
	return at
}

// TestLocks checks that a charge reads the clock while all of its shards are locked, and that every step leaves all of
// them unlocked.
func TestLocks(t *testing.T) {
	var w *Counters
	keys := many("k")
	free := func() (n int) {
		for i := range w.shards {
			if w.shards[i].mu.TryLock() {
				w.shards[i].mu.Unlock()
				n++
			}
		}
		return n
	}
	reads, want := 0, shardCount
	w = New(func() time.Time {
		if reads++; w != nil && free() != want {
			t.Errorf("read %d of the clock: %d shards are free, want %d", reads, free(), want)
		}
		return time.Unix(1, 0)
	})
	for name, step := range map[string]struct {
		do     func()
		locked int // number of locked shards when the clock is read
	}{
		"charge": {func() { chargeOne(t, w, 1, keys...) }, shardCount}, "charge one": {func() { chargeOne(t, w, 1, keys[0]) }, 1},
		"refused": {func() { w.Charge([]Charge{{Key: keys[0], Amount: 1}}, nil) }, 1},
		"look":    {func() { w.Look([]Charge{{Key: keys[0], Amount: 1, Limit: Max}}, nil) }, 0},
		"give":    {func() { w.Correct(0, []Correction{{Key: keys[0], Delta: -1}}) }, 1}, "take": {func() { w.Correct(0, []Correction{{Key: keys[0], Delta: 1}}) }, 1},
		"used": {func() { w.Used(keys[0]) }, 1}, "members": {func() { w.Members(NewDigest("k")) }, 1},
		"spent": {func() { w.Spent(Max) }, 1}, "len": {func() { w.Len() }, 1}, "sweep": {func() { w.Sweep() }, 1},
	} {
		want = shardCount - step.locked
		if step.do(); free() != shardCount {
			t.Fatalf("%s leaves %d shards locked", name, shardCount-free())
		}
	}
}

// TestOneSecond checks that charges at several times of one second make one amount.
func TestOneSecond(t *testing.T) {
	w := New(newClock().now)
	k := key("k", "")
	at := chargeOne(t, w, 3, k)
	chargeOne(t, w, 4, k)
	w.Correct(at, []Correction{{Key: k, Delta: -7}})
	if got := w.Used(k); got != 0 {
		t.Errorf("%d used", got)
	}
}

// TestCorrectionsAtTheirEnds checks that an empty correction makes no counter. A refund must go to its second as long
// as that counts, and never to another second with the same low bits.
func TestCorrectionsAtTheirEnds(t *testing.T) {
	c := newClock()
	w := New(c.now)
	k := key("k", "")
	first := chargeOne(t, w, 10, k)
	w.Correct(first, []Correction{{Key: key("unknown", "")}, {Key: k}})
	if w.Len() != 1 || w.Used(k) != 10 {
		t.Errorf("%d counters, %d used", w.Len(), w.Used(k))
	}
	c.turn(Width)
	chargeOne(t, w, 1, k)
	w.Correct(first, []Correction{{Key: k, Delta: -4}})
	if got := w.Used(k); got != 7 {
		t.Errorf("%d used once a second at the edge gave back", got)
	}
	c.turn(256*time.Second - Width)
	chargeOne(t, w, 20, k)
	c.turn(time.Second)
	chargeOne(t, w, 1, k)
	w.Correct(first, []Correction{{Key: k, Delta: -5}})
	if got := w.Used(k); got != 21 {
		t.Errorf("%d used once a second 256 s before gave back", got)
	}
}

// TestSpentOfNothing checks that seconds whose whole amount was given back are left out.
func TestSpentOfNothing(t *testing.T) {
	c := newClock()
	w := New(c.now)
	k := key("k", "")
	for range 2 {
		at := chargeOne(t, w, 5, k)
		w.Correct(at, []Correction{{Key: k, Delta: -5}})
		if got := w.Spent(10); len(got) != 0 {
			t.Errorf("%+v", got)
		}
		at = chargeOne(t, w, 5, k)
		c.turn(time.Second)
		chargeOne(t, w, 1, k)
		w.Correct(at, []Correction{{Key: k, Delta: -5}})
		if got := w.Spent(10); len(got) != 1 || got[0].Amount != 1 {
			t.Errorf("%+v", got)
		}
		c.turn(time.Hour)
	}
}

// TestWaits checks that a charge that never fits waits for the longest time, and one that just fits for as long as
// needed.
func TestWaits(t *testing.T) {
	c := newClock()
	w := New(c.now)
	k := key("k", "")
	chargeOne(t, w, 1, k)
	c.turn(10 * time.Second)
	for need, want := range map[int64]time.Duration{6: Longest, 5: Longest - 10*time.Second, 4: 0} {
		states := make([]State, 1)
		charges := []Charge{{Key: k, Amount: need, Limit: 5}}
		if w.Look(charges, states); states[0].Wait != want {
			t.Errorf("a look for %d waits %v", need, states[0].Wait)
		}
		if want == 0 {
			continue
		}
		if w.Charge(charges, states); states[0].Wait != want {
			t.Errorf("a charge of %d waits %v", need, states[0].Wait)
		}
	}
}

// TestRoom checks that a counter has room for its busy seconds, and for few more.
func TestRoom(t *testing.T) {
	for length, want := range map[int]int{0: 0, 1: 2, 2: 2, 3: 4, 12: 12, 13: 20, 44: 44, 45: 60, 60: 60} {
		if got := fitting(length); got != want {
			t.Errorf("room for %d at %d", got, length)
		}
	}
	c := newClock()
	w := New(c.now)
	k, unused := key("k", ""), key("unused", "")
	for busy := range int(span) {
		chargeOne(t, w, 1, k)
		chargeOne(t, w, 0, unused)
		if n := counterOf(w, k); len(n.older) != busy || cap(n.older) != fitting(busy) {
			t.Errorf("%d busy seconds: %d of %d", busy, len(n.older), cap(n.older))
		}
		if n := counterOf(w, unused); n.older != nil {
			t.Errorf("%v of nothing", n.older)
		}
		c.turn(time.Second)
	}
	c.turn(30 * time.Second)
	w.Sweep()
	if n := counterOf(w, k); len(n.older) != 29 || cap(n.older) != 32 || w.Used(k) != 30 {
		t.Errorf("%d of %d in the middle, %d used", len(n.older), cap(n.older), w.Used(k))
	}
	c.turn(Width)
	w.Sweep()
	if n := counterOf(w, k); n == nil || n.older != nil || w.Used(k) != 0 {
		t.Errorf("%+v is left", n)
	}
}

// TestSweepAtItsEdge checks that a counter charged exactly two windows ago stays while others are removed, in no more
// chains than needed.
func TestSweepAtItsEdge(t *testing.T) {
	c := newClock()
	w := New(c.now)
	old, kept := many("old"), many("kept")
	chargeOne(t, w, 1, old...)
	c.turn(time.Second)
	chargeOne(t, w, 1, kept...)
	c.turn(2 * Width)
	if n := w.Sweep(); n != len(old) || w.Len() != len(kept) {
		t.Errorf("%d went, %d are left", n, w.Len())
	}
	if i := slices.IndexFunc(kept, func(k Key) bool { return counterOf(w, k) == nil }); i >= 0 {
		t.Errorf("counter %d is lost", i)
	}
	for i := range w.shards {
		if heads, n := len(w.shards[i].heads), int(w.shards[i].n); heads < n || heads > 8 && heads/2 >= n {
			t.Errorf("%d chains for %d counters", heads, n)
		}
	}
}

// TestSweepWhenTheClockGoesBack covers T06: a charge from after the present second counts as present, and stays
// unchanged while others are removed.
func TestSweepWhenTheClockGoesBack(t *testing.T) {
	c := newClock()
	w := New(c.now)
	old, later := many("old"), many("later")
	chargeOne(t, w, 1, old...)
	c.turn(2*time.Hour - time.Second)
	chargeOne(t, w, 2, later...)
	c.turn(time.Second)
	chargeOne(t, w, 3, later...)
	c.turn(-time.Hour)
	for _, want := range []int{len(old), 0} {
		if n := w.Sweep(); n != want {
			t.Errorf("%d went, want %d", n, want)
		}
	}
	if i := slices.IndexFunc(later, func(k Key) bool { return w.Used(k) != 5 }); i >= 0 {
		t.Errorf("counter %d holds %d", i, w.Used(later[i]))
	}
	spent := int64(0)
	for _, s := range w.Spent(Max) {
		spent += s.Amount
	}
	if spent != int64(5*len(later)) {
		t.Errorf("%d were spent", spent)
	}
}
