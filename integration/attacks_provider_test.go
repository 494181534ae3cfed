package integration

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// grantor is an OAuth provider with an MCP server, as strict as providers may be: it checks PKCE, redirect and resource,
// rotates refresh tokens and ends the grant of one that comes twice. Tests make it lie.
type grantor struct {
	t      testing.TB
	server *httptest.Server

	mu       sync.Mutex
	codes    map[string]url.Values // the authorization request
	access   map[string]*grantFamily
	refresh  map[string]*grantFamily
	spent    map[string]*grantFamily
	paths    []string     // of every request
	tokens   []url.Values // requests of the token endpoint
	revoked  []url.Values
	reuses   int
	calls    int // of /mcp with a token that is good
	rejected int // of /mcp with one that is not

	// Tests change these.
	metadata  map[string]any                                            // replaces members; nil removes
	resource  map[string]any                                            // the same for the resource's document
	challenge string                                                    // of /mcp; "" is the right one
	answer    func(w http.ResponseWriter, r *http.Request) bool         // instead of a token
	document  func(w http.ResponseWriter, r *http.Request) bool         // instead of metadata
	refuseAll bool                                                      // /mcp takes no token
	serve     func(w http.ResponseWriter, r *http.Request)              // instead of an empty result
	expiresIn any                                                       // nil: an hour
	revoke    func() bool                                               // whether the revocation endpoint is in order; nil: it is
	register  func(asked map[string]any) (status int, a map[string]any) // nil: registers
}

type grantFamily struct{ ended bool }

func newGrantor(t testing.TB) *grantor {
	t.Helper()
	p := &grantor{
		t: t, codes: map[string]url.Values{}, access: map[string]*grantFamily{}, refresh: map[string]*grantFamily{}, spent: map[string]*grantFamily{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", p.serveResource)
	mux.HandleFunc("/.well-known/", p.serveMetadata)
	mux.HandleFunc("/register", p.serveRegister)
	mux.HandleFunc("/token", p.serveToken)
	mux.HandleFunc("/revoke", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.revoke != nil && !p.revoke() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		p.revoked = append(p.revoked, r.PostForm)
	})
	mux.HandleFunc("/mcp", p.serveMCP)
	// The handlers ask it for its address.
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.paths = append(p.paths, r.URL.Path)
		p.mu.Unlock()
		mux.ServeHTTP(w, r)
	}))
	p.server.Start()
	t.Cleanup(p.server.Close)
	return p
}

// set changes what the provider does.
func (p *grantor) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// asked counts the requests of a path.
func (p *grantor) asked(path string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, each := range p.paths {
		if each == path {
			n++
		}
	}
	return n
}

// entry is for createServer: everything is discovered.
func (p *grantor) entry() map[string]any {
	return map[string]any{"provider": "oauth2", "requires_auth": true}
}

func (p *grantor) mcpURL() string { return p.server.URL + "/mcp" }

func replaced(document, changes map[string]any) map[string]any {
	maps.Copy(document, changes)
	maps.DeleteFunc(document, func(_ string, value any) bool { return value == nil })
	return document
}

func (p *grantor) serveResource(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.document != nil && p.document(w, r) {
		return
	}
	writeJSON(w, http.StatusOK, replaced(map[string]any{
		"resource": p.mcpURL(), "authorization_servers": []string{p.server.URL}, "scopes_supported": []string{"read"},
	}, p.resource))
}

func (p *grantor) serveMetadata(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.document != nil && p.document(w, r) {
		return
	}
	if r.URL.Path != "/.well-known/oauth-authorization-server" {
		http.NotFound(w, r)
		return
	}
	at := p.server.URL
	writeJSON(w, http.StatusOK, replaced(map[string]any{
		"issuer": at, "authorization_endpoint": at + "/authorize", "token_endpoint": at + "/token", "registration_endpoint": at + "/register",
		"revocation_endpoint": at + "/revoke", "response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
		"grant_types_supported": []string{"authorization_code", "refresh_token"}, "token_endpoint_auth_methods_supported": []string{"none", "client_secret_post"},
		"authorization_response_iss_parameter_supported": true, "scopes_supported": []string{"read", "write", "admin"},
	}, p.metadata))
}

