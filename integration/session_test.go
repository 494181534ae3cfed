package integration

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// loginTitle is the title of the development identity provider's page.
const loginTitle = "Log in as one of these users"

// person is a user with a browser: it keeps cookies, and follows redirects one at a time.
type person struct {
	t      *testing.T
	client *http.Client
	seen   []visited // everything since it was asked for last
}

type visited struct {
	url      *url.URL
	status   int
	location string
	cookies  []*http.Cookie
}

func newPerson(t *testing.T) *person {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := newClient(t)
	client.Jar = jar
	return &person{t: t, client: client}
}

// visit opens an address, and goes on where redirects, and pages that refresh themselves, lead.
func (p *person) visit(address string) answer {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, address, nil)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.send(request)
}

// submit sends a form as a browser does.
func (p *person) submit(address string, form url.Values, header ...string) answer {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	return p.send(request)
}

func (p *person) send(request *http.Request) answer {
	p.t.Helper()
	p.seen = nil
	for range 12 {
		response, err := p.client.Do(request)
		if err != nil {
			p.t.Fatal(err)
		}
		content, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil {
			p.t.Fatal(err)
		}
		a := answer{status: response.StatusCode, header: response.Header, body: content}
		next := response.Header.Get("Location")
		if _, after, found := strings.Cut(response.Header.Get("Refresh"), "url="); found {
			next = after
		}
		p.seen = append(p.seen, visited{url: request.URL, status: a.status, location: next, cookies: response.Cookies()})
		if next == "" {
			return a
		}
		to, err := request.URL.Parse(next)
		if err != nil {
			p.t.Fatal(err)
		}
		if strings.HasSuffix(to.Hostname(), ".invalid") {
			return a // the site of a client, which nobody runs
		}
		if request, err = http.NewRequestWithContext(p.t.Context(), http.MethodGet, to.String(), nil); err != nil {
			p.t.Fatal(err)
		}
	}
	p.t.Fatal("it leads in a circle")
	return answer{}
}

// oneOf is the part of a cookie's name that says which one of its kind it is.
var oneOf = regexp.MustCompile(`\.[0-9a-f]{16}`)

// cookie returns the last cookie of that name that was set on the way, whichever of its kind it is.
func (p *person) cookie(name string) *http.Cookie {
	for i := len(p.seen) - 1; i >= 0; i-- {
		for _, c := range p.seen[i].cookies {
			if oneOf.ReplaceAllString(c.Name, "") == name {
				return c
			}
		}
	}
	return nil
}

// pick logs in on the development provider's page.
func (p *person) pick(page answer, email string) answer {
	p.t.Helper()
	ticket := devTicket.FindStringSubmatch(string(page.body))
	if ticket == nil {
		p.t.Fatalf("no login page: %d %s", page.status, page.body)
	}
	at := *p.seen[len(p.seen)-1].url
	at.RawQuery = ""
	return p.submit(at.String(), url.Values{"ticket": {ticket[1]}, "user": {email}})
}

// login logs in with this browser and ends on a page of the gateway's.
func (p *person) login(gateway, email string) answer {
	p.t.Helper()
	return p.pick(p.visit(gateway+"/login"), email)
}

var formToken = regexp.MustCompile(`action="([^"]+)"[^>]*>\s*<input type="hidden" name="form" value="([^"]+)"`)

// token returns the token of the page's form with that action.
func tokenOf(t *testing.T, page answer, action string) string {
	t.Helper()
	for _, found := range formToken.FindAllStringSubmatch(string(page.body), -1) {
		if found[1] == action {
			return found[2]
		}
	}
	t.Fatalf("no form for %s: %d %s", action, page.status, page.body)
	return ""
}

