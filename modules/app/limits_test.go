package app_test

import (
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/caddytest"
	"github.com/durward-gateway/durward/modules/caddytest/probe"
	"github.com/durward-gateway/durward/storage"
)

// TestReloadKeepsRateLimits checks that counters outlive configurations, and a change of limits is known when its write
// has been answered.
func TestReloadKeepsRateLimits(t *testing.T) {
	balanced(t)
	const issuer = "https://id.example.com"
	config := production(t.TempDir(), keyFile(t), issuer)
	load := func(size int) (core *app.Core, unpin func()) {
		t.Helper()
		if err := caddytest.Load(t, caddytest.Config(with(config, object{"sizes": object{"api": size}}), caddytest.Address(t), auth, probe.Handler)); err != nil {
			t.Fatal(err)
		}
		core, unpin, ok := probe.Found.App.Pin()
		if !ok {
			t.Fatal("no core")
		}
		return core, unpin
	}
	core, unpin := load(1000)
	now := time.Now().UTC().Truncate(time.Microsecond)
	organization, err := core.Store.ResolveOrganization(t.Context(), storage.OrganizationClaim{Issuer: issuer, Slug: "acme", DerivedID: "018f3c2e-0000-7000-8000-000000000001"}, now)
	if err != nil {
		t.Fatal(err)
	}
	most := int64(2)
	l := storage.RateLimit{
		ID: "018f3c2e-0000-7000-8000-000000000002", OrganizationID: organization.ID, Name: "All", Scope: storage.Scope{Type: storage.ScopeOrganization},
		Traffic: storage.TrafficAll, Enabled: true, RequestsPerMinute: &most, CreatedAt: now, UpdatedAt: now,
	}
	subject := &limit.Subject{Traffic: storage.TrafficMCP, UserID: "u"}
	charge := func(core *app.Core, want bool) {
		t.Helper()
		m, err := core.Admitter.Matched(t.Context(), organization.ID, subject)
		if err != nil {
			t.Fatal(err)
		}
		if _, refused, err := core.Admitter.Engine().Charge(t.Context(), m, limit.Cost{Requests: 1}); err != nil || (refused == nil) != want {
			t.Errorf("%v, %v, want %v", refused, err, want)
		}
	}
	charge(core, true) // nothing is limited yet
	if err := core.Store.CreateRateLimit(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	charge(core, true)
	charge(core, true)
	charge(core, false)
	unpin()
	core, unpin = load(2000)
	defer unpin()
	charge(core, false)
	if _, err := core.Store.UpdateRateLimit(t.Context(), organization.ID, l.ID, func(l *storage.RateLimit) error {
		l.RequestsPerMinute = new(int64(3))
		l.UpdatedAt = now.Add(time.Second)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	charge(core, true)
	charge(core, false)
	if err := core.Store.DeleteRateLimit(t.Context(), organization.ID, l.ID); err != nil {
		t.Fatal(err)
	}
	charge(core, true)
}
