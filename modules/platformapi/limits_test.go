package platformapi

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/ratelimit/admission/admissiontest"
	"github.com/durward-gateway/durward/storage"
)

// TestOwnLimits checks that users see the limits that count them, once each, and none of others.
func TestOwnLimits(t *testing.T) {
	a := newAPI(t)
	few, tokens := int64(4), int64(100)
	limit := func(name string, scope storage.Scope, traffic storage.TrafficType) storage.RateLimit {
		return storage.RateLimit{ID: uuid.NewString(), OrganizationID: a.alice.OrganizationID, Name: name, Scope: scope, Traffic: traffic, Enabled: true, RequestsPerMinute: &few}
	}
	ofModels := limit("models", storage.Scope{Type: storage.ScopeOrganization}, storage.TrafficLLM)
	ofModels.RequestsPerMinute, ofModels.TokensPerMinute = nil, &tokens
	a.core.Admitter = admissiontest.New(t, new(cache.Epochs), admissiontest.Limits{
		limit("everybody", storage.Scope{Type: storage.ScopeOrganization}, storage.TrafficAll), limit("each", storage.Scope{Type: storage.ScopeUser}, storage.TrafficMCP), ofModels,
		limit("adam", storage.Scope{Type: storage.ScopeUser, ID: a.adam.UserID}, storage.TrafficAll), limit("a server", storage.Scope{Type: storage.ScopeMCPServer}, storage.TrafficMCP),
	}, func() time.Time { return start })
	got := a.do(a.alice, http.MethodGet, "/api/limits/mine", nil).want(200)
	limits := got["rate_limits"].([]any)
	if len(limits) != 3 || len(got["budgets"].([]any)) != 0 {
		t.Fatalf("%v", got)
	}
	for i, want := range []struct {
		name           string
		shared         bool
		requests, most any
	}{{"each", false, 4.0, nil}, {"everybody", true, 4.0, nil}, {"models", true, nil, 100.0}} {
		if got := limits[i].(object); got["name"] != want.name || got["shared"] != want.shared || got["rpm_limit"] != want.requests || got["tpm_limit"] != want.most || got["rpm_used"] != 0.0 {
			t.Errorf("%v, want %+v", got, want)
		}
	}
}
