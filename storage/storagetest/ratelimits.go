package storagetest

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// newRateLimit returns an enabled limit with every member set, not stored.
func newRateLimit(organization, name string, scope storage.Scope, traffic storage.TrafficType) storage.RateLimit {
	return storage.RateLimit{ID: newID(), OrganizationID: organization, Name: name, Scope: scope, Traffic: traffic, Enabled: true,
		RequestsPerMinute: new(int64(60)), TokensPerMinute: new(int64(1000)), CreatedAt: start, UpdatedAt: start.Add(time.Second)}
}

// allScopes lists all types of scopes.
var allScopes = []storage.ScopeType{storage.ScopeOrganization, storage.ScopeTeam, storage.ScopeUser, storage.ScopeRole, storage.ScopeGroup,
	storage.ScopeAPIKey, storage.ScopeMCPServer, storage.ScopeAgent, storage.ScopeProject, storage.ScopeLLMProvider, storage.ScopeModel,
	storage.ScopeModelAlias}

func testRateLimits(t *testing.T, b *bundle) {
	ctx := t.Context()
	// T10: every scope and kind of traffic, each once.
	var want []storage.RateLimit
	for _, scope := range allScopes {
		for _, traffic := range []storage.TrafficType{storage.TrafficAll, storage.TrafficLLM, storage.TrafficMCP} {
			for _, s := range []storage.Scope{{Type: scope}, {Type: scope, ID: b.userA1}, {Type: scope, Value: b.userA1}, {Type: scope, Value: "x"}} {
				l := newRateLimit(b.orgA, "limit", s, traffic)
				noError(t, b.CreateRateLimit(ctx, l))
				want = append(want, l)
				l.ID = newID()
				wantConflict(t, b.CreateRateLimit(ctx, l), "scope")
				l.OrganizationID = b.orgB
				noError(t, b.CreateRateLimit(ctx, l))
			}
		}
	}
	got, err := b.RateLimits(ctx, b.orgA)
	noError(t, err)
	equal(t, got, want)

	taken := want[0]
	taken.Scope.Value = "free"
	wantConflict(t, b.CreateRateLimit(ctx, taken), "id")
	wantError(t, b.CreateRateLimit(ctx, newRateLimit(b.unknown, "limit", storage.Scope{Type: storage.ScopeOrganization}, storage.TrafficAll)), storage.ErrNotFound)
}

func testUpdateRateLimit(t *testing.T, b *bundle) {
	ctx := t.Context()
	want := newRateLimit(b.orgA, "b", storage.Scope{Type: storage.ScopeGroup, Value: "crew"}, storage.TrafficLLM)
	holder := newRateLimit(b.orgA, "A", storage.Scope{Type: storage.ScopeGroup, Value: "Crew"}, storage.TrafficLLM)
	for _, l := range []storage.RateLimit{want, holder} {
		noError(t, b.CreateRateLimit(ctx, l))
	}
	update := func(edit func(*storage.RateLimit)) (storage.RateLimit, error) {
		return b.UpdateRateLimit(ctx, b.orgA, want.ID, func(l *storage.RateLimit) error { edit(l); return nil })
	}
	// Null, zero and a number are three different values.
	for _, numbers := range [][2]*int64{{nil, new(int64(5))}, {new(int64(0)), nil}, {new(int64(1 << 40)), new(int64(0))}} {
		want.RequestsPerMinute, want.TokensPerMinute = numbers[0], numbers[1]
		want.Name, want.Enabled, want.UpdatedAt = want.Name+"b", !want.Enabled, want.UpdatedAt.Add(time.Second)
		got, err := update(func(l *storage.RateLimit) {
			l.ID, l.OrganizationID, l.CreatedAt = newID(), b.orgB, start.Add(time.Hour)
			l.RequestsPerMinute, l.TokensPerMinute, l.Name, l.Enabled, l.UpdatedAt = numbers[0], numbers[1], want.Name, want.Enabled, want.UpdatedAt.Add(7)
		})
		noError(t, err)
		equal(t, got, want)
		got, err = b.RateLimit(ctx, b.orgA, want.ID)
		noError(t, err)
		equal(t, got, want)
	}
	all, err := b.RateLimits(ctx, b.orgA)
	noError(t, err)
	equal(t, all, []storage.RateLimit{holder, want})
	enabled, err := b.EnabledRateLimits(ctx, b.orgA)
	noError(t, err)
	equal(t, enabled, []storage.RateLimit{holder})

	_, err = update(func(l *storage.RateLimit) { l.Scope.Value, *l.RequestsPerMinute = "Crew", 1 })
	wantConflict(t, err, "scope")
	refusal := errors.New("refused")
	_, err = b.UpdateRateLimit(ctx, b.orgA, want.ID, func(l *storage.RateLimit) error { l.Name = "never"; return refusal })
	wantError(t, err, refusal)
	got, err := b.RateLimit(ctx, b.orgA, want.ID)
	noError(t, err)
	equal(t, got, want)

	want.RequestsPerMinute = new(int64(7)) // in place
	got, err = update(func(l *storage.RateLimit) { *l.RequestsPerMinute = 7 })
	noError(t, err)
	equal(t, got, want)
	got, err = b.RateLimit(ctx, b.orgA, want.ID)
	noError(t, err)
	equal(t, got, want)

	want.Scope = storage.Scope{Type: storage.ScopeUser, ID: b.userA1}
	got, err = update(func(l *storage.RateLimit) { l.Scope = want.Scope })
	noError(t, err)
	equal(t, got, want)
	noError(t, b.DeleteRateLimit(ctx, b.orgA, want.ID))
	wantError(t, b.DeleteRateLimit(ctx, b.orgA, want.ID), storage.ErrNotFound)
	_, err = b.RateLimit(ctx, b.orgA, want.ID)
	wantError(t, err, storage.ErrNotFound)
	want.ID = newID()
	noError(t, b.CreateRateLimit(ctx, want)) // the scope is free
}

// testRateLimitRace makes and moves limits to one scope at once: one has it.
func testRateLimitRace(t *testing.T, b *bundle) {
	ctx := t.Context()
	scope := storage.Scope{Type: storage.ScopeRole, Value: "admin"}
	var won atomic.Int32
	count := func(err error) {
		if err == nil {
			won.Add(1)
		} else if !errors.Is(err, storage.ErrConflict) {
			t.Error(err)
		}
	}
	var all sync.WaitGroup
	for range 8 {
		moved := newRateLimit(b.orgA, "moved", storage.Scope{Type: storage.ScopeRole, Value: newID()}, storage.TrafficAll)
		noError(t, b.CreateRateLimit(ctx, moved))
		all.Go(func() { count(b.CreateRateLimit(ctx, newRateLimit(b.orgA, "made", scope, storage.TrafficAll))) })
		all.Go(func() {
			_, err := b.UpdateRateLimit(ctx, b.orgA, moved.ID, func(l *storage.RateLimit) error { l.Scope = scope; return nil })
			count(err)
		})
	}
	all.Wait()
	equal(t, won.Load(), 1)
}
