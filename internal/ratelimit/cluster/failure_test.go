package cluster

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durward-gateway/durward/internal/ratelimit/window"
)

var someKey = window.NewKey(window.NewDigest("group"), window.NewDigest("member"))

// node makes a coordinator over f on the test's clock. The caller must close it.
func node(f *fake, o Options) *Coordinator {
	o.Counters, o.Own = f, window.New(time.Now)
	return New(o)
}

// live makes a node that ends with the test.
func live(t *testing.T, f *fake, o Options) *Coordinator {
	c := node(f, o)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

type verdict struct {
	ok, degraded bool
	err          error
	took         time.Duration
	at           window.Slot
}

func charge(t *testing.T, c *Coordinator, amount, limit int64) verdict {
	t.Helper()
	begun := time.Now()
	v, err := c.Charge(t.Context(), []window.Charge{{Key: someKey, Amount: amount, Limit: limit}}, make([]window.State, 1))
	return verdict{v.OK, v.Degraded, err, time.Since(begun), v.At}
}

// passing returns how many of n charges of 1 pass.
func passing(t *testing.T, c *Coordinator, n int, limit int64) (passed int64) {
	t.Helper()
	for range n {
		if v := charge(t, c, 1, limit); v.err == nil && v.ok {
			passed++
		}
	}
	return passed
}

// TestSlowServer checks that a server that takes 5 s, or hangs, costs three calls 20 ms each, and all other calls
// nothing.
func TestSlowServer(t *testing.T) {
	t.Run("T09 slow 5 s", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(3)
			var changes []bool
			alone := 0
			c := node(f, Options{Changed: func(degraded bool) { changes = append(changes, degraded) }, Alone: func() { alone++ }})
			if v := charge(t, c, 1, 90); v.err != nil || !v.ok || v.degraded || v.took != 0 {
				t.Errorf("before: %+v", v)
			}
			f.be(false, 5*time.Second)
			for i := range 10 {
				v := charge(t, c, 1, 90)
				took := time.Duration(0)
				if i < mostFailures {
					took = defaultDeadline
				}
				if v.err != nil || !v.ok || !v.degraded || v.took != took || c.Degraded() != (i >= mostFailures-1) {
					t.Errorf("call %d: %+v, circuit open %v", i, v, c.Degraded())
				}
			}
			asked := f.times()
			pass(10 * time.Second) // looks go on, and none of them is in time
			if n := f.times() - asked; !c.Degraded() || n < 5 || n > 40 {
				t.Errorf("degraded %v, the server was asked %d times in 10 s", c.Degraded(), n)
			}
			f.be(false, 30*time.Millisecond) // it answers, but not as fast as calls need it
			pass(10 * time.Second)
			if !c.Degraded() {
				t.Error("counts with a server that is too slow")
			}
			f.be(false, time.Millisecond)
			pass(2 * time.Second)
			if v := charge(t, c, 1, 90); v.err != nil || !v.ok || v.degraded || v.took != time.Millisecond {
				t.Errorf("after: %+v", v)
			}
			// Calls that were let through alone count in the shared counter.
			if used := f.holds(someKey); used != 12 {
				t.Errorf("the server counts %d, want 12", used)
			}
			if err := c.Close(); err != nil || len(changes) != 2 || !changes[0] || changes[1] || alone != 10 {
				t.Errorf("closing: %v; changes %v, alone %d", err, changes, alone)
			}
		})
	})
	t.Run("T09 flapping", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(1)
			c := node(f, Options{})
			var passed int64
			for i := range 580 { // 58 s
				switch i % 7 {
				case 0:
					f.be(true, 0)
				case 3:
					f.be(false, time.Hour)
				case 5:
					f.be(false, 0)
				}
				v := charge(t, c, 1, 100)
				if v.err != nil || v.took > defaultDeadline {
					t.Errorf("call %d: %+v", i, v)
				}
				if v.ok {
					passed++
				}
				pass(100*time.Millisecond - v.took)
			}
			if passed != 100 { // of one node, which knows its own past calls
				t.Errorf("%d passed, want 100", passed)
			}
			f.be(false, 0)
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("T09 away at the start", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(2)
			f.be(true, 0)
			begun := time.Now()
			c := node(f, Options{})
			if took := time.Since(begun); took > startDeadline || !c.Degraded() {
				t.Errorf("it took %s, degraded %v", took, c.Degraded())
			}
			f.be(false, 0)
			pass(time.Second)
			if v := charge(t, c, 1, 1); v.err != nil || !v.ok || v.degraded {
				t.Errorf("after: %+v", v)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	})
}

