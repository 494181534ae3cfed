package integration

import (
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// loggedIn logs a user in with the client for the whole gateway, and returns the access token.
func (c *oauthClient) loggedIn(p *person, email string) string {
	c.t.Helper()
	page := c.decide(p, c.open(p, email, map[string]string{"resource": ""}), "approve")
	if devTicket.Match(page.body) {
		p.pick(page, email)
	}
	status, tokens := c.redeem(c.answered(p).Get("code"), nil)
	access, _ := tokens["access_token"].(string)
	if status != http.StatusOK || access == "" {
		c.t.Fatalf("the code: %d %v", status, tokens)
	}
	return access
}

// sessionsOf lists the sessions that a token shows, but for those of browsers with the console, which each login brings.
func (d *dev) sessionsOf(t *testing.T, token, query string) []map[string]any {
	t.Helper()
	status, body := d.api(t, token, http.MethodGet, "/api/sessions"+query)
	var page struct{ Data []map[string]any }
	if err := json.Unmarshal([]byte(body), &page); err != nil || status != http.StatusOK {
		t.Fatalf("sessions%s: %d %s", query, status, body)
	}
	return slices.DeleteFunc(page.Data, func(s map[string]any) bool { return s["client_id"] == "durward-console" })
}

var clientForm = regexp.MustCompile(`name="form" value="([^"]+)"><input type="hidden" name="(login|client)" value="([^"]+)"`)

// TestSessions checks that users see and end their logins with clients, by the API and on the page, and that nobody else
// but an administrator does.
func TestSessions(t *testing.T) {
	t.Parallel()
	d := devGateway(t, "", "")
	landing := newLanding(t)
	editor, other := newOAuthClient(t, d.url, landing+"/back"), newOAuthClient(t, d.url, landing+"/back")
	alice, bob := newPerson(t), newPerson(t)
	first, second := editor.loggedIn(alice, "alice@example.test"), other.loggedIn(alice, "alice@example.test")
	bobs := editor.loggedIn(bob, "bob@example.test")
	admin := d.tokenOf(t, "admin@example.test")

	own := d.sessionsOf(t, first, "")
	if len(own) != 2 {
		t.Fatalf("alice's sessions: %v", own)
	}
	ids := make(map[bool]string)
	for _, s := range own {
		current, _ := s["current"].(bool)
		ids[current], _ = s["id"].(string)
		if s["client_name"] != "An <editor>" || s["resource"] != d.url || s["ends_at"] == nil || (s["client_id"] == editor.id) != current {
			t.Errorf("a session: %v", s)
		}
	}
	path := "/api/sessions/" + ids[true]
	user, _ := own[0]["user_id"].(string)
	t.Run("others", func(t *testing.T) {
		if got := d.sessionsOf(t, bobs, ""); len(got) != 1 || got[0]["id"] == ids[true] {
			t.Errorf("bob's sessions: %v", got)
		}
		if status, body := d.api(t, bobs, http.MethodGet, "/api/sessions?user_id="+user); status != http.StatusForbidden {
			t.Errorf("alice's sessions for bob: %d %s", status, body)
		}
		for _, at := range []string{path, "/api/sessions/0192f0c1-5bd2-7000-8000-0000000000aa"} {
			if status, body := d.api(t, bobs, http.MethodDelete, at); status != http.StatusNotFound || !strings.Contains(body, "Session not found") {
				t.Errorf("bob ends %s: %d %s", at, status, body)
			}
		}
		if got := editor.try("/api/servers", first); got != http.StatusOK {
			t.Errorf("alice's token after bob's try: %d", got)
		}
		if got := d.sessionsOf(t, admin, ""); len(got) != 1 || got[0]["client_id"] != "dev-agent" {
			t.Errorf("an administrator's own: %v", got)
		}
		if got := d.sessionsOf(t, admin, "?user_id="+user); len(got) != 2 {
			t.Errorf("alice's for an administrator: %v", got)
		}
	})
	t.Run("what outlives a login", func(t *testing.T) {
		root := editor.loggedIn(newPerson(t), "admin@example.test")
		if status, body := d.asked(t, root, http.MethodPost, "/api/llm-gateway/admin/api-keys", `{"name":"Theirs"}`); status != http.StatusForbidden {
			t.Errorf("an administrator's client makes a key: %d %s", status, body)
		}
		if status, body := d.asked(t, first, http.MethodPost, "/api/llm-gateway/user/api-keys", `{"name":"Mine","scopes":["llm"]}`); status != http.StatusForbidden {
			t.Errorf("a client makes itself a key: %d %s", status, body)
		}
	})
	t.Run("an agent for a client of the gateway", func(t *testing.T) {
		for issuer, want := range map[string]int{d.url: http.StatusOK, "https://elsewhere.example": http.StatusUnprocessableEntity} {
			body := `{"application_directory":{"external_id":"https://editor.example/client","issuer":"` + issuer + `"}}`
			if status, said := d.asked(t, admin, http.MethodPost, "/api/agents", body); status != want {
				t.Errorf("of %s: %d %s, want %d", issuer, status, said, want)
			}
		}
	})
	t.Run("by the API", func(t *testing.T) {
		if status, body := d.api(t, first, http.MethodDelete, "/api/sessions/"+ids[false]); status != http.StatusForbidden || !strings.Contains(body, "ends its own login only") {
			t.Errorf("a client ends another one's: %d %s", status, body)
		}
		if got := editor.try("/api/servers", second); got != http.StatusOK {
			t.Errorf("the other one's token: %d", got)
		}
		if status, body := d.api(t, second, http.MethodDelete, "/api/sessions/"+ids[false]); status != http.StatusNoContent {
			t.Fatalf("ending its own: %d %s", status, body)
		}
		if got := editor.try("/api/servers", second); got != http.StatusUnauthorized {
			t.Errorf("its token: %d", got)
		}
		if status, _ := d.api(t, first, http.MethodDelete, "/api/sessions/"+ids[false]); status != http.StatusNotFound {
			t.Errorf("once more: %d", status)
		}
	})
	t.Run("on the page", func(t *testing.T) {
		page := alice.visit(d.url+"/clients").want(t, http.StatusOK)
		for _, says := range []string{"Clients that act for you", "An &lt;editor&gt;", "not verified", "the whole gateway: since"} {
			if !strings.Contains(string(page.body), says) {
				t.Errorf("the page lacks %q: %s", says, page.body)
			}
		}
		forms := clientForm.FindAllStringSubmatch(string(page.body), -1)
		if len(forms) != 2 || forms[0][2] != "client" || forms[1][3] != ids[true] {
			t.Fatalf("the page's forms: %q", forms)
		}
		send := func(p *person, token, field, value string) answer {
			return p.submit(d.url+"/clients", url.Values{"form": {html.UnescapeString(token)}, field: {value}}, "Origin", "null", "Sec-Fetch-Site", "same-origin")
		}
		if a := send(bob, forms[1][1], "login", ids[true]); a.status != http.StatusForbidden {
			t.Errorf("bob with alice's form: %d", a.status)
		}
		bobsPage := bob.visit(d.url + "/clients")
		send(bob, clientForm.FindStringSubmatch(string(bobsPage.body))[1], "login", ids[true]).want(t, http.StatusOK)
		if got := editor.try("/api/servers", first); got != http.StatusOK {
			t.Errorf("alice's token after bob's forms: %d", got)
		}
		if a := send(alice, forms[1][1], "x", "y"); a.status != http.StatusBadRequest {
			t.Errorf("a form that names nothing: %d", a.status)
		}
		for field, value := range map[string]string{"login": "\xff", "client": "nobody\xff"} {
			send(alice, forms[1][1], field, value).want(t, http.StatusOK)
		}
		if a := send(alice, forms[1][1], "login", ids[true]); !strings.Contains(string(a.body), "No client acts for you") {
			t.Errorf("after the end: %d %s", a.status, a.body)
		}
		if got := editor.try("/api/servers", first); got != http.StatusUnauthorized {
			t.Errorf("the token of a session that was ended on the page: %d", got)
		}
		send(bob, clientForm.FindStringSubmatch(string(bobsPage.body))[1], "client", editor.id).want(t, http.StatusOK)
		if got := editor.try("/api/servers", bobs); got != http.StatusUnauthorized {
			t.Errorf("the token of a client that was forgotten: %d", got)
		}
	})
	t.Run("a code that comes twice", func(t *testing.T) {
		code := editor.logIn(alice, "alice@example.test", nil)
		editor.redeem(code, nil)
		if status, got := editor.redeem(code, nil); status != http.StatusBadRequest {
			t.Errorf("%d %v", status, got)
		}
	})
	t.Run("recorded", func(t *testing.T) {
		status, body := d.api(t, admin, http.MethodGet, "/api/audit?kind=login&limit=100")
		if strings.Contains(body, "nobody") {
			t.Errorf("a client that nobody let in is recorded: %s", body)
		}
		for _, event := range []string{`"client.logout"`, `"client.forget"`, `"client.replay"`} {
			if status != http.StatusOK || !strings.Contains(body, event) {
				t.Errorf("no record of %s: %d %s", event, status, body)
			}
		}
	})
}
