package integration

import (
	"crypto/sha256"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// oauthClient is a client that logs its users in at the gateway.
type oauthClient struct {
	t            *testing.T
	gateway      string
	id, redirect string
	verifier     string
}

// newOAuthClient registers a client whose users come back to an address.
func newOAuthClient(t *testing.T, gateway, redirect string) *oauthClient {
	t.Helper()
	c := &oauthClient{t: t, gateway: gateway, redirect: redirect, verifier: strings.Repeat("verifier-", 6)}
	status, got := c.post("/oauth/register", "application/json", `{"client_name":"An <editor>","redirect_uris":["`+redirect+`"],"token_endpoint_auth_method":"none","grant_types":["authorization_code","refresh_token"]}`)
	if c.id, _ = got["client_id"].(string); status != http.StatusCreated || c.id == "" {
		t.Fatalf("registering: %d %v", status, got)
	}
	return c
}

func (c *oauthClient) post(path, kind, body string) (int, map[string]any) {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.gateway+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header.Set("Content-Type", kind)
	response, err := newClient(c.t).Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	var got map[string]any
	_ = json.Unmarshal(content, &got)
	return response.StatusCode, got
}

// address returns an authorization request. changes replace parameters; an empty one is left out.
func (c *oauthClient) address(changes map[string]string) string {
	sum := sha256.Sum256([]byte(c.verifier))
	query := url.Values{
		"response_type": {"code"}, "client_id": {c.id}, "redirect_uri": {c.redirect}, "state": {"a state"}, "code_challenge": {base64url(sum[:])},
		"code_challenge_method": {"S256"}, "resource": {c.gateway + "/mcp/demo"},
	}
	for name, value := range changes {
		if query.Set(name, value); value == "" {
			query.Del(name)
		}
	}
	return c.gateway + "/oauth/authorize?" + query.Encode()
}

// answered returns the parameters with which a browser came back to the client last.
func (c *oauthClient) answered(p *person) url.Values {
	c.t.Helper()
	for _, v := range p.seen {
		if strings.HasPrefix(v.location, c.redirect+"?") {
			u, err := url.Parse(v.location)
			if err != nil {
				c.t.Fatal(err)
			}
			return u.Query()
		}
	}
	return nil
}

func (c *oauthClient) redeem(code string, changes map[string]string) (int, map[string]any) {
	c.t.Helper()
	form := url.Values{
		"grant_type": {"authorization_code"}, "client_id": {c.id}, "redirect_uri": {c.redirect}, "code": {code}, "code_verifier": {c.verifier},
	}
	for name, value := range changes {
		form.Set(name, value)
	}
	return c.post("/oauth/token", "application/x-www-form-urlencoded", form.Encode())
}

var consentForm = regexp.MustCompile(`<form[^>]* action="(/oauth/authorize[^"]*)"[^>]*>\s*<input type="hidden" name="form" value="([^"]+)"`)

// decide sends the form of a consent page.
func (c *oauthClient) decide(p *person, page answer, decision string) answer {
	c.t.Helper()
	form := consentForm.FindStringSubmatch(string(page.body))
	if form == nil {
		c.t.Fatalf("no question: %d %s", page.status, page.body)
	}
	return p.submit(c.gateway+html.UnescapeString(form[1]), url.Values{"form": {form[2]}, "decision": {decision}}, "Origin", "null", "Sec-Fetch-Site", "same-origin")
}

// open opens an authorization request, and logs the user in at the identity provider.
func (c *oauthClient) open(p *person, email string, changes map[string]string) answer {
	c.t.Helper()
	page := p.visit(c.address(changes))
	if devTicket.Match(page.body) {
		page = p.pick(page, email)
	}
	return page
}

// logIn logs a user in with the client, who agrees to everything and connects no account, and returns the code.
func (c *oauthClient) logIn(p *person, email string, changes map[string]string) string {
	c.t.Helper()
	c.later(p, c.decide(p, c.open(p, email, changes), "approve"), email)
	code := c.answered(p).Get("code")
	if code == "" {
		c.t.Fatalf("no code: %+v", p.seen)
	}
	return code
}

// later leaves the account for later, and logs in at the identity provider where it asks again.
func (c *oauthClient) later(p *person, page answer, email string) {
	c.t.Helper()
	if page = c.decide(p, page, "later"); devTicket.Match(page.body) {
		p.pick(page, email)
	}
}

// try sends an MCP request with a token and returns the status.
func (c *oauthClient) try(path string, token any) int {
	c.t.Helper()
	text, _ := token.(string)
	request, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.gateway+path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`))
	if err != nil {
		c.t.Fatal(err)
	}
	if path == "/api/servers" {
		request.Method, request.Body, request.ContentLength = http.MethodGet, nil, 0
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	request.Header.Set("Authorization", "Bearer "+text)
	response, err := newClient(c.t).Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// TestAuthorizationServer logs a user in with a client that registered itself, and uses, renews and revokes its tokens.
func TestAuthorizationServer(t *testing.T) {
	t.Parallel()
	d := devGateway(t, "", "")
	c := newOAuthClient(t, d.url, newLanding(t)+"/back")
	alice := newPerson(t)
	page := c.open(alice, "alice@example.test", nil).want(t, http.StatusOK)
	for _, says := range []string{"“An &lt;editor&gt;”", "not verified", "a program on this computer", "form-action 'self' https: http://localhost:* http://127.0.0.1:*"} {
		if !strings.Contains(string(page.body)+page.header.Get("Content-Security-Policy"), says) {
			t.Errorf("the question lacks %q: %s", says, page.body)
		}
	}
	if c.answered(alice) != nil {
		t.Fatal("a code before anybody agreed")
	}
	page = c.decide(alice, page, "approve").want(t, http.StatusOK)
	if !strings.Contains(string(page.body), "Connect your account") {
		t.Errorf("no account is offered: %s", page.body)
	}
	c.later(alice, page, "alice@example.test")
	answer := c.answered(alice)
	if answer.Get("state") != "a state" || answer.Get("iss") != d.url {
		t.Errorf("the client gets %v", answer)
	}
	status, tokens := c.redeem(answer.Get("code"), nil)
	if status != http.StatusOK || tokens["expires_in"] != float64(900) {
		t.Fatalf("the code: %d %v", status, tokens)
	}
	for path, want := range map[string]int{"/mcp/demo": http.StatusOK, "/mcp/other": http.StatusUnauthorized, "/api/servers": http.StatusUnauthorized} {
		if got := c.try(path, tokens["access_token"]); got != want {
			t.Errorf("the token of /mcp/demo at %s: %d, want %d", path, got, want)
		}
	}
	refresh := func(token any) (int, map[string]any) {
		text, _ := token.(string)
		return c.post("/oauth/token", "application/x-www-form-urlencoded", url.Values{"grant_type": {"refresh_token"}, "client_id": {c.id}, "refresh_token": {text}}.Encode())
	}
	status, renewed := refresh(tokens["refresh_token"])
	if status != http.StatusOK || renewed["refresh_token"] == tokens["refresh_token"] {
		t.Fatalf("refreshing: %d %v", status, renewed)
	}
	// A program on the user's machine is asked about each time: another program there may have its port by now.
	if page := c.open(alice, "alice@example.test", nil); !strings.Contains(string(page.body), "not verified") || c.answered(alice) != nil {
		t.Errorf("the second time: %s", page.body)
	}
	text, _ := renewed["refresh_token"].(string)
	if status, _ := c.post("/oauth/revoke", "application/x-www-form-urlencoded", url.Values{"client_id": {c.id}, "token": {text}}.Encode()); status != http.StatusOK {
		t.Errorf("revoking: %d", status)
	}
	if got := c.try("/mcp/demo", renewed["access_token"]); got != http.StatusUnauthorized {
		t.Errorf("after the login's end: %d", got)
	}
	if status, got := refresh(renewed["refresh_token"]); status != http.StatusBadRequest || got["error"] != "invalid_grant" {
		t.Errorf("refreshing after the end: %d %v", status, got)
	}
}

// TestAuthorizationAttacks sends wrong requests to the authorization server (attack rows A and J).
func TestAuthorizationAttacks(t *testing.T) {
	t.Parallel()
	d := devGateway(t, "", "")
	landing := newLanding(t)
	c := newOAuthClient(t, d.url, landing+"/back")
	alice := newPerson(t)
	c.logIn(alice, "alice@example.test", nil)

	t.Run("nothing is sent to an address that is not the client's", func(t *testing.T) {
		for _, changes := range []map[string]string{
			{"redirect_uri": landing + "/elsewhere"}, {"redirect_uri": "https://evil.example/back"}, {"redirect_uri": landing + "/back/../x"},
			{"redirect_uri": c.redirect + "?x=1"}, {"redirect_uri": ""}, {"client_id": "nobody"}, {"client_id": "https://127.0.0.1:1/client"}, {"client_id": ""},
		} {
			page := c.open(alice, "alice@example.test", changes)
			if page.status != http.StatusBadRequest {
				t.Errorf("%v: %d", changes, page.status)
			}
			for _, v := range alice.seen {
				if !strings.HasPrefix(v.url.String(), d.url) {
					t.Errorf("%v leads to %s", changes, v.url)
				}
			}
		}
	})
	t.Run("wrong requests", func(t *testing.T) {
		for want, changes := range map[string]map[string]string{
			"unsupported_response_type": {"response_type": "token"},
			"invalid_request":           {"code_challenge_method": "plain"},
			"invalid_target":            {"resource": "https://other.example/mcp/demo"},
			"login_required":            {"prompt": "none"},
		} {
			c.open(alice, "alice@example.test", changes)
			if got := c.answered(alice); got.Get("error") != want || got.Get("iss") != d.url || got.Has("code") {
				t.Errorf("%v: %v, want %s", changes, got, want)
			}
		}
		if page := alice.visit(c.address(nil) + "&state=another"); page.status != http.StatusBadRequest {
			t.Errorf("two states: %d", page.status)
		}
	})
	t.Run("forged decisions", func(t *testing.T) {
		bob := newPerson(t)
		page := c.open(bob, "bob@example.test", nil).want(t, http.StatusOK)
		form := consentForm.FindStringSubmatch(string(page.body))
		address := d.url + html.UnescapeString(form[1])
		for name, send := range map[string]func() answer{
			"without a token": func() answer { return bob.submit(address, url.Values{"decision": {"approve"}}) },
			"from another site": func() answer {
				return bob.submit(address, url.Values{"form": {form[2]}, "decision": {"approve"}}, "Sec-Fetch-Site", "cross-site")
			},
			"for another request": func() answer {
				return bob.submit(c.address(map[string]string{"state": "other"}), url.Values{"form": {form[2]}, "decision": {"approve"}})
			},
			"of another user": func() answer {
				return alice.submit(address, url.Values{"form": {form[2]}, "decision": {"approve"}})
			},
		} {
			if a := send(); a.status != http.StatusForbidden || c.answered(bob) != nil || c.answered(alice) != nil {
				t.Errorf("CSRF %s: %d", name, a.status)
			}
		}
		c.decide(bob, page, "deny")
		if got := c.answered(bob); got.Get("error") != "access_denied" || got.Has("code") {
			t.Errorf("denied: %v", got)
		}
	})
	t.Run("codes", func(t *testing.T) {
		other := newOAuthClient(t, d.url, landing+"/back")
		for name, try := range map[string]func(code string) (int, map[string]any){
			"another verifier": func(code string) (int, map[string]any) {
				return c.redeem(code, map[string]string{"code_verifier": strings.Repeat("x", 43)})
			},
			"another address": func(code string) (int, map[string]any) {
				return c.redeem(code, map[string]string{"redirect_uri": landing})
			},
			"another client": func(code string) (int, map[string]any) { return other.redeem(code, nil) },
			"another resource": func(code string) (int, map[string]any) {
				return c.redeem(code, map[string]string{"resource": d.url + "/mcp/x"})
			},
		} {
			code := c.logIn(alice, "alice@example.test", nil)
			if status, got := try(code); status != http.StatusBadRequest {
				t.Errorf("%s: %d %v", name, status, got)
			}
			if status, got := c.redeem(code, nil); status != http.StatusBadRequest {
				t.Errorf("%s, and then the right request: %d %v", name, status, got)
			}
		}
	})
	t.Run("two logins at once", func(t *testing.T) {
		p := newPerson(t)
		tabs := map[string]answer{}
		for _, state := range []string{"first", "second"} {
			tabs[state] = p.visit(c.address(map[string]string{"state": state}))
		}
		login := p.seen[len(p.seen)-1]
		p.visit(d.url + "/login/callback?state=forged")
		for state, page := range tabs {
			p.seen = []visited{login}
			tabs[state] = p.pick(page, "bob@example.test")
		}
		for state, page := range tabs {
			c.later(p, c.decide(p, page, "approve"), "bob@example.test")
			if got := c.answered(p); got.Get("state") != state || !got.Has("code") {
				t.Errorf("the %s: %v", state, got)
			}
		}
	})
	t.Run("no request", func(t *testing.T) {
		for _, path := range []string{"/oauth/authorize", "/oauth/authorize?x=1"} {
			if page := alice.visit(d.url + path); page.status != http.StatusBadRequest {
				t.Errorf("%s: %d", path, page.status)
			}
		}
	})
	t.Run("documents without a credential", func(t *testing.T) {
		fetched := make(chan string, 1)
		site := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case fetched <- r.URL.Path:
			default:
			}
		}))
		defer site.Close()
		for _, path := range []string{"/oauth/token", "/oauth/revoke"} {
			form := url.Values{"grant_type": {"authorization_code"}, "client_id": {site.URL + "/client"}, "code": {"dwc_AAAA"}, "token": {"dwr_AAAA"}}
			if status, got := c.post(path, "application/x-www-form-urlencoded", form.Encode()); status != http.StatusUnauthorized || got["error"] != "invalid_client" {
				t.Errorf("%s: %d %v", path, status, got)
			}
		}
		newPerson(t).visit(c.address(map[string]string{"client_id": site.URL + "/client"}))
		select {
		case path := <-fetched:
			t.Errorf("somebody without a login made the gateway fetch %s", path)
		default:
		}
	})
	t.Run("other hosts", func(t *testing.T) {
		for _, path := range []string{"/.well-known/oauth-authorization-server", "/oauth/jwks", "/oauth/authorize"} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Host = "evil.example"
			if a := newPerson(t).send(request); a.status != http.StatusForbidden && a.status != http.StatusMisdirectedRequest {
				t.Errorf("%s under another name: %d", path, a.status)
			}
		}
	})
}

// TestDocumentInConfiguration logs a user in with a client whose metadata document the gateway cannot reach: the configuration
// says what stands there. Without that the page names the place.
func TestDocumentInConfiguration(t *testing.T) {
	t.Parallel()
	landing := newLanding(t)
	d := devGateway(t, "", "authorization_server {\n oauth_client https://client.invalid/oauth/client.json {\n name \"An editor\"\n redirect_uri "+landing+"/back\n}\n}")
	c := &oauthClient{t: t, gateway: d.url, id: "https://client.invalid/oauth/client.json", redirect: landing + "/back", verifier: strings.Repeat("verifier-", 6)}
	alice := newPerson(t)
	access := c.loggedIn(alice, "alice@example.test")
	if got := c.try("/api/servers", access); got != http.StatusOK {
		t.Errorf("the token: %d", got)
	}
	if page := alice.visit(c.address(map[string]string{"client_id": "https://other.invalid/client.json"})); page.status != http.StatusBadRequest ||
		!strings.Contains(string(page.body), "describes itself at other.invalid,") {
		t.Errorf("another client: %d %s", page.status, page.body)
	}
}
