package integration

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

// TestAttackState checks that a state is good once, for whom it was made, and nothing else makes the gateway ask a
// provider (A01).
func TestAttackState(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	p := newGrantor(t)
	s := g.createServer(p.mcpURL(), p.entry())
	token := g.token(alice)
	good := p.consent(g.beginConnect(token, s))
	state := good.Get("state")
	for _, tc := range []struct{ name, query string }{
		{"A01 no state", "code=x"},
		{"A01 empty state", "code=x&state="},
		{"A01 unknown state", "code=x&state=" + strings.Repeat("a", 43)},
		{"A01 state twice", "code=x&state=" + state + "&state=" + state},
		{"A01 state in other case", "code=x&state=" + strings.ToUpper(state) + "&x=" + strings.ToLower(state)},
		{"A01 state with a blank", "code=x&state=" + state + "%20"},
		{"A01 state of 1 MiB", "code=x&state=" + strings.Repeat("a", 900<<10)},
		{"Q01 SQL for a state", "code=x&state=" + url.QueryEscape("' OR 1=1--")},
		{"P06 10,001 parameters", strings.Repeat("a=b&", 10_001) + "state=" + state},
		{"P06 semicolon", "code=x;state=" + state},
		{"A01 half an escape", "code=x&state=%"},
		{"nothing", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := g.send(http.MethodGet, "/api/oauth/callback?"+tc.query, "", nil)
			if len(tc.query) > 16<<10 && a.status == http.StatusRequestHeaderFieldsTooLarge {
				return // the server has refused it before any handler
			}
			checkPage(t, a.want(t, http.StatusBadRequest))
			if n := p.asked("/token"); n != 0 {
				t.Errorf("the provider was asked %d times", n)
			}
		})
	}
	for _, method := range []string{http.MethodPost, http.MethodHead, http.MethodPut} {
		t.Run("R02 "+method, func(t *testing.T) {
			g.send(method, "/api/oauth/callback?"+good.Encode(), "", nil).want(t, http.StatusMethodNotAllowed)
		})
	}
	t.Run("A01 used twice", func(t *testing.T) {
		checkPage(t, g.returnTo(good).want(t, http.StatusOK))
		checkPage(t, g.returnTo(good).want(t, http.StatusBadRequest))
		if n := p.asked("/token"); n != 1 {
			t.Errorf("the provider was asked %d times", n)
		}
		if got := g.connection(token, s); got != "connected" {
			t.Errorf("the connection is %s", got)
		}
	})
	t.Run("A01 used by many at once", func(t *testing.T) {
		query := p.consent(g.beginConnect(g.token(bob), s))
		before := p.asked("/token")
		var all sync.WaitGroup
		results := make([]int, 16)
		for i := range results {
			all.Go(func() { results[i] = g.returnTo(query).status })
		}
		all.Wait()
		slices.Sort(results)
		if n := p.asked("/token") - before; n != 1 || results[0] != http.StatusOK || results[1] != http.StatusBadRequest {
			t.Errorf("%d token requests, answers %v", n, results)
		}
	})
	t.Run("A01 of a server that is gone", func(t *testing.T) {
		other := g.createServer(p.mcpURL(), p.entry())
		query := p.consent(g.beginConnect(token, other))
		g.api(g.token(admin), http.MethodDelete, "/api/servers/"+other.ID, nil)
		before := p.asked("/token")
		g.returnTo(query).want(t, http.StatusBadRequest)
		if n := p.asked("/token"); n != before {
			t.Error("the provider was asked")
		}
	})
}

// checkPage checks A11 and A17 on a page of the gateway.
func checkPage(t *testing.T, a answer) {
	t.Helper()
	for name, want := range map[string]string{
		"Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
		"Content-Type": "text/html; charset=utf-8",
	} {
		if got := a.header.Get(name); got != want {
			t.Errorf("A11 %s: %q", name, got)
		}
	}
	policy := a.header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") {
		t.Errorf("A11 Content-Security-Policy: %s", policy)
	}
	// The script for times is the one that a page may have. The policy lets a script run on no other page.
	const times = `<script src="/approvals/times.js" defer></script>`
	n := strings.Count(string(a.body), times)
	if strings.Count(string(a.body), "<script") != n || n > 1 || strings.Contains(policy, "script-src 'self'") != (n == 1) ||
		strings.Count(policy, "script-src") != n || a.header.Get("Set-Cookie") != "" {
		t.Errorf("the page is %s, its policy %s", a.body, policy)
	}
}

