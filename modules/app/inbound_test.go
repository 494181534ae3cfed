package app

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/durward-gateway/durward/internal/gateway/inbound"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/mcp/session"
	"github.com/durward-gateway/durward/modules/app/metrics"
	"github.com/durward-gateway/durward/storage"
)

// headerLook keeps the values of placeholders when the answer begins: then Caddy fills in headers of the answer.
type headerLook struct {
	*httptest.ResponseRecorder
	call *Call
	said [2]any
}

func (p *headerLook) WriteHeader(status int) {
	p.said[0], _ = p.call.placeholder("durward.method")
	p.said[1], _ = p.call.placeholder("durward.tool")
	p.ResponseRecorder.WriteHeader(status)
}

// TestRefusedPlaceholders checks that the headers of a refusal can name the method and tool of the refused message.
func TestRefusedPlaceholders(t *testing.T) {
	core := &Core{
		Reader:  inbound.New(inbound.Options{MaxBody: 1 << 10}),
		Metrics: &metrics.Traffic{Calls: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "calls_total", Help: "Calls."}, []string{"family", "outcome"})},
	}
	call := &Call{Core: core, Caller: new(authn.Caller), Server: new(storage.Server)}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp/demo", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay"}}`))
	r.Header = http.Header{"Content-Type": {"application/json"}, "Mcp-Protocol-Version": {"2026-07-28"}, "X-Session-Id": {"tag"}}
	w := &headerLook{ResponseRecorder: httptest.NewRecorder(), call: call}
	if _, ok := call.ReadInbound(w, r); ok || w.Code != http.StatusBadRequest {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w.said != [2]any{"tools/call", "pay"} || call.Log.Session != "tag" {
		t.Errorf("said %v, tag %q", w.said, call.Log.Session)
	}
}

// TestBinding checks that sessions are bound to the issuer of their client: that of its agent, else that of the token.
func TestBinding(t *testing.T) {
	call := &Call{Caller: &authn.Caller{OrganizationID: "o", UserID: "u", Issuer: "https://id.test", Agent: "client"}, Server: &storage.Server{ID: "s"}}
	want := session.Binding{Organization: "o", User: "u", Issuer: "https://id.test", Agent: "client", Server: "s"}
	if got := call.Binding(); got != want {
		t.Errorf("a client that is no agent: %+v", got)
	}
	call.Agent = &storage.Agent{Application: storage.Application{Issuer: "https://gateway.test", ExternalID: "client"}} // of a user's key
	want.Issuer = "https://gateway.test"
	if got := call.Binding(); got != want {
		t.Errorf("an agent: %+v", got)
	}
}
