package integration

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

// shiftClock makes a database whose clock can be set: its own function hides the one of the catalogue.
const shiftClock = `CREATE SCHEMA shifted; CREATE TABLE shifted.by (seconds bigint NOT NULL); INSERT INTO shifted.by VALUES (%s);
	CREATE FUNCTION shifted.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog
		AS $$ SELECT pg_catalog.clock_timestamp() + make_interval(secs => (SELECT seconds FROM shifted.by)) $$;
	GRANT USAGE ON SCHEMA shifted TO PUBLIC;
	ALTER ROLE durward_test SET search_path = public, shifted, pg_catalog`

// TestClocksApart checks that a gateway whose clock is more than a minute off the database's does not become ready, or
// is not any more, and says so (Z-C01). It is ready again by itself.
func TestClocksApart(t *testing.T) {
	t.Parallel()
	database := pgtest.NewServer(t)
	set := func(seconds int) { database.Exec(t, `UPDATE shifted.by SET seconds = `+strconv.Itoa(seconds)) }
	database.Exec(t, strings.Replace(shiftClock, "%s", "300", 1))
	g := startGateway(t, settings{database: database.URL()})
	wantApart := func(way string) {
		t.Helper()
		var said struct {
			Error   string
			Details struct {
				Missing     []string
				Clock, Mend string
			}
		}
		g.eventually("/readyz says that its clock is "+way, func() bool {
			a := g.send(http.MethodGet, "/readyz", "", nil)
			if a.status != http.StatusServiceUnavailable {
				return false
			}
			a.decode(t, &said)
			return strings.Contains(said.Details.Clock, way)
		})
		if said.Error != "Unavailable" || !slices.Equal(said.Details.Missing, []string{"clock"}) || !strings.Contains(said.Details.Mend, "NTP") {
			t.Errorf("/readyz says %+v", said)
		}
		g.send(http.MethodGet, "/healthz", "", nil).want(t, http.StatusOK)
	}
	wantApart(" behind the database's")
	set(0)
	g.wantReady(time.Now())
	set(-300)
	wantApart(" ahead of the database's")
	set(-20)
	g.wantReady(time.Now())
	// A node that is behind, but not so far that it is not ready: what was issued before a revocation is refused although the
	// node believes that it was issued after it.
	boss, hers := g.token(admin), g.token(alice)
	g.send(http.MethodGet, "/api/servers", hers, nil).want(t, http.StatusOK)
	set(40)
	late := g.token(alice.with(claims{"iat": time.Now().Add(20 * time.Second).Unix()}))
	g.eventually("a revocation by the database's clock", func() bool {
		revoked := g.object(boss, http.MethodPost, "/api/users/"+alice["sub"].(string)+"/revoke", members{})
		at, err := time.Parse(time.RFC3339, revoked["revoked_at"].(string))
		return err == nil && time.Until(at) > 30*time.Second
	})
	g.send(http.MethodGet, "/api/servers", late, nil).wantError(t, http.StatusUnauthorized, "Unauthorized")
	if told := strings.Count(g.output.String(), "clocks are too far apart: the gateway is not ready"); told == 0 || told > 10 {
		t.Errorf("the log says %d times that clocks are apart", told)
	}
}