func (p *grantor) serveRegister(w http.ResponseWriter, r *http.Request) {
	var asked map[string]any
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.register != nil {
		status, answer := p.register(asked)
		writeJSON(w, status, answer)
		return
	}
	asked["client_id"] = "client-" + rand.Text()
	asked["token_endpoint_auth_method"] = "none"
	writeJSON(w, http.StatusCreated, asked)
}

// consent plays the user's browser at the provider: it returns the query with which the provider sends the browser
// back.
func (p *grantor) consent(authURL string) url.Values {
	p.t.Helper()
	u, err := url.Parse(authURL)
	if err != nil {
		p.t.Fatal(err)
	}
	if want := p.server.URL + "/authorize"; !strings.HasPrefix(authURL, want+"?") {
		p.t.Fatalf("the browser is sent to %s", authURL)
	}
	query := u.Query()
	code := "code-" + rand.Text()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.codes[code] = query
	return url.Values{"code": {code}, "state": {query.Get("state")}, "iss": {p.server.URL}}
}

func (p *grantor) serveToken(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tokens = append(p.tokens, r.PostForm)
	if p.answer != nil && p.answer(w, r) {
		return
	}
	refuse := func() { writeJSON(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"}) }
	var family *grantFamily
	switch form := r.PostForm; form.Get("grant_type") {
	case "authorization_code":
		asked, ok := p.codes[form.Get("code")]
		digest := sha256.Sum256([]byte(form.Get("code_verifier")))
		if !ok || base64url(digest[:]) != asked.Get("code_challenge") || form.Get("redirect_uri") != asked.Get("redirect_uri") ||
			form.Get("client_id") != asked.Get("client_id") || form.Get("resource") != asked.Get("resource") {
			refuse()
			return
		}
		delete(p.codes, form.Get("code"))
		family = new(grantFamily)
	default:
		token := form.Get("refresh_token")
		if old := p.spent[token]; old != nil {
			old.ended = true
			p.reuses++
		}
		family = p.refresh[token]
		if family == nil || family.ended {
			refuse()
			return
		}
		delete(p.refresh, token)
		p.spent[token] = family
	}
	access, refresh := "access-"+rand.Text(), "refresh-"+rand.Text()
	p.access[access], p.refresh[refresh] = family, family
	expires := p.expiresIn
	if expires == nil {
		expires = 3600
	}
	writeJSON(w, http.StatusOK, map[string]any{"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": expires})
}

func (p *grantor) serveMCP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	family := p.access[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	good := family != nil && !family.ended && !p.refuseAll
	if good {
		p.calls++
	} else {
		p.rejected++
	}
	challenge, serve := p.challenge, p.serve
	p.mu.Unlock()
	if !good {
		if challenge == "" {
			challenge = `Bearer error="invalid_token", resource_metadata="` + p.server.URL + `/.well-known/oauth-protected-resource/mcp"`
		}
		w.Header().Set("WWW-Authenticate", challenge)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if serve != nil {
		serve(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}`))
}

// forgetAccess ends all access tokens; refresh tokens stay valid.
func (p *grantor) forgetAccess() { p.set(func() { clear(p.access) }) }

// attackConnect connects a caller to a server of the provider.
func (g *gateway) attackConnect(token string, s server, p *grantor) answer {
	g.t.Helper()
	return g.returnTo(p.consent(g.beginConnect(token, s)))
}

// returnTo sends the browser back with a query.
func (g *gateway) returnTo(query url.Values) answer {
	g.t.Helper()
	return g.send(http.MethodGet, "/api/oauth/callback?"+query.Encode(), "", nil)
}
