// Package limittest tests the behaviour that every limit.Coordinator must have.
package limittest

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/internal/ratelimit/window"
)

// Nodes holds coordinators that count together, on one clock that moves only when a test moves it.
type Nodes struct {
	All []limit.Coordinator
	// Turn moves the clock forward.
	Turn func(d time.Duration)
	// Flush waits until corrections have reached all nodes. nil: they do so at once.
	Flush func()
}

// Run tests coordinators. open makes new ones, without counters, for each test. The clock begins at a whole second.
func Run(t *testing.T, open func(t *testing.T) Nodes) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, n nodes)
	}{
		{"Contention", testContention},
		{"AllOrNone", testAllOrNone},
		{"Look", testLook},
		{"Room", testRoom},
		{"Window", testWindow},
		{"Correct", testCorrect},
		{"Members", testMembers},
		{"Reference", testReference},
	} {
		t.Run(test.name, func(t *testing.T) {
			n := open(t)
			if n.Flush == nil {
				n.Flush = func() {}
			}
			test.run(t, nodes{n})
		})
	}
}

type nodes struct{ Nodes }

func key(member string) window.Key { return keyIn("group", member) }

func keyIn(group, member string) window.Key {
	return window.NewKey(window.NewDigest(group), window.NewDigest(member))
}

// first and last return two nodes, or the same one twice.
func (n nodes) first() limit.Coordinator { return n.All[0] }
func (n nodes) last() limit.Coordinator  { return n.All[len(n.All)-1] }

func charge(t *testing.T, c limit.Coordinator, charges ...window.Charge) (limit.Verdict, []window.State) {
	t.Helper()
	states := make([]window.State, len(charges))
	v, err := c.Charge(t.Context(), charges, states)
	if err != nil || v.Degraded {
		t.Fatalf("charging: %+v, %v", v, err)
	}
	return v, states
}

func used(t *testing.T, c limit.Coordinator, keys ...window.Key) []int64 {
	t.Helper()
	out := make([]int64, len(keys))
	if v, err := c.Used(t.Context(), keys, out); err != nil || v.Degraded {
		t.Fatalf("reading: %+v, %v", v, err)
	}
	return out
}