// TestFailures checks the calls that one of three nodes lets through alone, of a limit of 90.
func TestFailures(t *testing.T) {
	for _, test := range []struct {
		failure Failure
		want    int64
		err     error
	}{{"", 30, nil}, {Local, 30, nil}, {Open, 90, nil}, {Closed, 0, ErrClosed}} {
		t.Run(string(test.failure), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(3)
				c := node(f, Options{Failure: test.failure})
				defer c.Close()
				f.be(true, 0)
				if passed := passing(t, c, 200, 90); passed != test.want {
					t.Errorf("%d passed, want %d", passed, test.want)
				}
				if v := charge(t, c, 1, 90); !errors.Is(v.err, test.err) || v.err == nil && !v.degraded {
					t.Errorf("then %+v", v)
				}
				v, err := c.Look(t.Context(), []window.Charge{{Key: someKey, Amount: 1, Limit: 90}}, make([]window.State, 1))
				if v.OK || !errors.Is(err, test.err) {
					t.Errorf("looking: %+v, %v", v, err)
				}
				if v := charge(t, c, 1, 0); v.ok {
					t.Errorf("a limit of 0: %+v", v)
				}
				used := make([]int64, 1)
				if v, err := c.Used(t.Context(), []window.Key{someKey}, used); err != nil || !v.Degraded || used[0] != test.want {
					t.Errorf("used %v: %+v, %v", used, v, err)
				}
				if members, err := c.Members(t.Context(), window.NewDigest("group")); err != nil || len(members) != int(min(test.want, 1)) {
					t.Errorf("members %v, %v", members, err)
				}
			})
		})
	}
}

// TestNodesComeAndGo checks that the living nodes together let the limit through when the server goes away, and not
// more. The share of a dead node goes to the others within 2 s.
func TestNodesComeAndGo(t *testing.T) {
	const limit = 90
	dies := func(after time.Duration) func(*testing.T, *fake, []*Coordinator) []*Coordinator {
		return func(_ *testing.T, _ *fake, all []*Coordinator) []*Coordinator {
			pass(after)
			_ = all[0].Close()
			pass(2 * time.Second)
			return all[1:]
		}
	}
	for _, test := range []struct {
		name string
		then func(t *testing.T, f *fake, all []*Coordinator) []*Coordinator // returns the living nodes
		want int64
	}{
		{"nothing", func(_ *testing.T, _ *fake, all []*Coordinator) []*Coordinator { return all }, limit},
		{"one dies", dies(0), limit},
		{"one dies before its beat", dies(beatInterval / 3), limit},
		{"one dies after its beat", dies(beatInterval * 2 / 3), limit},
		{"one comes", func(t *testing.T, f *fake, all []*Coordinator) []*Coordinator {
			all = append(all, live(t, f, Options{}))
			pass(beatInterval + time.Millisecond)
			return all
		}, limit / 4 * 4},
		{"the server pauses", func(_ *testing.T, f *fake, all []*Coordinator) []*Coordinator {
			f.be(false, statusDeadline*9/10)
			pass(10 * time.Second)
			f.be(false, 0)
			pass(beatInterval / 2)
			return all
		}, limit},
		{"the server is back for a moment", func(_ *testing.T, f *fake, all []*Coordinator) []*Coordinator {
			f.be(true, 0)
			pass(time.Minute)
			f.be(false, 0)
			pass(probeInterval)
			return all
		}, limit},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(0)
				var all []*Coordinator
				for range 3 {
					all = append(all, live(t, f, Options{}))
					pass(probeInterval / 3)
				}
				pass(10 * time.Second)
				all = test.then(t, f, all)
				f.be(true, 0)
				var passed int64
				for _, c := range all {
					passed += passing(t, c, 2*limit, limit)
				}
				if passed != test.want {
					t.Errorf("%d passed, want %d", passed, test.want)
				}
			})
		})
	}
	t.Run("a configuration changes while the server is away", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f, ledger := newFake(3), new(Ledger)
			before := node(f, Options{Ledger: ledger})
			f.be(true, 0)
			if err := before.Close(); err != nil {
				t.Error(err)
			}
			if passed := passing(t, live(t, f, Options{Ledger: ledger}), limit, limit); passed != limit/3 {
				t.Errorf("%d passed, want %d", passed, limit/3)
			}
		})
	})
	t.Run("one comes while the server is away", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := newFake(0)
			f.be(true, 0)
			if passed := passing(t, live(t, f, Options{Nodes: 3}), limit, limit); passed != limit/3 {
				t.Errorf("%d passed, want %d", passed, limit/3)
			}
		})
	})
}

