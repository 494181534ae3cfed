package policy_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/storage"
)

// TestStreams checks that a stream is open to whoever is connected unless a rule denies it, or a grant is demanded.
func TestStreams(t *testing.T) {
	issues := `{"filters":{"object_type":"issue","limit":5}}`
	for _, tc := range []struct {
		name          string
		rules         []storage.Rule // nil: no policy
		body          string
		open, granted bool // by default, and with `sse require_grant`
	}{
		{"no policy", nil, "", true, false},
		{"nothing about streams", []storage.Rule{grant("tools/call:x")}, "", true, false},
		{"granted", []storage.Rule{grant("sse/stream")}, "", true, true},
		{"granted with everything", []storage.Rule{grant("*")}, "", true, true},
		{"denied", []storage.Rule{grant("*"), deny("sse/stream")}, "", false, false},
		{"denied with everything", []storage.Rule{grant("sse/stream"), deny("*")}, "", false, false},
		{"granted for these filters", []storage.Rule{when(grant("sse/stream"), `R.attr.object_type == "issue" && R.attr.limit <= 5`)}, issues, true, true},
		{"granted for others", []storage.Rule{when(grant("sse/stream"), `R.attr.object_type == "pull"`)}, issues, true, false},
		{"denied for these filters", []storage.Rule{grant("*"), when(deny("sse/stream"), `R.attr.object_type == "issue"`)}, issues, false, false},
		{"denied for others", []storage.Rule{grant("*"), when(deny("sse/stream"), `R.attr.object_type == "pull"`)}, issues, true, true},
		{"denied when it cannot be told", []storage.Rule{grant("*"), when(deny("sse/stream"), `R.attr.object_type == "pull"`)}, "", false, false},
	} {
		for _, required := range []bool{false, true} {
			name, want, change := tc.name, tc.open, object{}
			if required {
				name, want, change = tc.name+", with require_grant", tc.granted, object{"sse": object{"require_grant": true}}
			}
			t.Run(name, func(t *testing.T) {
				g := newGateway(t, nil, change)
				if tc.rules != nil {
					g.policy(storage.PolicyActive, tc.rules...)
				}
				a := g.send(request{method: http.MethodGet, path: "/sse/demo", body: tc.body})
				if (a.passed != nil) != want || !want && (a.status != http.StatusForbidden || a.body != `{"error":"Forbidden","message":"Denied by policy"}`) {
					t.Errorf("%d %s", a.status, a.body)
				}
			})
		}
	}
}

// TestStreamsEnd checks W07 and M22 for streams: one whose right has ended is ended in the background, one that still
// has it goes on, and so does one that needs no right.
func TestStreamsEnd(t *testing.T) {
	g := newGateway(t, nil, nil)
	p := g.policy(storage.PolicyActive, grant("*"))
	type open struct {
		what  string
		ended <-chan struct{}
		why   func() streams.Reason
	}
	opened := make(chan open)
	release := make(chan struct{})
	var running sync.WaitGroup
	defer func() {
		close(release)
		running.Wait()
	}()
	g.then = func(call *app.Call, _ http.ResponseWriter, r *http.Request) {
		kind := streams.Listen
		if call.Inbound != nil {
			kind = call.Inbound.Kind()
		}
		ctx, done := call.Streams().Open(r.Context(), kind)
		defer done()
		what := r.URL.Path + " " + r.Method + " " + call.Log.Method
		opened <- open{what, ctx.Done(), func() streams.Reason { reason, _ := streams.EndedFor(ctx); return reason }}
		select {
		case <-ctx.Done():
		case <-release:
		}
	}
	begin := func(q request) open {
		running.Go(func() {
			if _, err := g.do(q); err != nil {
				t.Error(err)
			}
		})
		select {
		case o := <-opened:
			return o
		case <-time.After(30 * time.Second):
			t.Fatal("the stream was not opened")
			panic("not reached")
		}
	}
	listen := request{
		body:    `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["a:1"]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
		version: modern, header: []string{"Mcp-Method", "subscriptions/listen"},
	}
	events, subscription := begin(request{method: http.MethodGet, path: "/sse/demo"}), begin(listen)
	messages := begin(request{method: http.MethodGet})
	call := begin(request{body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`})

	ends := func(o open) {
		t.Helper()
		select {
		case <-o.ended:
			if reason := o.why(); reason != streams.PolicyChanged {
				t.Errorf("W07 %s ended for %q", o.what, reason)
			}
		case <-time.After(30 * time.Second):
			t.Errorf("W07 %s goes on", o.what)
		}
	}
	goesOn := func(o open) {
		t.Helper()
		select {
		case <-o.ended:
			t.Errorf("%s ended for %q", o.what, o.why())
		default:
		}
	}
	g.update(p, func(p *storage.Policy) { p.Rules = []storage.Rule{grant("sse/stream")} })
	ends(subscription)
	goesOn(events)
	g.update(p, func(p *storage.Policy) { p.Rules = []storage.Rule{deny("*")} })
	ends(events)
	goesOn(messages)
	goesOn(call)
}
