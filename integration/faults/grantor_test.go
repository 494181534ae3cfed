package faults

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"testing"
)

// grantor is an OAuth provider with an MCP server that takes no token. It accepts every code, and remembers the tokens
// that it gave for it.
type grantor struct {
	server *httptest.Server

	mu    sync.Mutex
	given map[string][]string // tokens, by code
	told  []string            // which it was told to forget
	// hold, when set, makes revocations of the tokens of holding wait until it is closed, and end without effect.
	hold    chan struct{}
	holding []string      // tokens
	held    chan struct{} // one that waits is sent here, when there is room
}

func newGrantor(t testing.TB) *grantor {
	t.Helper()
	p := &grantor{given: make(map[string][]string)}
	mux := http.NewServeMux()
	p.server = httptest.NewServer(mux)
	at := p.server.URL
	answer := func(path string, status int, document func(r *http.Request) any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+at+`/.well-known/oauth-protected-resource/mcp"`)
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(document(r))
		})
	}
	answer("/mcp", http.StatusUnauthorized, func(*http.Request) any { return nil })
	answer("/.well-known/oauth-protected-resource/mcp", http.StatusOK, func(*http.Request) any {
		return members{"resource": at + "/mcp", "authorization_servers": []string{at}}
	})
	answer("/.well-known/oauth-authorization-server", http.StatusOK, func(*http.Request) any {
		return members{
			"issuer": at, "authorization_endpoint": at + "/authorize", "token_endpoint": at + "/token", "registration_endpoint": at + "/register",
			"revocation_endpoint": at + "/revoke", "response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
			"token_endpoint_auth_methods_supported": []string{"none"}, "authorization_response_iss_parameter_supported": true,
		}
	})
	answer("/register", http.StatusCreated, func(r *http.Request) any {
		var asked members
		_ = json.NewDecoder(r.Body).Decode(&asked) // what is no registration gets one all the same
		return members{"client_id": "client-" + rand.Text(), "token_endpoint_auth_method": "none", "redirect_uris": asked["redirect_uris"]}
	})
	answer("/token", http.StatusOK, p.token)
	mux.HandleFunc("/revoke", p.revoke)
	t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
	})
	return p
}

func (p *grantor) token(r *http.Request) any {
	access, refresh := "access-"+rand.Text(), "refresh-"+rand.Text()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.given[r.FormValue("code")] = []string{access, refresh}
	return members{"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": 3600}
}

func (p *grantor) revoke(w http.ResponseWriter, r *http.Request) {
	token := r.FormValue("token")
	p.mu.Lock()
	hold, held := p.hold, p.held
	if !slices.Contains(p.holding, token) {
		hold = nil
		p.told = append(p.told, token)
	}
	p.mu.Unlock()
	if hold == nil {
		return
	}
	select {
	case held <- struct{}{}:
	default:
	}
	<-hold
	w.WriteHeader(http.StatusServiceUnavailable)
}

// holdRevocations makes revocations of the tokens of some codes wait until release is called. From then on they take
// effect. Those of other codes take effect meanwhile: a revocation that was sent before a kill is sent again. held
// receives a value once one waits.
func (p *grantor) holdRevocations(codes []string) (held <-chan struct{}, release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	hold := make(chan struct{})
	p.hold, p.held, p.holding = hold, make(chan struct{}, 1), nil
	for _, code := range codes {
		p.holding = append(p.holding, p.given[code]...)
	}
	return p.held, func() {
		p.mu.Lock()
		p.hold, p.holding = nil, nil
		p.mu.Unlock()
		close(hold)
	}
}

// toldOf returns the number of tokens of a code that it was told to revoke.
func (p *grantor) toldOf(code string) (told int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, token := range p.given[code] {
		if slices.Contains(p.told, token) {
			told++
		}
	}
	return told
}

// connect connects a caller to a server of the provider, and returns the code that its tokens were given for.
func (p *grantor) connect(n *node, client *http.Client, token string, s server) string {
	n.site.t.Helper()
	var begun struct {
		URL string `json:"auth_url"`
	}
	n.must(client, http.MethodPost, "/api/servers/"+s.id+"/connect", token, members{}, &begun)
	asked, err := url.Parse(begun.URL)
	if err != nil {
		n.site.t.Fatal(err)
	}
	code := "code-" + rand.Text()
	back := url.Values{"state": {asked.Query().Get("state")}, "code": {code}, "iss": {p.server.URL}}
	if a := n.send(client, http.MethodGet, "/api/oauth/callback?"+back.Encode(), "", nil); a.status != http.StatusOK {
		n.site.t.Fatalf("connecting: %v", a)
	}
	return code
}
