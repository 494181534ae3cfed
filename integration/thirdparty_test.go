package integration

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
)

// thirdParty is the service to which users connect: an OAuth provider that registers clients, and an MCP server with an
// event stream. The server demands the provider's tokens at /mcp and /events, and accepts all requests at /open. Nobody
// is asked for consent.
type thirdParty struct {
	t      testing.TB
	server *httptest.Server
	// draw makes secrets that nobody may guess: codes, tokens, client secrets, session ids.
	draw func(kind string) string

	mu            sync.Mutex
	codes         map[string]string // code: challenge's client
	access        map[string]bool
	refresh       map[string]bool
	registrations int
	documents     int           // fetches of metadata
	requests      []url.Values  // requests to the token endpoint
	seen          []http.Header // of requests at /open
	seenQuery     []url.Values
	streams       map[string]map[chan string]bool
	// tokenAnswer, when set, answers a token request instead; it reports whether it did.
	tokenAnswer func(w http.ResponseWriter, form url.Values) bool
	traits      traits
	clients     map[string]bool // that were registered and are not forgotten
	authorized  url.Values      // the last authorization request
	waiting     chan struct{}   // one value for each call of the tool wait that has begun
	release     chan struct{}   // closed: the tool wait answers
}

func newThirdParty(t testing.TB) *thirdParty {
	t.Helper()
	p := makeThirdParty(t)
	p.start(httptest.NewServer)
	return p
}

// start lets a third party serve.
func (p *thirdParty) start(serve func(http.Handler) *httptest.Server) {
	p.server = serve(p.handler())
	p.t.Cleanup(func() {
		p.server.CloseClientConnections() // streams that a failed test left open
		p.server.Close()
	})
}

func makeThirdParty(t testing.TB) *thirdParty {
	p := &thirdParty{
		t: t, draw: func(string) string { return rand.Text() },
		codes: map[string]string{}, access: map[string]bool{}, refresh: map[string]bool{}, streams: map[string]map[chan string]bool{}, clients: map[string]bool{},
		waiting: make(chan struct{}, 64), release: make(chan struct{}),
	}
	return p
}

func (p *thirdParty) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", p.serveResource)
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", p.serveMetadata)
	mux.HandleFunc("POST /register", p.serveRegister)
	mux.HandleFunc("GET /authorize", p.serveAuthorize)
	mux.HandleFunc("POST /token", p.serveToken)
	mux.HandleFunc("POST /revoke", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("/mcp", p.guarded(p.serveMCP))
	mux.HandleFunc("GET /events", p.guarded(p.serveEvents("events")))
	mux.HandleFunc("/open", p.noted(p.serveMCP))
	mux.HandleFunc("GET /open/events", p.noted(p.serveEvents("events")))
	return mux
}

func (p *thirdParty) url() string { return p.server.URL }

func (p *thirdParty) endpoints() map[string]any {
	return map[string]any{
		"issuer": p.url(), "resource": p.url() + "/mcp", "authorization_endpoint": p.url() + "/authorize", "token_endpoint": p.url() + "/token",
		"registration_endpoint": p.url() + "/register", "revocation_endpoint": p.url() + "/revoke",
	}
}

func (p *thirdParty) serveResource(w http.ResponseWriter, _ *http.Request) {
	p.count(&p.documents)
	writeJSON(w, http.StatusOK, map[string]any{"resource": p.url() + "/mcp", "authorization_servers": []string{p.url()}})
}

func (p *thirdParty) serveMetadata(w http.ResponseWriter, _ *http.Request) {
	p.count(&p.documents)
	metadata := p.endpoints()
	delete(metadata, "resource")
	for name, value := range map[string]any{
		"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
		"token_endpoint_auth_methods_supported": []string{"client_secret_post"}, "authorization_response_iss_parameter_supported": true,
	} {
		metadata[name] = value
	}
	writeJSON(w, http.StatusOK, metadata)
}

func (p *thirdParty) serveRegister(w http.ResponseWriter, r *http.Request) {
	p.count(&p.registrations)
	var asked map[string]any
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": "invalid_client_metadata"})
		return
	}
	asked["client_id"] = "client-" + rand.Text()
	asked["client_secret"] = p.draw("registered client secret")
	asked["registration_access_token"] = p.draw("registration access token")
	asked["client_secret_expires_at"] = 0
	asked["token_endpoint_auth_method"] = "client_secret_post"
	p.mu.Lock()
	p.clients[asked["client_id"].(string)] = true
	p.mu.Unlock()
	writeJSON(w, http.StatusCreated, asked)
}

