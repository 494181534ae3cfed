package pipeline_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/standard" // the modules that the shipped binary links

	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/paths"
	_ "github.com/durward-gateway/durward/modules/auth"
	"github.com/durward-gateway/durward/modules/caddytest"
	_ "github.com/durward-gateway/durward/modules/credential"
	_ "github.com/durward-gateway/durward/modules/identities"
	_ "github.com/durward-gateway/durward/modules/limit"
	_ "github.com/durward-gateway/durward/modules/platformapi"
	_ "github.com/durward-gateway/durward/modules/policy"
	_ "github.com/durward-gateway/durward/modules/stores"
)

type object = caddytest.Object

func init() {
	caddy.RegisterModule(first{})
	caddy.RegisterModule(last{})
}

// measured runs with what follows the handler first, when it is set.
var measured func(r *http.Request, next caddyhttp.Handler)

// first stands before the pipeline.
type first struct{}

func (first) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.bench_first", New: func() caddy.Module { return new(first) }}
}

func (first) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if measured == nil {
		return next.ServeHTTP(w, r)
	}
	measured(r, next)
	return nil
}

// last does what durward_mcp does with a call, except for carrying it anywhere.
type last struct{}

func (last) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.bench_last", New: func() caddy.Module { return new(last) }}
}

func (last) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if _, name, ok := paths.ProxiedName(r.URL.Path); !ok || name == "" {
		return next.ServeHTTP(w, r)
	}
	call, ok := app.ProxiedCall(w, r)
	if !ok {
		return nil
	}
	in, ok := call.ReadInbound(w, r)
	if !ok {
		return nil
	}
	ctx, done := call.Streams().Open(r.Context(), in.Kind())
	defer done()
	if _, ended := streams.EndedFor(ctx); ended {
		w.WriteHeader(http.StatusServiceUnavailable)
		return nil
	}
	if _, err := call.Credentials.Credential(ctx); err != nil {
		w.WriteHeader(http.StatusForbidden)
		return nil
	}
	if err := call.Records().Intent(ctx); err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return nil
	}
	streams.Cancel(ctx)
	if tells, ok := ctx.(interface{ AfterFunc(func()) func() bool }); ok {
		defer tells.AfterFunc(func() {})() // as a connection to an upstream does
	}
	call.Records().Outcome("ok", http.StatusOK)
	w.WriteHeader(http.StatusOK)
	return nil
}

// BenchmarkCall measures the cost of a call between Caddy's routes and the forwarder: a policy that has a condition, a
// stored credential, the audit log.
func BenchmarkCall(b *testing.B) {
	g := newGateway(b)
	body := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"priority":1,"text":"0123456789012345678901234567890123456789"}}}`)
	measured = func(r *http.Request, next caddyhttp.Handler) {
		w := &answer{header: make(http.Header)}
		reader := bytes.NewReader(body)
		inner := &replaced{Context: r.Context()}
		r = r.WithContext(inner)
		r.Body = io.NopCloser(reader)
		b.ReportAllocs()
		for b.Loop() {
			reader.Reset(body)
			inner.replacer = caddy.NewEmptyReplacer() // it keeps the call
			if err := next.ServeHTTP(w, r); err != nil || w.status != http.StatusOK {
				b.Errorf("%d, %v: %s", w.status, err, w.body)
				return
			}
		}
	}
	b.Cleanup(func() { measured = nil })
	g.post("/mcp/tracker", body)
}

// replaced is a request's context with a replacer of its own for each call.
type replaced struct {
	context.Context
	replacer *caddy.Replacer
}

func (r *replaced) Value(key any) any {
	if key == caddy.ReplacerCtxKey {
		return r.replacer
	}
	return r.Context.Value(key)
}

// answer keeps what is answered, and can be used again.
type answer struct {
	header http.Header
	status int
	body   []byte
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(p []byte) (int, error) { a.body = append(a.body[:0], p...); return len(p), nil }

type gateway struct {
	*testing.B
	address, token string
}

// newGateway makes a gateway with a server to whose tools a rule with a condition gives access, and whose user is
// connected.
func newGateway(b *testing.B) *gateway {
	b.Helper()
	issuer := caddytest.NewIssuer(b)
	dir := caddytest.Directory(b)
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte(seal.NewMasterKey().Reveal()), 0o600); err != nil {
		b.Fatal(err)
	}
	var handlers []any
	for _, name := range []string{"durward_auth", "durward_limit", "durward_policy", "durward_credential", "bench_last", "durward_platform"} {
		handlers = append(handlers, caddytest.Named(name))
	}
	g := &gateway{B: b, address: caddytest.Address(b), token: issuer.Token("https://gate.example.com", object{"roles": []string{"admin"}, "groups": []string{"engineering"}})}
	if err := caddytest.Load(b, caddytest.Config(object{
		"public_url": "https://gate.example.com", "store": object{"driver": "sqlite", "path": filepath.Join(dir, "durward.db")},
		"master_key": []string{"{file." + key + "}"}, "identity": []any{object{"kind": "oidc", "issuer": issuer.URL}},
		"egress": object{"http": []string{"127.0.0.0/8"}}, "agents": object{"auto_register": true},
	}, g.address, caddytest.Named("bench_first"), object{"handler": "durward_pipeline", "handle": handlers})); err != nil {
		b.Fatal(err)
	}
	upstream := httptest.NewServer(http.NotFoundHandler())
	b.Cleanup(upstream.Close)
	entry := g.api("/api/server-directory", object{"name": "Tracker", "url": upstream.URL + "/mcp", "provider": "bearer_token", "requires_auth": true})
	server := g.api("/api/servers?test=false", object{"name": "Tracker", "mcp_server_directory_id": entry["id"]})
	g.api("/api/policy", object{"name": "p", "mcp_server_id": server["id"], "status": "ACTIVE", "rules": []any{
		object{"name": "minor calls", "authorized": true, "actions": []string{"tools/call:*"}, "condition": object{"match": object{"expr": "R.attr.priority < 5"}}},
	}})
	g.api("/api/servers/"+server["id"].(string)+"/connect", object{"token": "a-credential"})
	return g
}

func (g *gateway) api(path string, body object) object {
	g.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		g.Fatal(err)
	}
	status, answered := g.post(path, raw)
	out := object{}
	if err := json.Unmarshal(answered, &out); err != nil || status >= 300 {
		g.Fatalf("%s: %d %s", path, status, answered)
	}
	return out
}

func (g *gateway) post(path string, body []byte) (status int, answered []byte) {
	g.Helper()
	r, err := http.NewRequestWithContext(g.Context(), http.MethodPost, "http://"+g.address+path, bytes.NewReader(body))
	if err != nil {
		g.Fatal(err)
	}
	r.Host = "gate.example.com"
	r.Header.Set("Authorization", "Bearer "+g.token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		g.Fatal(err)
	}
	defer response.Body.Close()
	if answered, err = io.ReadAll(response.Body); err != nil {
		g.Fatal(err)
	}
	return response.StatusCode, answered
}