var undoField = regexp.MustCompile(`name="undo" value="([^"]+)"`)

// TestAttackOtherUser checks A02 and A03 where the state alone decides. The attempt belongs to the user who began it,
// the page names that user, and a victim who was lured there can undo it.
func TestAttackOtherUser(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	p := newGrantor(t)
	s := g.createServer(p.mcpURL(), p.entry())
	query := p.consent(g.beginConnect(g.token(alice), s))
	// bob's browser opens alice's link, with bob's own token even.
	a := g.send(http.MethodGet, "/api/oauth/callback?"+query.Encode(), g.token(bob), nil).want(t, http.StatusOK)
	checkPage(t, a)
	if page := string(a.body); !strings.Contains(page, "alice@acme.test") || strings.Contains(page, "bob") {
		t.Errorf("A02 the page does not say whose connection it is: %s", page)
	}
	if mine, theirs := g.connection(g.token(alice), s), g.connection(g.token(bob), s); mine != "connected" || theirs != "available" {
		t.Errorf("A03 alice is %s, bob is %s", mine, theirs)
	}
	undo := undoField.FindSubmatch(a.body)
	if undo == nil {
		t.Fatalf("no undo on %s", a.body)
	}
	form := func(token string) answer {
		return g.send(http.MethodPost, "/api/oauth/undo", "", "undo="+url.QueryEscape(token), "Content-Type", "application/x-www-form-urlencoded", "Origin", "null")
	}
	for _, wrong := range []string{"", "x", string(undo[1]) + "a", strings.Repeat("a", 20_000)} {
		checkPage(t, form(wrong).want(t, http.StatusBadRequest))
	}
	g.send(http.MethodGet, "/api/oauth/undo?undo="+string(undo[1]), "", nil).want(t, http.StatusMethodNotAllowed)
	g.send(http.MethodPost, "/api/oauth/undo?undo="+string(undo[1]), "", "", "Content-Type", "application/x-www-form-urlencoded").want(t, http.StatusBadRequest)
	if got := g.connection(g.token(alice), s); got != "connected" {
		t.Errorf("undone by a wrong token: %s", got)
	}
	checkPage(t, form(string(undo[1])).want(t, http.StatusOK))
	if got := g.connection(g.token(alice), s); got == "connected" {
		t.Error("A02 the connection was not undone")
	}
	rig.Eventually(t, "the tokens to be revoked", func() bool { return p.asked("/revoke") > 0 })
	form(string(undo[1])).want(t, http.StatusBadRequest)
	g.send(http.MethodPost, s.path, g.token(alice), echoCall, "Accept", bothKinds).wantConnect(t)
}

