package limit

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/mcp/session"
	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/internal/ratelimit/admission/admissiontest"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/metrics"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	acme     = "018f3c2e-0000-7000-8000-000000000001"
	rival    = "018f3c2e-0000-7000-8000-000000000002"
	alice    = "018f3c2e-0000-7000-8000-0000000000a1"
	agentID  = "018f3c2e-0000-7000-8000-0000000000c1"
	keyID    = "018f3c2e-0000-7000-8000-0000000000d1"
	serverID = "018f3c2e-0000-7000-8000-0000000000e1"
)

// clock is a clock that tests move.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// counting is the handler over limits of its own, and a handler behind it that lets every call go on.
type counting struct {
	testing.TB
	core    *app.Core
	epochs  *cache.Epochs
	clock   *clock
	handler *Handler
	calls   *prometheus.CounterVec

	mu     sync.Mutex
	limits []storage.RateLimit
	err    error
}

const publicURL = "https://gate.example"

func newCounting(t testing.TB) *counting {
	t.Helper()
	g := &counting{
		TB: t, epochs: new(cache.Epochs), clock: &clock{at: time.Now()},
		handler: &Handler{logger: zap.NewNop(), mcp: true, llm: true},
		calls:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "calls_total", Help: "Calls."}, []string{"family", "result"}),
	}
	g.core = &app.Core{
		Admitter: admissiontest.New(t, g.epochs, g, g.clock.now), Log: slog.New(slog.DiscardHandler), Metrics: &metrics.Traffic{Calls: g.calls},
		Sizes: settings.Sizes{MCP: 1 << 20, SSE: 1 << 16}, Questions: session.NewQuestions(plainMACs{}),
	}
	g.core.Asks = approval.NewStates(nil, publicURL, time.Now)
	g.core.BindReader()
	return g
}

// plainMACs makes digests for tests that nobody attacks.
type plainMACs struct{}

func (plainMACs) AppendMAC(to, _ []byte) []byte { return append(to, "MAC"...) }

func (plainMACs) CheckMAC(_, tag []byte) bool { return string(tag) == "MAC" }

// counted returns the number of calls in the metrics of a family and a result.
func (g *counting) counted(family, result string) (n float64) {
	g.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(g.calls)
	found, err := registry.Gather()
	if err != nil {
		g.Fatal(err)
	}
	for _, metrics := range found {
		for _, m := range metrics.GetMetric() {
			if labels := m.GetLabel(); labels[0].GetValue() == family && labels[1].GetValue() == result {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

// EnabledRateLimits plays the store.
func (g *counting) EnabledRateLimits(_ context.Context, organization string) ([]storage.RateLimit, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var found []storage.RateLimit
	for _, l := range g.limits {
		if l.OrganizationID == organization {
			found = append(found, l)
		}
	}
	return found, g.err
}

// set gives acme these limits, like a write that is answered afterwards.
func (g *counting) set(limits ...storage.RateLimit) {
	g.mu.Lock()
	g.limits = limits
	g.mu.Unlock()
	g.epochs.Bump(acme)
}

// rate returns a limit of acme. Zero counts are none.
func rate(scope storage.Scope, requests, tokens int64) storage.RateLimit {
	l := storage.RateLimit{
		ID: fmt.Sprint(scope), OrganizationID: acme, Name: "secret name", Scope: scope, Traffic: storage.TrafficAll, Enabled: true,
	}
	if requests != 0 {
		l.RequestsPerMinute = &requests
	}
	if tokens != 0 {
		l.TokensPerMinute = &tokens
	}
	return l
}

var everybody = storage.Scope{Type: storage.ScopeOrganization}

// call returns a call of alice, with everything that a call to a server can have.
func (g *counting) call() *app.Call {
	return &app.Call{
		Core: g.core,
		Caller: &authn.Caller{
			OrganizationID: acme, UserID: alice, Subject: "auth0|alice", Email: "alice@example.com", Roles: []string{"dev"}, Groups: []string{"eng"},
			Teams: []string{"core"}, Projects: []string{"apollo"}, Key: &authn.APIKey{ID: keyID},
		},
		Agent:  &storage.Agent{ID: agentID},
		Server: &storage.Server{ID: serverID, Slug: "github"},
	}
}

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// post sends a message to the call's server.
func (g *counting) post(call *app.Call, body string) *httptest.ResponseRecorder {
	g.Helper()
	return g.send(call, http.MethodPost, "/mcp/github", body, "Content-Type", "application/json")
}

// send runs a request through the handler. What is let through is answered 204.
func (g *counting) send(call *app.Call, method, path, body string, header ...string) *httptest.ResponseRecorder {
	g.Helper()
	r := httptest.NewRequestWithContext(g.Context(), method, path, strings.NewReader(body))
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	next := caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		call.Decide()
		if !call.Admission().Charge(w, r) { // as durward_credential does
			return nil
		}
		defer call.Limits.Settle()
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
	if err := g.handler.ServeHTTP(w, app.WithCall(r, call), next); err != nil {
		g.Error(err)
	}
	return w
}

// used returns the values in the counters of acme's only limit.
func (g *counting) used() (requests, tokens int64) {
	g.Helper()
	status, err := g.core.Admitter.Status(g.Context(), acme)
	if err != nil || len(status) != 1 {
		g.Fatalf("%v, %v", status, err)
	}
	return status[0].Requests.Used, status[0].Tokens.Used
}
