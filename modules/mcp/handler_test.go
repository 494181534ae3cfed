package mcp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/metrics"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage"
)

// roundTrip plays an upstream.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// noCredential is the credential source of a server that needs none.
type noCredential struct{}

func (noCredential) Credential(context.Context) (connection.Credential, error) {
	return connection.None(), nil
}

func (noCredential) Rejected(context.Context, connection.Credential) (connection.Credential, error) {
	return connection.Credential{}, &connection.NotConnectedError{}
}

// brokenBody returns a body that breaks off after its beginning.
func brokenBody(text string, err error) io.ReadCloser {
	return io.NopCloser(io.MultiReader(strings.NewReader(text), readError{err}))
}

type readError struct{ error }

func (e readError) Read([]byte) (int, error) { return 0, e.error }

// brokenWriter plays a client that has left.
type brokenWriter struct{ *httptest.ResponseRecorder }

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("connection reset by peer") }

// counted returns the count of each result.
func counted(t *testing.T, calls *prometheus.CounterVec) map[string]float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(calls)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := make(map[string]float64)
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "result" {
					counts[label.GetValue()] += metric.GetCounter().GetValue()
				}
			}
		}
	}
	return counts
}

// TestOutcomes checks that every call is counted once under its outcome, also those whose connection is broken off.
func TestOutcomes(t *testing.T) {
	jsonType := http.Header{"Content-Type": {"application/json"}}
	for _, tc := range []struct {
		name, method string
		answer       *http.Response
		clientGone   bool
		want         string
		aborted      bool
	}{
		{"an answer", http.MethodPost, &http.Response{StatusCode: 200, Header: jsonType, ContentLength: 36, Body: brokenBody(`{"jsonrpc":"2.0","id":1,"result":{}}`, io.EOF)}, false, "ok", false},
		{"an answer that breaks off", http.MethodPost,
			&http.Response{StatusCode: 200, Header: jsonType, ContentLength: 99, Body: brokenBody("{", io.ErrUnexpectedEOF)}, false, "upstream_error", false},
		{"an answer that breaks off before it began", http.MethodPost,
			&http.Response{StatusCode: 200, Header: jsonType, ContentLength: 99, Body: brokenBody("", io.ErrUnexpectedEOF)}, false, "upstream_error", false},
		{"a client that goes away", http.MethodPost,
			&http.Response{StatusCode: 200, Header: jsonType, ContentLength: 36, Body: brokenBody(`{"jsonrpc":"2.0","id":1,"result":{}}`, io.EOF)}, true, "client_gone", true},
		{"a wider scope is asked for", http.MethodPost, &http.Response{
			StatusCode: 403, Header: http.Header{"Www-Authenticate": {`Bearer error="insufficient_scope"`}}, Body: http.NoBody,
		}, false, "scope", false},
		{"a wider scope is named without an error, as Go's SDK does", http.MethodPost, &http.Response{
			StatusCode: 403, Header: http.Header{"Www-Authenticate": {`Bearer resource_metadata="https://upstream.example/m", scope="read write"`}}, Body: brokenBody("insufficient scope\n", io.EOF),
		}, false, "scope", false},
		{"a refusal of another kind that names a scope", http.MethodPost, &http.Response{
			StatusCode: 403, Header: http.Header{"Www-Authenticate": {`Bearer error="invalid_request", scope="read"`}}, Body: http.NoBody,
		}, false, "ok", false},
		{"a refusal that names none", http.MethodPost, &http.Response{StatusCode: 403, Header: http.Header{"Www-Authenticate": {`Bearer realm="x"`}}, Body: http.NoBody}, false, "ok", false},
		{"a method that MCP has not", http.MethodPut, nil, false, "refused", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			calls := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "calls_total", Help: "Calls."}, []string{"family", "result"})
			h := &Handler{Carrier: app.Carrier{Logger: zap.NewNop(), Forwarder: forward.New(forward.Over(roundTrip(func(*http.Request) (*http.Response, error) { return tc.answer, nil })), forward.Limits{})}}
			store := new(oneConnection)
			call := &app.Call{
				Decision: &app.Decision{Off: true},
				Caller:   &authn.Caller{}, Credentials: noCredential{},
				Server: &storage.Server{Entry: storage.DirectoryEntry{URL: "https://upstream.example/mcp", Protocol: storage.ProtocolMCP}},
				Core: &app.Core{Broker: brokerOver(t, store), Streams: new(streams.Registry), Sizes: settings.Sizes{MCP: 1 << 20, Event: 1 << 20}, Metrics: &metrics.Traffic{
					Calls: calls, UpstreamSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "seconds", Help: "Seconds."}, []string{"family"}),
				}},
			}
			call.Core.BindReader()
			call.Limits.Exempt()
			r := httptest.NewRequestWithContext(t.Context(), tc.method, "/mcp/demo", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
			r.Header.Set("Content-Type", "application/json")
			var w http.ResponseWriter = httptest.NewRecorder()
			if tc.clientGone {
				w = brokenWriter{httptest.NewRecorder()}
			}
			aborted := func() (aborted bool) {
				defer func() { aborted = recover() == http.ErrAbortHandler }()
				if err := h.ServeHTTP(w, app.WithCall(r, call), nil); err != nil {
					t.Error(err)
				}
				return false
			}()
			if aborted != tc.aborted {
				t.Errorf("aborted: %v, want %v", aborted, tc.aborted)
			}
			if missed := store.connection.WantedScope != ""; missed != (tc.want == "scope") {
				t.Errorf("a missing permission is noted: %v", missed)
			}
			if diff := cmp.Diff(map[string]float64{tc.want: 1}, counted(t, calls)); diff != "" {
				t.Errorf("results (-want +got)\n%s", diff)
			}
		})
	}
}
