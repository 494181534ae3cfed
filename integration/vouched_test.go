package integration

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

const typeAssertion = "urn:ietf:params:oauth:token-type:id-jag"

// asserter makes a voucher give identity assertions for clients at other authorization servers.
type asserter struct {
	*voucher
	// changes are made to an assertion's claims, and kind is its typ.
	changes claims
	kind    string
}

func newAsserter(t *testing.T) *asserter {
	t.Helper()
	a := &asserter{voucher: newVoucher(t), kind: "oauth-id-jag+jwt"}
	a.answer = func(w http.ResponseWriter, r *http.Request) bool {
		form := r.PostForm
		if form.Get("requested_token_type") != typeAssertion {
			return false
		}
		a.mu.Lock()
		kind, changes := a.kind, a.changes
		a.mu.Unlock()
		made := a.identityProvider.sign(a.identityProvider.complete(alice.with(claims{
			"client_id": "assistant", "azp": nil, "resource": form.Get("resource"), "exp": time.Now().Add(5 * time.Minute).Unix(),
		}).with(changes), form.Get("audience")), typed(kind))
		a.mu.Lock()
		a.secrets = append(a.secrets, made)
		a.mu.Unlock()
		writeJSON(w, http.StatusOK, map[string]any{"access_token": made, "issued_token_type": typeAssertion, "token_type": "N_A", "expires_in": 300})
		return true
	}
	return a
}

// TestVouchedFor has a gateway reach a server behind another gateway, whose authorization server takes the identity assertions
// of the company's identity provider: nobody connects an account.
func TestVouchedFor(t *testing.T) {
	t.Parallel()
	v := newAsserter(t)
	behind := startGateway(t, settings{
		provider: v.identityProvider, identity: "login_client durward\n\t\t\tid_jag", env: []string{"ASSISTANT_SECRET=vouched-secret-canary"}, option: `authorization_server on {
			oauth_client assistant {
				secret {env.ASSISTANT_SECRET}
				redirect_uri https://assistant.example.com/back
			}
		}`,
	})
	g := startGateway(t, settings{provider: v.identityProvider, identity: "login_client " + loginClient + "\n\t\t\tid_jag", option: approvalConsole, site: "log"})
	target := behind.createServer(answering(t).url, nil)
	at := behind.url + target.path
	make := func(t *testing.T, address string) server {
		t.Helper()
		s := g.createServer(address, map[string]any{"provider": "token_exchange", "requires_auth": true, "requested_token_type": "id-jag"})
		if s.Status != "pending" {
			t.Errorf("a server without a client is %s", s.Status)
		}
		g.api(g.token(admin), http.MethodPut, "/api/servers/"+s.ID, map[string]any{"client_id": "assistant", "client_secret": "vouched-secret-canary"})
		return s
	}
	call := func(t *testing.T, token string, s server, wants string) {
		t.Helper()
		if a := g.callTool(token, s, "", "echo"); a.status != http.StatusOK || !strings.Contains(string(a.body), wants) || wants == "" && refusedTool(a) {
			t.Errorf("status %d, body %s, want %q", a.status, a.body, wants)
		}
	}
	c := newOAuthClient(t, g.url, newLanding(t)+"/back")
	access := c.loggedIn(newPerson(t), "")
	again := func() string { return c.loggedIn(newPerson(t), "") } // another login is another proof: no failure is remembered for it
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

	s := make(t, at)
	t.Run("a login at the gateway", func(t *testing.T) {
		v.set(func() {})
		for range 3 {
			call(t, access, s, "")
		}
		form := exchanges(t, 1)
		for name, want := range map[string]string{
			"client_id": loginClient, "subject_token_type": "urn:ietf:params:oauth:token-type:id_token", "audience": behind.url, "resource": at, "client_secret": "",
		} {
			if form.Get(name) != want {
				t.Errorf("%s is %q, want %q", name, form.Get(name), want)
			}
		}
		if form.Get("subject_token") == access || strings.Count(form.Get("subject_token"), ".") != 2 {
			t.Error("the subject is no ID token")
		}
		var sessions struct {
			Data []struct {
				Client string `json:"client_name"`
			}
		}
		behind.api(behind.token(alice), http.MethodGet, "/api/sessions", nil).decode(t, &sessions)
		if len(sessions.Data) != 1 {
			t.Errorf("the other gateway knows %+v", sessions.Data)
		}
	})
	t.Run("a token of the identity provider", func(t *testing.T) {
		v.set(func() {})
		call(t, g.token(alice), s, "only for clients whose user logs in at the gateway")
		exchanges(t, 0)
	})
	t.Run("what the identity provider must not give", func(t *testing.T) {
		for name, set := range map[string]func(){
			"for this gateway": func() { v.changes = claims{"aud": g.url} },
			"for others too":   func() { v.changes = claims{"aud": []string{behind.url, g.url}} },
			"for another":      func() { v.changes = claims{"resource": "https://another.example/mcp"} },
			"an ID token":      func() { v.kind = "JWT" },
		} {
			v.set(set)
			call(t, again(), s, "the identity provider's answer cannot be used")
			exchanges(t, 1)
			v.set(func() { v.changes, v.kind = nil, "oauth-id-jag+jwt" })
			if t.Failed() {
				t.Log(name)
			}
		}
	})
	t.Run("what the other server refuses", func(t *testing.T) {
		for name, changes := range map[string]claims{
			"expired": {"exp": time.Now().Add(-time.Hour).Unix(), "iat": time.Now().Add(-2 * time.Hour).Unix()}, "for another client": {"client_id": "another"}, "of nobody": {"sub": nil},
		} {
			v.set(func() { v.changes = changes })
			call(t, again(), s, "the server's authorization server refuses you a token for this server")
			v.set(func() { v.changes = nil })
			if t.Failed() {
				t.Log(name)
			}
		}
	})
	t.Run("an upstream that names this gateway", func(t *testing.T) {
		thief := newBookings(t)
		thief.issuer = g.url
		caught := make(t, thief.url)
		v.set(func() {})
		call(t, again(), caught, "names this gateway as its authorization server")
		exchanges(t, 0)
	})
	t.Run("an upstream that names another", func(t *testing.T) {
		thief := newBookings(t)
		thief.issuer = behind.url // whose metadata is about itself: the assertion names the thief's resource
		caught := make(t, thief.url)
		v.set(func() {})
		call(t, again(), caught, "the server's authorization server gives no tokens for this server")
		if form := exchanges(t, 1); form.Get("resource") != thief.url {
			t.Errorf("the resource is %s", form.Get("resource"))
		}
		if len(thief.calls) != 0 && strings.Join(thief.calls, "") != "" {
			t.Errorf("the thief got %v", thief.calls)
		}
	})
	t.Run("an administrator", func(t *testing.T) {
		entry := g.entryOf(s)
		for member, change := range map[string]map[string]any{
			"token_endpoint": {"oauth": map[string]any{"issuer": behind.url, "token_endpoint": "http://127.0.0.1:1/token"}}, "resource": {"resource": "https://another.example/mcp"},
			"audience": {"audience": g.url}, "requested_token_type": {"requested_token_type": "access_token", "audience": g.url},
		} {
			a := g.send(http.MethodPut, "/api/server-directory/"+entry, g.token(admin), change).want(t, http.StatusUnprocessableEntity)
			if !strings.Contains(string(a.body), member) {
				t.Errorf("%s: %s", member, a.body)
			}
		}
	})
	call(t, access, s, "")
	checkUnseen(t, g, append(v.secrets, access, "vouched-secret-canary"))
}
