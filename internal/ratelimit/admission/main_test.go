package admission

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/internal/ratelimit/window"
	"github.com/durward-gateway/durward/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const acme = "018f3c2e-0000-7000-8000-00000000000a"

// stored is a store whose limits can be changed, or not be read.
type stored struct {
	limits []storage.RateLimit
	err    error
}

func (s *stored) EnabledRateLimits(context.Context, string) ([]storage.RateLimit, error) {
	return slices.Clone(s.limits), s.err
}

// gate is an admitter over a store, with the refusals that it counted.
type gate struct {
	*Admitter
	stored
	epochs  cache.Epochs
	refused []string
}

func newGate(t testing.TB, limits ...storage.RateLimit) *gate {
	t.Helper()
	g := &gate{stored: stored{limits: limits}}
	book, err := NewBook(&g.epochs, g, window.New(time.Now), func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(book.Close)
	g.Admitter = New(Options{Book: book, Refused: func(traffic storage.TrafficType, where string, measure limit.Measure) {
		g.refused = append(g.refused, string(traffic)+" "+where+" "+string(measure))
	}})
	return g
}

// set changes the limits, like a write that is answered afterwards.
func (g *gate) set(limits ...storage.RateLimit) {
	g.limits = limits
	g.epochs.Bump(acme)
}

// used returns the counts of the only limit.
func (g *gate) used(t testing.TB) (requests, tokens int64) {
	t.Helper()
	status, err := g.Status(t.Context(), acme)
	if err != nil || len(status) != 1 {
		t.Fatalf("%v, %v", status, err)
	}
	return status[0].Requests.Used, status[0].Tokens.Used
}

// rate returns a limit of acme. Zero counts are none, negative ones are limits of zero.
func rate(scope storage.Scope, requests, tokens int64) storage.RateLimit {
	l := storage.RateLimit{ID: string(scope.Type) + scope.ID + scope.Value, OrganizationID: acme, Scope: scope, Traffic: storage.TrafficAll, Enabled: true}
	if requests != 0 {
		l.RequestsPerMinute = new(max(requests, 0))
	}
	if tokens != 0 {
		l.TokensPerMinute = new(max(tokens, 0))
	}
	return l
}

var everybody = storage.Scope{Type: storage.ScopeOrganization}

// user describes calls of a user, and counts how often they were asked for.
type user struct {
	subject limit.Subject
	asked   int
}

// LimitSubject implements Describer.
func (u *user) LimitSubject(traffic storage.TrafficType) limit.Subject {
	u.asked++
	s := u.subject
	s.Traffic = traffic
	return s
}

// counted returns a call that counts.
func counted() *Call {
	c := &Call{State: new(State), Organization: acme, Server: &storage.Server{ID: "s1"}, Subject: &user{subject: limit.Subject{UserID: "alice"}}}
	c.State.Count()
	return c
}
