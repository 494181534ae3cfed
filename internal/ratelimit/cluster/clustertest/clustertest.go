// Package clustertest tests the behaviour that every kind of shared counters must have under nodes that count in it.
package clustertest

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/ratelimit/cluster"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/internal/ratelimit/limit/limittest"
	"github.com/durward-gateway/durward/internal/ratelimit/window"
	"github.com/durward-gateway/durward/storage"
)

// Server is the place of the counters.
type Server struct {
	// Open opens a node's counters. The Coordinator closes them.
	Open func(t *testing.T) storage.SharedCounters
	// Set stops the server's clock at a time.
	Set func(t *testing.T, at time.Time)
	// Keys returns the number of counters that the server holds.
	Keys func(t *testing.T) int
	// Expires reports whether counters follow the server's own clock, which no test sets.
	Expires bool
}

// Patient is a deadline that no test reaches, even on a busy machine.
const Patient = 30 * time.Second

// epoch is a whole second.
var epoch = time.Unix(1_800_000_000, 0)

// clock is the clock of the nodes.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) turn(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
	return c.t
}

// Run tests a kind of shared counters; empty returns an empty server.
func Run(t *testing.T, empty func(t *testing.T) Server) {
	open := func(t *testing.T) Server {
		s := empty(t)
		first := s.Open(t) // under a stopped clock a new epoch never gets older
		defer first.Close()
		Epoch(t, first)
		return s
	}
	t.Run("Behaviour", func(t *testing.T) {
		limittest.Run(t, func(t *testing.T) limittest.Nodes { return nodes(t, open(t)) })
	})
	t.Run("T02 three engines", func(t *testing.T) { testEngines(t, open(t), cluster.Exact, 100, 100, 100) })
	t.Run("T02 three engines with leases", func(t *testing.T) { testEngines(t, open(t), cluster.Share, 600, 540, 630) })
	t.Run("Expiry", func(t *testing.T) { testExpiry(t, open(t)) })
	t.Run("Z-R01 epochs", func(t *testing.T) { testEpochs(t, open(t)) })
	t.Run("T06 clock steps", func(t *testing.T) { testClockSteps(t, open(t)) })
}

// nodes returns three nodes.
func nodes(t *testing.T, s Server) limittest.Nodes {
	c := &clock{t: epoch}
	s.Set(t, epoch)
	var all []limit.Coordinator
	var flush []func(context.Context)
	for range 3 {
		n := node(t, s, cluster.Options{Own: window.New(c.now)})
		all, flush = append(all, n), append(flush, n.Flush)
	}
	return limittest.Nodes{All: all, Turn: func(d time.Duration) { s.Set(t, c.turn(d)) }, Flush: func() {
		for _, f := range flush {
			f(t.Context())
		}
	}}
}

func node(t *testing.T, s Server, o cluster.Options) *cluster.Coordinator {
	t.Helper()
	o.Counters, o.Deadline, o.Log = s.Open(t), Patient, slog.New(slog.NewTextHandler(t.Output(), nil))
	n := cluster.New(o)
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	if n.Degraded() {
		t.Fatal("the counters cannot be reached")
	}
	return n
}

// testEngines makes 1,000 calls at once over three nodes. Exactly the allowed number pass; with leases, one part in
// twenty more.
func testEngines(t *testing.T, s Server, mode cluster.Mode, most, least, bound int64) {
	requests := most
	set := limit.Compile("acme", []storage.RateLimit{{ID: "one", OrganizationID: "acme", Enabled: true, Traffic: storage.TrafficAll,
		Scope: storage.Scope{Type: storage.ScopeOrganization}, RequestsPerMinute: &requests}})
	matched := set.Match(&limit.Subject{Traffic: storage.TrafficMCP})
	if matched.Len() != 1 {
		t.Fatal("the limit does not match")
	}
	var engines []*limit.Engine
	for range 3 {
		engines = append(engines, limit.NewEngine(node(t, s, cluster.Options{Own: window.New(nil), Mode: mode})))
	}
	if mode == cluster.Share {
		<-time.After(3 * time.Second) // a node that has just come leases nothing
	}
	var passed, refused atomic.Int64
	var wait sync.WaitGroup
	for i := range 1000 {
		wait.Go(func() {
			permit, refusal, err := engines[i%3].Charge(t.Context(), matched, limit.Cost{Requests: 1})
			switch {
			case err != nil:
				t.Error(err)
			case refusal != nil:
				refused.Add(1)
			case permit.Degraded():
				t.Error("a node counted alone")
			default:
				passed.Add(1)
			}
		})
	}
	wait.Wait()
	if n := passed.Load(); n > bound || n < least || n+refused.Load() != 1000 {
		t.Errorf("%d passed and %d were refused, of a limit of %d", n, refused.Load(), most)
	}
	t.Logf("%d of %d passed", passed.Load(), most)
}

