package sse

import (
	"context"
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
	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/internal/ratelimit/admission/admissiontest"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/metrics"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage"
)

// public is the credential source of a server that needs none.
type public struct{ app.CredentialSource }

func (public) Credential(context.Context) (connection.Credential, error) {
	return connection.None(), nil
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestLimitedStream checks that a stream's data counts piece by piece, and the first piece that has no room ends it.
func TestLimitedStream(t *testing.T) {
	most, one := int64(10), int64(1)
	admitter := admissiontest.New(t, new(cache.Epochs), admissiontest.Limits{{
		ID: "l", OrganizationID: "acme", Scope: storage.Scope{Type: storage.ScopeOrganization}, Traffic: storage.TrafficAll, Enabled: true,
		TokensPerMinute: &most, RequestsPerMinute: &one,
	}}, time.Now)
	const piece = "event: data_update\ndata: {\"n\":\"0123456789\"}\n\n" // 18 bytes: 5 tokens
	answer := strings.Repeat(piece, 5)
	h := &Handler{Carrier: app.Carrier{Logger: zap.NewNop(), Forwarder: forward.New(forward.Over(roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, ContentLength: -1, Body: io.NopCloser(strings.NewReader(answer))}, nil
	})), forward.Limits{})}}
	calls := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "calls_total", Help: "Calls."}, []string{"family", "result"})
	open := func() *httptest.ResponseRecorder {
		c := &app.Call{
			Decision: &app.Decision{Off: true}, Caller: &authn.Caller{OrganizationID: "acme"}, Credentials: public{},
			Server: &storage.Server{ID: "s1", Entry: storage.DirectoryEntry{EventsURL: "https://upstream.example/events"}},
			Core: &app.Core{Admitter: admitter, Log: slog.New(slog.DiscardHandler), Streams: new(streams.Registry), Sizes: settings.Sizes{SSE: 1 << 10, Event: 1 << 20},
				StreamBounds: settings.Streams{MaxPerUser: 9, Max: 9, Heartbeat: 1e10}, Metrics: &metrics.Traffic{
					Calls:           calls,
					UpstreamSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "seconds", Help: "Seconds."}, []string{"family"}),
					Streams:         prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "streams", Help: "Streams."}, []string{"family"}),
				}},
		}
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/sse/demo", nil)
		c.Limits.Count()
		if !c.Admission().Charge(w, r) {
			return w
		}
		defer c.Limits.Settle()
		if err := h.ServeHTTP(w, app.WithCall(r, c), nil); err != nil {
			t.Error(err)
		}
		return w
	}
	w := open()
	want := piece + piece + "event: error\ndata: {\"error\":\"rate_limit\",\"message\":\"Rate limit exceeded\"}\n\n" +
		"event: status_change\ndata: {\"reason\":\"limit\",\"status\":\"disconnected\"}\n\n"
	if _, after, _ := strings.Cut(w.Body.String(), "\n\n"); after != want {
		t.Errorf("%s\nwant\n%s", after, want)
	}
	if w = open(); w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), `{"error":"RateLimitExceeded"`) || w.Header().Get("Ratelimit") == "" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}