func (p *thirdParty) serveAuthorize(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	code := p.draw("authorization code")
	p.mu.Lock()
	p.codes[code] = query.Get("client_id")
	p.authorized = query
	back := p.traits.authorize(query)
	p.mu.Unlock()
	if back == nil {
		back = url.Values{"code": {code}}
	}
	back.Set("state", query.Get("state"))
	back.Set("iss", p.url())
	http.Redirect(w, r, query.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (p *thirdParty) serveToken(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": "invalid_request"})
		return
	}
	id, secret, inHeader := r.BasicAuth()
	if inHeader { // form-encoded before (RFC 6749 section 2.3.1)
		id, _ = url.QueryUnescape(id)
		secret, _ = url.QueryUnescape(secret)
		r.PostForm.Set("client_id", id)
		r.PostForm.Set("client_secret", secret)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, r.PostForm)
	if code := p.traits.refuses(r.PostForm, inHeader, p.clients); code != "" {
		status := http.StatusBadRequest
		if code == "invalid_client" {
			status = http.StatusUnauthorized
		}
		writeJSON(w, status, map[string]string{"error": code})
		return
	}
	if p.tokenAnswer != nil && p.tokenAnswer(w, r.PostForm) {
		return
	}
	code, refresh := r.PostForm.Get("code"), r.PostForm.Get("refresh_token")
	switch {
	case r.PostForm.Get("grant_type") == "authorization_code" && p.codes[code] == r.PostForm.Get("client_id"):
		delete(p.codes, code)
	case r.PostForm.Get("grant_type") == "refresh_token" && p.refresh[refresh]:
		delete(p.refresh, refresh)
	default:
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}
	p.traits.write(w, p.newTokens())
}

// newTokens makes new tokens. It is called with the lock held.
func (p *thirdParty) newTokens() map[string]any {
	access, refresh := p.draw("access token"), p.draw("refresh token")
	p.access[access], p.refresh[refresh] = true, true
	return map[string]any{"token_type": "Bearer", "access_token": access, "refresh_token": refresh, "expires_in": 3600}
}

// forgetAccess ends all access tokens; refresh tokens stay good.
func (p *thirdParty) forgetAccess() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.access)
}

func (p *thirdParty) setTokenAnswer(answer func(w http.ResponseWriter, form url.Values) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tokenAnswer = answer
}

// counts returns the numbers of registrations of clients and of fetches of metadata.
func (p *thirdParty) counts() (registrations, documents int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.registrations, p.documents
}

func (p *thirdParty) count(counter *int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*counter++
}

