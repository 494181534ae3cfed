package sse

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/metrics"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage"
)

// without is a credential source that has only an error.
type without struct {
	app.CredentialSource
	err error
}

func (w without) Credential(context.Context) (connection.Credential, error) {
	return connection.Credential{}, w.err
}

// TestWithoutCredential checks what a client is told when there is no credential for its stream. A store that does not
// answer is no fault of the upstream, which was not asked: the client may try again.
func TestWithoutCredential(t *testing.T) {
	for _, tc := range []struct {
		name, outcome string
		err           error
		status        int
		retry, says   string
	}{
		{"not connected", "not_connected", &connection.NotConnectedError{Reason: "it ended"}, 403, "", `{"error":"ServerNotConnected"`},
		{"the provider is away", "unavailable", &connection.UnavailableError{RetryAfter: 90 * time.Second}, 503, "90", `{"error":"Unavailable","message":"The account's provider`},
		{"the store is away", "error", storage.ErrUnavailable, 503, "5", `{"error":"Unavailable","message":"The connection cannot be read`},
		{"a configuration that has just ended", "error", connection.ErrClosed, 503, "5", `{"error":"Unavailable","message":"The connection cannot be read`},
		{"anything else", "error", errors.New("secret cause"), 503, "5", `{"error":"Unavailable","message":"The connection cannot be read`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			calls := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "calls_total", Help: "Calls."}, []string{"family", "result"})
			call := &app.Call{
				Decision: &app.Decision{Off: true}, Credentials: without{err: tc.err},
				Caller: &authn.Caller{OrganizationID: "a", UserID: "alice"}, Server: &storage.Server{ID: "s1", Slug: "demo"},
				Core: &app.Core{
					Streams: new(streams.Registry), StreamBounds: settings.Streams{MaxPerUser: 1, Max: 1}, Sizes: settings.Sizes{SSE: 1 << 10}, Metrics: &metrics.Traffic{Calls: calls},
				},
			}
			call.Limits.Exempt()
			w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/sse/demo", nil)
			if err := (&Handler{Carrier: app.Carrier{Logger: zap.NewNop()}}).ServeHTTP(w, app.WithCall(r, call), nil); err != nil {
				t.Fatal(err)
			}
			if w.Code != tc.status || w.Header().Get("Retry-After") != tc.retry || !strings.HasPrefix(w.Body.String(), tc.says) || strings.Contains(w.Body.String(), "secret") {
				t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
			}
			registry := prometheus.NewRegistry()
			registry.MustRegister(calls)
			families, err := registry.Gather()
			if err != nil || len(families) != 1 || len(families[0].GetMetric()) != 1 {
				t.Fatalf("counted %v, %v", families, err)
			}
			labels := make(map[string]string)
			for _, label := range families[0].GetMetric()[0].GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			if labels["result"] != tc.outcome {
				t.Errorf("counted as %v, want %s", labels, tc.outcome)
			}
		})
	}
}
