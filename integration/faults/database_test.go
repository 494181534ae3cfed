package faults

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durward-gateway/durward/integration/rig"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

// TestUnknownCommit checks the case that the connection breaks after PostgreSQL has committed and before it says so
// (Z-F03). Writers hear 503, and what they asked for is there, once and whole; nothing is tried a second time behind
// their backs.
func TestUnknownCommit(t *testing.T) {
	t.Parallel()
	s := startSite(t, plan{nodes: 2, database: pgtest.Database(t), proxied: true})
	l := newLoad(s, writers)
	var commits, cuts atomic.Int64
	for range number(t, "FAULT_COMMITS", 3) {
		for _, n := range s.nodes {
			n.store.CutInstead(func(kind byte, body []byte) bool {
				if kind != 'C' || string(body) != "COMMIT\x00" || commits.Add(1)%7 != 0 {
					return false
				}
				cuts.Add(1)
				return true
			})
		}
		stop := make(chan struct{})
		wait := l.begin(stop, failures)
		wait()
		close(stop)
		for _, n := range s.nodes {
			n.store.CutInstead(nil)
		}
		l.compare(false)
		if t.Failed() {
			return
		}
	}
	l.compare(true)
	l.compareLists()
	t.Logf("%d connections broken between a commit and its answer: %d writes acknowledged, %d not, %d of which are there",
		cuts.Load(), l.acks.Load(), l.unknown, l.resolved)
	if l.resolved == 0 || int64(l.resolved) > cuts.Load() {
		t.Errorf("%d commits were not answered, %d writes that nobody acknowledged are there", cuts.Load(), l.resolved)
	}
}

