package app

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/identity/authn/authntest"
	"github.com/durward-gateway/durward/internal/ratelimit/admission/admissiontest"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/storage"
)

// changingLimits is a store whose limits can be changed.
type changingLimits struct{ of []storage.RateLimit }

func (l *changingLimits) EnabledRateLimits(context.Context, string) ([]storage.RateLimit, error) {
	return slices.Clone(l.of), nil
}

// TestModelsOfAKeyAreMatchedAnew checks that the limits of a key's last call are used for the next one only when that
// goes to the same target, and no longer than the organization's limits and the key stay as they are.
func TestModelsOfAKeyAreMatchedAnew(t *testing.T) {
	k := newKeyring(t)
	most := int64(10)
	on := func(scope storage.Scope) storage.RateLimit {
		return storage.RateLimit{ID: uuid.NewString(), OrganizationID: authntest.OrganizationID, Scope: scope, Traffic: storage.TrafficAll, Enabled: true, RequestsPerMinute: &most}
	}
	stored := &changingLimits{of: []storage.RateLimit{on(storage.Scope{Type: storage.ScopeOrganization}), on(storage.Scope{Type: storage.ScopeModelAlias, Value: "small"})}}
	k.core.Admitter = admissiontest.New(t, k.core.resources.epochs, stored, nil)
	raw, _ := k.Make(nil)
	matched := func(alias string) *limit.Matched {
		t.Helper()
		call, err := k.use(raw, here)
		if err != nil {
			t.Fatal(err)
		}
		subject := call.Admission().LimitSubject(storage.TrafficLLM)
		if subject.Alias = alias; alias != "" {
			subject.ProviderID, subject.Model = "p", "m"
		}
		m, err := k.core.Admitter.MatchModels(t.Context(), call.Admission().Described(), &subject)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for range 2 {
		for alias, counters := range map[string]int{"": 1, "small": 2, "large": 1} {
			if got := matched(alias).Len(); got != counters {
				t.Errorf("alias %q: %d counters", alias, got)
			}
		}
	}
	// The key is kept in the background.
	begun := time.Now()
	for before := matched("small"); matched("small") != before; before = matched("small") {
		if time.Since(begun) > 10*time.Second {
			t.Fatal("the same is matched again")
		}
		runtime.Gosched()
	}
	stored.of = stored.of[:1]
	if got := matched("small").Len(); got != 2 {
		t.Errorf("before anybody could know of the change: %d counters", got)
	}
	k.core.resources.epochs.Bump(authntest.OrganizationID)
	if got := matched("small").Len(); got != 1 {
		t.Errorf("after the change: %d counters", got)
	}
	// A call that was begun with an older key sees the change, too.
	call, err := k.use(raw, here)
	if err != nil {
		t.Fatal(err)
	}
	stored.of = nil
	k.core.resources.epochs.Bump(authntest.OrganizationID)
	subject := call.Admission().LimitSubject(storage.TrafficLLM)
	if m, err := k.core.Admitter.MatchModels(t.Context(), call.Admission().Described(), &subject); err != nil || m.Len() != 0 {
		t.Errorf("%v, %v", m, err)
	}
}
