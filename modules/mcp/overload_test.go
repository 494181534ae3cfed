package mcp

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/mcp/legacysse"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/internal/ratelimit/overload"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/metrics"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage"
)

// served returns the answer to a request of a user, and the result under which it was counted.
func served(t *testing.T, core *app.Core, r *http.Request) (*httptest.ResponseRecorder, map[string]float64) {
	t.Helper()
	calls := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "calls_total", Help: "Calls."}, []string{"family", "result"})
	core.Desk = new(legacysse.Desk)
	core.Sizes = settings.Sizes{MCP: 1 << 20, Event: 1 << 20}
	core.Metrics = &metrics.Traffic{
		Calls: calls, UpstreamSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "seconds", Help: "Seconds."}, []string{"family"}),
		Streams: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "streams", Help: "Streams."}, []string{"family"}),
	}
	h := &Handler{Carrier: app.Carrier{Logger: zap.NewNop(), Forwarder: forward.New(forward.Over(roundTrip(func(r *http.Request) (*http.Response, error) {
		kind, text := "application/json", `{"jsonrpc":"2.0","id":1,"result":{}}`
		if r.Method == http.MethodGet {
			kind, text = "text/event-stream", ":\n\n"
		}
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {kind}}, ContentLength: int64(len(text)), Body: brokenBody(text, io.EOF)}, nil
	})), forward.Limits{})}}
	call := &app.Call{
		Decision: &app.Decision{Off: true},
		Core:     core, Credentials: noCredential{}, Caller: &authn.Caller{OrganizationID: "a", UserID: "alice"},
		Server: &storage.Server{ID: "s1", Entry: storage.DirectoryEntry{URL: "https://upstream.example/mcp", Protocol: storage.ProtocolMCP}},
	}
	core.BindReader()
	call.Limits.Exempt()
	w := httptest.NewRecorder()
	r.Header.Set("Content-Type", "application/json")
	if err := h.ServeHTTP(w, app.WithCall(r, call), nil); err != nil {
		t.Fatal(err)
	}
	return w, counted(t, calls)
}

// TestShedding checks that short of memory, what stays or weighs much is refused first, then everything.
func TestShedding(t *testing.T) {
	message := func(method, padding string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"x":"` + padding + `"}}`
	}
	large := strings.Repeat("x", 64<<10)
	for _, tc := range []struct {
		name, method, body string
		unknownLength      bool
		refusedFrom        overload.Level
	}{
		{"a call", http.MethodPost, message("tools/call", ""), false, overload.Critical},
		{"a large body", http.MethodPost, message("tools/call", large), false, overload.High},
		{"a body of unknown length", http.MethodPost, message("tools/call", ""), true, overload.High},
		{"a session", http.MethodPost, message("initialize", ""), false, overload.High},
		{"a subscription", http.MethodPost, message("subscriptions/listen", ""), false, overload.High},
		{"a stream", http.MethodGet, "", false, overload.High},
		{"the end of a session", http.MethodDelete, "", false, overload.Critical},
	} {
		for level, used := range map[overload.Level]int64{overload.Calm: 10, overload.High: 90, overload.Critical: 99} {
			t.Run(tc.name+" "+level.String(), func(t *testing.T) {
				core := &app.Core{Streams: new(streams.Registry), Overload: overload.New(
					overload.Memory{Limit: 100 << 30, Used: func() int64 { return used << 30 }, Collect: func() {}}, time.Now, nil)}
				r := httptest.NewRequestWithContext(t.Context(), tc.method, "/mcp/demo", strings.NewReader(tc.body))
				if tc.unknownLength {
					r.ContentLength = -1
				}
				w, results := served(t, core, r)
				if level < tc.refusedFrom {
					if w.Code != http.StatusOK {
						t.Fatalf("%d %s", w.Code, w.Body)
					}
					return
				}
				if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), `"error":"Unavailable"`) {
					t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
				}
				if diff := cmp.Diff(map[string]float64{"unavailable": 1}, results); diff != "" {
					t.Errorf("results (-want +got)\n%s", diff)
				}
			})
		}
	}
}

// TestStreamLimits checks that a stream too many is refused, with what its kind of request is answered with; a call is
// not (W06).
func TestStreamLimits(t *testing.T) {
	const textUserFull = "You have as many event streams open as you may; close one first"
	const subscription = `{"jsonrpc":"2.0","id":"s-7","method":"subscriptions/listen"}`
	for _, tc := range []struct {
		name, method, body string
		bounds             settings.Streams
		status             int
		result, want       string
	}{
		{"W06 a user's GET", http.MethodGet, "", settings.Streams{MaxPerUser: 1, Max: 1}, 429, "limited",
			`{"jsonrpc":"2.0","id":null,"error":{"code":-31429,"message":"` + textUserFull + `","data":{"error":"RateLimitExceeded","message":"` + textUserFull + `"}}}`},
		{"W06 a user's subscription", http.MethodPost, subscription, settings.Streams{MaxPerUser: 1}, 429, "limited",
			`{"jsonrpc":"2.0","id":"s-7","error":{"code":-31429,"message":"` + textUserFull + `","data":{"error":"RateLimitExceeded","message":"` + textUserFull + `"}}}`},
		{"W06 the node's", http.MethodGet, "", settings.Streams{MaxPerUser: 2, Max: 1}, 503, "unavailable",
			`{"error":"Unavailable","message":"The gateway has as many event streams open as it may; try again later"}`},
		{"a call", http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, settings.Streams{MaxPerUser: 1, Max: 1}, 200, "ok", `{"jsonrpc":"2.0","id":1,"result":{}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			core := &app.Core{Streams: new(streams.Registry), StreamBounds: tc.bounds}
			_, done := core.Streams.Open(t.Context(), streams.Owner{Organization: "a", User: "alice", Server: "s2"}, streams.Listen, time.Time{}, streams.Limits{}, nil)
			defer done()
			w, results := served(t, core, httptest.NewRequestWithContext(t.Context(), tc.method, "/mcp/demo", strings.NewReader(tc.body)))
			if w.Code != tc.status || (w.Code != 200) != (w.Header().Get("Retry-After") != "") {
				t.Errorf("%d %v", w.Code, w.Header())
			}
			var got, want any
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("body (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(map[string]float64{tc.result: 1}, results); diff != "" {
				t.Errorf("results (-want +got)\n%s", diff)
			}
			if n := core.Streams.Len(); n != 1 {
				t.Errorf("%d streams are registered afterwards", n)
			}
		})
	}
}
