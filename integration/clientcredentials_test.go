package integration

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// bookings is a server of a company that knows no users: it has an authorization server of its own, which gives tokens to
// clients for themselves.
type bookings struct {
	server *httptest.Server
	url    string // of the MCP endpoint

	mu      sync.Mutex
	issuer  string // in the metadata; "" is the server's own
	refusal string // the error code of the token endpoint
	lasts   int    // lifetime of tokens, in seconds
	serial  int
	forms   []url.Values
	good    string // the token that is accepted; "" is any of its own
	calls   []string
}

func newBookings(t testing.TB) *bookings {
	t.Helper()
	b := &bookings{lasts: 600}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{"resource": b.url, "authorization_servers": []string{b.named()}, "scopes_supported": []string{"book"}})
	})
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{
			"issuer": b.server.URL, "token_endpoint": b.server.URL + "/token", "grant_types_supported": []string{"client_credentials"}, "token_endpoint_auth_methods_supported": []string{"client_secret_basic", "private_key_jwt"},
		})
	})
	mux.HandleFunc("POST /token", b.serveToken)
	mux.HandleFunc("POST /mcp", b.serveCall)
	b.server = httptest.NewUnstartedServer(mux)
	b.server.Start()
	t.Cleanup(b.server.Close)
	b.url = b.server.URL + "/mcp"
	return b
}

func (b *bookings) named() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.issuer != "" {
		return b.issuer
	}
	return b.server.URL
}

func (b *bookings) serveToken(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	b.mu.Lock()
	defer b.mu.Unlock()
	if id, secret, ok := r.BasicAuth(); ok {
		r.PostForm.Set("client_id", id)
		r.PostForm.Set("client_secret", secret)
	}
	b.forms = append(b.forms, r.PostForm)
	if b.refusal != "" {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": b.refusal, "error_description": "you sent " + r.PostForm.Encode()})
		return
	}
	b.serial++
	writeJSON(w, http.StatusOK, map[string]any{"access_token": fmt.Sprint("booked-canary-", b.serial), "token_type": "Bearer", "expires_in": b.lasts, "refresh_token": "never-canary"})
}

func (b *bookings) serveCall(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	b.mu.Lock()
	b.calls = append(b.calls, token)
	accepted := strings.HasPrefix(token, "booked-canary-") && (b.good == "" || token == b.good)
	b.mu.Unlock()
	if !accepted {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var message json.RawMessage
	_ = json.NewDecoder(r.Body).Decode(&message)
	answerTo(w, message, `{"content":[{"type":"text","text":"done"}]}`)
}

// set changes the server, and forgets what it was asked until now.
func (b *bookings) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forms, b.calls = nil, nil
	change()
}

// asked returns the forms that came to the token endpoint.
func (b *bookings) asked(t *testing.T, want int) []url.Values {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.forms) != want {
		t.Errorf("%d token requests, want %d: %v", len(b.forms), want, b.forms)
	}
	return b.forms
}

func (b *bookings) tokens() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.forms)
}

// bookingServer makes a server whose tokens the gateway gets for itself.
func (g *gateway) bookingServer(url string) server {
	g.t.Helper()
	s := g.createServer(url, map[string]any{"provider": "client_credentials", "requires_auth": true})
	if s.Status != "pending" {
		g.t.Errorf("a server without a client is %s", s.Status)
	}
	g.api(g.token(admin), http.MethodPut, "/api/servers/"+s.ID, map[string]any{"client_id": "bookings-client", "client_secret": "service-secret-canary"})
	return s
}

// entryOf returns the id of a server's directory entry.
func (g *gateway) entryOf(s server) string {
	g.t.Helper()
	var entry struct {
		ID string `json:"mcp_server_directory_id"`
	}
	g.api(g.token(admin), http.MethodGet, "/api/servers/"+s.ID, nil).decode(g.t, &entry)
	return entry.ID
}

