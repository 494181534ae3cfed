package integration

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

// oauthParty makes a third party with traits, and a server for it. changes complete the entry.
func (g *gateway) oauthParty(t traits, changes map[string]any) (*thirdParty, server) {
	g.t.Helper()
	p := newThirdParty(g.t)
	p.traits = t
	return p, g.createServer(p.url()+"/mcp", oauthEntry(changes))
}

func oauthEntry(changes map[string]any) map[string]any {
	entry := map[string]any{"provider": "oauth2", "requires_auth": true}
	for name, value := range changes {
		entry[name] = value
	}
	return entry
}

// supply gives a server the OAuth client that an administrator made.
func (g *gateway) supply(s server, id, secret string) {
	g.t.Helper()
	g.api(g.token(admin), http.MethodPut, "/api/servers/"+s.ID, map[string]any{"client_id": id, "client_secret": secret})
}

// serverStatus returns the status of a server.
func (g *gateway) serverStatus(s server) string {
	g.t.Helper()
	var now server
	g.api(g.token(admin), http.MethodGet, "/api/servers/"+s.ID, nil).decode(g.t, &now)
	return now.Status
}

// become changes the traits of a provider.
func (p *thirdParty) become(change func(*traits)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.traits)
}

// granted returns the access and refresh tokens that are valid.
func (p *thirdParty) granted() (access, refresh []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for token := range p.access {
		access = append(access, token)
	}
	for token := range p.refresh {
		refresh = append(refresh, token)
	}
	return access, refresh
}

// forget ends access tokens.
func (p *thirdParty) forget(tokens []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, token := range tokens {
		delete(p.access, token)
	}
}

// asked returns the token requests with a grant type.
func (p *thirdParty) asked(grant string) (forms []url.Values) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, form := range p.requests {
		if form.Get("grant_type") == grant {
			forms = append(forms, form)
		}
	}
	return forms
}

const redeems, refreshes = "authorization_code", "refresh_token"

// TestProviderAnswers checks that tokens are taken in whatever style they come, when a user connects and when they are
// refreshed (W10, W11).
func TestProviderAnswers(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	alice := g.token(alice)
	for _, style := range []string{"form", "slack", "bare"} {
		p, s := g.oauthParty(traits{style: style, short: true}, nil)
		g.connectOAuth(alice, s).want(t, http.StatusOK)
		rig.Eventually(t, "two refreshes", func() bool {
			g.callTool(alice, s, "", "echo").want(t, http.StatusOK)
			return len(p.asked(refreshes)) >= 2
		})
		seen := map[string]bool{}
		for _, form := range p.asked(refreshes) {
			if token := form.Get("refresh_token"); seen[token] {
				t.Errorf("%s: a refresh token was used twice", style)
			} else {
				seen[token] = true
			}
		}
	}
}

// TestProviderRefusesRefresh checks that with whatever text a refresh is refused, the user is told where to connect
// anew, and the provider is left alone (W12).
func TestProviderRefusesRefresh(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	alice := g.token(alice)
	for name, refuse := range map[string]func(http.ResponseWriter){
		"invalid_request": func(w http.ResponseWriter) {
			writeJSON(w, http.StatusBadRequest, map[string]string{"error": "invalid_request", "error_description": "refresh_token is invalid"})
		},
		"bad_refresh_token in a 200": func(w http.ResponseWriter) {
			writeJSON(w, http.StatusOK, map[string]string{"error": "bad_refresh_token"})
		},
		"Slack": func(w http.ResponseWriter) {
			writeJSON(w, http.StatusOK, map[string]any{"ok": false, "error": "invalid_refresh_token"})
		},
		"a plain 401": func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) },
	} {
		p, s := g.oauthParty(traits{}, nil)
		g.connectOAuth(alice, s).want(t, http.StatusOK)
		p.forgetAccess()
		p.setTokenAnswer(func(w http.ResponseWriter, _ url.Values) bool { refuse(w); return true })
		for range 3 {
			g.callTool(alice, s, "", "echo").wantConnect(t)
		}
		if n := len(p.asked(refreshes)); n != 1 || g.connection(alice, s) != "error" {
			t.Errorf("%s: %d refreshes, the connection is %s", name, n, g.connection(alice, s))
		}
		p.setTokenAnswer(nil)
		g.connectOAuth(alice, s).want(t, http.StatusOK)
		g.callTool(alice, s, "", "echo").want(t, http.StatusOK)
	}
}

