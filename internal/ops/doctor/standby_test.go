package doctor

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage/postgres"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

// TestStandby checks Z-F05: the findings for a primary and its real standby, before and after the standby takes over.
func TestStandby(t *testing.T) {
	t.Parallel()
	primary := pgtest.NewServer(t)
	standby := primary.NewStandby(t)
	const alone, reads, local = "synchronous_standby_names is empty", "the server is a standby", "synchronous_commit is local"
	says := func(server string, want ...string) {
		t.Helper()
		facts, err := postgres.Inspect(t.Context(), server, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		findings := Database(facts, postgres.MinConns)
		for _, about := range []string{alone, reads, local} {
			said := slices.ContainsFunc(findings, func(f Finding) bool { return strings.Contains(f.Found, about) })
			if said != slices.Contains(want, about) {
				t.Errorf("%q is said: %t", about, said)
			}
		}
	}
	says(primary.URL(), alone)
	says(standby.URL(), alone, reads)
	// A gateway uses the primary of such an address.
	both, second, found := strings.Cut(standby.URL(), "/durward?")
	if !found {
		t.Fatal(standby.URL())
	}
	address, err := url.Parse(primary.URL())
	if err != nil {
		t.Fatal(err)
	}
	says(both+","+address.Host+"/durward?"+second, alone)
	primary.Exec(t, `ALTER SYSTEM SET synchronous_standby_names = '*'`)
	primary.Exec(t, `SELECT pg_reload_conf()`)
	deadline := time.After(time.Minute)
	for primary.Query(t, `SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'`) != "1" {
		select {
		case <-deadline:
			t.Fatal("commits do not wait for the standby")
		default:
		}
	}
	says(primary.URL())
	primary.Exec(t, `ALTER DATABASE durward SET synchronous_commit = 'local'`)
	says(primary.URL(), local)
	primary.Exec(t, `ALTER DATABASE durward RESET synchronous_commit`)
	primary.Stop(t)
	standby.Exec(t, `SELECT pg_promote()`)
	says(standby.URL(), alone)
}
