package faults

import (
	"net/url"
	"testing"
	"time"

	"github.com/durward-gateway/durward/integration/rig"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

// TestFailover checks the case that the primary dies under writes and its standby takes over (Z-F05). Commits waited
// for the standby (synchronous_standby_names): nothing that was acknowledged is lost, and both nodes find the new
// primary by themselves.
func TestFailover(t *testing.T) {
	rig.Figures(t)
	first := pgtest.NewServer(t)
	second := first.NewStandby(t)
	first.Exec(t, `ALTER SYSTEM SET synchronous_standby_names = '*'`)
	first.Exec(t, `SELECT pg_reload_conf()`)
	eventually(t, "commits to wait for the standby", func() bool {
		return first.Query(t, `SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'`) == "1"
	})
	both, err := url.Parse(first.URL())
	if err != nil {
		t.Fatal(err)
	}
	other, err := url.Parse(second.URL())
	if err != nil {
		t.Fatal(err)
	}
	both.Host = other.Host + "," + both.Host // the standby is gone past
	s := startSite(t, plan{nodes: 2, database: both.String()})
	l := newLoad(s, writers)
	stop := make(chan struct{})
	wait := l.begin(stop, 1_000)
	l.await(t, some())
	first.Stop(t)
	began := time.Now()
	second.Exec(t, `SELECT pg_promote()`)
	second.Exec(t, `ALTER SYSTEM SET synchronous_standby_names = ''`)
	second.Exec(t, `SELECT pg_reload_conf()`)
	for _, n := range s.nodes {
		n.ready()
	}
	took := time.Since(began)
	if took > within(5*time.Second) {
		t.Errorf("ready again after %v", took)
	}
	l.await(t, 50)
	close(stop)
	wait()
	l.compare(true)
	l.compareLists()
	t.Logf("the standby took over: ready after %v, of it the promotion; %d writes acknowledged, %d not, %d of which are there",
		took.Round(time.Millisecond), l.acks.Load(), l.unknown, l.resolved)
	l.calm(t)
}
