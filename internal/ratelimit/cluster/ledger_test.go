package cluster

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durward-gateway/durward/internal/ratelimit/window"
)

// TestLostCounters covers Z-R01: a server that forgets opens no window. No node counts there until all have reported
// their past calls, including calls let through alone meanwhile. Earlier leases are not given back.
func TestLostCounters(t *testing.T) {
	const limit = 600
	for _, test := range []struct {
		name string
		lose func(f *fake, press func(n int))
	}{
		{"at once", func(f *fake, _ func(int)) { f.lose() }},
		{"while it was away", func(f *fake, _ func(int)) {
			f.be(true, 0)
			pass(20 * time.Second)
			f.lose()
			f.be(false, 0)
		}},
		{"and is told with difficulty", func(f *fake, _ func(int)) {
			f.lose()
			f.fail(5)
		}},
		{"again while it is told", func(f *fake, _ func(int)) {
			f.lose()
			pass(probeInterval)
			f.lose()
		}},
		{"and comes back", func(f *fake, press func(int)) {
			before, seen, epoch := f.counters, f.seen, f.epoch
			f.lose()
			f.fail(1000)
			press(20)
			pass(beatInterval + 2*probeInterval)
			f.fail(0)
			f.mu.Lock()
			f.counters, f.seen, f.epoch = before, seen, epoch
			f.mu.Unlock()
		}},
	} {
		for _, mode := range []Mode{Exact, Share} {
			t.Run(test.name+" "+string(mode), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFake(0)
					var all []*Coordinator
					for range 3 {
						all = append(all, live(t, f, Options{Mode: mode}))
						pass(probeInterval / 3)
					}
					pass(joinTime + time.Second)
					var passed int64
					press := func(n int) {
						t.Helper()
						for _, c := range all {
							passed += passing(t, c, n, limit)
						}
					}
					press(95) // from leases, of which some are left
					test.lose(f, press)
					press(50)
					press(limit) // alone: each node its third
					pass(2 * time.Second)
					for i, c := range all {
						if c.Degraded() {
							t.Errorf("node %d counts alone", i)
						}
					}
					all = append(all, live(t, f, Options{Mode: mode})) // has no past calls of its own
					press(limit)
					if passed != limit {
						t.Errorf("%d passed, want %d", passed, limit)
					}
					pass(30 * time.Second)
					press(limit)
					if passed != limit {
						t.Errorf("%d passed within a minute, want %d", passed, limit)
					}
				})
			})
		}
	}
}

// TestNodesThatStartAtALoss checks a node that starts when counters have been lost. It must not count in them before
// the others have reported their past calls, whichever node comes first.
func TestNodesThatStartAtALoss(t *testing.T) {
	for _, after := range []time.Duration{0, beatInterval + 2*probeInterval} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(0)
			old := live(t, f, Options{})
			charge(t, old, 1, 10)
			pass(beatInterval / 2)
			f.lose()
			f.fail(1000)
			pass(after)
			fresh := live(t, f, Options{})
			for range 2 {
				if !fresh.Degraded() {
					t.Errorf("%v after the loss: counts where another node has not told what it let through", after)
				}
				pass(2 * beatInterval)
			}
			f.fail(0)
			pass(3 * probeInterval)
			if old.Degraded() || fresh.Degraded() {
				t.Errorf("%v after the loss: nodes count alone", after)
			}
		})
	}
}

// TestGathering checks that a node waits for the nodes from before the loss for a while, and no longer.
func TestGathering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(0)
		const limit = 90
		first, second := live(t, f, Options{}), node(f, Options{})
		pass(joinTime + time.Second)
		passed := passing(t, first, 30, limit) + passing(t, second, 40, limit)
		if err := second.Close(); err != nil {
			t.Error(err)
		}
		f.lose()
		passed += passing(t, first, limit, limit) // half of the limit: the second may live
		for range 2 {
			pass(gatherTime / 2)
			if v := charge(t, first, 1, limit); v.ok || !first.Degraded() || passed != 45+40 {
				t.Errorf("%d passed, and then %+v", passed, v)
			}
			f.be(true, 0) // time in which no node can come back does not count
			pass(gatherTime)
			f.be(false, 0)
		}
		pass(gatherTime + time.Second)
		if first.Degraded() {
			t.Error("it waits for ever")
		}
		f.be(true, 0)
		pass(5 * time.Second)
		f.be(false, 0)
		pass(2 * probeInterval)
		if first.Degraded() {
			t.Error("it waits again for who is gone")
		}
	})
}