// devGateway runs the development mode with a Caddyfile of the test's.
func devGateway(t *testing.T, identity, option string) *dev {
	t.Helper()
	home := newDevHome(t)
	d := &dev{home: home, url: "http://127.0.0.1:" + freePort(t)}
	config := home.file("Caddyfile")
	text := strings.NewReplacer("<port>", strings.TrimPrefix(d.url, "http://127.0.0.1:"), "<identity>", identity, "<option>", option).Replace(`{
	admin unix/admin.sock
	persist_config off
	auto_https off
	durward {
		store sqlite data/durward.db
		identity dev <identity>
		<option>
	}
}
http://:<port> {
	bind 127.0.0.1
	durward
}
`)
	if err := os.MkdirAll(home.file("data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d.process = startProcess(t, home.path, home.environment(), durward(t), "run", "--config", filepath.Base(config), "--adapter", "caddyfile")
	t.Cleanup(func() { d.process.stop(t); d.process.checkLog(t) })
	d.process.waitFor(t, d.url+"/readyz")
	return d
}

func (d *dev) port() string { return d.url[strings.LastIndex(d.url, ":")+1:] }

// TestSession checks that a user logs in with a browser at the development provider, and out again.
func TestSession(t *testing.T) {
	t.Parallel()
	d := devGateway(t, "", "")
	session := "durward-" + d.port()

	alice := newPerson(t)
	// A user who asks for a page first logs in, and comes back to it.
	page := alice.visit(d.url + "/approvals?from=mail")
	if !strings.Contains(string(page.body), loginTitle) {
		t.Fatalf("no login page: %s", page.body)
	}
	page = alice.pick(page, "alice@example.test").want(t, http.StatusOK)
	if last := alice.seen[len(alice.seen)-1].url.String(); last != d.url+"/approvals?from=mail" {
		t.Errorf("the browser ended at %s", last)
	}
	checkPage(t, page)
	if !strings.Contains(string(page.body), "alice@example.test") || !strings.Contains(string(page.body), "Nothing waits for you") {
		t.Errorf("the page is %s", page.body)
	}
	got := alice.cookie(session)
	if got == nil {
		t.Fatalf("no session: %+v", alice.seen)
	}
	if !got.HttpOnly || got.Secure || got.SameSite != http.SameSiteLaxMode || got.Path != "/" || got.Domain != "" || got.MaxAge != 8*3600 {
		t.Errorf("the cookie is %+v", got)
	}
	if c := alice.cookie("durward-login-" + d.port()); c == nil || c.MaxAge != -1 {
		t.Errorf("the login's cookie stays: %+v", c)
	}
	for _, v := range alice.seen {
		if strings.Contains(v.location, got.Value) || strings.Contains(string(page.body), got.Value) {
			t.Error("the session is in an address or a page")
		}
	}

	t.Run("a session is no token", func(t *testing.T) {
		for _, path := range []string{"/api/servers", "/mcp/demo", "/sse/demo", "/api/approvals"} {
			if status, body := d.cookied(t, path, session, got.Value); status != http.StatusUnauthorized {
				t.Errorf("%s: %d %s", path, status, body)
			}
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.url+"/approvals", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+d.token(t))
		if a := newPerson(t).send(request); !strings.Contains(string(a.body), loginTitle) {
			t.Errorf("a token opens a page: %d %s", a.status, a.body)
		}
	})
	t.Run("forged sessions", func(t *testing.T) {
		for _, value := range []string{"", "x", got.Value[:len(got.Value)-4], got.Value + "AAAA", strings.ToUpper(got.Value)} {
			status, body := d.cookied(t, "/approvals", session, value)
			if status != http.StatusSeeOther {
				t.Errorf("%q: %d %s", value, status, body)
			}
		}
		// Two of one name: one of them is planted.
		if status, _ := d.cookied(t, "/approvals", session, got.Value+"; "+session+"="+got.Value); status != http.StatusSeeOther {
			t.Errorf("two cookies: %d", status)
		}
		if status, _ := d.cookied(t, "/approvals", session, got.Value); status != http.StatusOK {
			t.Errorf("the session itself: %d", status)
		}
	})
	t.Run("verbs and neighbours", func(t *testing.T) {
		for path, allow := range map[string]string{
			"/login": "GET", "/login/callback": "GET", "/logout": "POST", "/approvals": "GET", "/approvals/x": "GET, POST",
		} {
			for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions} {
				request, err := http.NewRequestWithContext(t.Context(), method, d.url+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				if a := newPerson(t).send(request); a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") != allow {
					t.Errorf("R02 %s %s: %d %s", method, path, a.status, a.header.Get("Allow"))
				}
			}
		}
		for _, path := range []string{"/approvals%2fx", "/Approvals", "/login/", "/approvalsx", "/login/callback/x"} {
			if status, body := d.cookied(t, path, session, got.Value); status != http.StatusNotFound && status != http.StatusUnauthorized {
				t.Errorf("%s: %d %s", path, status, body)
			}
		}
		if a := alice.visit(d.url + "/approvals/0190a1b2-0000-7000-8000-000000000001"); a.status != http.StatusNotFound {
			t.Errorf("an unknown approval: %d", a.status)
		}
	})
	t.Run("another name of this machine", func(t *testing.T) {
		alice.t = t
		a := alice.visit("http://localhost:"+d.port()+"/approvals").want(t, http.StatusOK)
		if !strings.Contains(string(a.body), "alice@example.test") {
			t.Errorf("the page is %s", a.body)
		}
	})
	t.Run("logging out", func(t *testing.T) {
		alice.t = t
		token := tokenOf(t, page, "/logout")
		for name, send := range map[string]func() answer{
			"without a token": func() answer { return alice.submit(d.url+"/logout", url.Values{}) },
			"wrong token":     func() answer { return alice.submit(d.url+"/logout", url.Values{"form": {got.Value}}) },
			"two tokens":      func() answer { return alice.submit(d.url+"/logout", url.Values{"form": {token, token}}) },
			"token in the address": func() answer {
				return alice.submit(d.url+"/logout?form="+token, url.Values{})
			},
			"from another site": func() answer {
				return alice.submit(d.url+"/logout", url.Values{"form": {token}}, "Sec-Fetch-Site", "cross-site")
			},
			"from a neighbour": func() answer {
				return alice.submit(d.url+"/logout", url.Values{"form": {token}}, "Sec-Fetch-Site", "same-site")
			},
			"from another origin": func() answer {
				return alice.submit(d.url+"/logout", url.Values{"form": {token}}, "Origin", "https://evil.example")
			},
			"from another port": func() answer {
				return alice.submit(d.url+"/logout", url.Values{"form": {token}}, "Origin", "http://127.0.0.1:1")
			},
		} {
			if a := send(); a.status != http.StatusForbidden || alice.cookie(session) != nil {
				t.Errorf("CSRF %s: %d", name, a.status)
			}
		}
		a := alice.submit(d.url+"/logout", url.Values{"form": {token}}, "Origin", "null", "Sec-Fetch-Site", "same-origin").want(t, http.StatusOK)
		checkPageBut(t, a, "Set-Cookie")
		if c := alice.cookie(session); c == nil || c.MaxAge != -1 {
			t.Errorf("the session stays: %+v", c)
		}
		if a := alice.visit(d.url + "/approvals"); !strings.Contains(string(a.body), loginTitle) {
			t.Errorf("still logged in: %s", a.body)
		}
	})
}

// checkPageBut does the work of checkPage for pages that set a cookie.
func checkPageBut(t *testing.T, a answer, header string) {
	t.Helper()
	h := maps.Clone(a.header)
	h.Del(header)
	checkPage(t, answer{status: a.status, header: h, body: a.body})
}

// cookied asks for an address with a cookie and follows nothing.
func (d *dev) cookied(t *testing.T, path, name, value string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Cookie", name+"="+value)
	response, err := newClient(t).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// TestSessionOfOthers checks that nobody is logged in as somebody else by a link, and no answer is good twice.
func TestSessionOfOthers(t *testing.T) {
	t.Parallel()
	d := devGateway(t, "", "")
	session, login := "durward-"+d.port(), "durward-login-"+d.port()

	t.Run("login CSRF: somebody else's answer", func(t *testing.T) {
		eve, victim := newPerson(t), newPerson(t)
		page := eve.visit(d.url + "/login")
		ticket := devTicket.FindStringSubmatch(string(page.body))
		at := *eve.seen[len(eve.seen)-1].url
		at.RawQuery = ""
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at.String(), strings.NewReader(url.Values{"ticket": {ticket[1]}, "user": {"eve@rival.test"}}.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		response, err := eve.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		link := response.Header.Get("Location")
		if !strings.HasPrefix(link, d.url+"/login/callback?") {
			t.Fatalf("%s leads to %s", response.Status, link)
		}
		a := victim.visit(link).want(t, http.StatusBadRequest)
		checkPageBut(t, a, "Set-Cookie")
		if victim.cookie(session) != nil {
			t.Error("the victim is logged in")
		}
		// With a login of their own under way, too.
		victim.visit(d.url + "/login")
		victim.visit(link).want(t, http.StatusBadRequest)
		if victim.cookie(session) != nil {
			t.Error("the victim is logged in")
		}
		// The attempt logs in its own browser, once.
		copied, name := "", ""
		for _, c := range eve.client.Jar.Cookies(at.ResolveReference(&url.URL{Path: "/"})) {
			if oneOf.ReplaceAllString(c.Name, "") == login {
				name, copied = c.Name, c.Value
			}
		}
		eve.visit(link).want(t, http.StatusOK)
		if status, body := d.cookied(t, strings.TrimPrefix(link, d.url), name, copied); copied == "" || status != http.StatusBadRequest {
			t.Errorf("the answer is good twice: %d %s", status, body)
		}
	})
	t.Run("where a login ends", func(t *testing.T) {
		for back, want := range map[string]string{
			"/approvals/1": "/approvals/1", "//evil.example/": "/approvals", "https://evil.example/": "/approvals", "/\\evil.example": "/approvals", "": "/approvals",
		} {
			p := newPerson(t)
			p.pick(p.visit(d.url+"/login?return="+url.QueryEscape(back)), "bob@example.test")
			if last := p.seen[len(p.seen)-1].url; last.String() != d.url+want {
				t.Errorf("%q leads to %s", back, last)
			}
			// Logged in already: at once, and nowhere else either.
			p.visit(d.url + "/login?return=" + url.QueryEscape(back))
			if last := p.seen[len(p.seen)-1].url; last.String() != d.url+want || len(p.seen) != 2 {
				t.Errorf("%q leads to %s", back, last)
			}
		}
	})
	t.Run("denied", func(t *testing.T) {
		p := newPerson(t)
		page := p.visit(d.url + "/login")
		at := *p.seen[len(p.seen)-1].url
		at.RawQuery = ""
		a := p.submit(at.String(), url.Values{"ticket": {devTicket.FindStringSubmatch(string(page.body))[1]}, "deny": {"1"}}).want(t, http.StatusForbidden)
		if !strings.Contains(string(a.body), "did not log you in") || p.cookie(session) != nil {
			t.Errorf("the page is %s", a.body)
		}
	})
	t.Run("other callers of the callback", func(t *testing.T) {
		for _, query := range []string{"", "?code=x", "?state=x&code=x", "?error=access_denied", "?state=%", "?" + strings.Repeat("a", 20_000)} {
			a := newPerson(t).visit(d.url + "/login/callback" + query)
			if a.status != http.StatusBadRequest {
				t.Errorf("%.40s: %d", query, a.status)
			}
		}
		if a := newPerson(t).visit(d.url + "/login?issuer=https://evil.example"); a.status != http.StatusBadRequest {
			t.Errorf("an issuer that is not configured: %d", a.status)
		}
	})
	t.Run("a revoked user", func(t *testing.T) {
		p := newPerson(t)
		p.login(d.url, "bob@example.test").want(t, http.StatusOK)
		admin := d.tokenOf(t, "admin@example.test")
		bob := devClaims(t, d.tokenOf(t, "bob@example.test"))["sub"]
		if status, body := d.api(t, admin, http.MethodPost, fmt.Sprintf("/api/users/%v/revoke", bob)); status != http.StatusOK && status != http.StatusNoContent {
			t.Fatalf("revoke: %d %s", status, body)
		}
		if a := p.visit(d.url + "/approvals"); !strings.Contains(string(a.body), loginTitle) {
			t.Errorf("R06 a revoked user's session is good: %d %s", a.status, a.body)
		}
		p.login(d.url, "bob@example.test").want(t, http.StatusOK) // a user who is not revoked at the identity provider may come again
	})
}

// beginConnect begins to connect a user's account at the demo third party, and logs in there with a browser. It returns
// the address that the browser is sent back to.
func (d *dev) answerOf(t *testing.T, token string) string {
	t.Helper()
	p := newPerson(t)
	page := p.visit(d.authURL(t, token, ""))
	found := devTicket.FindStringSubmatch(string(page.body))
	if found == nil {
		t.Fatalf("login page: %d %s", page.status, page.body)
	}
	at := *p.seen[len(p.seen)-1].url
	at.RawQuery = ""
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at.String(), strings.NewReader(url.Values{"ticket": {found[1]}, "account": {"demo-alice"}}.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := p.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	back := response.Header.Get("Location")
	if !strings.HasPrefix(back, d.url+"/api/oauth/callback?") {
		t.Fatalf("%s leads to %s", response.Status, back)
	}
	return back
}

// TestConnectCheck checks which user must be logged in with the browser that ends a connection attempt (A02, A03, A07,
// A11).
func TestConnectCheck(t *testing.T) {
	t.Parallel()
	byLogin := devGateway(t, "{\n connect_check login\n }", "")
	byState := devGateway(t, "", "")
	loggedIn := func(t *testing.T, d *dev, email string) *person {
		p := newPerson(t)
		p.login(d.url, email).want(t, http.StatusOK)
		return p
	}
	refused := func(t *testing.T, d *dev, p *person, a answer, link string) {
		t.Helper()
		checkPageBut(t, a.want(t, http.StatusForbidden), "Set-Cookie")
		if strings.Contains(string(a.body), "alice@") || a.header.Get("Location") != "" {
			t.Errorf("the page says whose it was: %s", a.body)
		}
		if got := d.connection(t, d.token(t)); got == "connected" || got == "error" {
			t.Errorf("A03 the connection is %s", got)
		}
		// The state is spent, for its user too.
		loggedIn(t, d, "alice@example.test").visit(link).want(t, http.StatusBadRequest)
	}
	for name, d := range map[string]*dev{"login": byLogin, "state": byState} {
		t.Run("A03 another user is logged in, connect_check "+name, func(t *testing.T) {
			link := d.answerOf(t, d.token(t))
			bob := loggedIn(t, d, "bob@example.test")
			refused(t, d, bob, bob.visit(link), link)
			link = d.answerOf(t, d.token(t))
			eve := loggedIn(t, d, "eve@rival.test")
			refused(t, d, eve, eve.visit(link), link)
		})
		t.Run("the same user is logged in, connect_check "+name, func(t *testing.T) {
			d.undoAll(t)
			a := loggedIn(t, d, "alice@example.test").visit(d.answerOf(t, d.token(t))).want(t, http.StatusOK)
			checkPage(t, a)
			if got := d.connection(t, d.token(t)); got != "connected" || !strings.Contains(string(a.body), "alice@example.test") {
				t.Errorf("the connection is %s: %s", got, a.body)
			}
			d.undoAll(t)
		})
	}
	d := byLogin
	t.Run("nobody is logged in: the answer waits", func(t *testing.T) {
		d.undoAll(t)
		alice := newPerson(t)
		page := alice.visit(d.answerOf(t, d.token(t)))
		held := alice.seen[0]
		checkPageHeld(t, alice, held)
		if got := d.connection(t, d.token(t)); got == "connected" {
			t.Error("connected before the login")
		}
		a := alice.pick(page, "alice@example.test").want(t, http.StatusOK)
		checkPageBut(t, a, "Set-Cookie")
		if got := d.connection(t, d.token(t)); got != "connected" || !strings.Contains(string(a.body), "is connected") {
			t.Errorf("the connection is %s: %s", got, a.body)
		}
		for _, v := range append([]visited{held}, alice.seen...) {
			if u, err := url.Parse(v.location); err != nil || strings.HasPrefix(v.location, d.url+"/api") && u.RawQuery != "" {
				t.Errorf("A11 a code or handle is in an address: %s", v.location)
			}
		}
		d.undoAll(t)
	})
	t.Run("A02 the victim logs in", func(t *testing.T) {
		victim := newPerson(t)
		page := victim.visit(d.answerOf(t, d.token(t)))
		a := victim.pick(page, "bob@example.test").want(t, http.StatusForbidden)
		checkPageBut(t, a, "Set-Cookie")
		if got := d.connection(t, d.token(t)); got == "connected" || got == "error" {
			t.Errorf("the connection is %s", got)
		}
		victim.visit(d.url+"/api/oauth/held").want(t, http.StatusBadRequest)
	})
	t.Run("A07 the handle in another browser", func(t *testing.T) {
		alice := newPerson(t)
		alice.visit(d.answerOf(t, d.token(t)))
		handle := alice.seen[0].cookies[0]
		bob := loggedIn(t, d, "bob@example.test")
		at, err := url.Parse(d.url)
		if err != nil {
			t.Fatal(err)
		}
		bob.client.Jar.SetCookies(at, []*http.Cookie{{Name: handle.Name, Value: handle.Value, Path: "/"}})
		bob.visit(d.url+"/api/oauth/held").want(t, http.StatusForbidden)
		if got := d.connection(t, d.token(t)); got == "connected" {
			t.Error("connected")
		}
	})
	t.Run("without a handle", func(t *testing.T) {
		loggedIn(t, d, "alice@example.test").visit(d.url+"/api/oauth/held").want(t, http.StatusBadRequest)
		newPerson(t).visit(d.url+"/api/oauth/held").want(t, http.StatusBadRequest)
	})
	t.Run("connect_check state needs no login", func(t *testing.T) {
		byState.undoAll(t)
		newPerson(t).visit(byState.answerOf(t, byState.token(t))).want(t, http.StatusOK)
		if got := byState.connection(t, byState.token(t)); got != "connected" {
			t.Errorf("the connection is %s", got)
		}
	})
	t.Run("A03 the audit log", func(t *testing.T) {
		admin := d.tokenOf(t, "admin@example.test")
		alice, bob := devClaims(t, d.token(t))["sub"], devClaims(t, d.tokenOf(t, "bob@example.test"))["sub"]
		status, body := d.api(t, admin, http.MethodGet, "/api/audit?kind=login&limit=100")
		var found struct {
			Data []struct {
				Event  string         `json:"event"`
				UserID any            `json:"user_id"`
				Server any            `json:"server"`
				Client any            `json:"client"`
				Detail map[string]any `json:"detail"`
			} `json:"data"`
		}
		if err := json.Unmarshal([]byte(body), &found); err != nil || status != http.StatusOK {
			t.Fatalf("%d %v: %s", status, err, body)
		}
		var byBob, byOthers, logins int
		for _, e := range found.Data {
			switch {
			case e.Event == "connect.refused" && e.UserID == alice && e.Server == "demo" && e.Detail["browser_user_id"] == bob:
				byBob++
			case e.Event == "connect.refused" && e.UserID == alice && e.Server == "demo" && e.Detail["browser_user_id"] == nil:
				byOthers++
			case e.Event == "login" && e.Client == "durward":
				logins++
			}
		}
		if byBob != 3 || byOthers != 1 || logins == 0 {
			t.Errorf("%d attempts ended in bob's browser, %d in one of another organization, %d logins: %s", byBob, byOthers, logins, body)
		}
		if strings.Contains(body, "eve@") {
			t.Error("O01 the log names another organization's user")
		}
	})
	t.Run("the log", func(t *testing.T) {
		log := d.process.output.String()
		if !strings.Contains(log, "somebody else's browser") {
			t.Error("the log does not say who was refused")
		}
		if strings.Contains(log, "code=") {
			t.Error("A11 a code is in the log")
		}
	})
}

// checkPageHeld: the first page of a browser that must log in.
func checkPageHeld(t *testing.T, p *person, held visited) {
	t.Helper()
	if held.status != http.StatusOK || !strings.HasPrefix(held.location, "/login?") || len(held.cookies) != 1 {
		t.Fatalf("it began with %+v", held)
	}
	c := held.cookies[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.MaxAge != 120 || strings.Contains(held.location, c.Value) {
		t.Errorf("the handle's cookie is %+v", c)
	}
}

// undoAll disconnects alice's account at the demo.
func (d *dev) undoAll(t *testing.T) {
	t.Helper()
	if status, body := d.api(t, d.token(t), http.MethodDelete, "/api/servers/demo/connection"); status != http.StatusNoContent && status != http.StatusNotFound {
		t.Fatalf("disconnect: %d %s", status, body)
	}
}

// TestSessionConfiguration checks which errors of a login client are refused before anybody logs in.
func TestSessionConfiguration(t *testing.T) {
	t.Parallel()
	home := newDevHome(t)
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	if err := os.WriteFile(home.file("key"), []byte(base64.StdEncoding.EncodeToString(key)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ public, identity, want string }{
		"a check without a client":   {"https://gate.example.com", "connect_check login", "needs a login_client"},
		"an unknown check":           {"https://gate.example.com", "connect_check maybe", "neither login nor state"},
		"a secret that is not there": {"https://gate.example.com", "login_client console {env.NOT_SET}", "does not resolve"},
		"sessions in the open":       {"http://gate.example.com", "login_client console", "needs a public_url with https"},
		"assertions without a login": {"https://gate.example.com", "id_jag", "id_jag needs a login_client"},
		"assertions for no server":   {"https://gate.example.com", "login_client console\n id_jag\n }\n authorization_server off\n identity oidc https://b.example.com {\n login_client console", "id_jag needs the authorization server"},
		"a good one":                 {"https://gate.example.com", "login_client console", ""},
		"assertions too":             {"https://gate.example.com", "login_client console\n id_jag", ""},
	} {
		config := home.file("Caddyfile")
		text := "{\n persist_config off\n auto_https off\n durward {\n public_url " + test.public + "\n store sqlite durward.db\n master_key {file." + home.file("key") + "}\n identity oidc https://id.example.com {\n " +
			test.identity + "\n }\n }\n}\nhttp://127.0.0.1:1 {\n durward\n}\n"
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got := home.command(t, "validate", "--config", config, "--adapter", "caddyfile")
		if (got.code == 0) != (test.want == "") || !strings.Contains(got.stderr, test.want) {
			t.Errorf("%s: exit code %d: %s", name, got.code, got.stderr)
		}
	}
}