// TestClientCredentials checks that everybody whom policies let reaches a server as the organization's own client there, that
// its token is got once for all of them, and that its secret reaches nobody else.
func TestClientCredentials(t *testing.T) {
	t.Parallel()
	v := newVoucher(t)
	g := startGateway(t, settings{provider: v.identityProvider, identity: "login_client " + loginClient, option: approvalConsole, site: "log"})
	up := newBookings(t)
	call := func(t *testing.T, token string, s server, wants string) {
		t.Helper()
		if a := g.callTool(token, s, "", "echo"); a.status != http.StatusOK || !strings.Contains(string(a.body), wants) {
			t.Errorf("status %d, body %s, want %q", a.status, a.body, wants)
		}
	}
	const done = `"text":"done"`
	der, err := x509.MarshalPKCS8PrivateKey(newECKey(t))
	if err != nil {
		t.Fatal(err)
	}
	key, assertion := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), ""

	t.Run("one token for all", func(t *testing.T) {
		s := g.bookingServer(up.url)
		up.set(func() {})
		key, _ := g.makeKey(g.consoleToken(alice), "mcp")
		tokens := []string{g.token(alice), g.token(bob), key}
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() { call(t, tokens[i%len(tokens)], s, done) })
		}
		all.Wait()
		form := up.asked(t, 1)[0]
		for name, want := range map[string]string{
			"grant_type": "client_credentials", "client_id": "bookings-client", "client_secret": "service-secret-canary", "scope": "book", "resource": up.url,
		} {
			if form.Get(name) != want {
				t.Errorf("%s is %q, want %q", name, form.Get(name), want)
			}
		}
		if got := g.connection(tokens[0], s); got != "connected" {
			t.Errorf("the connection is %s", got)
		}
		var test struct {
			Error string `json:"error"`
		}
		g.api(g.token(admin), http.MethodPost, "/api/servers/"+s.ID+"/test", map[string]any{}).decode(t, &test)
		if test.Error == "credential_refused" || test.Error == "credential_demanded" {
			t.Errorf("the test says %s", test.Error)
		}
		theirs := g.callTool(g.token(eve), s, "", "echo")
		theirs.wantError(t, http.StatusNotFound, "ServerNotFound")
		up.asked(t, 1)

		// A changed secret makes the former token useless.
		g.api(g.token(admin), http.MethodPut, "/api/servers/"+s.ID, map[string]any{"client_secret": "service-secret-canary-2"})
		call(t, tokens[0], s, done)
		if form := up.asked(t, 2)[1]; form.Get("client_secret") != "service-secret-canary-2" {
			t.Error("the former secret is sent")
		}
	})
	t.Run("a token that ends, and one that is refused", func(t *testing.T) {
		s := g.bookingServer(up.url)
		up.set(func() { up.lasts = 1 })
		call(t, g.token(alice), s, done)
		up.set(func() { up.lasts = 600 })
		raw := g.token(alice)
		for deadline := time.Now().Add(30 * time.Second); up.tokens() == 0 && time.Now().Before(deadline); {
			call(t, raw, s, done)
		}
		up.asked(t, 1)
		up.set(func() { up.good = fmt.Sprint("booked-canary-", up.serial+1) })
		call(t, g.token(alice), s, done) // after a 401, with the next token
		call(t, g.token(bob), s, done)
		up.asked(t, 1)
		up.set(func() { up.good = "none" })
		for range 3 {
			call(t, g.token(alice), s, "the server does not accept the token that its authorization server gives the gateway")
		}
		up.asked(t, 0) // the last one came just now
		up.set(func() { up.good = "" })
	})
	t.Run("an authorization server that refuses", func(t *testing.T) {
		for code, says := range map[string]string{
			"invalid_client": "does not accept the server's OAuth client", "invalid_grant": "refuses the gateway a token for this server",
			"invalid_scope": "does not give the scopes of this server", "invalid_target": "gives no tokens for this server",
		} {
			s := g.bookingServer(up.url)
			up.set(func() { up.refusal = code })
			for range 3 {
				call(t, g.token(alice), s, says)
				g.send(http.MethodPost, s.path, g.token(bob), pingMessage, mcpHeader("")...).wantError(t, http.StatusForbidden, "Forbidden")
			}
			want := 1
			if code == "invalid_client" {
				want = 2 // the secret is tried in either place
			}
			up.asked(t, want)
			up.set(func() { up.refusal = "" })
		}
	})
	t.Run("a key", func(t *testing.T) {
		s := g.bookingServer(up.url)
		g.api(g.token(admin), http.MethodPut, "/api/servers/"+s.ID, map[string]any{"client_private_key": key})
		g.send(http.MethodPut, "/api/servers/"+s.ID, g.token(admin), map[string]any{"client_private_key": key + key}).want(t, http.StatusUnprocessableEntity)
		up.set(func() {})
		call(t, g.token(alice), s, done)
		form := up.asked(t, 1)[0]
		if strings.Count(form.Get("client_assertion"), ".") != 2 || form.Has("client_secret") || form.Get("client_id") != "bookings-client" {
			t.Errorf("the client proves itself by %v", form)
		}
		assertion = form.Get("client_assertion")
	})
	t.Run("elsewhere", func(t *testing.T) {
		thief := newBookings(t)
		s := g.bookingServer(up.url)
		up.set(func() {})
		call(t, g.token(alice), s, done)
		entry := g.entryOf(s)
		for name, change := range map[string]map[string]any{
			"url": {"url": thief.url}, "events_url": {"events_url": thief.server.URL + "/events"}, "issuer": {"oauth": map[string]any{"issuer": thief.server.URL}},
			"token_endpoint": {"oauth": map[string]any{"token_endpoint": thief.server.URL + "/token"}},
		} {
			g.api(g.token(admin), http.MethodPut, "/api/server-directory/"+entry, change)
			call(t, g.token(alice), s, "another one than before")
			call(t, g.token(bob), s, "an administrator must look at this server first")
			if status := g.statusOf(s); status != "error" {
				t.Errorf("%s: the server is %s", name, status)
			}
			g.api(g.token(admin), http.MethodPut, "/api/server-directory/"+entry, map[string]any{"url": up.url, "events_url": "", "oauth": map[string]any{}})
			call(t, g.token(alice), s, done) // back again
		}
		// The upstream itself names another authorization server, when the next token is due.
		up.set(func() { up.issuer, up.good = thief.server.URL, "none" })
		g.api(g.token(admin), http.MethodPut, "/api/server-directory/"+entry, map[string]any{"scopes": []string{"other"}})
		call(t, g.token(alice), s, "another one than before")
		thief.asked(t, 0)
		if len(thief.calls) != 0 {
			t.Errorf("the thief was called: %v", thief.calls)
		}
		// An administrator who enters the client anew says that it is meant for that place.
		up.set(func() { up.good = "" })
		g.api(g.token(admin), http.MethodPut, "/api/servers/"+s.ID, map[string]any{"client_id": "bookings-client", "client_secret": "service-secret-canary-3"})
		call(t, g.token(alice), s, done)
		if form := thief.asked(t, 1)[0]; form.Get("client_secret") != "service-secret-canary-3" {
			t.Error("the former secret is sent")
		}
		up.set(func() { up.issuer = "" })
	})
	secrets := []string{"booked-canary-", "service-secret-canary", "never-canary", strings.Split(key, "\n")[1], assertion}
	log := g.Output.String()
	audit := string(g.api(g.token(admin), http.MethodGet, "/api/audit?limit=100", nil).body)
	if !strings.Contains(log, "getting a token for the gateway itself") || !strings.Contains(audit, `"service_account":true`) {
		t.Errorf("the log lacks the refusals, or the audit log in whose name calls were made: %s", tail(audit, 2_000))
	}
	g.unseen(log, audit, secrets)
}

// statusOf returns a server's status.
func (g *gateway) statusOf(s server) string {
	g.t.Helper()
	var now server
	g.api(g.token(admin), http.MethodGet, "/api/servers/"+s.ID, nil).decode(g.t, &now)
	return now.Status
}