// TestTerminated checks the case that somebody ends the gateways' connections all the time (Z-F06). Writers may hear
// 503; nothing is lost, and nothing stays broken.
func TestTerminated(t *testing.T) {
	t.Parallel()
	database := pgtest.NewServer(t)
	s := startSite(t, plan{nodes: 2, database: database.URL()})
	l := newLoad(s, writers)
	stop := make(chan struct{})
	wait := l.begin(stop, 1_000)
	const ends = 20
	for range ends {
		database.Exec(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'durward_test'`)
		l.await(t, 5)
	}
	close(stop)
	wait()
	for _, n := range s.nodes {
		n.ready()
	}
	l.compare(true)
	l.compareLists()
	l.compareCalls()
	t.Logf("all connections ended %d times: %d writes acknowledged, %d not, %d of which are there", ends, l.acks.Load(), l.unknown, l.resolved)
	l.calm(t)
}

// calm lets all writers write when nothing is broken any more.
func (l *load) calm(t *testing.T) {
	t.Helper()
	for _, w := range l.writers {
		w.wary.Store(true)
	}
	stop := make(chan struct{})
	wait := l.begin(stop, 1)
	l.await(t, 50)
	close(stop)
	wait()
	l.compare(false)
}

// TestTooFewConnections checks the case that PostgreSQL has fewer connections than the gateways would like (Z-F06).
// They answer 503 or wait, and are right again when it has.
func TestTooFewConnections(t *testing.T) {
	t.Parallel()
	database := pgtest.NewServer(t)
	s := startSite(t, plan{nodes: 2, database: database.URL()})
	l := newLoad(s, writers)
	database.Stop(t)
	database.Start(t, "max_connections=10", "superuser_reserved_connections=2")
	stop := make(chan struct{})
	wait := l.begin(stop, 1_000)
	l.await(t, 50)
	close(stop)
	wait()
	database.Stop(t)
	database.Start(t)
	for _, n := range s.nodes {
		n.ready()
	}
	l.compare(true)
	t.Logf("with 8 connections for two nodes: %d writes acknowledged, %d not, %d of which are there", l.acks.Load(), l.unknown, l.resolved)
	l.calm(t)
}

// TestFullDatabase checks the case that PostgreSQL has no room left, or is read-only (Z-F07). Writes are answered with
// 503, what is known is read and calls go on; with room again, everything does.
func TestFullDatabase(t *testing.T) {
	t.Parallel()
	database := pgtest.NewServer(t)
	s := startSite(t, plan{nodes: 1, database: database.URL()})
	n, client := s.nodes[0], newClient(t)
	boss := s.token(admin)
	tool := n.newServer("Tool", nil, everything)
	// The words of a server whose disk is full, from its own tongue.
	const fill = `CREATE FUNCTION public.full_disk() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$;
		CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE OR DELETE ON change_log EXECUTE FUNCTION public.full_disk()`
	const room = `DROP FUNCTION public.full_disk() CASCADE`
	const readOnly = `ALTER DATABASE durward SET default_transaction_read_only = on`
	const writable = `ALTER DATABASE durward RESET default_transaction_read_only`
	const reconnect = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'durward_test'`
	write := func() answer {
		return n.send(client, http.MethodPut, "/api/servers/"+tool.id, boss, members{"meta": members{"n": 1}})
	}
	for _, tc := range []struct {
		name        string
		break_, end []string
	}{
		{"full", []string{fill}, []string{room}},
		{"read-only", []string{readOnly, reconnect}, []string{"BEGIN READ WRITE; " + writable + "; COMMIT", reconnect}},
	} {
		for _, statement := range tc.break_ {
			database.Exec(t, statement)
		}
		if a := write(); a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
			t.Errorf("%s: a write: %v", tc.name, a)
		}
		if a := n.send(client, http.MethodGet, "/api/servers/"+tool.id, boss, nil); a.status != http.StatusOK {
			t.Errorf("%s: a read: %v", tc.name, a)
		}
		if a := n.call(client, boss, tool, "echo"); !a.passed() {
			t.Errorf("%s: a call: %v", tc.name, a)
		}
		if tc.name == "read-only" { // ready all the same: every node is in the same place
			eventually(t, "/readyz says that it is", func() bool {
				a := n.send(client, http.MethodGet, "/readyz", "", nil)
				return a.status == http.StatusOK && strings.Contains(string(a.body), `"store":"read-only"`)
			})
		}
		if a := n.send(client, http.MethodGet, "/healthz", "", nil); a.status != http.StatusOK {
			t.Errorf("%s: health: %v", tc.name, a)
		}
		for _, statement := range tc.end {
			database.Exec(t, statement)
		}
		n.ready()
		if a := write(); !wrote(a) {
			t.Errorf("%s, and over: a write: %v", tc.name, a)
		}
	}
}

// TestSlowDatabase checks the case that PostgreSQL takes long for everything (Z-F04). Calls of which everything is
// known are as quick as ever within the lease; what needs the database is given up in time; nothing piles up; and all
// is well when it is again.
func TestSlowDatabase(t *testing.T) {
	rig.Figures(t)
	s := startSite(t, plan{nodes: 1, database: pgtest.Database(t), proxied: true, global: "metrics"})
	n, client := s.nodes[0], newClient(t)
	tool, token := n.newServer("Tool", nil, everything), s.token(admin)
	calls := func(count int, until time.Duration) (took []time.Duration) {
		for began := time.Now(); len(took) < count && time.Since(began) < until; {
			from := time.Now()
			if a := n.call(client, token, tool, "echo"); !a.passed() {
				t.Fatalf("after %v: %v", time.Since(began), a)
			}
			took = append(took, time.Since(from))
		}
		slices.Sort(took)
		return took
	}
	calls(10, callTimeout)
	const count = 300
	p99 := func(took []time.Duration) time.Duration { return took[len(took)*99/100] }
	before := p99(calls(count, callTimeout))
	goroutines := n.goroutines(t)
	for _, away := range []time.Duration{2 * time.Second, 30 * time.Second} {
		n.store.Delay(away)
		slow := p99(calls(count, lease/2))
		if added := slow - before; added > within(20*time.Millisecond) {
			t.Errorf("with the database %v away warm calls take %v longer", away, added)
		}
		waiting := make(chan answer, 100)
		crowd := newClient(t)
		began := time.Now()
		for range cap(waiting) { // of which nothing is known
			go func() { waiting <- n.send(crowd, http.MethodGet, "/api/servers", token, nil) }()
		}
		for range cap(waiting) {
			if a := <-waiting; a.status != http.StatusServiceUnavailable && a.status != http.StatusOK {
				t.Errorf("a read: %v", a)
			}
		}
		took := time.Since(began)
		if took > within(readDeadline+time.Second) {
			t.Errorf("with the database %v away reads were given up after %v", away, took)
		}
		n.store.Delay(0)
		n.store.Cut() // what is on its way would take its time
		n.ready()
		crowd.CloseIdleConnections()
		eventually(t, "goroutines to end", func() bool { return n.goroutines(t) <= goroutines+20 })
		after := p99(calls(count, callTimeout))
		t.Logf("p99 of warm calls: %v; with the database %v away: %v; afterwards %v; 100 reads were given up after %v at the latest",
			before, away, slow, after, took.Round(time.Millisecond))
	}
}

// readDeadline is the longest time for a read of the store.
const readDeadline = 2 * time.Second

// lease is the time for which a node goes on with its present knowledge when it does not hear of the others.
const lease = 10 * time.Second
