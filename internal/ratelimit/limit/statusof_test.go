package limit

import (
	"testing"

	"github.com/durward-gateway/durward/storage"
)

// TestStatusOf checks that a subject is told its own use, and that of limits that it shares, as the counters have it, and
// nothing of limits that do not count it.
func TestStatusOf(t *testing.T) {
	const bob = "0190bbbb-0000-7000-8000-00000000000b"
	set := Compile(acme, []storage.RateLimit{
		rate("each", storage.Scope{Type: storage.ScopeUser}, storage.TrafficAll, number(10), nil),
		rate("all", storage.Scope{Type: storage.ScopeOrganization}, storage.TrafficAll, number(20), number(1000)),
		rate("bob", storage.Scope{Type: storage.ScopeUser, ID: bob}, storage.TrafficAll, number(1), nil),
		rate("models", storage.Scope{Type: storage.ScopeOrganization}, storage.TrafficLLM, number(1), nil),
		rate("dev", storage.Scope{Type: storage.ScopeRole, Value: "dev"}, storage.TrafficMCP, number(5), nil),
	})
	e, _ := newEngine()
	mine := caller(storage.TrafficMCP)
	other := *mine
	other.UserID, other.UserSub, other.UserEmail, other.Roles = bob, "auth0|bob", "", nil
	for range 3 {
		mustCharge(t, e, set.Match(mine), Cost{Requests: 1, Tokens: 100})
	}
	mustCharge(t, e, set.Match(&other), Cost{Requests: 1, Tokens: 50})
	found, err := e.StatusOf(t.Context(), set, &Subject{Traffic: storage.TrafficMCP, UserID: alice, Roles: []string{"dev"}})
	if err != nil || len(found) != 3 {
		t.Fatalf("%+v, %v", found, err)
	}
	for i, want := range []struct {
		id               string
		apart            bool
		requests, tokens Gauge
	}{
		{"each", true, Gauge{3, 10, 30}, Gauge{}}, {"all", false, Gauge{4, 20, 20}, Gauge{350, 1000, 35}}, {"dev", false, Gauge{3, 5, 60}, Gauge{}},
	} {
		if got := found[i]; got.Limit.ID != want.id || got.Apart != want.apart || got.Requests != want.requests || got.Tokens != want.tokens || got.Subjects != nil {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}