// TestAttackAnswerOfProvider checks that answers to the callback, and of the token endpoint, are stored only when they
// are right (A04, A07, A09, A10).
func TestAttackAnswerOfProvider(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	token := g.token(alice)
	tokens := func(body string) func(w http.ResponseWriter, r *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, body)
			return true
		}
	}
	const canary = "canary-of-the-provider"
	for _, tc := range []struct {
		name   string
		change func(query url.Values)
		answer func(w http.ResponseWriter, r *http.Request) bool
		asked  int // token requests
		ok     bool
	}{
		{name: "A04 no iss though promised", change: func(q url.Values) { q.Del("iss") }},
		{name: "A04 iss of another", change: func(q url.Values) { q.Set("iss", "https://evil.example") }},
		{name: "A04 iss with a slash", change: func(q url.Values) { q.Set("iss", q.Get("iss")+"/") }},
		{name: "A04 iss in other case", change: func(q url.Values) { q.Set("iss", strings.ToUpper(q.Get("iss"))) }},
		{name: "A04 iss twice", change: func(q url.Values) { q.Add("iss", q.Get("iss")) }},
		{name: "A04 wrong iss with an error", change: func(q url.Values) {
			q.Del("code")
			q.Set("iss", "https://evil.example")
			q.Set("error", "access_denied")
			q.Set("error_description", canary)
		}},
		{name: "A10 error with a script", change: func(q url.Values) {
			q.Del("code")
			q.Set("error", "<script>alert(1)</script>")
			q.Set("error_description", "<script>"+canary+"</script>")
		}},
		{name: "A10 access denied", change: func(q url.Values) {
			q.Del("code")
			q.Set("error", "access_denied")
			q.Set("error_description", canary)
			q.Set("error_uri", "https://evil.example/"+canary)
		}},
		{name: "A01 no code", change: func(q url.Values) { q.Del("code") }},
		{name: "A01 code twice", change: func(q url.Values) { q.Add("code", "other") }},
		{name: "A01 code and error", change: func(q url.Values) { q.Set("error", "access_denied") }},
		{name: "A07 code of another attempt", change: func(q url.Values) { q.Set("code", "code-of-somebody-else") }, asked: 1},
		{name: "A09 no token_type, as LinkedIn answers", answer: tokens(`{"access_token":"a"}`), ok: true, asked: 1},
		{name: "A09 token_type DPoP", answer: tokens(`{"access_token":"` + canary + `","token_type":"DPoP"}`), asked: 1},
		{name: "A09 token_type mac", answer: tokens(`{"access_token":"` + canary + `","token_type":"mac"}`), asked: 1},
		{name: "A09 no access_token", answer: tokens(`{"token_type":"Bearer"}`), asked: 1},
		{name: "A09 access_token of a number", answer: tokens(`{"access_token":1,"token_type":"Bearer"}`), asked: 1},
		{name: "A09 access_token twice", answer: tokens(`{"access_token":"a","access_token":"b","token_type":"Bearer"}`), asked: 1},
		{name: "A09 H08 access_token with a line end", answer: tokens(`{"access_token":"a\r\nX-Evil: b","token_type":"Bearer"}`), asked: 1},
		{name: "A09 access_token of 1 MiB", answer: tokens(`{"access_token":"` + strings.Repeat("a", 1<<20) + `","token_type":"Bearer"}`), asked: 1},
		{name: "A09 HTML", answer: func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, `<html>access_token=a&token_type=Bearer</html>`)
			return true
		}, asked: 1},
		{name: "A09 307", answer: func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Location", "/token2")
			w.WriteHeader(http.StatusTemporaryRedirect)
			return true
		}, asked: 1},
		{name: "A09 200 with an error", answer: tokens(`{"error":"invalid_grant","error_description":"` + canary + `"}`), asked: 1},
		{name: "A09 expires_in 0 or less: as if nobody had said", answer: tokens(`{"access_token":"a","token_type":"Bearer","expires_in":-1}`), ok: true, asked: 1},
		{name: "A09 lower-case bearer, extra members, text for expires_in, id_token that is not signed", ok: true, asked: 1,
			answer: tokens(`{"access_token":"a","token_type":"bearer","expires_in":"3600","scope":"read write admin","id_token":"e30.e30.","extra":{"a":[1]}}`)},
		{name: "A09 expires_in of ages", answer: tokens(`{"access_token":"a","token_type":"Bearer","expires_in":1000000000000}`), ok: true, asked: 1},
		{name: "A09 no expires_in", answer: tokens(`{"access_token":"a","token_type":"Bearer"}`), ok: true, asked: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := newGrantor(t)
			p.answer = tc.answer
			s := g.createServer(p.mcpURL(), p.entry())
			query := p.consent(g.beginConnect(token, s))
			if tc.change != nil {
				tc.change(query)
			}
			a := g.returnTo(query)
			checkPage(t, a)
			if n := p.asked("/token"); n != tc.asked {
				t.Errorf("%d token requests instead of %d", n, tc.asked)
			}
			if p.asked("/token2") != 0 {
				t.Error("A09 the redirect was followed")
			}
			if strings.Contains(string(a.body), canary) || strings.Contains(string(a.body), "evil") {
				t.Errorf("A10 the page repeats what the provider says: %s", a.body)
			}
			status, want := http.StatusBadRequest, "error"
			if tc.ok {
				status, want = http.StatusOK, "connected"
			}
			if a.status != status {
				t.Errorf("answered %d %s", a.status, a.body)
			}
			if got := g.connection(token, s); got != want {
				t.Errorf("the connection is %s", got)
			}
		})
	}
	if strings.Contains(g.output.String(), canary) {
		t.Error("the log holds what the provider says")
	}
}