// TestMissedBeats checks that a node without calls counts alone after three lost beats in a row, not after three in a
// day.
func TestMissedBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(0)
		changes := 0
		c := live(t, f, Options{Changed: func(bool) { changes++ }})
		pass(beatInterval / 2)
		for range 10 {
			f.be(true, 0)
			pass(beatInterval)
			f.be(false, 0)
			pass(time.Minute)
		}
		if changes != 0 {
			t.Errorf("it counted alone or together %d times", changes)
		}
		f.be(true, 0)
		pass(mostFailures * beatInterval)
		if !c.Degraded() {
			t.Error("does not count alone")
		}
	})
}

// TestCensus checks that no node is left out after one look of a node that came back first, or while another was late.
func TestCensus(t *testing.T) {
	var c census
	now := time.Now()
	for i, look := range []struct {
		after time.Duration
		nodes int64
		want  int64
	}{
		{0, 1, 1}, {beatInterval, 3, 3}, {joinTime, 2, 3}, // away for longer than NodeLife
		{beatInterval, 2, 3}, {beatInterval, 3, 3}, {joinTime / 4, 3, 3}, {joinTime / 4, 3, 3}, {joinTime / 4, 3, 3},
		{beatInterval, 2, 3}, {beatInterval, 3, 3}, // one was late
		{beatInterval, 2, 3}, {0, 2, 3}, {beatInterval, 1, 2}, {beatInterval, 4, 4}, // not at one moment; the most of both
	} {
		now = now.Add(look.after)
		c.told(look.nodes, now, now)
		if got := c.count(); got != look.want {
			t.Errorf("look %d: %d nodes, want %d", i, got, look.want)
		}
	}
}

// TestLeasesOfNodesThatCome checks that a new node leases nothing until the others' leases are small enough to leave
// room.
func TestLeasesOfNodesThatCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(0)
		const limit = 600
		var all []*Coordinator
		for i := range 50 { // 15 s
			if i%10 == 0 && len(all) < 3 { // nodes already there have their full leases
				all = append(all, live(t, f, Options{Mode: Share}))
			}
			var leased int64
			for _, c := range all {
				charge(t, c, 1, limit)
				c.leases.mu.Lock()
				for _, l := range c.leases.all {
					if time.Now().Before(l.until) {
						leased += l.left
					}
				}
				c.leases.mu.Unlock()
			}
			if leased > limit/leasePart {
				t.Errorf("%d nodes: %d are leased, of %d at the most", len(all), leased, limit/leasePart)
			}
			pass(300 * time.Millisecond)
		}
		if asked := f.times(); len(all[0].leases.all) == 0 {
			t.Errorf("nothing was leased, %d exchanges", asked)
		}
	})
}