func want(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// testContention checks that exactly the allowed number of calls pass, however many ask at once, on any node.
func testContention(t *testing.T, n nodes) {
	const most, askers, each = 100, 8, 125
	var passed atomic.Int64
	var wait sync.WaitGroup
	for i := range askers {
		wait.Go(func() {
			c := n.All[i%len(n.All)]
			for range each {
				states := make([]window.State, 2)
				v, err := c.Charge(t.Context(), []window.Charge{{Key: key("a"), Amount: 1, Limit: most}, {Key: key("b"), Amount: 3, Limit: 1 << 40}}, states)
				switch {
				case err != nil || v.Degraded:
					t.Errorf("charging: %+v, %v", v, err)
				case v.OK:
					passed.Add(1)
				case states[0].Wait <= 0 || states[0].Wait > window.Longest || states[0].Used != most || states[1].Wait != 0:
					t.Errorf("refused with %+v", states)
				}
			}
		})
	}
	wait.Wait()
	want(t, "passed", passed.Load(), int64(most))
	want(t, "used", used(t, n.first(), key("a"), key("b")), []int64{most, 3 * most})
}

func testAllOrNone(t *testing.T, n nodes) {
	a, b := window.Charge{Key: key("a"), Amount: 2, Limit: 10}, window.Charge{Key: key("b"), Amount: 2, Limit: 3}
	v, states := charge(t, n.first(), a, b)
	want(t, "states", states, []window.State{{Used: 2}, {Used: 2}})
	want(t, "passes", v.OK, true)
	v, states = charge(t, n.last(), a, b)
	want(t, "passes", v.OK, false)
	want(t, "states", states, []window.State{{Used: 2}, {Used: 2, Wait: window.Longest}})
	want(t, "used", used(t, n.first(), a.Key, b.Key), []int64{2, 2})
	// Charges to one key add up.
	v, states = charge(t, n.first(), a, a, a)
	want(t, "passes", v.OK, true)
	want(t, "used then", states[2], window.State{Used: 8})
	v, states = charge(t, n.last(), a, a)
	want(t, "passes", v.OK, false)
	want(t, "used", []int64{states[0].Used, states[1].Used}, []int64{8, 8})
	want(t, "used", used(t, n.last(), a.Key), []int64{8})
}

func testLook(t *testing.T, n nodes) {
	a := window.Charge{Key: key("a"), Amount: 1, Limit: 2}
	for i, want := range []struct {
		ok    bool
		state window.State
	}{{true, window.State{}}, {true, window.State{Used: 1}}, {false, window.State{Used: 2, Wait: window.Longest}}} {
		for _, c := range n.All {
			states := make([]window.State, 1)
			v, err := c.Look(t.Context(), []window.Charge{a}, states)
			if err != nil || v.Degraded || v.OK != want.ok || states[0] != want.state {
				t.Errorf("after %d charges: %+v, %+v, %v", i, v, states, err)
			}
		}
		if want.ok {
			charge(t, n.All[i%len(n.All)], a)
		}
	}
}

// testRoom checks charges that need room for one, charges that never fit, and the greatest numbers.
func testRoom(t *testing.T, n nodes) {
	c := n.first()
	for _, test := range []struct {
		name   string
		charge window.Charge
		ok     bool
		state  window.State
	}{
		{"nothing", window.Charge{Key: key("a"), Amount: 0, Limit: 1}, true, window.State{}},
		{"blocked", window.Charge{Key: key("a"), Amount: 1, Limit: 0}, false, window.State{Wait: window.Longest}},
		{"nothing of a blocked one", window.Charge{Key: key("a"), Amount: 0, Limit: 0}, false, window.State{Wait: window.Longest}},
		{"below nothing", window.Charge{Key: key("a"), Amount: -5, Limit: -5}, false, window.State{Wait: window.Longest}},
		{"all", window.Charge{Key: key("a"), Amount: 7, Limit: 7}, true, window.State{Used: 7}},
		{"nothing of a full one", window.Charge{Key: key("a"), Amount: 0, Limit: 7}, false, window.State{Used: 7, Wait: window.Longest}},
		{"too much for ever", window.Charge{Key: key("a"), Amount: 9, Limit: 8}, false, window.State{Used: 7, Wait: window.Longest}},
		{"the greatest", window.Charge{Key: key("b"), Amount: window.Max, Limit: window.Max}, true, window.State{Used: window.Max}},
		{"beyond the greatest", window.Charge{Key: key("c"), Amount: 1 << 62, Limit: 1 << 62}, false, window.State{Wait: window.Longest}},
	} {
		v, states := charge(t, c, test.charge)
		want(t, test.name, v.OK, test.ok)
		want(t, test.name, states[0], test.state)
	}
	c.Correct(0, []window.Correction{{Key: key("b"), Delta: 1 << 62}})
	n.Flush()
	want(t, "beyond the limit", used(t, n.last(), key("b"))[0] > window.Max, true)
}

// testWindow checks that a unit counts for 60 to 61 s.
func testWindow(t *testing.T, n nodes) {
	a := func(amount int64) window.Charge { return window.Charge{Key: key("a"), Amount: amount, Limit: 15} }
	charge(t, n.first(), a(10))
	n.Turn(30*time.Second + 250*time.Millisecond)
	charge(t, n.last(), a(5))
	_, states := charge(t, n.first(), a(1))
	want(t, "after 30 s", states[0], window.State{Used: 15, Wait: 30*time.Second + 750*time.Millisecond})
	_, states = charge(t, n.first(), a(11))
	want(t, "for more", states[0], window.State{Used: 15, Wait: 60*time.Second + 750*time.Millisecond})
	n.Turn(30*time.Second + 500*time.Millisecond) // 60.75
	v, states := charge(t, n.last(), a(1))
	want(t, "passes", v.OK, false)
	want(t, "after 60 s", states[0], window.State{Used: 15, Wait: 250 * time.Millisecond})
	n.Turn(250 * time.Millisecond) // 61
	want(t, "after 61 s", used(t, n.first(), key("a")), []int64{5})
	v, states = charge(t, n.first(), a(10))
	want(t, "passes", v.OK, true)
	want(t, "after 61 s", states[0], window.State{Used: 15})
	n.Turn(30 * time.Second)
	want(t, "after 91 s", used(t, n.last(), key("a")), []int64{10})
	n.Turn(time.Hour)
	want(t, "after an hour", used(t, n.last(), key("a")), []int64{0})
	v, states = charge(t, n.first(), a(15))
	want(t, "passes", v.OK, true)
	want(t, "after an hour", states[0], window.State{Used: 15})
}

func testCorrect(t *testing.T, n nodes) {
	a := func(amount int64) window.Charge { return window.Charge{Key: key("a"), Amount: amount, Limit: 20} }
	v, _ := charge(t, n.first(), a(10))
	n.first().Correct(v.At, []window.Correction{{Key: key("a"), Delta: -4}, {Key: key("none"), Delta: -4}, {Key: key("a"), Delta: 0}})
	n.Flush()
	want(t, "given back", used(t, n.last(), key("a"), key("none")), []int64{6, 0})
	n.Turn(5 * time.Second)
	charge(t, n.last(), a(3))
	n.first().Correct(v.At, []window.Correction{{Key: key("a"), Delta: -100}})
	n.Flush()
	want(t, "never below nothing, and nobody else's", used(t, n.last(), key("a")), []int64{3})
	late, _ := charge(t, n.last(), a(2))
	n.last().Correct(late.At, []window.Correction{{Key: key("a"), Delta: 100}})
	n.Flush()
	want(t, "whatever the limit", used(t, n.first(), key("a")), []int64{105})
	n.Turn(61 * time.Second)
	charge(t, n.first(), a(7))
	n.last().Correct(late.At, []window.Correction{{Key: key("a"), Delta: -5}})
	n.Flush()
	want(t, "too late", used(t, n.first(), key("a")), []int64{7})
}

func testMembers(t *testing.T, n nodes) {
	for member, amount := range map[string]int64{"a": 1, "b": 2, "c": 3} {
		charge(t, n.first(), window.Charge{Key: keyIn("many", member), Amount: amount, Limit: 10}, window.Charge{Key: keyIn("other", member), Amount: 9, Limit: 10})
	}
	v, _ := charge(t, n.first(), window.Charge{Key: keyIn("many", "d"), Amount: 4, Limit: 10})
	n.first().Correct(v.At, []window.Correction{{Key: keyIn("many", "d"), Delta: -4}})
	n.Flush()
	members := func(group string) []window.Member {
		t.Helper()
		found, err := n.last().Members(t.Context(), window.NewDigest(group))
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(found, func(a, b window.Member) int { return int(a.Used - b.Used) })
		return found
	}
	want(t, "members", members("many"), []window.Member{{Member: window.NewDigest("a"), Used: 1}, {Member: window.NewDigest("b"), Used: 2}, {Member: window.NewDigest("c"), Used: 3}})
	want(t, "members of nothing", len(members("none")), 0)
	n.Turn(62 * time.Second)
	want(t, "members later", len(members("many")), 0)
}

// testReference checks that verdicts, and the numbers beside them, equal those of counters in this process.
func testReference(t *testing.T, n nodes) {
	now := time.Unix(0, 0)
	reference := limit.Local{Counters: window.New(func() time.Time { return now })}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test's
	keys := []window.Key{key("a"), key("b"), key("c"), key("d")}
	type made struct {
		here, there window.Slot
		by          limit.Coordinator
		key         window.Key
		amount      int64
	}
	var permits []made
	for i := range 400 {
		c := n.All[random.IntN(len(n.All))]
		switch random.IntN(6) {
		case 0:
			step := time.Duration(random.IntN(8000)) * time.Millisecond
			if random.IntN(20) == 0 {
				step = time.Duration(random.IntN(130)) * time.Second
			}
			n.Turn(step)
			now = now.Add(step)
		case 1:
			if len(permits) == 0 {
				continue
			}
			p := permits[random.IntN(len(permits))]
			delta := random.Int64N(2*p.amount+1) - p.amount
			p.by.Correct(p.there, []window.Correction{{Key: p.key, Delta: delta}})
			n.Flush()
			reference.Correct(p.here, []window.Correction{{Key: p.key, Delta: delta}})
		default:
			var charges []window.Charge
			for _, k := range random.Perm(len(keys))[:1+random.IntN(len(keys))] {
				charges = append(charges, window.Charge{Key: keys[k], Amount: random.Int64N(6), Limit: 20 + 10*int64(k)})
			}
			got, expected := make([]window.State, len(charges)), make([]window.State, len(charges))
			ask, tell := c.Charge, reference.Charge
			look := random.IntN(3) == 0
			if look {
				ask, tell = c.Look, reference.Look
			}
			v, err := ask(t.Context(), charges, got)
			if err != nil || v.Degraded {
				t.Fatalf("step %d: %+v, %v", i, v, err)
			}
			w, _ := tell(t.Context(), charges, expected)
			if diff := cmp.Diff(expected, got); diff != "" || v.OK != w.OK {
				t.Fatalf("step %d, look %v: %v, want %v (-want +got):\n%s", i, look, v.OK, w.OK, diff)
			}
			if v.OK && !look {
				for _, made1 := range charges {
					permits = append(permits, made{w.At, v.At, c, made1.Key, made1.Amount})
				}
			}
		}
	}
}
