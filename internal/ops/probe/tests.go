package probe

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/proxy/http1"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/internal/ratelimit/window"
	"github.com/durward-gateway/durward/storage"
)

const (
	// testRequest is the longest time for a request of a test of a server.
	testRequest = 5 * time.Second
	// testsPerMinute is the number of tests of servers that an organization's administrators may cause within a minute,
	// creation included. Without this limit the results could be used to scan ports (S10).
	testsPerMinute = 30
	// testsAtOnce is the number of tests that a node runs at a time.
	testsAtOnce = 16
)

// noteTimeout is the longest time for writing the result of a test.
const noteTimeout = 30 * time.Second

// TestsOptions holds the parts that Tests works with. All must be set.
type TestsOptions struct {
	// Guard makes the connections.
	Guard *netguard.Guard
	// Counters counts the tests.
	Counters *window.Counters
	// Store gets the results.
	Store storage.Servers
	Log   *slog.Logger
	Now   func() time.Time
}

// Tests tests servers for administrators, within limits, and notes the results. It is safe for concurrent use.
type Tests struct {
	options TestsOptions
	prober  *Prober
	running chan struct{}
}

// NewTests makes Tests.
func NewTests(o TestsOptions) *Tests {
	return &Tests{options: o, prober: New(o.Guard, oauth.New(o.Guard, nil), testRequest), running: make(chan struct{}, testsAtOnce)}
}

// begin counts a test, unless none is allowed now. done must be called after it.
func (t *Tests) begin(organization string) (done func(), ok bool) {
	select {
	case t.running <- struct{}{}:
	default:
		return nil, false
	}
	key := window.NewKey(window.NewDigest("server tests"), window.NewDigest(organization))
	if _, ok := t.options.Counters.Charge([]window.Charge{{Key: key, Amount: 1, Limit: testsPerMinute}}, make([]window.State, 1)); !ok {
		<-t.running
		return nil, false
	}
	return func() { <-t.running }, true
}

// Run connects to a server, with the credential that apply puts on requests, and notes the result. It reports
// false when there are too many tests.
func (t *Tests) Run(ctx context.Context, server *storage.Server, apply func(*http1.Request) error) (report Report, ok bool) {
	done, ok := t.begin(server.OrganizationID)
	if !ok {
		return report, false
	}
	defer done()
	report = t.prober.Probe(ctx, Target{Entry: server.Entry, Apply: apply})
	var seen time.Time
	if report.Reachable {
		seen = t.options.Now()
	}
	if report.Cause != nil {
		t.options.Log.Warn("testing a server", "organization", server.OrganizationID, "server", server.Slug, "problem", report.Problem, "error", report.Cause.Error())
	}
	problem := ""
	if report.Problem != "" {
		problem = report.Message
	}
	// The result is noted even when the client is gone; the request itself was recorded before.
	noting, cancel := context.WithTimeout(storage.WithAudit(context.WithoutCancel(ctx), nil), noteTimeout)
	defer cancel()
	if err := t.options.Store.NoteServer(noting, server.OrganizationID, server.ID, seen, problem); err != nil {
		t.options.Log.Warn("noting what a test said of a server", "server", server.Slug, "error", err.Error())
	}
	modern := slices.Contains(report.Revisions, jsonrpc.Version20260728)
	if len(report.Revisions) == 0 || modern == server.Modern {
		return report, true
	}
	if err := t.options.Store.NoteModern(noting, server.OrganizationID, server.ID, modern); err != nil {
		t.options.Log.Warn("noting which revisions a test found at a server", "server", server.Slug, "error", err.Error())
	}
	return report, true
}
