package faults

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

const (
	// perRound is the number of cycles after which everything begins anew, so that lists stay short.
	perRound = 50
	writers  = 8
	// failures is the number of writes that a writer tries without acknowledgement, while the database is away.
	failures = 3
)

// tally holds the results of the cycles so far.
type tally struct {
	cycles            int
	acks              int64
	unknown, resolved int
	slowest           time.Duration // the longest time until all nodes were ready again
	spent             time.Duration // on cycles and comparisons
}

func (s tally) String() string {
	return fmt.Sprintf("%d cycles: %d writes acknowledged, %d not, %d of which are there; ready again after %v at the latest; %v a cycle",
		s.cycles, s.acks, s.unknown, s.resolved, s.slowest.Round(time.Millisecond), (s.spent / time.Duration(max(s.cycles, 1))).Round(time.Millisecond))
}

// rounds runs cycles on sites that begin anew after some, and prints the results. cycle returns the time until all
// nodes were ready again.
func rounds(t *testing.T, cycles int, begin func(t *testing.T) (l *load, cycle func(n int) time.Duration)) {
	t.Helper()
	var sum tally
	for sum.cycles < cycles && !t.Failed() {
		t.Run(fmt.Sprint("from ", sum.cycles+1), func(t *testing.T) {
			l, cycle := begin(t)
			for range min(perRound, cycles-sum.cycles) {
				began := time.Now()
				took := cycle(sum.cycles)
				l.compare(false)
				sum.spent += time.Since(began)
				if t.Failed() {
					t.Fatalf("cycle %d", sum.cycles+1)
				}
				sum.cycles++
				sum.slowest = max(sum.slowest, took)
			}
			l.compare(true)
			l.compareLists()
			l.compareCalls()
			sum.acks += l.acks.Load()
			sum.unknown += l.unknown
			sum.resolved += l.resolved
			t.Log(sum)
		})
	}
	if !t.Failed() {
		t.Logf("%v: 0 lost, 0 there twice, 0 half", sum)
	}
}

// some returns the number of acknowledged writes after which the next fault comes.
func some() int64 { return 80 + rand.Int64N(80) }

// TestKills checks the case that the one gateway on the embedded store is killed while it writes (Z-D02, Z-X01).
func TestKills(t *testing.T) {
	t.Parallel()
	rounds(t, (number(t, "FAULT_KILLS", 12)+1)/2, func(t *testing.T) (*load, func(int) time.Duration) {
		s := startSite(t, plan{nodes: 1})
		l := newLoad(s, writers)
		return l, func(int) time.Duration { return l.kill(0) }
	})
}

// TestKillsPostgres checks the case that one of two gateways on PostgreSQL is killed while both write (Z-F02, Z-N01).
// The other one does not notice: whatever its writers ask for is acknowledged, also while the first one comes back.
func TestKillsPostgres(t *testing.T) {
	t.Parallel()
	rounds(t, number(t, "FAULT_KILLS", 12)/2, func(t *testing.T) (*load, func(int) time.Duration) {
		s := startSite(t, plan{nodes: 2, database: pgtest.Database(t)})
		l := newLoad(s, writers)
		return l, func(n int) time.Duration { return l.kill(n % 2) }
	})
}

// kill kills a node under load and starts it again.
func (l *load) kill(which int) time.Duration {
	t, victim := l.site.t, l.site.nodes[which]
	t.Helper()
	for _, w := range l.writers {
		w.wary.Store(w.node != victim)
	}
	stop := make(chan struct{})
	wait := l.begin(stop, 1)
	l.await(t, some())
	victim.Kill()
	began := time.Now()
	victim.CheckLog(t)
	victim.start()
	victim.ready()
	took := time.Since(began)
	close(stop)
	wait()
	return took
}

// lazy makes PostgreSQL acknowledge commits that it has not written yet, unless its client forbids that: the gateway
// does.
var lazy = []string{"synchronous_commit=off", "wal_writer_delay=10s"}

// TestStops checks the case that PostgreSQL is stopped at once, as by a crash, while two gateways write, and is started
// again (Z-F02). Nothing is answered but 503 meanwhile, and both are ready again by themselves.
func TestStops(t *testing.T) {
	t.Parallel()
	rounds(t, number(t, "FAULT_STOPS", 8), func(t *testing.T) (*load, func(int) time.Duration) {
		database := pgtest.NewServer(t)
		s := startSite(t, plan{nodes: 2, database: database.URL()})
		l := newLoad(s, writers)
		return l, func(int) time.Duration {
			stop := make(chan struct{})
			wait := l.begin(stop, failures)
			l.await(t, some())
			database.Stop(t)
			database.Start(t, lazy...)
			began := time.Now()
			for _, n := range s.nodes {
				n.ready()
			}
			took := time.Since(began)
			close(stop)
			wait()
			return took
		}
	})
}
