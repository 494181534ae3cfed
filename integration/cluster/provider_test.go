package cluster

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// provider is an OAuth provider that rotates refresh tokens and ends a grant whose used token comes again (RFC 9700
// section 4.14), and the MCP server that demands its tokens. Nobody is asked for consent.
type provider struct {
	t      testing.TB
	server *httptest.Server

	mu      sync.Mutex
	codes   map[string]bool
	access  map[string]time.Time // until when
	refresh map[string]*grant
	life    time.Duration // of the next connection's access token; refreshed ones live for an hour
	// answering, when set, runs when the provider has prepared its answer to a refresh, and answered when the answer has
	// been sent.
	answering, answered func()
	// tolerant reports that a refresh token that was just used gets the same answer again.
	tolerant  bool
	refreshes int // that gave tokens
	reused    int // used tokens that came again
	families  int // grants that were ended for it
	refused   int // calls with a token that is not good
}

// grant holds the tokens of a user's login.
type grant struct {
	current string
	last    members // the answer that gave current
	over    bool
}

func newProvider(t testing.TB) *provider {
	t.Helper()
	p := &provider{t: t, codes: make(map[string]bool), access: make(map[string]time.Time), refresh: make(map[string]*grant), life: time.Hour}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, members{"resource": p.url() + "/mcp", "authorization_servers": []string{p.url()}})
	})
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, members{
			"issuer": p.url(), "authorization_endpoint": p.url() + "/authorize", "token_endpoint": p.url() + "/token",
			"registration_endpoint": p.url() + "/register", "response_types_supported": []string{"code"},
			"code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"client_secret_post"},
			"authorization_response_iss_parameter_supported": true,
		})
	})
	mux.HandleFunc("POST /register", func(w http.ResponseWriter, r *http.Request) {
		var asked members
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		asked["client_id"], asked["client_secret"], asked["client_secret_expires_at"] = "client-"+rand.Text(), rand.Text(), 0
		asked["token_endpoint_auth_method"] = "client_secret_post"
		writeJSON(w, http.StatusCreated, asked)
	})
	mux.HandleFunc("GET /authorize", p.serveAuthorize)
	mux.HandleFunc("POST /token", p.serveToken)
	mux.HandleFunc("/mcp", p.serveMCP)
	p.server = httptest.NewUnstartedServer(mux) // the handlers ask it for its address
	p.server.Start()
	t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
	})
	return p
}

func (p *provider) url() string { return p.server.URL }

func (p *provider) serveAuthorize(w http.ResponseWriter, r *http.Request) {
	query, code := r.URL.Query(), rand.Text()
	p.mu.Lock()
	p.codes[code] = true
	p.mu.Unlock()
	back := url.Values{"code": {code}, "state": {query.Get("state")}, "iss": {p.url()}}
	http.Redirect(w, r, query.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (p *provider) serveToken(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	answer, before, after := p.tokens(r.PostForm)
	if before != nil {
		before()
	}
	if answer == nil {
		writeJSON(w, http.StatusBadRequest, members{"error": "invalid_grant"})
		return
	}
	writeJSON(w, http.StatusOK, answer)
	if after != nil {
		_ = http.NewResponseController(w).Flush()
		after()
	}
}

// tokens returns the answer to a request for tokens; nil: it is refused.
func (p *provider) tokens(form url.Values) (answer members, before, after func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if code := form.Get("code"); p.codes[code] {
		delete(p.codes, code)
		g := new(grant)
		p.give(g, p.life)
		return g.last, nil, nil
	}
	token := form.Get("refresh_token")
	g := p.refresh[token]
	switch {
	case g == nil || g.over:
		return nil, nil, nil
	case g.current == token:
		p.refreshes++
		p.give(g, time.Hour)
		before, after = p.answering, p.answered
		p.answering, p.answered = nil, nil
		return g.last, before, after
	}
	p.reused++
	if p.tolerant {
		return g.last, nil, nil
	}
	p.families++
	g.over = true
	return nil, nil, nil
}

// give makes the tokens of a grant. It is called with the lock held.
func (p *provider) give(g *grant, life time.Duration) {
	access := rand.Text()
	g.current = rand.Text()
	p.access[access] = time.Now().Add(life)
	p.refresh[g.current] = g
	g.last = members{"token_type": "Bearer", "access_token": access, "refresh_token": g.current, "expires_in": int(life / time.Second)}
}

// serveMCP demands a token that has not ended.
func (p *provider) serveMCP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	p.mu.Lock()
	until, known := p.access[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	good := known && time.Now().Before(until)
	if !good && known {
		p.refused++
	}
	p.mu.Unlock()
	if !good {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="invalid_token", resource_metadata=%q`, p.url()+"/.well-known/oauth-protected-resource/mcp"))
		writeJSON(w, http.StatusUnauthorized, members{"error": "invalid_token"})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":7,"result":{"content":[]}}`)
}

// counted holds the numbers of events since the last look.
type counted struct{ refreshes, reused, families, refused int }

func (p *provider) count() counted {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := counted{p.refreshes, p.reused, p.families, p.refused}
	p.refreshes, p.reused, p.families, p.refused = 0, 0, 0, 0
	return c
}

// set changes the provider.
func (p *provider) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// connect connects a user to a server of the provider's, as a browser would, with an access token of that life.
func (p *provider) connect(n *node, client *http.Client, token string, s server, life time.Duration) {
	p.t.Helper()
	p.set(func() { p.life = life })
	begun := n.api(client, token, http.MethodPost, "/api/servers/"+s.id+"/connect", members{})
	response, err := client.Get(begun["auth_url"].(string))
	if err != nil {
		p.t.Fatal(err)
	}
	_ = response.Body.Close()
	back, err := response.Location()
	if err != nil {
		p.t.Fatal(err)
	}
	if a := n.send(client, http.MethodGet, back.RequestURI(), "", nil); a.err != nil || a.status/100 > 3 {
		p.t.Fatalf("connecting: %v", a)
	}
}