// TestTellingFails checks that calls that could not be reported at once are reported later, each once, with its age.
func TestTellingFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1)
		pass(700 * time.Millisecond) // the node's seconds begin at other moments than the server's
		c := live(t, f, Options{})
		pass(600 * time.Millisecond)
		begun := time.Now()
		const keys = 12 * portion
		for i := range keys {
			key := window.NewKey(window.NewDigest("group"), window.NewDigest(strconv.Itoa(i)))
			if v, err := c.Charge(t.Context(), []window.Charge{{Key: key, Amount: 1, Limit: 1}}, make([]window.State, 1)); err != nil || !v.OK {
				t.Fatal(v, err)
			}
		}
		f.lose()
		f.fail(20)
		used := func() (used int) {
			members, err := f.Members(t.Context(), 0, window.NewDigest("group"))
			if err != nil {
				t.Fatal(err)
			}
			return len(members)
		}
		pass(beatInterval + 2*probeInterval)
		if n := used(); n != 0 || !c.Degraded() {
			t.Errorf("the server counts %d, want 0; counts alone: %v", n, c.Degraded())
		}
		f.be(true, 0)
		pass(10 * time.Second)
		f.be(false, 0)
		pass(6 * time.Second)
		for _, after := range []struct {
			wait time.Duration
			want int
		}{{0, keys}, {window.Width - 10*time.Millisecond, keys}, {window.Width + 3*time.Second, 0}} {
			pass(after.wait - time.Since(begun))
			if n := used(); n != after.want || c.Degraded() {
				t.Errorf("the server counts %d, want %d; counts alone: %v", n, after.want, c.Degraded())
			}
		}
	})
}

// TestReloadTellsOnce checks a Coordinator that follows another one over the same counters. It reports to a server
// exactly the calls that the server lacks, including those that the earlier one let through alone. So a change of
// configuration neither opens a window nor locks anybody out.
func TestReloadTellsOnce(t *testing.T) {
	for _, away := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) { testReload(t, away) })
	}
}

// testReload changes the configuration while the server is still away, or just back.
func testReload(t *testing.T, away bool) {
	own, ledger, f := window.New(time.Now), new(Ledger), newFake(0)
	begin := func(f *fake, ledger *Ledger) *Coordinator {
		return New(Options{Counters: f, Own: own, Ledger: ledger})
	}
	c := begin(f, ledger)
	if passed := passing(t, c, 40, 100); passed != 40 {
		t.Errorf("%d passed", passed)
	}
	f.be(true, 0)
	if passed := passing(t, c, 20, 100); passed != 20 || !c.Degraded() {
		t.Errorf("%d passed, alone: %v", passed, c.Degraded())
	}
	f.be(away, 0)
	next := begin(f, ledger) // for example when on_store_failure is changed because the server is away
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	f.be(false, 0)
	pass(2 * time.Second)
	if used := f.holds(someKey); used != 60 || next.Degraded() {
		t.Errorf("the server counts %d, want 60; counts alone: %v", used, next.Degraded())
	}
	other := newFake(0)
	last := begin(other, new(Ledger))
	if used := other.holds(someKey); used != 60 || last.Degraded() {
		t.Errorf("another server counts %d, want 60; counts alone: %v", used, last.Degraded())
	}
	for _, c := range []*Coordinator{next, last} {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestOverlappingCoordinators checks two Coordinators of one node, the older of which still has calls. Together they
// report the node's past calls to new counters once, including corrections that they owed to the lost counters.
func TestOverlappingCoordinators(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own, ledger, f := window.New(time.Now), new(Ledger), newFake(0)
		var both []*Coordinator
		for range 2 {
			c := New(Options{Counters: f, Own: own, Ledger: ledger})
			defer c.Close()
			both = append(both, c)
			pass(probeInterval / 2)
		}
		pass(time.Second)
		var reserved []verdict
		for _, c := range both {
			reserved = append(reserved, charge(t, c, 10, 200))
		}
		f.lose()
		for i, c := range both {
			charge(t, c, 20, 200)
			c.Correct(reserved[i].at, []window.Correction{{Key: someKey, Delta: -5}})
		}
		pass(3 * time.Second)
		if used := f.holds(someKey); used != 50 || own.Used(someKey) != 50 || both[0].Degraded() || both[1].Degraded() {
			t.Errorf("the server counts %d and the node %d, want 50; alone: %v, %v", used, own.Used(someKey), both[0].Degraded(), both[1].Degraded())
		}
	})
}
