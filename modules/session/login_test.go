package session_test

import (
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/modules/caddytest"
)

// cookies returns those that an answer sets, by name.
func (a answer) cookies() map[string]*http.Cookie {
	set := map[string]*http.Cookie{}
	for _, c := range (&http.Response{Header: a.header}).Cookies() {
		kind, _, _ := strings.Cut(c.Name, ".") // behind it is which one of the kind
		set[kind] = c
	}
	return set
}

// begun is a login under way.
type begun struct {
	cookie string // of the attempt
	query  url.Values
}

// begin begins a login and returns it with what the identity provider is asked.
func (g *gateway) begin(t *testing.T, address string) begun {
	t.Helper()
	a := g.get(address, "")
	to, err := url.Parse(a.header.Get("Location"))
	if err != nil || a.status != http.StatusSeeOther || !strings.HasPrefix(to.String(), g.issuer.URL+"/authorize?") {
		t.Fatalf("%d %v: %s", a.status, a.header, a.body)
	}
	c := a.cookies()["__Host-durward-login"]
	if c == nil || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || c.MaxAge != 600 {
		t.Fatalf("the attempt's cookie is %+v", c)
	}
	if q := to.Query(); q.Get("redirect_uri") != public+"/login/callback" || q.Get("client_id") != client || q.Get("code_challenge_method") != "S256" || strings.Contains(to.String(), c.Value) {
		t.Errorf("the browser is sent to %s", to)
	}
	return begun{cookie: c.Name + "=" + c.Value, query: to.Query()}
}

// end comes back from the identity provider.
func (g *gateway) end(b begun, more url.Values) answer {
	g.t.Helper()
	query := url.Values{"code": {"c-1"}, "state": {b.query.Get("state")}}
	maps.Copy(query, more)
	return g.get("/login/callback?"+query.Encode(), b.cookie)
}

func TestLogin(t *testing.T) {
	t.Setenv("CONSOLE_SECRET", "s3cret")
	issuer := caddytest.NewIssuer(t)
	g := startGateway(t, issuer, object{"kind": "oidc", "issuer": issuer.URL, "login_client": client, "login_secret": "{env.CONSOLE_SECRET}"})
	b := g.begin(t, "/login?return=/approvals/7")
	issuer.Login(client, object{"nonce": b.query.Get("nonce")})
	a := g.end(b, nil)
	set := a.cookies()
	c := set["__Host-durward"]
	if a.status != http.StatusSeeOther || a.header.Get("Location") != "/approvals/7" || len(set) != 2 || set["__Host-durward-login"].MaxAge != -1 {
		t.Fatalf("%d %v: %s", a.status, a.header, a.body)
	}
	if !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || c.MaxAge != 8*3600 {
		t.Errorf("the session's cookie is %+v", c)
	}
	if a.header.Get("Referrer-Policy") != "no-referrer" || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("header %v", a.header)
	}
	asked := issuer.Asked()
	if user, secret, _ := asked[0].BasicAuth(); len(asked) != 1 || user != client || secret != "s3cret" || asked[0].PostForm.Has("client_secret") || len(asked[0].PostForm.Get("code_verifier")) != 43 {
		t.Errorf("the token endpoint was asked %d times with %v", len(asked), asked[0].PostForm)
	}
	g.get("/approvals", c.Name+"="+c.Value).page(t, http.StatusOK, "alice@example.test")

	// A copy of cookie and answer is good no second time, wherever it comes from.
	issuer.Login(client, object{"nonce": b.query.Get("nonce")})
	g.end(b, nil).page(t, http.StatusBadRequest)
	if n := len(issuer.Asked()); n != 0 {
		t.Errorf("the token endpoint was asked %d times", n)
	}
}

// TestFreshLogin checks that a login which has to be fresh has the provider ask, also about a user who is logged in.
func TestFreshLogin(t *testing.T) {
	g := newGateway(t)
	_, cookie := g.user("fresh@example.test")
	for address, want := range map[string]string{"/login?fresh=1": "login 0", "/login?again=1": " "} {
		a := g.get(address, cookie)
		to, err := url.Parse(a.header.Get("Location"))
		if err != nil || a.status != http.StatusSeeOther {
			t.Fatalf("%s: %d %v", address, a.status, a.header)
		}
		if q := to.Query(); q.Get("prompt")+" "+q.Get("max_age") != want {
			t.Errorf("%s asks the provider with %v", address, q)
		}
	}
}

