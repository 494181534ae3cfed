package clustertest

import (
	"log/slog"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/ratelimit/cluster"
	"github.com/durward-gateway/durward/internal/ratelimit/window"
	"github.com/durward-gateway/durward/storage"
)

// Faulty is a server that a test stops.
type Faulty struct {
	Open        func(t *testing.T) storage.SharedCounters
	Stop, Start func(t *testing.T) // as a crash does; the counters are lost
	// Pause makes the server hang with its connections open. nil: it cannot.
	Pause, Resume func(t *testing.T)
}

// RunFaults stops a server under a node that counts there. Afterwards the server must know the calls that the node let
// through, whatever it has lost.
func RunFaults(t *testing.T, s Faulty) {
	begin := func() *cluster.Coordinator {
		n := cluster.New(cluster.Options{Counters: s.Open(t), Own: window.New(nil), Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
			Deadline: time.Second}) // even on a busy machine a server at rest is faster
		t.Cleanup(func() {
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		})
		return n
	}
	n := begin()
	charge := func(n *cluster.Coordinator, what string) (ok, degraded bool) {
		t.Helper()
		v, err := n.Charge(t.Context(), []window.Charge{{Key: window.NewKey(window.NewDigest("g"), window.NewDigest(what)), Amount: 1, Limit: 10}}, make([]window.State, 1))
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		return v.OK, v.Degraded
	}
	together := func(what string) {
		t.Helper()
		wait(t, what, func() bool { return !n.Degraded() })
		wait(t, what, func() bool {
			ok, degraded := charge(n, what)
			return ok && !degraded || n.Degraded()
		})
	}
	together("at first")
	for _, fault := range []struct {
		name      string
		make, end func(t *testing.T)
	}{{"hanging", s.Pause, s.Resume}, {"stopped", s.Stop, s.Start}} {
		if fault.make == nil {
			continue
		}
		fault.make(t)
		passed := 0
		for range 30 {
			ok, degraded := charge(n, fault.name)
			if !degraded {
				t.Errorf("%s: a call was counted there", fault.name)
			}
			if ok {
				passed++
			}
		}
		if passed != 10 || !n.Degraded() {
			t.Errorf("%s: %d of a limit of 10 passed, degraded %v", fault.name, passed, n.Degraded())
		}
		fault.end(t)
		together("after it was " + fault.name)
		if ok, _ := charge(n, fault.name); ok {
			t.Errorf("after it was %s: one more passed", fault.name)
		}
		n.Flush(t.Context())
		if ok, degraded := charge(begin(), fault.name); ok || degraded {
			t.Errorf("after it was %s: one more passed at another node, degraded %v", fault.name, degraded)
		}
	}
}
