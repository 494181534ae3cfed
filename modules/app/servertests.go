package app

import (
	"context"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/ops/probe"
	"github.com/durward-gateway/durward/internal/proxy/http1"
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

// ServerTests tests servers, within limits.
type ServerTests struct {
	prober   *probe.Prober
	counters *window.Counters
	running  chan struct{}
}

// NewServerTests tests servers through guard, and counts the tests in counters.
func NewServerTests(guard Guard, counters *window.Counters) *ServerTests {
	return &ServerTests{
		prober: probe.New(guard, oauth.New(guard, nil), testRequest), counters: counters, running: make(chan struct{}, testsAtOnce),
	}
}

// begin counts a test, unless none is allowed now. done must be called after it.
func (t *ServerTests) begin(organization string) (done func(), ok bool) {
	select {
	case t.running <- struct{}{}:
	default:
		return nil, false
	}
	key := window.NewKey(window.NewDigest("server tests"), window.NewDigest(organization))
	if _, ok := t.counters.Charge([]window.Charge{{Key: key, Amount: 1, Limit: testsPerMinute}}, make([]window.State, 1)); !ok {
		<-t.running
		return nil, false
	}
	return func() { <-t.running }, true
}

// TestServer connects to a server, with the credential that apply puts on requests, and notes the result. It reports
// false when there are too many tests.
func (c *Core) TestServer(ctx context.Context, server *storage.Server, apply func(*http1.Request) error) (report probe.Report, ok bool) {
	done, ok := c.Tests.begin(server.OrganizationID)
	if !ok {
		return report, false
	}
	defer done()
	report = c.Tests.prober.Probe(ctx, probe.Target{Entry: server.Entry, Apply: apply})
	var seen time.Time
	if report.Reachable {
		seen = time.Now()
	}
	if report.Cause != nil {
		c.Log.Warn("testing a server", "organization", server.OrganizationID, "server", server.Slug, "problem", report.Problem, "error", report.Cause.Error())
	}
	problem := ""
	if report.Problem != "" {
		problem = report.Message
	}
	// The result is noted even when the client is gone; the request itself was recorded before.
	noting, cancel := context.WithTimeout(storage.WithAudit(context.WithoutCancel(ctx), nil), noteTimeout)
	defer cancel()
	if err := c.Store.NoteServer(noting, server.OrganizationID, server.ID, seen, problem); err != nil {
		c.Log.Warn("noting what a test said of a server", "server", server.Slug, "error", err.Error())
	}
	modern := slices.Contains(report.Revisions, jsonrpc.Version20260728)
	if len(report.Revisions) == 0 || modern == server.Modern {
		return report, true
	}
	if err := c.Store.NoteModern(noting, server.OrganizationID, server.ID, modern); err != nil {
		c.Log.Warn("noting which revisions a test found at a server", "server", server.Slug, "error", err.Error())
	}
	return report, true
}
