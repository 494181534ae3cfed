package world

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

// exchangedToken holds the claims of a token that came to the server.
type exchangedToken struct {
	Audience any    `json:"aud"`
	Subject  string `json:"sub"`
	Client   string `json:"client_id"`
	Issuer   string `json:"iss"`
}

// TestTokenExchangeOfOIDCProvider has oidc-provider exchange the proofs of users for tokens of a server: access tokens of its
// own for clients that log in there, and ID tokens for a client that logs in at the gateway.
func TestTokenExchangeOfOIDCProvider(t *testing.T) {
	lab(t)
	record(t, &row{
		section: identityProviders, software: "oidc-provider", version: version(t, "oidc-provider"), tried: "token exchange (RFC 8693) of its access tokens, and of ID tokens of logins at the gateway",
		remark: "The provider has no such grant. The lab registers one, as its documentation describes.",
	})
	issuerPort, upstreamPort := rig.FreePort(t), rig.FreePort(t)
	p := &provided{gate: "http://127.0.0.1:" + rig.FreePort(t), issuer: "http://127.0.0.1:" + issuerPort}
	const secret = "the-secret-of-payroll-in-the-lab" // #nosec G101 -- of this test alone
	g := p.guide(t,
		"  clients: [\n", "  clients: [\n    { client_id: 'payroll', client_secret: '"+secret+"', redirect_uris: [], response_types: [], grant_types: ['urn:ietf:params:oauth:grant-type:token-exchange'] },\n",
		"provider.listen(", "(await import('./exchange.mjs')).exchange(provider, issuer, gate);\nprovider.listen(")
	script, err := os.ReadFile("exchange.mjs")
	if err == nil {
		err = os.WriteFile(filepath.Join(g.directory, "exchange.mjs"), script, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	g.start([]string{loginSecret}, node(t), "provider.mjs").WaitForListener(t, "127.0.0.1:"+issuerPort)
	p.durward = g.gateway(p.gate)
	env, pages := []string{"GATE=" + p.gate, "ISSUER=" + p.issuer}, pagesOfOIDCProvider(p.gate)
	p.root = g.login(env, "root", pages.browse)
	alice := g.login(env, "alice", pages.browse)

	startNode(t, upstreamPort, []string{"PORT=" + upstreamPort}, module(t, "@modelcontextprotocol/server-everything/dist/index.js"), "streamableHttp")
	door := newPayrollDoor(t, "http://127.0.0.1:"+upstreamPort)
	entry := p.post(t, "/api/server-directory", object{"name": "Everything", "url": door.server.URL + "/mcp", "provider": "token_exchange", "audience": "payroll"})
	server := p.post(t, "/api/servers?test=false", object{"name": "Everything", "mcp_server_directory_id": entry, "client_id": "payroll", "client_secret": secret})
	p.post(t, "/api/policy", object{"name": "all", "mcp_server_id": server, "status": "ACTIVE", "rules": []any{object{"name": "all", "authorized": true}}})

	api(t, http.MethodPost, p.gate+"/mcp/everything", alice, object{
		"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": object{"protocolVersion": "2025-11-25", "capabilities": object{}, "clientInfo": object{"name": "lab", "version": "1"}},
	}, nil)
	if len(door.seen()) != 1 {
		t.Errorf("the server saw %d tokens", len(door.seen()))
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	plan := object{"url": p.gate + "/mcp/everything", "modules": filepath.Dir(module(t, "x")), "tool": "echo", "arguments": object{"message": "hello"}}
	got := newcomer{name: "sdk 1"}.contact(t, plan, func(address string) { pages.pass(t, &http.Client{Jar: jar}, address, "alice") })
	if !strings.Contains(got.Result, "Echo: hello") {
		t.Errorf("the client says %s\n%s", got.Result, rig.Tail(p.durward.Output.String(), 3_000))
	}
	if len(door.seen()) != 2 {
		t.Errorf("the server saw %d tokens", len(door.seen()))
	}
	for token, claims := range door.seen() {
		if claims.Audience != "payroll" || claims.Subject != "alice" || claims.Client != "payroll" || claims.Issuer != p.issuer || token == alice {
			t.Errorf("the server saw a token with %+v", claims)
		}
	}
}

// payrollDoor stands before a server, and notes the tokens that come.
type payrollDoor struct {
	server *httptest.Server
	mu     sync.Mutex
	tokens map[string]exchangedToken
}

func newPayrollDoor(t *testing.T, upstream string) *payrollDoor {
	t.Helper()
	to, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	d := &payrollDoor{tokens: map[string]exchangedToken{}}
	behind := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	d.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		var claims exchangedToken
		if parts := strings.Split(token, "."); len(parts) == 3 {
			if payload, err := base64.RawURLEncoding.DecodeString(parts[1]); err == nil {
				_ = json.Unmarshal(payload, &claims)
			}
		}
		d.mu.Lock()
		d.tokens[token] = claims
		d.mu.Unlock()
		behind.ServeHTTP(w, r)
	}))
	t.Cleanup(d.server.Close)
	t.Cleanup(d.server.CloseClientConnections)
	return d
}

func (d *payrollDoor) seen() map[string]exchangedToken {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := make(map[string]exchangedToken, len(d.tokens))
	for token, claims := range d.tokens {
		all[token] = claims
	}
	return all
}