// TestShareOfNothing checks that a limit below the number of nodes lets one call of each through, not none.
func TestShareOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(5)
		c := node(f, Options{})
		defer c.Close()
		f.be(true, 0)
		if passed := passing(t, c, 10, 2); passed != 1 {
			t.Errorf("%d passed, want 1", passed)
		}
	})
}

// TestAloneThenTogether checks that reservations made alone are settled, before and after the server is back.
func TestAloneThenTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1)
		c := node(f, Options{})
		defer c.Close()
		f.be(true, 0)
		first, second := charge(t, c, 40, 100), charge(t, c, 30, 100)
		if !first.ok || !second.ok || !second.degraded {
			t.Fatalf("%+v, %+v", first, second)
		}
		synctest.Wait() // a charge on its way to the server cannot be corrected
		c.Correct(first.at, []window.Correction{{Key: someKey, Delta: -35}})
		f.be(false, 0)
		pass(2 * time.Second)
		if used := f.holds(someKey); used != 35 {
			t.Errorf("the server counts %d, want 35", used)
		}
		c.Correct(second.at, []window.Correction{{Key: someKey, Delta: 5}})
		synctest.Wait()
		if used := f.holds(someKey); used != 40 {
			t.Errorf("the server counts %d, want 40", used)
		}
	})
}

// TestLongOutage checks that the server receives only the calls of an outage that still count: old calls lock nobody
// out.
func TestLongOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1)
		c := live(t, f, Options{})
		f.be(true, 0)
		for range 10 {
			passing(t, c, 20, 60)
			pass(time.Minute)
		}
		passing(t, c, 20, 60)
		f.be(false, 0)
		pass(2 * time.Second)
		if used := f.holds(someKey); used < 20 || used > 40 {
			t.Errorf("the server counts %d, and 20 or 40 passed within a minute", used)
		}
	})
}

// TestCallerLeaves checks that callers that go away do not count against the server.
func TestCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1)
		c := node(f, Options{})
		defer c.Close()
		f.be(false, 10*time.Millisecond)
		for range 10 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			_, err := c.Charge(ctx, []window.Charge{{Key: someKey, Amount: 1, Limit: 1}}, make([]window.State, 1))
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("charging: %v", err)
			}
		}
		if v := charge(t, c, 1, 1); v.err != nil || v.degraded {
			t.Errorf("then %+v", v)
		}
	})
}

// TestLeases checks that leases save exchanges, end, and give back their unused rest.
func TestLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(3)
		c := node(f, Options{Mode: Share})
		defer c.Close()
		pass(joinTime)
		asked := f.times()
		if passed := passing(t, c, 95, 600); passed != 95 {
			t.Errorf("%d passed, want 95", passed)
		}
		synctest.Wait()
		if n := f.times() - asked; n > 30 { // a lease is 10
			t.Errorf("%d exchanges for 95 calls", n)
		}
		pass(3 * time.Second)
		if used := f.holds(someKey); used != 95 {
			t.Errorf("the server counts %d, want 95", used)
		}
		if passed := passing(t, c, 600, 600); passed < 495 || passed > 505 {
			t.Errorf("%d more passed, want 505", passed)
		}
		if v := charge(t, c, 1, 0); v.err != nil || v.ok {
			t.Errorf("a limit that became 0: %+v", v)
		}
	})
}

// TestCloseWhileOwing checks that Close ends a running delivery, and waits for a server that hangs no longer than the
// breaker does.
func TestCloseWhileOwing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1)
		c := node(f, Options{})
		f.be(false, time.Hour)
		c.owe(someKey, 0, 1)
		synctest.Wait()
		begun := time.Now()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took > mostFailures*statusDeadline {
			t.Errorf("closed after %v", took)
		}
	})
}
