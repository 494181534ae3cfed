package sse

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/ratelimit/overload"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/metrics"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage"
)

// TestRefusedStreams checks that a stream is refused when memory is getting short, and when there is no place for it
// (W06).
func TestRefusedStreams(t *testing.T) {
	for _, tc := range []struct {
		name   string
		used   int64 // of 100
		bounds settings.Streams
		status int
		error  string
	}{
		{"memory is getting short", 85, settings.Streams{}, 503, "Unavailable"},
		{"memory is short", 95, settings.Streams{}, 503, "Unavailable"},
		{"W06 the user has as many as they may", 84, settings.Streams{MaxPerUser: 1, Max: 1}, 429, "RateLimitExceeded"},
		{"W06 the node has", 84, settings.Streams{MaxPerUser: 2, Max: 1}, 503, "Unavailable"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			calls := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "calls_total", Help: "Calls."}, []string{"family", "result"})
			call := &app.Call{
				Decision: &app.Decision{Off: true},
				Caller:   &authn.Caller{OrganizationID: "a", UserID: "alice"}, Server: &storage.Server{ID: "s1"}, Credentials: unasked{},
				Core: &app.Core{
					Streams: new(streams.Registry), StreamBounds: tc.bounds, Sizes: settings.Sizes{SSE: 1 << 10}, Metrics: &metrics.Traffic{Calls: calls},
					Overload: overload.New(overload.Memory{Limit: 100, Used: func() int64 { return tc.used }, Collect: func() {}}, time.Now, nil),
				},
			}
			call.Limits.Exempt()
			_, done := call.Streams().Open(t.Context(), streams.Listen)
			defer done()
			w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/sse/demo", nil)
			if err := (&Handler{Carrier: app.Carrier{Logger: zap.NewNop()}}).ServeHTTP(w, app.WithCall(r, call), nil); err != nil {
				t.Fatal(err)
			}
			if w.Code != tc.status || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), `{"error":"`+tc.error+`"`) {
				t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
			}
			if n := call.Core.Streams.Len(); n != 1 {
				t.Errorf("%d streams are registered afterwards", n)
			}
		})
	}
}

// unasked is the credential source of a call that never comes to need one.
type unasked struct{ app.CredentialSource }
