package integration

import (
	"net/http"
	"strings"
	"testing"
)

const (
	site      = "https://client.invalid/back"    // of a client of the web, which nobody runs
	siblings  = "https://client.invalid/other"   // on the same host
	elsewhere = "https://elsewhere.invalid/back" // on another one
)

// webClient registers a client of the web.
func webClient(t *testing.T, gateway string) *oauthClient {
	t.Helper()
	c := &oauthClient{t: t, gateway: gateway, redirect: site, verifier: strings.Repeat("verifier-", 6)}
	status, got := c.post("/oauth/register", "application/json", `{"client_name":"A site","redirect_uris":["`+site+`","`+siblings+`","`+elsewhere+`"],"token_endpoint_auth_method":"none"}`)
	if c.id, _ = got["client_id"].(string); status != http.StatusCreated || c.id == "" {
		t.Fatalf("registering: %d %v", status, got)
	}
	return c
}

// TestConsentIsRemembered checks that a user is asked once about a client of the web, and again when the user, the resource or
// the host of the redirect is another one, or the client wants it.
func TestConsentIsRemembered(t *testing.T) {
	t.Parallel()
	d := devGateway(t, "", "")
	c := webClient(t, d.url)
	alice := newPerson(t)
	page := c.open(alice, "alice@example.test", map[string]string{"resource": ""}).want(t, http.StatusOK)
	if !strings.Contains(string(page.body), "client.invalid") || c.answered(alice) != nil {
		t.Fatalf("the first time: %s", page.body)
	}
	if c.decide(alice, page, "approve"); !c.answered(alice).Has("code") {
		t.Fatalf("no code: %+v", alice.seen)
	}
	for _, tt := range []struct {
		name    string
		changes map[string]string
		asks    bool
	}{
		{"the same", nil, false},
		{"another address of the same host", map[string]string{"redirect_uri": siblings}, false},
		{"another host", map[string]string{"redirect_uri": elsewhere}, true},
		{"another resource", map[string]string{"resource": d.url + "/mcp/demo"}, true},
		{"the client wants it", map[string]string{"prompt": "consent"}, true},
	} {
		changes := map[string]string{"resource": ""}
		for name, value := range tt.changes {
			changes[name] = value
		}
		to := *c
		if other := changes["redirect_uri"]; other != "" {
			to.redirect = other
		}
		page := to.open(alice, "alice@example.test", changes)
		if asks := consentForm.Match(page.body); asks != tt.asks || to.answered(alice).Has("code") == tt.asks {
			t.Errorf("%s: asks %v, want %v: %d %+v", tt.name, asks, tt.asks, page.status, alice.seen)
		}
	}
	bob := newPerson(t)
	if page := c.open(bob, "bob@example.test", map[string]string{"resource": ""}); !consentForm.Match(page.body) || c.answered(bob) != nil {
		t.Errorf("another user: %d %+v", page.status, bob.seen)
	}
}

// TestNoOpenRedirect checks that nobody is sent to a site that registered itself by a request that fails: the page has a link
// (RFC 9700 section 4.11.2).
func TestNoOpenRedirect(t *testing.T) {
	t.Parallel()
	d := devGateway(t, "", "")
	c := webClient(t, d.url)
	p := newPerson(t)
	c.open(p, "alice@example.test", nil).want(t, http.StatusOK)
	for _, changes := range []map[string]string{
		{"code_challenge_method": "plain"}, {"response_type": "token"}, {"resource": "https://other.example/mcp/demo"}, {"prompt": "none"},
	} {
		page := p.visit(c.address(changes))
		if page.status != http.StatusBadRequest || !strings.Contains(string(page.body), `href="`+site+`?`) {
			t.Errorf("%v: %d %s", changes, page.status, page.body)
		}
		for _, v := range p.seen {
			if v.location != "" {
				t.Errorf("%v leads to %s", changes, v.location)
			}
		}
	}
}

// TestRegistrationsAreCounted checks that one address cannot fill the store with clients: at least 60 register, and no more
// than that within a minute.
func TestRegistrationsAreCounted(t *testing.T) {
	t.Parallel()
	d := devGateway(t, "", "")
	c := &oauthClient{t: t, gateway: d.url}
	registered := 0
	for range 1000 {
		status, got := c.post("/oauth/register", "application/json", `{"redirect_uris":["`+site+`"],"token_endpoint_auth_method":"none"}`)
		if status == http.StatusTooManyRequests {
			if registered < 60 {
				t.Errorf("%d could register", registered)
			}
			return
		}
		if status != http.StatusCreated {
			t.Fatalf("registering: %d %v", status, got)
		}
		registered++
	}
	t.Errorf("%d could register", registered)
}
