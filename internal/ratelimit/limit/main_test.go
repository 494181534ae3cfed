package limit

import (
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/durward-gateway/durward/internal/ratelimit/window"
	"github.com/durward-gateway/durward/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a time that tests move.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) turn(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

const (
	acme   = "018f3c2e-0000-7000-8000-00000000000a"
	globex = "018f3c2e-0000-7000-8000-00000000000b"
	alice  = "018f3c2e-0000-7000-8000-0000000000a1"
	bob    = "018f3c2e-0000-7000-8000-0000000000b0"
	agent  = "018f3c2e-0000-7000-8000-0000000000c0"
	apiKey = "018f3c2e-0000-7000-8000-0000000000d0"
	server = "018f3c2e-0000-7000-8000-0000000000e0"
	openai = "018f3c2e-0000-7000-8000-0000000000f0"
	others = "018f3c2e-0000-7000-8000-0000000000ff"
)

func number(n int64) *int64 { return &n }

// rate returns an enabled limit of acme.
func rate(id string, scope storage.Scope, traffic storage.TrafficType, requests, tokens *int64) storage.RateLimit {
	return storage.RateLimit{
		ID: id, OrganizationID: acme, Name: "limit " + id, Scope: scope, Traffic: traffic, Enabled: true,
		RequestsPerMinute: requests, TokensPerMinute: tokens,
	}
}

// caller returns a call of alice with everything set that a call of that traffic has.
func caller(traffic storage.TrafficType) *Subject {
	s := &Subject{
		Traffic: traffic, UserID: alice, UserSub: "auth0|alice", UserEmail: "Alice@Example.com",
		Roles: []string{"dev", "ops"}, Groups: []string{"eng", "eng"}, Teams: []string{"core"}, Projects: []string{"apollo"},
		AgentID: agent, APIKeyID: apiKey,
	}
	if traffic == storage.TrafficMCP {
		s.ServerID, s.ServerSlug = server, "github"
	} else {
		s.ProviderID, s.ProviderName, s.Model, s.Alias = openai, "openai", "gpt-5-mini", "fast"
	}
	return s
}

func newEngine() (*Engine, *clock) {
	c := newClock()
	return NewEngine(Local{window.New(c.now)}), c
}

// mustCharge charges a call that has room.
func mustCharge(t *testing.T, e *Engine, m *Matched, cost Cost) *Permit {
	t.Helper()
	p, refused, err := e.Charge(t.Context(), m, cost)
	if p == nil || refused != nil || err != nil {
		t.Fatalf("charging %+v: %+v, %v", cost, refused, err)
	}
	return p
}

// mustRefuse charges a call that has no room.
func mustRefuse(t *testing.T, e *Engine, m *Matched, cost Cost) *Refusal {
	t.Helper()
	p, refused, err := e.Charge(t.Context(), m, cost)
	if p != nil || refused == nil || err != nil {
		t.Fatalf("charging %+v passed: %v", cost, err)
	}
	return refused
}

func statusOf(t *testing.T, e *Engine, s *Set) []Status {
	t.Helper()
	out, err := e.Status(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