func TestLoginRefused(t *testing.T) {
	g := newGateway(t)
	for name, c := range map[string]struct {
		claims object
		answer url.Values
		status int
		text   string
	}{
		"no organization":            {object{"org_id": nil}, nil, http.StatusForbidden, "names no organization"},
		"two organizations":          {object{"org_id": []string{"a", "b"}}, nil, http.StatusForbidden, "names no organization"},
		"a machine":                  {object{"sub": client}, nil, http.StatusForbidden, "does not fit"},
		"another login's nonce":      {object{"nonce": "x"}, nil, http.StatusForbidden, "does not fit"},
		"an access token":            {object{"typ": "Bearer"}, nil, http.StatusForbidden, "does not fit"},
		"for the gateway":            {object{"aud": public}, nil, http.StatusForbidden, "does not fit"},
		"for another client":         {object{"azp": "other"}, nil, http.StatusForbidden, "does not fit"},
		"another issuer":             {object{"iss": "https://other.example.com"}, nil, http.StatusForbidden, "does not fit"},
		"A04 an answer of another's": {nil, url.Values{"iss": {"https://other.example.com"}}, http.StatusForbidden, "does not fit"},
		"A10 an error":               {nil, url.Values{"code": nil, "error": {"access_denied"}, "error_description": {"<script>alert(1)</script>"}}, http.StatusForbidden, "access was denied there"},
		"it has to ask":              {nil, url.Values{"code": nil, "error": {"interaction_required"}}, http.StatusForbidden, "ask you something first"},
		"it has trouble":             {nil, url.Values{"code": nil, "error": {"temporarily_unavailable"}}, http.StatusForbidden, "Try again later"},
		"scopes":                     {nil, url.Values{"code": nil, "error": {"invalid_scope"}}, http.StatusForbidden, "ask for its scopes"},
		"the client":                 {nil, url.Values{"code": nil, "error": {"unauthorized_client"}}, http.StatusForbidden, "registration there"},
		"the request":                {nil, url.Values{"code": nil, "error": {"invalid_request"}}, http.StatusForbidden, "does not take the gateway&#39;s request"},
		"the kind of answer":         {nil, url.Values{"code": nil, "error": {"unsupported_response_type"}}, http.StatusForbidden, "registration there"},
		"its server fails":           {nil, url.Values{"code": nil, "error": {"server_error"}}, http.StatusForbidden, "Try again later"},
		"another code":               {nil, url.Values{"code": nil, "error": {"tenant_paused"}}, http.StatusForbidden, "log has it"},
		"A10 no code at all":         {nil, url.Values{"code": nil, "error": {"<script>alert(1)</script>"}}, http.StatusForbidden, "does not fit"},
		"another state":              {nil, url.Values{"state": {"x"}}, http.StatusBadRequest, "was not begun"},
		"two states":                 {nil, url.Values{"state": {"x", "y"}}, http.StatusBadRequest, "was not begun"},
	} {
		t.Run(name, func(t *testing.T) {
			b := g.begin(t, "/login")
			claims := object{"nonce": b.query.Get("nonce")}
			maps.Copy(claims, c.claims)
			g.issuer.Login(client, claims)
			a := g.end(b, c.answer)
			a.page(t, c.status, c.text)
			if set := a.cookies(); set["__Host-durward"] != nil || set["__Host-durward-login"] == nil {
				t.Errorf("cookies %v", set)
			}
			// In every case the attempt is over when its state was named.
			if c.status != http.StatusBadRequest {
				g.end(b, nil).page(t, http.StatusBadRequest)
			}
		})
	}
	t.Run("no cookie, somebody else's, or a session's", func(t *testing.T) {
		b, other := g.begin(t, "/login"), g.begin(t, "/login")
		_, session := g.user("alice@example.test")
		name, _, _ := strings.Cut(b.cookie, "=")
		_, foreign, _ := strings.Cut(other.cookie, "=")
		for _, cookie := range []string{"", other.cookie, name + "=" + foreign, b.cookie + "; " + b.cookie, name + "=" + strings.TrimPrefix(session, "__Host-durward=")} {
			g.end(begun{cookie: cookie, query: b.query}, nil).page(t, http.StatusBadRequest)
		}
	})
	t.Run("the issuer is down", func(t *testing.T) {
		b := g.begin(t, "/login")
		g.issuer.SetDown(true)
		defer g.issuer.SetDown(false)
		g.end(b, nil).page(t, http.StatusServiceUnavailable, "no usable answer from the identity provider "+g.issuer.URL)
	})
}

