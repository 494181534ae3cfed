package session_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/identity/websession"
	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/storage"
)

func (a answer) page(t *testing.T, status int, texts ...string) {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d instead of %d: %s", a.status, status, a.body)
	}
	for name, want := range map[string]string{
		"Referrer-Policy": "no-referrer", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
		"Content-Type": "text/html; charset=utf-8",
	} {
		if got := a.header.Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if csp := a.header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") {
		t.Errorf("Content-Security-Policy: %s", csp)
	}
	body := strings.ReplaceAll(a.body, "&#43;", "+") // html/template escapes it too
	for _, text := range texts {
		if !strings.Contains(body, text) {
			t.Errorf("the page does not show %q: %s", text, a.body)
		}
	}
	// Pages with times have the script for them, others none, and what may run is said on no other page.
	want := 0
	if strings.Contains(a.body, "<time") {
		want = 1
	}
	const times = `<script src="/approvals/times.js" defer></script>`
	if n := strings.Count(a.body, "<script"); n != strings.Count(a.body, times) || n < want {
		t.Errorf("the page's scripts are not the one for times: %s", a.body)
	}
	if may := strings.Contains(a.header.Get("Content-Security-Policy"), "; script-src 'self'"); may != strings.Contains(a.body, times) {
		t.Errorf("the policy says otherwise than the page: %s", a.header.Get("Content-Security-Policy"))
	}
}

// TestTimesScript checks that the script for times comes from below the pages that have it, and tells nobody anything.
func TestTimesScript(t *testing.T) {
	g := newGateway(t)
	a := g.get("/approvals/times.js", "")
	if a.status != http.StatusOK || a.header.Get("Content-Type") != "text/javascript; charset=utf-8" || !strings.HasPrefix(a.body, "for (const time of ") {
		t.Errorf("%d %v: %s", a.status, a.header, a.body)
	}
	if a := g.post("/approvals/times.js", "", nil); a.status != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", a.status)
	}
}

func TestDeciding(t *testing.T) {
	g := newGateway(t)
	alice, cookie := g.user("alice@example.test")
	for says, want := range map[string]storage.ApprovalStatus{"approve": storage.ApprovalApproved, "deny": storage.ApprovalDenied} {
		held := g.hold(alice, "delete_issue", `{"number":7,"why":"`+says+`"}`)
		g.get("/approvals", cookie).page(t, http.StatusOK, "delete_issue", "Notes &lt;b&gt; (notes)", "a client that is not registered", "alice@example.test")
		page := g.get("/approvals/"+held.ID, cookie)
		page.page(t, http.StatusOK, "delete_issue", "some-agent", "rule ask", "minutes left", "Pending approvals", "less than a minute ago", " UTC</time>", "<bdi>&#34;number&#34;</bdi>: 7", "<bdi>&#34;"+says+"&#34;</bdi>", held.ArgumentsDigest, "Approve this call")
		form := page.form(t, says)
		a := g.post("/approvals/"+held.ID, cookie, form, "Origin: null", "Sec-Fetch-Site: same-origin")
		if a.status != http.StatusSeeOther || a.header.Get("Location") != "/approvals/"+held.ID || g.status(held.ID) != want {
			t.Errorf("%s: %d %v, %s", says, a.status, a.header, g.status(held.ID))
		}
		decided, err := g.core.Approvals.Approval(t.Context(), organization, held.ID)
		if err != nil || decided.DecidedVia != storage.ChannelOutOfBand || decided.DecidedBy != alice || decided.DecidedClient != "" {
			t.Errorf("%+v, %v", decided, err)
		}
		after := g.get("/approvals/"+held.ID, cookie)
		after.page(t, http.StatusOK, "You have ", string(want), "decided at", map[string]string{"approve": "tell your agent to try again", "deny": "Nothing was executed"}[says])
		if strings.Contains(after.body, "Approve this call") {
			t.Error("it can be decided again")
		}
		g.post("/approvals/"+held.ID, cookie, form).page(t, http.StatusConflict)
		if got := g.get("/approvals", cookie); !strings.Contains(got.body, "Nothing waits for you") {
			t.Errorf("it still waits: %s", got.body)
		}
	}
}