// TestProviderRefusesClient checks that a client that is refused for one user harms nobody else; one that is refused
// twice puts the server into error, where tokens that have not run out are used (W13).
func TestProviderRefusesClient(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	alice, bob := g.token(alice), g.token(bob)
	p, s := g.oauthParty(traits{}, map[string]any{"token_endpoint_auth_method": "client_secret_post"})
	g.supply(s, "configured", "secret")
	g.connectOAuth(alice, s).want(t, http.StatusOK)
	access, refresh := p.granted()
	g.connectOAuth(bob, s).want(t, http.StatusOK)

	p.become(func(t *traits) { t.refuseOnly = refresh[0] })
	p.forget(access)
	g.callTool(alice, s, "", "echo").wantConnect(t)
	g.callTool(bob, s, "", "echo").want(t, http.StatusOK)
	if status := g.serverStatus(s); status != "active" {
		t.Errorf("after one refusal the server is %s", status)
	}

	g.connectOAuth(alice, s).want(t, http.StatusOK)
	access, _ = p.granted()
	bobs := access
	g.connectOAuth(alice, s).want(t, http.StatusOK)
	access, _ = p.granted()
	p.become(func(t *traits) { t.secret = "header" }) // as if the secret were another one
	p.forget(slices.DeleteFunc(access, func(token string) bool { return slices.Contains(bobs, token) }))
	g.callTool(alice, s, "", "echo").wantConnect(t)
	if status := g.serverStatus(s); status != "error" {
		t.Errorf("after a refusal that was confirmed the server is %s", status)
	}
	g.callTool(bob, s, "", "echo").want(t, http.StatusOK)
	asked := len(p.asked(refreshes))
	g.callTool(alice, s, "", "echo").wantConnect(t)
	if n := len(p.asked(refreshes)) - asked; n != 0 {
		t.Errorf("%d refreshes at a server in error", n)
	}
	// The administrator enters the secret again: alice's connection was kept.
	p.become(func(t *traits) { t.secret = "" })
	g.api(g.token(admin), http.MethodPut, "/api/servers/"+s.ID, map[string]any{"client_secret": "secret"})
	g.callTool(alice, s, "", "echo").want(t, http.StatusOK)
}

// TestProviderWithoutResource checks W14.
func TestProviderWithoutResource(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	alice := g.token(alice)
	p, s := g.oauthParty(traits{resource: "authorize"}, map[string]any{"resource": "off"})
	g.connectOAuth(alice, s).want(t, http.StatusOK)
	p.forgetAccess()
	g.callTool(alice, s, "", "echo").want(t, http.StatusOK)

	_, s = g.oauthParty(traits{resource: "authorize"}, nil)
	if a := g.connectOAuth(alice, s).want(t, http.StatusBadRequest); !strings.Contains(string(a.body), "resource") {
		t.Errorf("the page does not say what to do: %s", a.body)
	}

	p, s = g.oauthParty(traits{resource: "refresh", short: true}, nil)
	g.connectOAuth(alice, s).want(t, http.StatusOK)
	rig.Eventually(t, "two refreshes that succeed", func() bool {
		g.callTool(alice, s, "", "echo").want(t, http.StatusOK)
		return len(p.asked(refreshes)) >= 3
	})
	for i, form := range p.asked(refreshes) {
		if form.Has("resource") != (i == 0) {
			t.Errorf("refresh %d: that the resource is refused is not remembered", i)
		}
	}

	p, s = g.oauthParty(traits{}, map[string]any{"resource": "urn:example:mcp"})
	g.connectOAuth(alice, s).want(t, http.StatusOK)
	if got := p.asked(redeems)[0].Get("resource"); got != "urn:example:mcp" {
		t.Errorf("resource %q", got)
	}
}

// TestProviderSecretInBody checks W15.
func TestProviderSecretInBody(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	alice := g.token(alice)
	for _, tc := range []struct {
		method, takes string
		asked         int
	}{{"auto", "body", 2}, {"auto", "header", 1}, {"client_secret_post", "body", 1}, {"client_secret_basic", "header", 1}} {
		p := newThirdParty(t)
		p.traits = traits{secret: tc.takes}
		s := g.createServer(p.url()+"/mcp", oauthEntry(map[string]any{"token_endpoint_auth_method": tc.method, "oauth": map[string]any{
			"authorization_endpoint": p.url() + "/authorize", "token_endpoint": p.url() + "/token",
		}}))
		g.supply(s, "configured", "secret")
		g.connectOAuth(alice, s).want(t, http.StatusOK)
		p.forgetAccess()
		g.callTool(alice, s, "", "echo").want(t, http.StatusOK)
		if n := len(p.asked(redeems)); n != tc.asked || len(p.asked(refreshes)) != 1 || g.serverStatus(s) != "active" {
			t.Errorf("%+v: %d exchanges, %d refreshes, server %s", tc, n, len(p.asked(refreshes)), g.serverStatus(s))
		}
	}
}