// TestLoginRefusedAtTheTokenEndpoint checks that a refusal that another try cannot mend names who can mend it.
func TestLoginRefusedAtTheTokenEndpoint(t *testing.T) {
	g := newGateway(t)
	for name, c := range map[string]struct {
		refusal object
		text    string
	}{
		"the client":         {object{"error": "invalid_client", "error_description": "<b>no such secret</b>"}, "at its secret"},
		"in GitHub's words":  {object{"error": "incorrect_client_credentials"}, "at its secret"},
		"the kind of client": {object{"error": "unsupported_grant_type"}, "registration there"},
		"the request":        {object{"error": "invalid_request"}, "its redirect URI first"},
		"another code":       {object{"error": "tenant_paused"}, "log has it"},
		"no code":            {object{"message": "no"}, "log has it"},
	} {
		t.Run(name, func(t *testing.T) {
			b := g.begin(t, "/login")
			g.issuer.Login(client, object{"nonce": b.query.Get("nonce")})
			g.issuer.Refuse(c.refusal)
			defer g.issuer.Refuse(nil)
			a := g.end(b, nil)
			a.page(t, http.StatusForbidden, c.text)
			if strings.Contains(a.body, "in a moment") || strings.Contains(a.body, "no such secret") {
				t.Errorf("the page:\n%s", a.body)
			}
		})
	}
	t.Run("for now", func(t *testing.T) {
		b := g.begin(t, "/login")
		g.issuer.Refuse(object{"error": "temporarily_unavailable"})
		defer g.issuer.Refuse(nil)
		a := g.end(b, nil)
		a.page(t, http.StatusServiceUnavailable, "if it stays so, ask the gateway&#39;s operator", ">Try again</a>")
		if a.header.Get("Retry-After") == "" {
			t.Error("nothing says when to try again")
		}
	})
}

// TestLoginByUserinfo checks that a provider that keeps all but the subject in userinfo logs users in (W23).
func TestLoginByUserinfo(t *testing.T) {
	g := newGateway(t)
	const subject = "0192f0c1-5bd2-7000-8000-00000000a11d"
	bare := func(nonce string) object {
		return object{"nonce": nonce, "sub": subject, "org_id": nil, "email": nil, "name": nil}
	}
	g.issuer.SetUserinfo(object{"sub": subject, "org_id": organization, "email": "dora@example.test"})
	b := g.begin(t, "/login")
	g.issuer.Login(client, bare(b.query.Get("nonce")))
	a := g.end(b, nil)
	if a.status != http.StatusSeeOther {
		t.Fatalf("%d %s", a.status, a.body)
	}
	c := a.cookies()["__Host-durward"]
	g.get("/approvals", c.Name+"="+c.Value).page(t, http.StatusOK, "dora@example.test")

	g.issuer.SetUserinfo(object{"sub": "somebody-else", "org_id": organization})
	b = g.begin(t, "/login")
	g.issuer.Login(client, bare(b.query.Get("nonce")))
	g.end(b, nil).page(t, http.StatusForbidden, "does not fit")
}

// TestLoginToAnotherOrganization checks that the page says what is wrong and offers another try (W20).
func TestLoginToAnotherOrganization(t *testing.T) {
	issuer := caddytest.NewIssuer(t)
	g := startGateway(t, issuer, object{"kind": "oidc", "issuer": issuer.URL, "login_client": client, "organization": organization})
	b := g.begin(t, "/login")
	issuer.Login(client, object{"nonce": b.query.Get("nonce"), "org_id": "other"})
	a := g.end(b, nil)
	a.page(t, http.StatusForbidden, "another organization", "Try again")
	b = g.begin(t, "/login")
	issuer.Login(client, object{"nonce": b.query.Get("nonce"), "org_id": nil})
	if a := g.end(b, nil); a.status != http.StatusSeeOther {
		t.Errorf("without a claim: %d %s", a.status, a.body)
	}
}

func TestSeveralIssuers(t *testing.T) {
	first, second, third := caddytest.NewIssuer(t), caddytest.NewIssuer(t), caddytest.NewIssuer(t)
	g := startGateway(t, first, object{"kind": "oidc", "issuer": first.URL, "login_client": client},
		object{"kind": "oidc", "issuer": second.URL, "login_client": client}, object{"kind": "oidc", "issuer": third.URL})
	a := g.get("/login?return=/approvals/7", "")
	a.page(t, http.StatusOK, first.URL, second.URL, "return=%2Fapprovals%2F7")
	if strings.Contains(a.body, third.URL) {
		t.Error("an issuer without a login client is offered")
	}
	g.get("/login?"+url.Values{"issuer": {third.URL}}.Encode(), "").page(t, http.StatusBadRequest)
	b := g.begin(t, "/login?"+url.Values{"issuer": {first.URL}}.Encode())
	// The other one's token, under the first one's attempt.
	first.Login(client, object{"nonce": b.query.Get("nonce"), "iss": second.URL})
	g.end(b, nil).page(t, http.StatusForbidden)
}

// TestWithoutLoginClient checks that without a login client there are no pages, and the callback knows that nobody is
// logged in.
func TestWithoutLoginClient(t *testing.T) {
	issuer := caddytest.NewIssuer(t)
	g := startGateway(t, issuer, object{"kind": "oidc", "issuer": issuer.URL})
	for _, path := range []string{"/login", "/approvals", "/approvals/x", "/login/callback?code=x&state=y"} {
		g.get(path, "").page(t, http.StatusNotFound, "no login for browsers")
	}
	g.get(paths.Callback+"?state=x", "")
	if g.browser == nil || g.browser.User != nil {
		t.Errorf("at the callback: %+v", g.browser)
	}
}
