package mcp

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/mcp/legacysse"
	"github.com/durward-gateway/durward/internal/mcp/listfilter"
	"github.com/durward-gateway/durward/internal/mcp/session"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/internal/ratelimit/admission"
	"github.com/durward-gateway/durward/internal/ratelimit/admission/admissiontest"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/metrics"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage"
)

// limited returns a handler for calls to an upstream, and a call that an admitter counts.
func limited(admitter *admission.Admitter, upstream roundTrip) (*Handler, *app.Call) {
	h := &Handler{Carrier: app.Carrier{Logger: zap.NewNop(), Forwarder: forward.New(forward.Over(upstream), forward.Limits{})}}
	c := &app.Call{
		Decision: &app.Decision{Off: true}, Caller: &authn.Caller{OrganizationID: "acme"}, Credentials: noCredential{},
		Server: &storage.Server{ID: "s1", Entry: storage.DirectoryEntry{URL: "https://upstream.example/mcp", Protocol: storage.ProtocolMCP}},
		Core: &app.Core{Admitter: admitter, Log: slog.New(slog.DiscardHandler), Streams: new(streams.Registry), Sessions: session.New(newTagged(), time.Now), Questions: session.NewQuestions(plainMACs{}), Desk: new(legacysse.Desk), Sizes: settings.Sizes{MCP: 1 << 20, Event: 1 << 20}, Metrics: &metrics.Traffic{
			Calls:           prometheus.NewCounterVec(prometheus.CounterOpts{Name: "calls_total", Help: "Calls."}, []string{"family", "result"}),
			UpstreamSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "seconds", Help: "Seconds."}, []string{"family"}),
			Streams:         prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "streams", Help: "Streams."}, []string{"family"}),
		}},
	}
	c.Core.Asks = approval.NewStates(newTagged(), publicURL, time.Now)
	c.Core.BindReader()
	c.Limits.Count()
	return h, c
}