// TestProviderParameters checks W16.
func TestProviderParameters(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	needs := map[string]string{"access_type": "offline", "prompt": "consent", "audience": "api.example.test", "user_scope": "a,b"}
	_, s := g.oauthParty(traits{needs: needs}, map[string]any{"authorization_params": needs})
	g.connectOAuth(g.token(alice), s).want(t, http.StatusOK)
	for _, name := range []string{
		"state", "redirect_uri", "code_challenge", "code_challenge_method", "client_id", "response_type", "scope", "resource", "request", "request_uri", "response_mode", "State",
	} {
		g.send(http.MethodPost, "/api/server-directory", g.token(admin), map[string]any{
			"name": "Entry", "url": "https://mcp.example.test/", "authorization_params": map[string]string{name: "x"},
		}).want(t, http.StatusUnprocessableEntity)
	}
}

// TestProviderPrivate checks that an address that is refused names the line that allows it, a certificate of a private
// authority the one that trusts it; with the line, discovery, login, refresh and calls work (W17).
func TestProviderPrivate(t *testing.T) {
	t.Parallel()
	p := makeThirdParty(t)
	p.start(httptest.NewTLSServer)
	file := filepath.Join(t.TempDir(), "ca.pem")
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	if err := os.WriteFile(file, authority, 0o600); err != nil {
		t.Fatal(err)
	}
	g := startGateway(t, settings{option: "directory Private {\n url " + p.url() + "/mcp\n public on\n trusted_ca {file." + file + "}\n}"})
	boss, alice := g.token(admin), g.token(alice)

	a := g.send(http.MethodPost, "/api/server-directory", boss, map[string]any{"name": "Inner", "url": "https://10.1.2.3/mcp"})
	if a.want(t, http.StatusUnprocessableEntity); !strings.Contains(string(a.body), "allow 10.1.2.3/32") {
		t.Errorf("refused with %s", a.body)
	}

	s := g.createServer(p.url()+"/mcp", oauthEntry(nil))
	a = g.send(http.MethodPost, "/api/servers/"+s.ID+"/connect", boss, map[string]any{}).wantError(t, http.StatusInternalServerError, "OAuthConfigurationError")
	if !strings.Contains(string(a.body), "trusted_ca {file.") {
		t.Errorf("an administrator is told %s", a.body)
	}
	rig.Eventually(t, "the log to say what to write", func() bool { return strings.Contains(g.output.String(), "trusted_ca {file.") })

	check := func(s server) {
		t.Helper()
		session := g.initialize(alice, s) // a conversation that the upstream hears of once its user has connected
		address := g.beginConnect(alice, s)
		browser := p.server.Client()
		browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		response, err := browser.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		back, err := response.Location()
		if err != nil {
			t.Fatal(err)
		}
		g.callback(back).want(t, http.StatusOK)
		if a := g.mcp(alice, s, session, toolCall("echo")).want(t, http.StatusOK); strings.Contains(string(a.body), "isError") {
			t.Errorf("the conversation does not go on: %s", a.body)
		}
		p.forgetAccess()
		g.callTool(alice, s, "", "echo").want(t, http.StatusOK)
	}
	check(g.createServer(p.url()+"/mcp", oauthEntry(map[string]any{"trusted_ca": string(authority)})))

	var found struct{ Data []struct{ ID string } }
	g.api(boss, http.MethodGet, "/api/server-directory?search=Private", nil).decode(t, &found)
	var made server
	g.api(boss, http.MethodPost, "/api/servers", map[string]any{"name": "Configured", "mcp_server_directory_id": found.Data[0].ID}).decode(t, &made)
	g.allowAll(boss, made.ID)
	made.path = "/mcp/configured"
	check(made)
}

// TestProviderForgetsClient checks W18.
func TestProviderForgetsClient(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	alice := g.token(alice)
	p, s := g.oauthParty(traits{knows: true}, nil)
	g.connectOAuth(alice, s).want(t, http.StatusOK)
	forget := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		clear(p.clients)
	}
	registered := func(want int) {
		t.Helper()
		if n, _ := p.counts(); n != want || g.serverStatus(s) != "active" {
			t.Errorf("%d registrations, server %s", n, g.serverStatus(s))
		}
	}
	forget()
	p.forgetAccess()
	g.callTool(alice, s, "", "echo").wantConnect(t)
	g.connectOAuth(alice, s).want(t, http.StatusOK)
	g.callTool(alice, s, "", "echo").want(t, http.StatusOK)
	registered(2)

	// Nobody has a token whose refresh would show it: the gateway asks before it sends a browser there.
	forget()
	g.restart()
	g.connectOAuth(alice, s).want(t, http.StatusOK)
	registered(3)

	path := "/api/servers/" + s.ID + "/registration"
	g.send(http.MethodDelete, path, alice, nil).wantError(t, http.StatusForbidden, "Forbidden")
	g.send(http.MethodDelete, path, g.token(admin), nil).want(t, http.StatusNoContent)
	g.send(http.MethodDelete, path, g.token(admin), nil).wantError(t, http.StatusNotFound, "NotFound")
	g.callTool(alice, s, "", "echo").want(t, http.StatusOK)
	g.connectOAuth(alice, s).want(t, http.StatusOK)
	registered(4)
}