var formTokens = regexp.MustCompile(`name="form" value="[^"]+"`)

// TestDecidingForAnother checks that nobody decides on another one's call, an administrator neither, and no token does
// it on the page (R04, R05).
func TestDecidingForAnother(t *testing.T) {
	g := newGateway(t)
	alice, cookie := g.user("alice@example.test")
	_, bob := g.user("bob@example.test")
	held := g.hold(alice, "delete_issue", `{}`)
	form := g.get("/approvals/"+held.ID, cookie).form(t, "approve")
	unknown := g.get("/approvals/"+uuid.NewString(), bob)
	unknown.page(t, http.StatusNotFound)
	if got := g.get("/approvals/"+held.ID, bob); got.status != unknown.status || formTokens.ReplaceAllString(got.body, "") != formTokens.ReplaceAllString(unknown.body, "") {
		t.Errorf("R04: %d %s", got.status, got.body)
	}
	if got := g.get("/approvals", bob); strings.Contains(got.body, "delete_issue") {
		t.Errorf("R04 the list: %s", got.body)
	}
	g.post("/approvals/"+held.ID, bob, form).page(t, http.StatusNotFound)
	for name, path := range map[string]string{"not an id": "/approvals/x", "a path": "/approvals/" + held.ID + "/approve", "a query": "/approvals/?id=" + held.ID, "upper case": "/approvals/" + strings.ToUpper(held.ID)} {
		if got := g.get(path, cookie); got.status != http.StatusNotFound {
			t.Errorf("%s: %d", name, got.status)
		}
	}
	token := g.issuer.Token(public, object{"sub": alice, "azp": client})
	for name, line := range map[string]string{"R05 a token": "Authorization: Bearer " + token, "a token as a cookie": "Cookie: __Host-durward=" + token} {
		a := g.send("GET /approvals/" + held.ID + " HTTP/1.1\n" + line)
		if a.status != http.StatusSeeOther || !strings.HasPrefix(a.header.Get("Location"), "/login?return=%2Fapprovals%2F") {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
		a = g.send("POST /approvals/" + held.ID + " HTTP/1.1\n" + line + "\nContent-Type: application/x-www-form-urlencoded\nContent-Length: " + fmt.Sprint(len(form.Encode())) + "\n\n" + form.Encode())
		a.page(t, http.StatusForbidden, "You are not logged in")
	}
	if got := g.status(held.ID); got != storage.ApprovalPending {
		t.Errorf("it is %s", got)
	}
}

// TestForgedForm checks that a form counts only when this user's own page made it for this call (CSRF).
func TestForgedForm(t *testing.T) {
	g := newGateway(t)
	alice, cookie := g.user("alice@example.test")
	again := g.session(websession.Session{OrganizationID: organization, UserID: alice, Issuer: g.issuer.URL, Client: client})
	held, other := g.hold(alice, "delete_issue", `{"number":1}`), g.hold(alice, "delete_issue", `{"number":2}`)
	page := g.get("/approvals/"+held.ID, cookie)
	good, path := page.form(t, "approve"), "/approvals/"+held.ID
	logout := strings.Split(strings.Split(page.body, `action="/logout"><input type="hidden" name="form" value="`)[1], `"`)[0]
	with := func(token string) url.Values { return url.Values{"form": {token}, "decision": {"approve"}} }
	for name, a := range map[string]answer{
		"no token":                         g.post(path, cookie, url.Values{"decision": {"approve"}}),
		"another call's":                   g.post(path, cookie, g.get("/approvals/"+other.ID, cookie).form(t, "approve")),
		"another session's":                g.post(path, again, good),
		"the logout's":                     g.post(path, cookie, with(logout)),
		"the session itself":               g.post(path, cookie, with(strings.TrimPrefix(cookie, "__Host-durward="))),
		"in the address":                   g.post(path+"?"+good.Encode(), cookie, url.Values{}),
		"from another site":                g.post(path, cookie, good, "Sec-Fetch-Site: cross-site"),
		"from a neighbour":                 g.post(path, cookie, good, "Sec-Fetch-Site: same-site"),
		"from nowhere":                     g.post(path, cookie, good, "Sec-Fetch-Site: none"),
		"from another origin":              g.post(path, cookie, good, "Origin: https://evil.example"),
		"from our name without encryption": g.post(path, cookie, good, "Origin: http://gate.example.com"),
		"from two origins":                 g.post(path, cookie, good, "Origin: "+public, "Origin: https://evil.example"),
	} {
		t.Run(name, func(t *testing.T) { a.page(t, http.StatusForbidden) })
	}
	for name, form := range map[string]url.Values{"says nothing": {"form": good["form"]}, "says both": {"form": good["form"], "decision": {"deny", "approve"}}, "says otherwise": {"form": good["form"], "decision": {"APPROVE"}}} {
		t.Run(name, func(t *testing.T) { g.post(path, cookie, form).page(t, http.StatusBadRequest) })
	}
	t.Run("too long", func(t *testing.T) {
		g.post(path, cookie, url.Values{"form": good["form"], "decision": {"approve"}, "x": {strings.Repeat("x", 20_000)}}).page(t, http.StatusBadRequest)
	})
	t.Run("a logout from another site, which comes without the cookie", func(t *testing.T) {
		if a := g.post("/logout", "", url.Values{}, "Sec-Fetch-Site: cross-site"); a.status != http.StatusOK || a.header["Set-Cookie"] != nil {
			t.Errorf("%d %v", a.status, a.header)
		}
	})
	t.Run("as JSON", func(t *testing.T) {
		body := `{"decision":"approve"}`
		g.send("POST "+path+" HTTP/1.1\nCookie: "+cookie+"\nContent-Type: application/json\nContent-Length: "+fmt.Sprint(len(body))+"\n\n"+body).page(t, http.StatusForbidden)
	})
	if got := g.status(held.ID); got != storage.ApprovalPending {
		t.Errorf("it is %s", got)
	}
	if a := g.post(path, cookie, good, "Origin: "+public, "Sec-Fetch-Site: same-origin"); a.status != http.StatusSeeOther {
		t.Errorf("the form itself: %d %s", a.status, a.body)
	}
}

// TestDeception checks that an agent's request is shown as it is, whatever characters it contains (M17).
func TestDeception(t *testing.T) {
	g := newGateway(t)
	alice, cookie := g.user("alice@example.test<script>")
	show := func(t *testing.T, tool, arguments string, texts ...string) answer {
		t.Helper()
		held := g.hold(alice, tool, arguments)
		a := g.get("/approvals/"+held.ID, cookie)
		a.page(t, http.StatusOK, append(texts, held.ArgumentsDigest, "Approve this call")...)
		return a
	}
	t.Run("M17 HTML", func(t *testing.T) {
		a := show(t, "note", `{"text":"</pre><form action=https://evil.example><button>Deny</button></form><img src=x onerror=alert(1)><!--"}`, "&lt;/pre&gt;&lt;form action")
		if strings.Count(a.body, "<form") != 2 || strings.Count(a.body, "</pre>") != 1 || strings.Contains(a.body, "<img") {
			t.Errorf("the page is %s", a.body)
		}
	})
	t.Run("M15 beside the arguments", func(t *testing.T) {
		held := g.holdBeside(alice, "note", `{}`, []byte(`{"task":{"ttl":60},"x":"</pre>"}`))
		a := g.get("/approvals/"+held.ID, cookie)
		a.page(t, http.StatusOK, "Beside them", "<bdi>&#34;ttl&#34;</bdi>: 60", "&lt;/pre&gt;")
		held = g.holdBeside(alice, "note", `{}`, []byte(`{"x":"`+strings.Repeat("harmless ", 7_000)+`"}`))
		g.get("/approvals/"+held.ID, cookie).page(t, http.StatusOK, "Not everything is shown")
	})
	t.Run("M17 names", func(t *testing.T) {
		a := show(t, "read\u202etxt<b>\x1b[2J", `{}`, "read⟨U+202E⟩txt&lt;b&gt;⟨U+001B⟩[2J")
		if strings.ContainsAny(a.body, "\u202e\x1b") {
			t.Error("something hides")
		}
	})
	t.Run("M17 ANSI, bidi, invisible", func(t *testing.T) {
		a := show(t, "note", `{"text":"a\u001b[8mb","to":"x\u202Egro.elpmaxe","z":"\u200b\ud83d\ude00","\u2066k":1}`, "⟨U+202E⟩gro.elpmaxe", "⟨U+200B⟩😀", "⟨U+2066⟩k", `\u001b[8mb`)
		if strings.ContainsAny(a.body, "\u202e\x1b\u200b\u2066") {
			t.Errorf("something hides: %q", a.body)
		}
	})
	t.Run("M17 1 MiB", func(t *testing.T) {
		a := show(t, "note", `{"a":"`+strings.Repeat("harmless ", 7_000)+`","z":"rm -rf"}`, "Not everything is shown", "63021 bytes", "bytes more, not shown", "rm -rf")
		if len(a.body) > 32<<10 {
			t.Errorf("%d bytes", len(a.body))
		}
	})
	t.Run("M17 many members", func(t *testing.T) {
		a := show(t, "note", `{"a":[`+strings.Repeat("0,", 30_000)+`1],"z":"rm -rf"}`, "Not everything is shown", "bytes more, not shown")
		if len(a.body) > 32<<10 || strings.Contains(a.body, "rm -rf") {
			t.Errorf("%d bytes", len(a.body))
		}
	})
	t.Run("M17 a number that doubles cannot hold", func(t *testing.T) {
		show(t, "pay", `{"amount":9007199254740993}`, ": 9007199254740993")
	})
	t.Run("the list", func(t *testing.T) {
		a := g.get("/approvals", cookie)
		a.page(t, http.StatusOK, "alice@example.test&lt;script&gt;")
		if strings.ContainsAny(a.body, "\u202e\x1b") {
			t.Error("something hides")
		}
	})
}

// TestSessionEnds checks that a session is of this user, of this issuer's client, and of a user who was not revoked
// since.
func TestSessionEnds(t *testing.T) {
	g := newGateway(t)
	alice, cookie := g.user("alice@example.test")
	base := websession.Session{OrganizationID: organization, UserID: alice, Issuer: g.issuer.URL, Client: client}
	change := func(f func(*websession.Session)) string {
		s := base
		f(&s)
		return g.session(s)
	}
	for name, cookie := range map[string]string{
		"of an unknown user":                change(func(s *websession.Session) { s.UserID = uuid.NewString() }),
		"O01 of another organization":       change(func(s *websession.Session) { s.OrganizationID = uuid.NewString() }),
		"of another issuer":                 change(func(s *websession.Session) { s.Issuer = "https://other.example.com" }),
		"of another client":                 change(func(s *websession.Session) { s.Client = "former-console" }),
		"under the name without the prefix": strings.TrimPrefix(cookie, "__Host-"),
		"twice":                             cookie + "; " + cookie,
		"none":                              "",
	} {
		if a := g.get("/approvals", cookie); a.status != http.StatusSeeOther {
			t.Errorf("a session %s: %d", name, a.status)
		}
		g.get(paths.Callback+"?state=x", cookie)
		if g.browser == nil || g.browser.User != nil {
			t.Errorf("a session %s at the callback: %+v", name, g.browser)
		}
	}
	g.get(paths.Callback+"?state=x", cookie)
	if g.browser == nil || g.browser.User == nil || g.browser.User.UserID != alice || g.browser.User.Name != "alice@example.test" {
		t.Errorf("at the callback: %+v", g.browser)
	}
	g.get(paths.Health, cookie)
	if g.browser != nil {
		t.Error("a session is looked at where it does not matter")
	}
	if _, err := g.core.Store.RevokeUser(t.Context(), organization, alice, time.Now()); err != nil {
		t.Fatal(err)
	}
	if a := g.get("/approvals", cookie); a.status != http.StatusSeeOther {
		t.Errorf("R06 a revoked user's session: %d", a.status)
	}
	if a := g.get("/approvals", g.session(base)); a.status != http.StatusOK {
		t.Errorf("a session begun after that: %d", a.status)
	}
}

// TestLogout checks that a cookie that was copied before its user logged out is good for nothing after it, here and at
// other nodes, and not for a form of before either. Whoever has logged in since stays.
func TestLogout(t *testing.T) {
	g := newGateway(t)
	alice, cookie := g.user("alice@example.test")
	_, bob := g.user("bob@example.test")
	held := g.hold(alice, "delete_issue", `{"number":1}`)
	page := g.get("/approvals/"+held.ID, cookie)
	approve := page.form(t, "approve")
	logout := strings.Split(strings.Split(page.body, `action="/logout"><input type="hidden" name="form" value="`)[1], `"`)[0]
	later := g.session(websession.Session{OrganizationID: organization, UserID: alice, Issuer: g.issuer.URL, Client: client})
	if a := g.post("/logout", cookie, url.Values{"form": {logout}}); a.status != http.StatusOK || !strings.Contains(fmt.Sprint(a.header["Set-Cookie"]), "Max-Age=0") {
		t.Fatalf("%d %v", a.status, a.header)
	}
	if a := g.get("/approvals", cookie); a.status != http.StatusSeeOther {
		t.Errorf("the cookie of before: %d", a.status)
	}
	if a := g.post("/approvals/"+held.ID, cookie, approve); a.status != http.StatusForbidden || g.status(held.ID) != storage.ApprovalPending {
		t.Errorf("a form of before: %d", a.status)
	}
	for name, cookie := range map[string]string{"another user's": bob, "a later one": later, "a new one": g.session(websession.Session{OrganizationID: organization, UserID: alice, Issuer: g.issuer.URL, Client: client})} {
		if a := g.get("/approvals", cookie); a.status != http.StatusOK {
			t.Errorf("%s: %d", name, a.status)
		}
	}
}

func TestDoors(t *testing.T) {
	g := newGateway(t)
	_, cookie := g.user("alice@example.test")
	for name, request := range map[string]string{
		"L another host":   "GET /approvals HTTP/1.1\nHost: evil.example\nCookie: " + cookie,
		"L another's name": "GET /login HTTP/1.1\nHost: gate.example.com.evil.example",
	} {
		if a := g.send(request); a.status != http.StatusForbidden {
			t.Errorf("%s: %d", name, a.status)
		}
	}
	if a := g.get("/approvals%2f"+uuid.NewString(), cookie); a.status != http.StatusNotFound {
		t.Errorf("an encoded slash: %d", a.status)
	}
	g.issuer.SetDown(true)
	a := g.get("/login", "")
	a.page(t, http.StatusServiceUnavailable)
	if a.header.Get("Retry-After") == "" || len(a.header.Values("Set-Cookie")) != 0 {
		t.Errorf("header %v", a.header)
	}
	// A page that is left open too long says so instead of leading elsewhere by a form.
	g.post("/approvals/"+uuid.NewString(), "", url.Values{}).page(t, http.StatusForbidden, "Log in")
}

// TestExpiredApproval checks that a call that nobody decided on in time cannot be decided later.
func TestExpiredApproval(t *testing.T) {
	g := newGateway(t)
	alice, cookie := g.user("alice@example.test")
	past := time.Now().Add(-time.Hour)
	engine := approval.New(approval.Options{Store: g.core.Store, Vault: g.core.Keyring, Bell: new(approval.Bell), Now: func() time.Time { return past }})
	held, err := engine.Request(t.Context(), &approval.Call{
		OrganizationID: organization, UserID: alice, Client: "some-agent", ServerID: g.server.ID, Tool: "delete_issue", PolicyID: uuid.NewString(),
		Arguments: []byte("{}"), Channel: storage.ChannelOutOfBand,
	})
	if err != nil {
		t.Fatal(err)
	}
	page := g.get("/approvals/"+held.ID, cookie)
	page.page(t, http.StatusOK, "The time for this call is over")
	if strings.Contains(page.body, "Approve this call") {
		t.Error("it can be approved")
	}
}