// TestAttackFailureKeepsConnection checks that a failed attempt leaves what is stored alone.
func TestAttackFailureKeepsConnection(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	p := newGrantor(t)
	s := g.createServer(p.mcpURL(), p.entry())
	token := g.token(alice)
	g.attackConnect(token, s, p).want(t, http.StatusOK)
	query := p.consent(g.beginConnect(token, s))
	query.Set("code", "stolen")
	g.returnTo(query).want(t, http.StatusBadRequest)
	if got := g.connection(token, s); got != "connected" {
		t.Errorf("the connection is %s", got)
	}
	g.send(http.MethodPost, s.path, token, pingMessage, "Accept", bothKinds).want(t, http.StatusOK)
}

// TestAttackAuthURL checks that no two authorization requests share anything that must not be guessed, and none gives
// away a secret (A06).
func TestAttackAuthURL(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	p := newGrantor(t)
	s := g.createServer(p.mcpURL(), p.entry())
	token := g.token(alice)
	seen := map[string]bool{}
	for range 200 {
		u, err := url.Parse(g.beginConnect(token, s))
		if err != nil {
			t.Fatal(err)
		}
		query := u.Query()
		state, challenge := query.Get("state"), query.Get("code_challenge")
		if len(state) < 43 || len(challenge) != 43 || seen[state] || seen[challenge] {
			t.Fatalf("A06 state %q, challenge %q", state, challenge)
		}
		seen[state], seen[challenge] = true, true
		for name, want := range map[string]string{
			"response_type": "code", "code_challenge_method": "S256", "resource": p.mcpURL(), "redirect_uri": g.url + "/api/oauth/callback", "scope": "read",
		} {
			if values := query[name]; len(values) != 1 || values[0] != want {
				t.Fatalf("A06 %s: %q", name, values)
			}
		}
		for _, name := range []string{"client_secret", "code_verifier", "access_token", "user", "login_hint"} {
			if query.Has(name) {
				t.Fatalf("A06 %s is in the address", name)
			}
		}
	}
	if n := p.asked("/register"); n != 1 {
		t.Errorf("%d clients were registered", n)
	}
}

// TestAttackReturnURL checks A08 and open redirects.
func TestAttackReturnURL(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{option: "return_url https://app.example.test/after https://plain.example.test"})
	p := newGrantor(t)
	s := g.createServer(p.mcpURL(), p.entry())
	token := g.token(alice)
	for _, tc := range []struct {
		address string
		allowed bool
	}{
		{"https://app.example.test/after", true},
		{"https://app.example.test/after/login?x=1", true},
		{"https://plain.example.test", true},
		{"https://app.example.test/afterwards", false},
		{"https://app.example.test/after/../x", false},
		{"https://app.example.test/after/%2e%2e/x", false},
		{"https://app.example.test/after/..;/x", false},
		{"https://app.example.test/after%2f..", false},
		{"https://app.example.test/", false},
		{"http://app.example.test/after", false},
		{"https://app.example.test:444/after", false},
		{"https://sub.app.example.test/after", false},
		{"https://app.example.test.evil.example/after", false},
		{"https://app.example.test@evil.example/after", false},
		{"https://evil.example/https://app.example.test/after", false},
		{`https://evil.example\@app.example.test/after`, false},
		{"//app.example.test/after", false},
		{"/after", false},
		{"javascript:alert(1)//app.example.test/after", false},
		{"data:text/html,x", false},
		{"https://app.example.test/after#x", false},
		{"https://app.example.test/after\r\nSet-Cookie: a=b", false},
		{"https://app.example.test/after\t", false},
		{" https://app.example.test/after", false},
		{"https://app.example.test/after?" + strings.Repeat("a", 2048), false},
		{"{env.HOME}", false},
	} {
		t.Run("A08 "+tail(tc.address, 60), func(t *testing.T) {
			a := g.send(http.MethodPost, "/api/servers/"+s.ID+"/connect?return_url="+url.QueryEscape(tc.address), token, map[string]any{})
			if !tc.allowed {
				a.want(t, http.StatusUnprocessableEntity)
				return
			}
			var begun struct {
				AuthURL string `json:"auth_url"`
			}
			a.want(t, http.StatusOK).decode(t, &begun)
			back := g.returnTo(p.consent(begun.AuthURL)).want(t, http.StatusSeeOther)
			location := back.header.Get("Location")
			if !strings.HasPrefix(location, tc.address) || !strings.Contains(location, "status=connected&server="+s.Slug) ||
				strings.Contains(location, "code=") || strings.Contains(location, "state=") {
				t.Errorf("A11 the browser goes to %s", location)
			}
			if back.header.Get("Referrer-Policy") != "no-referrer" || back.header.Get("Cache-Control") != "no-store" {
				t.Errorf("A11 %v", back.header)
			}
		})
	}
}