// TestTokensOfResults checks that results of tools count by what a model reads of them, on every way on which they
// come, and what was reserved and did not come is given back (T07).
func TestTokensOfResults(t *testing.T) {
	const (
		call   = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`
		forty  = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"0123456789012345678901234567890123456789"}]}}` // 44 bytes with the type
		image  = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"image","data":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","mimeType":"image/png"}]}}`
		failed = `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no"}}`
		list   = `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a tool with a long description that nobody counts"}]}}`
		news   = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`
	)
	events := func(messages ...string) string {
		return "data: " + strings.Join(messages, "\n\ndata: ") + "\n\n"
	}
	for _, tc := range []struct {
		name, method, request, kind, answer string
		status                              int
		broken                              error
		tokens                              int64
		filter                              *listfilter.Filter
	}{
		{"a result", "POST", call, "application/json", forty, 200, nil, 11, nil},
		{"a result that was read whole", "POST", call, "application/json", forty, 200, nil, 11, &listfilter.Filter{Stray: true}},
		{"an image", "POST", call, "application/json", image, 200, nil, 1004, nil},
		{"an error", "POST", call, "application/json", failed, 200, nil, 0, nil},
		{"a list", "POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "application/json", list, 200, nil, 0, nil},
		{"a task that has ended", "POST", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"t"}}`, "application/json",
			`{"jsonrpc":"2.0","id":1,"result":{"taskId":"t","status":"completed","result":{"content":[{"type":"text","text":"0123456789012345678901234567890123456789"}]}}}`, 200, nil, 11, nil},
		{"a batch", "POST", "[" + call + "," + call + "]", "application/json", "[" + forty + "," + forty + "]", 200, nil, 22, nil},
		{"an answer that is not MCP", "POST", call, "application/json", strings.Repeat("x", 400), 200, nil, 0, nil},
		{"an answer that breaks off", "POST", call, "application/json", forty[:80], 200, io.ErrUnexpectedEOF, 0, nil},
		{"an answer with a status", "POST", call, "application/json", forty, 400, nil, 11, nil},
		{"no answer", "POST", call, "application/json", "", 500, nil, 0, nil},
		{"events", "POST", call, "text/event-stream", events(news, forty), 200, nil, 11, nil},
		{"events that break off before the result", "POST", call, "text/event-stream", events(news) + "data: " + forty[:50], 200, io.ErrUnexpectedEOF, 0, nil},
		{"more results than were asked for", "POST", call, "text/event-stream", events(forty, forty, forty), 200, nil, 11, nil},
		{"results on a stream of GET", "GET", "", "text/event-stream", "event: endpoint\ndata: /messages\n\n" + events(forty, news, forty), 200, nil, 22 + 30, nil}, // with the address
	} {
		t.Run("T07 "+tc.name, func(t *testing.T) {
			most := int64(10_000)
			admitter := admissiontest.New(t, new(cache.Epochs), admissiontest.Limits{{
				ID: "l", OrganizationID: "acme", Scope: storage.Scope{Type: storage.ScopeOrganization}, Traffic: storage.TrafficMCP, Enabled: true, TokensPerMinute: &most,
			}}, time.Now)
			tokens := func() int64 {
				status, err := admitter.Status(t.Context(), "acme")
				if err != nil {
					t.Fatal(err)
				}
				return status[0].Tokens.Used
			}
			var reserved int64
			h, c := limited(admitter, func(*http.Request) (*http.Response, error) {
				reserved = tokens()
				body, length := brokenBody(tc.answer, io.EOF), int64(len(tc.answer))
				if tc.broken != nil {
					body, length = brokenBody(tc.answer, tc.broken), -1
				}
				return &http.Response{StatusCode: tc.status, Header: http.Header{"Content-Type": {tc.kind}}, ContentLength: length, Body: body}, nil
			})
			c.Decision.Filter = tc.filter
			r := httptest.NewRequestWithContext(t.Context(), tc.method, "/mcp/demo", strings.NewReader(tc.request))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			if !c.Admission().Charge(w, r) {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			func() {
				defer c.Limits.Settle()
				defer func() { _ = recover() }() // an answer that broke off breaks the client's off
				if err := h.ServeHTTP(w, app.WithCall(r, c), nil); err != nil {
					t.Error(err)
				}
			}()
			if got := tokens(); got != tc.tokens {
				t.Errorf("%d tokens are counted, want %d; answered %d %s", got, tc.tokens, w.Code, w.Body)
			}
			want := int64(strings.Count(tc.request, "tools/call")) * 256
			if reserved != want {
				t.Errorf("%d were reserved, want %d", reserved, want)
			}
			if tc.broken == nil && tc.tokens == 11 && !strings.HasPrefix(tc.answer, w.Body.String()) {
				t.Errorf("answered %s", w.Body)
			}
		})
	}
}

// TestLimitMadeDuringAStream checks that the results on a stream of GET count when an administrator limits tokens after
// the stream was opened. A client of 2024-11-05 gets all its results there.
func TestLimitMadeDuringAStream(t *testing.T) {
	const result = `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"0123456789012345678901234567890123456789"}]}}`
	epochs, limits, most := new(cache.Epochs), new(admissiontest.Limits), int64(10_000)
	admitter := admissiontest.New(t, epochs, limits, time.Now)
	body, upstream := io.Pipe()
	h, c := limited(admitter, func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, ContentLength: -1, Body: body}, nil
	})
	go func() {
		_, _ = io.WriteString(upstream, "event: endpoint\ndata: /messages\n\n")
		_, _ = io.WriteString(upstream, ":\n\n") // read after the answer's meter was set up
		*limits = admissiontest.Limits{{
			ID: "l", OrganizationID: "acme", Scope: storage.Scope{Type: storage.ScopeOrganization}, Traffic: storage.TrafficMCP, Enabled: true, TokensPerMinute: &most,
		}}
		epochs.Bump("acme")
		_, _ = io.WriteString(upstream, "data: "+result+"\n\n")
		_ = upstream.Close()
	}()
	w := httptest.NewRecorder()
	if err := h.ServeHTTP(w, app.WithCall(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/mcp/demo", nil), c), nil); err != nil {
		t.Fatal(err)
	}
	status, err := admitter.Status(t.Context(), "acme")
	if err != nil || len(status) != 1 || status[0].Tokens.Used != 11 {
		t.Errorf("counted %+v, %v; answered %d %s", status, err, w.Code, w.Body)
	}
}
