package integration

import (
	"bytes"
	"crypto"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// loginClient is the gateway's own client at an identity provider with logins.
const loginClient = "gateway-login"

// voucher is an identity provider that logs alice, or another person, in without a question, and exchanges its proofs of users for tokens of
// servers (RFC 8693).
type voucher struct {
	*identityProvider
	secrets []string // everything that nobody else may see

	mu        sync.Mutex
	nonces    map[string]string // by code
	refresh   string            // the refresh token that is good
	lifetime  time.Duration     // of ID tokens
	person    claims            // who is logged in; nil for alice
	renewals  int
	exchanged []url.Values
	// answer, when set, answers exchanges instead; it reports whether it did.
	answer func(w http.ResponseWriter, r *http.Request) bool
}

func newVoucher(t testing.TB) *voucher {
	t.Helper()
	v := &voucher{nonces: map[string]string{}, lifetime: time.Hour}
	v.identityProvider = &identityProvider{t: t, signers: map[string]crypto.Signer{kidES256: newECKey(t), kidRS256: newRSAKey(t)}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", v.serveMetadata)
	mux.HandleFunc("GET /jwks", v.serveKeys)
	mux.HandleFunc("GET /authorize", v.serveAuthorize)
	mux.HandleFunc("POST /token", v.serveToken)
	v.server = httptest.NewUnstartedServer(mux)
	v.server.Start()
	t.Cleanup(v.server.Close)
	return v
}

func (v *voucher) serveAuthorize(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	v.mu.Lock()
	defer v.mu.Unlock()
	code := fmt.Sprint("code-", len(v.nonces))
	v.nonces[code] = query.Get("nonce")
	back := url.Values{"code": {code}, "state": {query.Get("state")}, "iss": {v.issuer()}}
	http.Redirect(w, r, query.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (v *voucher) serveToken(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": "invalid_request"})
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	switch r.PostForm.Get("grant_type") {
	case "authorization_code":
		v.tokens(w, claims{"nonce": v.nonces[r.PostForm.Get("code")]})
	case "refresh_token":
		v.renewals++
		if r.PostForm.Get("refresh_token") != v.refresh {
			writeJSON(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
			return
		}
		v.tokens(w, claims{})
	default:
		v.exchange(w, r)
	}
}

// tokens answers with tokens of a login. It is called with the lock held.
func (v *voucher) tokens(w http.ResponseWriter, more claims) {
	v.refresh = fmt.Sprint("refresh-canary-", time.Now().UnixNano())
	now := time.Now()
	person := v.person
	if person == nil {
		person = alice
	}
	idToken := v.identityProvider.sign(person.with(claims{
		"iss": v.issuer(), "aud": loginClient, "iat": now.Unix(), "exp": now.Add(v.lifetime).Unix(),
	}).with(more), map[string]any{"alg": "ES256", "typ": "JWT", "kid": kidES256})
	v.secrets = append(v.secrets, v.refresh, idToken)
	writeJSON(w, http.StatusOK, map[string]any{"access_token": "opaque", "token_type": "Bearer", "expires_in": 60, "id_token": idToken, "refresh_token": v.refresh})
}

// exchange answers a token exchange. It is called with the lock held.
func (v *voucher) exchange(w http.ResponseWriter, r *http.Request) {
	if id, secret, ok := r.BasicAuth(); ok {
		r.PostForm.Set("client_id", id)
		r.PostForm.Set("client_secret", secret)
	}
	v.exchanged = append(v.exchanged, r.PostForm)
	if answer := v.answer; answer != nil {
		v.mu.Unlock()
		done := answer(w, r)
		v.mu.Lock()
		if done {
			return
		}
	}
	token := fmt.Sprintf("exchanged-canary-%s-%d", r.PostForm.Get("audience"), len(v.exchanged))
	v.secrets = append(v.secrets, token)
	writeJSON(w, http.StatusOK, map[string]any{
		"access_token": token, "token_type": "bearer", "issued_token_type": "urn:ietf:params:oauth:token-type:access_token", "expires_in": 600, "refresh_token": "never-canary",
	})
}

// set changes the provider, and forgets the exchanges until now.
func (v *voucher) set(change func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.exchanged, v.renewals = nil, 0
	change()
}

func (v *voucher) seen() (exchanges []url.Values, renewals int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]url.Values(nil), v.exchanged...), v.renewals
}

// payroll is an upstream that notes the tokens that it is sent, and refuses some of them.
type payroll struct {
	*upstream
	mu      sync.Mutex
	tokens  []string
	refuses func(token string) bool
	scope   bool // it asks for a wider scope
}

func newPayroll(t testing.TB) *payroll {
	t.Helper()
	p := new(payroll)
	p.upstream = newUpstream(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		p.mu.Lock()
		p.tokens = append(p.tokens, token)
		refused, scope := p.refuses != nil && p.refuses(token), p.scope
		p.mu.Unlock()
		if scope {
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="admin"`)
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if refused {
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token", error_description="`+token+`"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		answerTo(w, body, `{"content":[{"type":"text","text":"done"}]}`)
	})
	return p
}

func (p *payroll) sent() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.tokens...)
}

// exchangingServer makes a server whose tokens come of a token exchange for an audience.
func (g *gateway) exchangingServer(up *payroll, audience string, changes map[string]any) server {
	g.t.Helper()
	entry := map[string]any{"provider": "token_exchange", "requires_auth": true, "audience": audience, "scopes": []string{"read", "write"}}
	for member, value := range changes {
		entry[member] = value
	}
	s := g.createServer(up.url, entry)
	if s.Status != "pending" {
		g.t.Errorf("a server without a client is %s", s.Status)
	}
	g.api(g.token(admin), http.MethodPut, "/api/servers/"+s.ID, map[string]any{"client_id": "payroll-client", "client_secret": "client-secret-canary"})
	return s
}

// TestTokenExchange checks that users reach a server without connecting an account, with tokens that their identity
// provider gives for them, and that their own tokens reach nobody else.
func TestTokenExchange(t *testing.T) {
	t.Parallel()
	v := newVoucher(t)
	g := startGateway(t, settings{provider: v.identityProvider, identity: "login_client " + loginClient, option: approvalConsole, site: "log"})
	up := newPayroll(t)
	callers := []string{}
	token := func(c claims) string {
		raw := g.token(c)
		callers = append(callers, raw)
		return raw
	}
	call := func(t *testing.T, token string, s server, wants string) {
		t.Helper()
		if a := g.callTool(token, s, "", "echo"); a.status != http.StatusOK || !strings.Contains(string(a.body), wants) {
			t.Errorf("status %d, body %s, want %q", a.status, a.body, wants)
		}
	}
	exchanges := func(t *testing.T, want int) (last url.Values) {
		t.Helper()
		all, _ := v.seen()
		if len(all) != want {
			t.Errorf("%d exchanges, want %d", len(all), want)
		}
		if len(all) == 0 {
			return nil
		}
		return all[len(all)-1]
	}
	const done = `"text":"done"`

	t.Run("a token of the identity provider", func(t *testing.T) {
		v.set(func() {})
		s := g.exchangingServer(up, "payroll", nil)
		raw := token(alice)
		for range 3 {
			call(t, raw, s, done)
		}
		form := exchanges(t, 1)
		for name, want := range map[string]string{
			"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "subject_token": raw, "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
			"requested_token_type": "urn:ietf:params:oauth:token-type:access_token", "audience": "payroll", "scope": "read write", "client_id": "payroll-client",
			"client_secret": "client-secret-canary", "resource": "",
		} {
			if form.Get(name) != want {
				t.Errorf("%s is %q, want %q", name, form.Get(name), want)
			}
		}
		if got := g.connection(raw, s); got != "connected" {
			t.Errorf("the connection is %s", got)
		}
		call(t, token(alice), s, done)
		exchanges(t, 2) // another token is another proof

		// A changed entry or client makes the former token useless.
		var entry struct {
			ID string `json:"mcp_server_directory_id"`
		}
		g.api(g.token(admin), http.MethodGet, "/api/servers/"+s.ID, nil).decode(t, &entry)
		g.api(g.token(admin), http.MethodPut, "/api/server-directory/"+entry.ID, map[string]any{"audience": "payroll-2"})
		call(t, raw, s, done)
		if form := exchanges(t, 3); form.Get("audience") != "payroll-2" {
			t.Errorf("the audience is %s", form.Get("audience"))
		}
		g.api(g.token(admin), http.MethodPut, "/api/servers/"+s.ID, map[string]any{"client_secret": "client-secret-canary-2"})
		call(t, raw, s, done)
		if form := exchanges(t, 4); form.Get("client_secret") != "client-secret-canary-2" {
			t.Error("the former secret is sent")
		}
		var test struct {
			Tools *int   `json:"tools"`
			Error string `json:"error"`
		}
		g.api(token(admin), http.MethodPost, "/api/servers/"+s.ID+"/test", map[string]any{}).decode(t, &test)
		if test.Error == "credential_refused" {
			t.Errorf("the test says %+v", test)
		}
		exchanges(t, 5)
	})
	t.Run("many calls at one moment", func(t *testing.T) {
		s := g.exchangingServer(up, "many", nil)
		raw := token(bob)
		v.set(func() {})
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { call(t, raw, s, done) })
		}
		all.Wait()
		exchanges(t, 1)
	})
	t.Run("a login at the gateway", func(t *testing.T) {
		s := g.exchangingServer(up, "login", nil)
		c := newOAuthClient(t, g.url, newLanding(t)+"/back")
		v.set(func() { v.lifetime = time.Hour })
		access := c.loggedIn(newPerson(t), "")
		call(t, access, s, done)
		call(t, access, s, done)
		form := exchanges(t, 1)
		if kind, subject := form.Get("subject_token_type"), form.Get("subject_token"); kind != "urn:ietf:params:oauth:token-type:id_token" || subject == access || strings.Count(subject, ".") != 2 {
			t.Errorf("the subject is a %s", kind)
		}

		// The ID token of the next login ends at once: it is renewed once, for servers and calls at one moment.
		v.set(func() { v.lifetime = 5 * time.Second })
		access = c.loggedIn(newPerson(t), "")
		other := g.exchangingServer(up, "other", nil)
		v.set(func() { v.lifetime = time.Hour })
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() { call(t, access, []server{s, other}[i%2], done) })
		}
		all.Wait()
		exchanges(t, 2)
		if _, renewals := v.seen(); renewals != 1 {
			t.Errorf("%d renewals", renewals)
		}

		// Where the provider does not renew, its user has to log in anew.
		v.set(func() { v.lifetime = 5 * time.Second })
		access = c.loggedIn(newPerson(t), "")
		v.set(func() { v.refresh = "" })
		a := g.callTool(access, s, "", "echo") // the end of the login may reach the call before the answer does
		if says := strings.Contains(string(a.body), "has ended your login. Log in anew with your client"); !says && a.status != http.StatusUnauthorized {
			t.Errorf("a login that the provider ends: %d %s", a.status, a.body)
		}
		exchanges(t, 0)
		v.set(func() { v.lifetime = time.Hour })
		g.callTool(access, s, "", "echo").want(t, http.StatusUnauthorized)
		call(t, c.loggedIn(newPerson(t), ""), s, done)
	})
	t.Run("no proof of the identity provider", func(t *testing.T) {
		s := g.exchangingServer(up, "keys", nil)
		key, _ := g.makeKey(g.consoleToken(alice), "mcp")
		v.set(func() {})
		call(t, key, s, "an API key proves nobody to the identity provider")
		g.send(http.MethodPost, s.path, key, pingMessage, mcpHeader("")...).wantError(t, http.StatusForbidden, "Forbidden")
		exchanges(t, 0)
		logins := g.exchangingServer(up, "logins", map[string]any{"subject_token_type": "id_token"})
		call(t, token(alice), logins, "only for clients whose user logs in at the gateway")
		exchanges(t, 0)
	})
	t.Run("a token that the server refuses", func(t *testing.T) {
		s := g.exchangingServer(up, "refused", nil)
		raw := token(alice)
		v.set(func() {})
		call(t, raw, s, done)
		up.mu.Lock()
		former := up.tokens[len(up.tokens)-1]
		up.refuses = func(token string) bool { return token == former }
		up.mu.Unlock()
		call(t, raw, s, done)
		call(t, raw, s, done)
		exchanges(t, 2)
		up.mu.Lock()
		up.refuses = func(token string) bool { return strings.Contains(token, "-refused-") }
		up.mu.Unlock()
		for range 3 {
			call(t, raw, s, "the server does not accept the token")
		}
		exchanges(t, 2) // the last one came just now
		up.mu.Lock()
		up.refuses, up.scope = nil, true
		up.mu.Unlock()
		call(t, raw, s, "An administrator must look at the scopes")
		up.mu.Lock()
		up.scope = false
		up.mu.Unlock()
	})
	t.Run("an identity provider that refuses", func(t *testing.T) {
		s := g.exchangingServer(up, "denied", nil)
		raw := token(bob)
		v.set(func() {
			v.answer = func(w http.ResponseWriter, r *http.Request) bool {
				writeJSON(w, http.StatusBadRequest, map[string]string{"error": "access_denied", "error_description": "you sent " + r.PostForm.Get("subject_token")})
				return true
			}
		})
		for range 3 {
			call(t, raw, s, "the identity provider refuses you a token for this server")
			g.send(http.MethodPost, s.path, raw, pingMessage, mcpHeader("")...).wantError(t, http.StatusForbidden, "Forbidden")
		}
		exchanges(t, 1)
		v.set(func() { v.answer = nil })
		call(t, token(bob), s, done)
	})
	t.Run("a token that opens the gateway", func(t *testing.T) {
		for audience, opens := range map[string]string{"everything": g.url, g.url + "/mcp/one": g.url + "/mcp/one"} {
			s := g.exchangingServer(up, audience, nil)
			v.set(func() {
				v.answer = func(w http.ResponseWriter, _ *http.Request) bool {
					writeJSON(w, http.StatusOK, map[string]any{"access_token": g.token(alice.with(claims{"aud": opens})), "token_type": "Bearer"})
					return true
				}
			})
			call(t, token(alice), s, "would open this gateway too")
			v.set(func() { v.answer = nil })
		}
	})
	t.Run("an identity provider that is away", func(t *testing.T) {
		for audience, answer := range map[string]func(w http.ResponseWriter, r *http.Request) bool{
			"down": func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusBadGateway); return true },
			"slow": func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true },
		} {
			s := g.exchangingServer(up, audience, nil)
			raw := token(bob)
			v.set(func() { v.answer = answer })
			for range 2 {
				a := g.callTool(raw, s, "", "echo").wantError(t, http.StatusServiceUnavailable, "Unavailable")
				if a.header.Get("Retry-After") == "" {
					t.Errorf("%s: nobody says when to come again", audience)
				}
			}
			exchanges(t, 1)
			v.set(func() { v.answer = nil })
		}
	})
	t.Run("another organization's administrator", func(t *testing.T) {
		thief := newVoucher(t)
		entry := map[string]any{"name": "Thief", "url": up.url, "provider": "token_exchange", "audience": "payroll"}
		for member, endpoints := range map[string]map[string]any{
			"issuer": {"issuer": thief.issuer()}, "token_endpoint": {"issuer": v.issuer(), "token_endpoint": thief.issuer() + "/token"},
		} {
			entry["oauth"] = endpoints
			a := g.send(http.MethodPost, "/api/server-directory", token(eve), entry).want(t, http.StatusUnprocessableEntity)
			if !strings.Contains(string(a.body), member) {
				t.Errorf("%s: %s", member, a.body)
			}
		}
		delete(entry, "oauth")
		var made, created struct {
			ID string `json:"id"`
		}
		g.api(token(eve), http.MethodPost, "/api/server-directory", entry).decode(t, &made)
		g.api(token(eve), http.MethodPost, "/api/servers?test=false", map[string]any{
			"name": "Thief", "slug": "thief", "mcp_server_directory_id": made.ID, "client_id": "payroll-client", "client_secret": "another-canary",
		}).decode(t, &created)
		g.allowAll(token(eve), created.ID)
		v.set(func() {})
		theirs := server{ID: created.ID, Slug: "thief", path: "/mcp/thief"}
		g.callTool(token(alice), theirs, "", "echo").wantError(t, http.StatusNotFound, "ServerNotFound")
		exchanges(t, 0)
		raw := token(eve)
		call(t, raw, theirs, done)
		if form := exchanges(t, 1); form.Get("subject_token") != raw || form.Get("client_secret") != "another-canary" {
			t.Error("another's proof, or another's client, is sent")
		}
		if all, _ := thief.seen(); len(all) != 0 {
			t.Errorf("the thief was asked %d times", len(all))
		}
	})
	for _, sent := range up.sent() {
		if !strings.HasPrefix(sent, "exchanged-canary-") {
			t.Errorf("the server was sent something else than a token of its own: %s", sent)
		}
	}
	checkUnseen(t, g, append(append(v.secrets, callers...), "client-secret-canary", "client-secret-canary-2", "another-canary", "never-canary"))
}

// checkUnseen checks that secrets stand neither in the log, nor in the audit log, nor in a file of the gateway's.
func checkUnseen(t *testing.T, g *gateway, secrets []string) {
	t.Helper()
	log := g.Output.String()
	audit := string(g.api(g.token(admin), http.MethodGet, "/api/audit?limit=100", nil).body)
	if !strings.Contains(log, "exchanging a token") || !json.Valid([]byte(audit)) || !strings.Contains(audit, `"vouched_by":"`+g.identity.issuer()+`"`) {
		t.Errorf("the log lacks the refusals, or the audit log who vouched: %s", tail(audit, 2_000))
	}
	g.unseen(log, audit, secrets)
}

// unseen checks that secrets stand neither in the log, nor in the audit log, nor in a file of the gateway's, which it stops.
func (g *gateway) unseen(log, audit string, secrets []string) {
	t := g.t
	t.Helper()
	g.stop(t)
	seen := map[string][]byte{"the log": []byte(log), "the audit log": []byte(audit)}
	err := filepath.WalkDir(g.directory, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		seen[path] = content
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for where, content := range seen {
		for _, secret := range secrets {
			// A JWT is long: its signature alone would be enough.
			if bytes.Contains(content, []byte(secret)) || strings.Count(secret, ".") == 2 && bytes.Contains(content, []byte(secret[strings.LastIndex(secret, ".")+1:])) {
				t.Errorf("%s shows %.40s...", where, secret)
			}
		}
	}
}