// guarded demands a token of this party. The refusal repeats the token, as careless servers do.
func (p *thirdParty) guarded(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		p.mu.Lock()
		good := p.access[token]
		p.mu.Unlock()
		if !good {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="invalid_token", error_description="not good: %s", resource_metadata=%q`,
				token, p.url()+"/.well-known/oauth-protected-resource/mcp"))
			writeJSON(w, http.StatusUnauthorized, map[string]string{"error": "invalid_token", "error_description": "not good: " + token})
			return
		}
		next(w, r)
	}
}

// noted remembers the headers and the query of a request.
func (p *thirdParty) noted(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.seen, p.seenQuery = append(p.seen, r.Header.Clone()), append(p.seenQuery, r.URL.Query())
		p.mu.Unlock()
		next(w, r)
	}
}

// lastSeen returns the headers and the query of the last request to /open.
func (p *thirdParty) lastSeen() (http.Header, url.Values) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.seen) == 0 {
		p.t.Fatal("nothing came to the third party")
	}
	return p.seen[len(p.seen)-1], p.seenQuery[len(p.seenQuery)-1]
}

// reached returns the number of requests that have come to a third party's /open.
func reached(p *thirdParty) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.seen)
}

// serveMCP speaks as much MCP as the tests need, in revisions with sessions. Tools: echo answers; wait answers once the
// party is told to; stream answers with events that the test publishes; page answers like a broken proxy.
func (p *thirdParty) serveMCP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet:
		p.serveEvents("get")(w, r)
		return
	case http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
		return
	}
	var message struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Name string `json:"name"`
		} `json:"params"`
	}
	if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if message.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	result := map[string]any{"content": []any{map[string]string{"type": "text", "text": "done"}}}
	switch {
	case message.Method == "initialize":
		w.Header().Set("Mcp-Session-Id", p.draw("upstream session id"))
		result = map[string]any{
			"protocolVersion": "2025-11-25", "capabilities": map[string]any{"tools": map[string]any{}},
			"serverInfo": map[string]string{"name": "third party", "version": "1"},
		}
	case message.Params.Name == "wait":
		p.waiting <- struct{}{}
		select {
		case <-p.release:
		case <-r.Context().Done():
			return
		}
	case message.Params.Name == "stream":
		p.serveEvents("post")(w, r)
		return
	case message.Params.Name == "page":
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, "<html>Bad gateway for "+r.Header.Get("Authorization")+"</html>")
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"jsonrpc": "2.0", "id": message.ID, "result": result})
}

// serveEvents answers with a stream of the events that the test publishes under a name.
func (p *thirdParty) serveEvents(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		frames := make(chan string, 64)
		p.mu.Lock()
		if p.streams[name] == nil {
			p.streams[name] = map[chan string]bool{}
		}
		p.streams[name][frames] = true
		p.mu.Unlock()
		defer func() {
			p.mu.Lock()
			delete(p.streams[name], frames)
			p.mu.Unlock()
		}()
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		out := http.NewResponseController(w)
		for out.Flush() == nil {
			select {
			case frame := <-frames:
				_, _ = io.WriteString(w, frame)
			case <-r.Context().Done():
				return
			}
		}
	}
}

// publish sends an event to every open stream of a name and returns how many there are.
func (p *thirdParty) publish(name, event, data string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for frames := range p.streams[name] {
		frames <- "event: " + event + "\ndata: " + data + "\n\n"
	}
	return len(p.streams[name])
}

// connectOAuth connects a caller to a server as a browser would, and returns the gateway's answer to the callback.
func (g *gateway) connectOAuth(token string, s server) answer {
	g.t.Helper()
	return g.callback(g.authorize(g.beginConnect(token, s)))
}

// beginConnect returns the provider's address that the gateway sends a user to.
func (g *gateway) beginConnect(token string, s server) string {
	g.t.Helper()
	var begun struct {
		AuthURL string `json:"auth_url"`
	}
	g.api(token, http.MethodPost, "/api/servers/"+s.ID+"/connect", map[string]any{}).decode(g.t, &begun)
	return begun.AuthURL
}

// authorize asks the provider, and returns the address at the gateway that it sends the browser back to.
func (g *gateway) authorize(address string) *url.URL {
	g.t.Helper()
	response, err := newClient(g.t).Get(address)
	if err != nil {
		g.t.Fatal(err)
	}
	defer response.Body.Close()
	back, err := response.Location()
	if err != nil {
		g.t.Fatalf("the provider answers %s: %v", response.Status, err)
	}
	return back
}

// callback goes where the provider sent the browser.
func (g *gateway) callback(back *url.URL) answer {
	g.t.Helper()
	if !strings.HasPrefix(back.String(), g.url+"/") {
		g.t.Fatalf("the provider sends the browser to %s", back)
	}
	return g.send(http.MethodGet, back.RequestURI(), "", nil)
}

// initialize begins an MCP session and returns its id.
func (g *gateway) initialize(token string, s server) string {
	g.t.Helper()
	a := g.mcp(token, s, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	return a.want(g.t, http.StatusOK).header.Get("Mcp-Session-Id")
}

// callTool calls a tool without arguments.
func (g *gateway) callTool(token string, s server, session, tool string) answer {
	g.t.Helper()
	return g.mcp(token, s, session, toolCall(tool))
}

func toolCall(tool string) string {
	return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"` + tool + `","arguments":{}}}`
}

// mcp posts a message to a server.
func (g *gateway) mcp(token string, s server, session, message string) answer {
	g.t.Helper()
	return g.send(http.MethodPost, s.path, token, message, mcpHeader(session)...)
}

func mcpHeader(session string) []string {
	header := []string{"Accept", "application/json, text/event-stream"}
	if session != "" {
		header = append(header, "Mcp-Session-Id", session, "MCP-Protocol-Version", "2025-11-25")
	}
	return header
}