// testExpiry checks that the server forgets counters without charges, and that it knows the living nodes.
func testExpiry(t *testing.T, s Server) {
	s.Set(t, epoch)
	c := s.Open(t)
	defer c.Close()
	beat := func(node string, want int) {
		t.Helper()
		wait(t, "the server", func() bool {
			beat, err := c.Beat(t.Context(), node, storage.AnyEpoch)
			if err == nil && (beat.Nodes != want || beat.Told != want) {
				t.Errorf("%+v, want %d nodes", beat, want)
			}
			return err == nil
		})
	}
	beat("a", 1)
	ours := Epoch(t, c)
	for i := range 100 {
		var k storage.CounterKey
		k[0], k[31] = byte(i), 1
		if _, ok, err := c.Charge(t.Context(), ours, []storage.CounterCharge{{Key: k, Amount: 1, Limit: 1}}, make([]storage.CounterState, 1)); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if n := s.Keys(t); n < 100 {
		t.Errorf("the server holds %d keys", n)
	}
	s.Set(t, epoch.Add(storage.NodeLife*9/10))
	beat("b", 2)
	beat("b", 2)
	s.Set(t, epoch.Add(storage.NodeLife*11/10))
	beat("b", 1)
	s.Set(t, epoch.Add(200*time.Second))
	beat("b", 1)
	wait(t, "the server to forget keys", func() bool {
		beat("b", 1)
		return s.Keys(t) == 0 || s.Expires
	})
}

// testEpochs checks that charges and corrections of another epoch have no effect, and that restored amounts count from
// the time of their calls.
func testEpochs(t *testing.T, s Server) {
	s.Set(t, epoch)
	c := s.Open(t)
	defer c.Close()
	ours := Epoch(t, c)
	if beat, err := c.Beat(t.Context(), "a", storage.AnyEpoch); err != nil || beat.Age < time.Hour {
		t.Errorf("the epoch is %v old, %v", beat.Age, err) // it began before the clock was set
	}
	for _, beat := range []struct {
		node        string
		known       storage.CounterEpoch
		nodes, told int
	}{{"a", storage.AnyEpoch, 1, 1}, {"b", 0, 2, 1}, {"c", ours + 1, 3, 1}, {"b", ours, 3, 2}, {"c", ours, 3, 3}, {"a", 0, 3, 2}} {
		got, err := c.Beat(t.Context(), beat.node, beat.known)
		got.Age = 0
		if err != nil || got != (storage.CounterBeat{Epoch: ours, Nodes: beat.nodes, Told: beat.told}) || ours <= 0 {
			t.Errorf("%+v: %+v, %v", beat, got, err)
		}
	}
	one, two := storage.CounterKey{0: 1, 31: 1}, storage.CounterKey{0: 2, 31: 1}
	holds := func(what string, want ...int64) {
		t.Helper()
		used := make([]int64, 2)
		if err := c.Used(t.Context(), ours, []storage.CounterKey{one, two}, used); err != nil || used[0] != want[0] || used[1] != want[1] {
			t.Errorf("%s: the counters hold %d, want %d, %v", what, used, want, err)
		}
	}
	charges := []storage.CounterCharge{{Key: one, Amount: 1, Limit: 100}, {Key: two, Amount: 2, Limit: 100}}
	states := make([]storage.CounterState, 2)
	for _, wrong := range []storage.CounterEpoch{0, ours + 1, -ours} {
		_, ok, charging := c.Charge(t.Context(), wrong, charges, states)
		correcting := c.Correct(t.Context(), wrong, []storage.CounterCorrection{{Key: one, Delta: 5}})
		restoring := c.Restore(t.Context(), wrong, []storage.CounterSpent{{Key: one, Amount: 5}})
		for _, err := range []error{charging, correcting, restoring} {
			if ok || !errors.Is(err, storage.ErrCountersLost) {
				t.Errorf("epoch %d for %d: %v, %v", wrong, ours, ok, err)
			}
		}
	}
	holds("wrong epochs", 0, 0)
	if _, ok, err := c.Charge(t.Context(), ours, charges, states); err != nil || !ok {
		t.Error(ok, err)
	}
	err := c.Restore(t.Context(), ours, []storage.CounterSpent{
		{Key: two, Age: 60, Amount: 10}, {Key: one, Age: 0, Amount: 20}, {Key: two, Age: 30, Amount: 40}, {Key: two, Age: 60, Amount: 5},
	})
	if err != nil {
		t.Error(err)
	}
	holds("restored", 21, 57)
	if members, err := c.Members(t.Context(), ours, [16]byte(two[:16])); err != nil || len(members) != 1 || members[0].Used != 57 {
		t.Errorf("members: %v, %v", members, err)
	}
	for _, later := range []struct {
		after    time.Duration
		one, two int64
	}{{time.Second, 21, 42}, {30 * time.Second, 21, 42}, {31 * time.Second, 21, 2}, {60 * time.Second, 21, 2}, {61 * time.Second, 0, 0}} {
		s.Set(t, epoch.Add(later.after))
		holds(later.after.String(), later.one, later.two)
	}
}

// testClockSteps checks that a change of the server's clock opens no window, and locks nobody out for longer than one
// window.
func testClockSteps(t *testing.T, s Server) {
	c := &clock{t: epoch}
	s.Set(t, epoch)
	n := node(t, s, cluster.Options{Own: window.New(c.now)})
	charges := []window.Charge{{Key: window.NewKey(window.NewDigest("g"), window.NewDigest("m")), Amount: 10, Limit: 10}}
	charge := func(what string, want bool) {
		t.Helper()
		v, err := n.Charge(t.Context(), charges, make([]window.State, 1))
		if err != nil || v.OK != want || v.Degraded {
			t.Errorf("%s: %+v, %v", what, v, err)
		}
		n.Flush(t.Context())
	}
	charge("at first", true)
	charge("again", false)
	s.Set(t, epoch.Add(time.Hour))
	charge("an hour ahead", false)
	s.Set(t, epoch.Add(-time.Hour))
	charge("an hour behind", false)
	s.Set(t, epoch.Add(-time.Hour-20*time.Second))
	c.turn(62 * time.Second)
	charge("a window later", true)
	charge("again", false)
}

// Epoch returns the epoch of counters, which may still be connecting.
func Epoch(tb testing.TB, c storage.SharedCounters) (epoch storage.CounterEpoch) {
	tb.Helper()
	wait(tb, "the server", func() (ok bool) {
		beat, err := c.Beat(tb.Context(), "a", storage.AnyEpoch)
		epoch = beat.Epoch
		return err == nil
	})
	return epoch
}

func wait(tb testing.TB, what string, f func() bool) {
	tb.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(time.Minute)
	for !f() {
		select {
		case <-tick.C:
		case <-timeout:
			tb.Fatal("waited too long for ", what)
		}
	}
}

// Benchmark charges four counters a step: with one caller after the other, and with 64 callers at once.
func Benchmark(b *testing.B, c storage.SharedCounters) {
	charges := make([]storage.CounterCharge, 4)
	for i := range charges {
		charges[i] = storage.CounterCharge{Key: storage.CounterKey{byte(i), 31: 1}, Amount: 1, Limit: window.Max}
	}
	ours := Epoch(b, c)
	step := func() {
		if _, ok, err := c.Charge(b.Context(), ours, charges, make([]storage.CounterState, len(charges))); !ok || err != nil {
			b.Error(ok, err)
		}
	}
	b.Run("one", func(b *testing.B) {
		for b.Loop() {
			step()
		}
	})
	b.Run("64", func(b *testing.B) {
		b.SetParallelism(64 / runtime.GOMAXPROCS(0))
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				step()
			}
		})
	})
}