// TestAttackRefresh checks A13, A14, A15 and the injection of the user's own token.
func TestAttackRefresh(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	connected := func(t *testing.T) (*grantor, server, string) {
		p := newGrantor(t)
		s := g.createServer(p.mcpURL(), p.entry())
		token := g.token(alice)
		g.attackConnect(token, s, p).want(t, http.StatusOK)
		return p, s, token
	}
	call := func(s server, token string) answer {
		return g.send(http.MethodPost, s.path, token, echoCall, "Accept", bothKinds)
	}
	refreshes := func(p *grantor) int { return p.asked("/token") - 1 }
	t.Run("A13 many calls, one refresh", func(t *testing.T) {
		p, s, token := connected(t)
		p.forgetAccess()
		var all sync.WaitGroup
		results := make([]int, 100)
		for i := range results {
			all.Go(func() { results[i] = call(s, token).status })
		}
		all.Wait()
		for _, status := range results {
			if status != http.StatusOK {
				t.Fatalf("answered %v", results)
			}
		}
		if refreshes(p) != 1 || p.reuses != 0 {
			t.Errorf("%d refreshes, %d reuses", refreshes(p), p.reuses)
		}
	})
	t.Run("A14 invalid_grant ends the connection once", func(t *testing.T) {
		p, s, token := connected(t)
		p.set(func() { clear(p.access); clear(p.refresh) })
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() { call(s, token).wantConnect(t) })
		}
		all.Wait()
		if n := refreshes(p); n != 1 {
			t.Errorf("%d refreshes", n)
		}
		if got := g.connection(token, s); got != "error" {
			t.Errorf("the connection is %s", got)
		}
		// The user connects anew.
		g.attackConnect(token, s, p).want(t, http.StatusOK)
		call(s, token).want(t, http.StatusOK)
	})
	t.Run("A15 an upstream that refuses every token", func(t *testing.T) {
		p, s, token := connected(t)
		p.set(func() { p.refuseAll = true })
		rejected := p.rejected
		a := call(s, token).wantConnect(t)
		if a.header.Get("WWW-Authenticate") != "" {
			t.Errorf("the upstream's challenge was passed on: %s", a.header.Get("WWW-Authenticate"))
		}
		if refreshes(p) != 1 || p.rejected-rejected != 2 {
			t.Errorf("%d refreshes, %d calls", refreshes(p), p.rejected-rejected)
		}
		for range 5 {
			call(s, token).wantConnect(t)
		}
		if refreshes(p) != 1 {
			t.Errorf("%d refreshes after more calls", refreshes(p))
		}
	})
	t.Run("Z-A01 a provider that is away", func(t *testing.T) {
		p, s, token := connected(t)
		p.forgetAccess()
		p.set(func() {
			p.answer = func(w http.ResponseWriter, _ *http.Request) bool {
				w.WriteHeader(http.StatusServiceUnavailable)
				return true
			}
		})
		for range 5 {
			if a := call(s, token).wantError(t, http.StatusServiceUnavailable, "Unavailable"); a.header.Get("Retry-After") == "" {
				t.Error("503 without Retry-After")
			}
		}
		if n := refreshes(p); n != 1 {
			t.Errorf("%d refreshes while the provider is away", n)
		}
		if got := g.connection(token, s); got != "connected" {
			t.Errorf("the connection is %s", got)
		}
	})
	t.Run("A18 a wider scope is never taken by itself", func(t *testing.T) {
		p, s, token := connected(t)
		p.set(func() {
			p.serve = func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="admin", resource_metadata="https://evil.example"`)
				w.WriteHeader(http.StatusForbidden)
			}
		})
		a := call(s, token).wantConnect(t)
		if a.header.Get("WWW-Authenticate") != "" || refreshes(p) != 0 {
			t.Errorf("%v, %d refreshes", a.header, refreshes(p))
		}
		var began struct {
			URL string `json:"auth_url"`
		}
		g.api(token, http.MethodPost, "/api/servers/"+s.ID+"/connect", members{}).decode(t, &began)
		if u, err := url.Parse(began.URL); err != nil || !slices.Contains(strings.Fields(u.Query().Get("scope")), "admin") {
			t.Errorf("the next connect asks for %s", began.URL)
		}
		if got := g.connection(token, s); got != "connected" {
			t.Errorf("the connection is %s", got)
		}
	})
	t.Run("A16 disconnecting revokes and ends streams", func(t *testing.T) {
		p, s, token := connected(t)
		p.set(func() {
			p.serve = func(w http.ResponseWriter, r *http.Request) { beginEvents(w); <-r.Context().Done() }
		})
		stream := g.listen(http.MethodGet, s.path, token, nil, "Accept", "text/event-stream")
		g.api(token, http.MethodDelete, "/api/servers/"+s.ID+"/connection", nil)
		stream.ended()
		rig.Eventually(t, "the tokens to be revoked", func() bool { return p.asked("/revoke") > 0 })
		call(s, token).wantConnect(t)
		g.send(http.MethodDelete, "/api/servers/"+s.ID+"/connection", token, nil).wantError(t, http.StatusNotFound, "ConnectionNotFound")
	})
	t.Run("A16 deleting the server revokes for everybody", func(t *testing.T) {
		p, s, token := connected(t)
		g.attackConnect(g.token(bob), s, p).want(t, http.StatusOK)
		g.api(g.token(admin), http.MethodDelete, "/api/servers/"+s.ID, nil)
		rig.Eventually(t, "the tokens to be revoked", func() bool { return p.asked("/revoke") >= 2 })
		call(s, token).wantError(t, http.StatusNotFound, "ServerNotFound")
	})
}

// TestAttackTwoClients checks that consent that one user gave once is asked for again at the next attempt, of any user
// (A17).
func TestAttackTwoClients(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	p := newGrantor(t)
	s := g.createServer(p.mcpURL(), p.entry())
	g.attackConnect(g.token(alice), s, p).want(t, http.StatusOK)
	for name, caller := range map[string]claims{"O07 another user": bob, "O07 the administrator": admin} {
		t.Run(name, func(t *testing.T) {
			before := p.calls
			g.send(http.MethodPost, s.path, g.token(caller), echoCall, "Accept", bothKinds).wantConnect(t)
			if p.calls != before {
				t.Error("the upstream was called")
			}
			if got := g.connection(g.token(caller), s); got != "available" {
				t.Errorf("O08 the connection is %s", got)
			}
		})
	}
	t.Run("A17 another agent of the same user uses it", func(t *testing.T) {
		other := g.token(alice.with(claims{"azp": "other-agent", "client_id": "other-agent"}))
		g.send(http.MethodPost, s.path, other, pingMessage, "Accept", bothKinds).want(t, http.StatusOK)
	})
	if got := fmt.Sprint(p.tokens); strings.Contains(got, g.token(alice)) {
		t.Error("the caller's token went to the provider")
	}
}
