package idp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	gateway  = "http://gateway.test"
	callback = "http://127.0.0.1:7777/callback"
	verifier = "a-verifier-of-enough-characters-0123456789-abcdef"
)

type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// bench is a provider behind a real listener, and a client that follows no redirects.
type bench struct {
	t        *testing.T
	dir      string
	base     string
	issuer   string
	provider *Provider
	clock    *clock
	client   *http.Client
}

func open(t *testing.T, dir string) *bench {
	t.Helper()
	b := &bench{t: t, dir: dir, clock: &clock{t: time.Now()}}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { b.provider.ServeHTTP(w, r) }))
	b.base = "http://" + server.Listener.Addr().String()
	b.issuer = b.base + "/dev/idp"
	var err error
	b.provider, err = Open(Options{Dir: dir, Issuer: b.issuer, RedirectURI: callback, Audiences: []string{gateway}, Now: b.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	server.Start()
	t.Cleanup(server.Close)
	b.client = server.Client()
	b.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return b
}

func (b *bench) do(r *http.Request) (*http.Response, []byte) {
	b.t.Helper()
	answer, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer, body
}

func (b *bench) get(address string) (*http.Response, []byte) {
	b.t.Helper()
	r, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return b.do(r)
}

func (b *bench) post(address string, form url.Values, edit ...func(*http.Request)) (*http.Response, []byte) {
	b.t.Helper()
	r, err := http.NewRequest(http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for _, e := range edit {
		e(r)
	}
	return b.do(r)
}

func challenge() string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// request returns a valid authorization request of the gateway, with changes: a nil value removes a parameter.
func request(changes map[string][]string) url.Values {
	q := url.Values{
		"response_type": {"code"}, "client_id": {Client}, "redirect_uri": {callback}, "state": {"s t&a=te"},
		"code_challenge": {challenge()}, "code_challenge_method": {"S256"}, "scope": {"openid profile"}, "nonce": {"n-1"}, "resource": {gateway + "/mcp/demo"},
	}
	for name, values := range changes {
		if values == nil {
			q.Del(name)
		} else {
			q[name] = values
		}
	}
	return q
}

var ticketField = regexp.MustCompile(`name="ticket" value="([^"]+)"`)

func (b *bench) ticket(q url.Values) string {
	b.t.Helper()
	answer, body := b.get(b.issuer + "/authorize?" + q.Encode())
	m := ticketField.FindSubmatch(body)
	if answer.StatusCode != http.StatusOK || m == nil {
		b.t.Fatalf("login page: %d %s %s", answer.StatusCode, answer.Header.Get("Location"), body)
	}
	return string(m[1])
}

// login goes through the page and returns what came back at the redirect URI.
func (b *bench) login(q url.Values, user string) url.Values {
	b.t.Helper()
	answer, body := b.post(b.issuer+"/authorize", url.Values{"ticket": {b.ticket(q)}, "user": {user}})
	if answer.StatusCode != http.StatusSeeOther {
		b.t.Fatalf("login: %d %s", answer.StatusCode, body)
	}
	u, err := url.Parse(answer.Header.Get("Location"))
	if err != nil {
		b.t.Fatal(err)
	}
	return u.Query()
}

func (b *bench) codeForm(code string) url.Values {
	return url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {callback}, "code_verifier": {verifier},
		"client_id": {Client}, "client_secret": {b.provider.Secret().Reveal()},
	}
}

func (b *bench) refreshForm(token string) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}, "client_id": {Client}, "client_secret": {b.provider.Secret().Reveal()}}
}

type tokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	ID      string `json:"id_token"`
	Type    string `json:"token_type"`
	Scope   string `json:"scope"`
	Expires int    `json:"expires_in"`
	Error   string `json:"error"`
}

func (b *bench) token(form url.Values, edit ...func(*http.Request)) (int, tokens) {
	b.t.Helper()
	answer, body := b.post(b.issuer+"/token", form, edit...)
	var got tokens
	if err := json.Unmarshal(body, &got); err != nil {
		b.t.Fatalf("%d %s: %v", answer.StatusCode, body, err)
	}
	if answer.Header.Get("Cache-Control") != "no-store" {
		b.t.Errorf("Cache-Control %q", answer.Header.Get("Cache-Control"))
	}
	return answer.StatusCode, got
}

// claims verifies a token with nothing but the published keys.
func (b *bench) claims(token, typ string) jwt.MapClaims {
	b.t.Helper()
	claims := jwt.MapClaims{}
	parsed, err := jwt.NewParser(jwt.WithValidMethods([]string{"RS256"}), jwt.WithIssuer(b.issuer), jwt.WithTimeFunc(b.clock.now)).ParseWithClaims(token, claims, func(t *jwt.Token) (any, error) {
		return b.provider.Keys()[t.Header["kid"].(string)], nil
	})
	if err != nil || parsed.Header["typ"] != typ {
		b.t.Fatalf("token: %v, typ %v", err, parsed.Header["typ"])
	}
	return claims
}

func TestLogin(t *testing.T) {
	b := open(t, t.TempDir())
	back := b.login(request(nil), "alice@example.test")
	if back.Get("iss") != b.issuer || back.Get("state") != "s t&a=te" || back.Get("code") == "" {
		t.Fatalf("answer %v", back)
	}
	status, got := b.token(b.codeForm(back.Get("code")))
	if status != http.StatusOK || got.Type != "Bearer" || got.Expires != 900 || got.Scope != "openid profile" || got.Refresh == "" {
		t.Fatalf("%d %+v", status, got)
	}
	claims := b.claims(got.Access, "at+jwt")
	if claims["jti"] == "" || claims["exp"].(float64)-claims["iat"].(float64) != 900 {
		t.Errorf("claims %v", claims)
	}
	for _, name := range []string{"jti", "exp", "iat"} {
		delete(claims, name)
	}
	want := jwt.MapClaims{
		"iss": b.issuer, "sub": b.provider.UserID("alice@example.test"), "aud": []any{gateway, gateway + "/mcp/demo"}, "azp": Client, "client_id": Client,
		"email": "alice@example.test", "name": "Alice", "org_id": b.provider.OrganizationID("acme"), "organization_slug": "acme",
		"roles": []any{}, "groups": []any{"engineering"}, "scope": "openid profile",
	}
	if diff := cmp.Diff(want, claims); diff != "" {
		t.Errorf("access token (-want +got):\n%s", diff)
	}
	id := b.claims(got.ID, "JWT")
	if id["aud"] != Client || id["nonce"] != "n-1" || id["sub"] != want["sub"] {
		t.Errorf("id token %v", id)
	}

	r, _ := http.NewRequest(http.MethodGet, b.issuer+"/userinfo", nil)
	r.Header.Set("Authorization", "Bearer "+got.Access)
	answer, body := b.do(r)
	if answer.StatusCode != http.StatusOK || !bytes.Contains(body, []byte("alice@example.test")) {
		t.Errorf("userinfo %d %s", answer.StatusCode, body)
	}
	for name, value := range map[string]string{"J11 an id token": "Bearer " + got.ID, "J01 no token": "", "garbage": "Bearer x.y.z", "J02 another scheme": "Basic " + got.Access} {
		r.Header.Set("Authorization", value)
		if answer, _ := b.do(r); answer.StatusCode != http.StatusUnauthorized || answer.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: userinfo %d", name, answer.StatusCode)
		}
	}
	b.clock.advance(AccessLifetime)
	r.Header.Set("Authorization", "Bearer "+got.Access)
	if answer, _ := b.do(r); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("expired: userinfo %d", answer.StatusCode)
	}
}

func TestEveryUser(t *testing.T) {
	b := open(t, t.TempDir())
	ids := map[string]bool{}
	for _, user := range Users() {
		_, got := b.token(b.codeForm(b.login(request(nil), user.Email).Get("code")))
		claims := b.claims(got.Access, "at+jwt")
		if claims["email"] != user.Email || claims["org_id"] != b.provider.OrganizationID(user.Organization) {
			t.Errorf("%s: %v", user.Email, claims)
		}
		ids[claims["sub"].(string)] = true
	}
	if len(ids) != 4 || b.provider.OrganizationID("acme") == b.provider.OrganizationID("rival") {
		t.Errorf("ids %v", ids)
	}
}

func TestLoginPage(t *testing.T) {
	b := open(t, t.TempDir())
	answer, body := b.get(b.issuer + "/authorize?" + request(map[string][]string{"scope": {"openid <b>"}, "resource": {"http://gateway.test/<script>"}}).Encode())
	csp := answer.Header.Get("Content-Security-Policy")
	if !strings.Contains(csp, "frame-ancestors 'none'") || !strings.Contains(csp, "default-src 'none'") || answer.Header.Get("X-Frame-Options") != "DENY" {
		t.Errorf("headers %v", answer.Header)
	}
	for _, want := range []string{"The gateway", "127.0.0.1:7777", "openid", "&lt;script&gt;", `name="user" value="bob@example.test"`} {
		if !bytes.Contains(body, []byte(want)) {
			t.Errorf("the page does not show %q", want)
		}
	}
	if bytes.Contains(body, []byte("<script")) || bytes.Contains(body, []byte("<b>")) {
		t.Errorf("not escaped: %s", body)
	}
}

// TestRequestsThatNeverRedirect checks that a request with a wrong client or redirect URI gets a page.
func TestRequestsThatNeverRedirect(t *testing.T) {
	b := open(t, t.TempDir())
	for name, changes := range map[string]map[string][]string{
		"unknown client":           {"client_id": {"nobody"}},
		"no client":                {"client_id": nil},
		"two clients":              {"client_id": {Client, Client}},
		"another client of before": {"client_id": {"dev-agent"}},
		"no redirect":              {"redirect_uri": nil},
		"A06 redirect elsewhere":   {"redirect_uri": {"https://evil.tld/cb"}},
		"A06 another port":         {"redirect_uri": {"http://127.0.0.1:7778/callback"}},
		"A06 another path":         {"redirect_uri": {"http://127.0.0.1:7777/"}},
		"redirect with user":       {"redirect_uri": {"http://127.0.0.1@evil.tld/cb"}},
		"redirect with fragment":   {"redirect_uri": {callback + "#x"}},
		"redirect name like ours":  {"redirect_uri": {"http://localhost.evil.tld/cb"}},
		"S06 javascript redirect":  {"redirect_uri": {"javascript:alert(1)"}},
		"redirect with backslash":  {"redirect_uri": {`http://127.0.0.1\@evil.tld/`}},
		"two redirects":            {"redirect_uri": {callback, callback}},
		"document at a file URL":   {"client_id": {"file:///etc/passwd"}},
		"S02 document elsewhere":   {"client_id": {"http://10.0.0.1/client.json"}},
		"document without a path":  {"client_id": {b.base + "/"}},
		"document that is not one": {"client_id": {b.base + "/dev/idp/jwks"}},
	} {
		answer, _ := b.get(b.issuer + "/authorize?" + request(changes).Encode())
		if answer.StatusCode != http.StatusBadRequest || answer.Header.Get("Location") != "" {
			t.Errorf("%s: %d %s", name, answer.StatusCode, answer.Header.Get("Location"))
		}
	}
}

func TestRequestsThatAreRefusedAtTheRedirect(t *testing.T) {
	b := open(t, t.TempDir())
	for name, test := range map[string]struct {
		changes map[string][]string
		want    string
	}{
		"A05 plain PKCE":           {map[string][]string{"code_challenge_method": {"plain"}}, "invalid_request"},
		"PKCE method left out":     {map[string][]string{"code_challenge_method": nil}, "invalid_request"},
		"no PKCE":                  {map[string][]string{"code_challenge": nil, "code_challenge_method": nil}, "invalid_request"},
		"challenge of wrong size":  {map[string][]string{"code_challenge": {"short"}}, "invalid_request"},
		"implicit":                 {map[string][]string{"response_type": {"token"}}, "unsupported_response_type"},
		"fragment":                 {map[string][]string{"response_mode": {"fragment"}}, "invalid_request"},
		"request object":           {map[string][]string{"request": {"x"}}, "request_not_supported"},
		"parameter twice":          {map[string][]string{"scope": {"a", "b"}}, "invalid_request"},
		"prompt none":              {map[string][]string{"prompt": {"none"}}, "login_required"},
		"scope with a quote":       {map[string][]string{"scope": {`a"b`}}, "invalid_scope"},
		"relative resource":        {map[string][]string{"resource": {"/mcp"}}, "invalid_target"},
		"resource with a fragment": {map[string][]string{"resource": {gateway + "#x"}}, "invalid_target"},
		"too many resources":       {map[string][]string{"resource": strings.Split("a:1 a:2 a:3 a:4 a:5 a:6 a:7 a:8 a:9", " ")}, "invalid_target"},
		"state too long":           {map[string][]string{"state": {strings.Repeat("s", 4000)}}, "invalid_request"},
	} {
		answer, body := b.get(b.issuer + "/authorize?" + request(test.changes).Encode())
		u, err := url.Parse(answer.Header.Get("Location"))
		if answer.StatusCode != http.StatusSeeOther || err != nil || !strings.HasPrefix(u.String(), callback+"?") {
			t.Errorf("%s: %d %s %s", name, answer.StatusCode, u, body)
			continue
		}
		if q := u.Query(); q.Get("error") != test.want || q.Get("iss") != b.issuer || q.Get("state") == "" || q.Has("code") {
			t.Errorf("%s: %v", name, q)
		}
	}
}

func TestLoginForm(t *testing.T) {
	b := open(t, t.TempDir())
	form := func(ticket, user string) url.Values { return url.Values{"ticket": {ticket}, "user": {user}} }
	post := func(name string, want int, f url.Values, edit ...func(*http.Request)) *http.Response {
		t.Helper()
		answer, _ := b.post(b.issuer+"/authorize", f, edit...)
		if answer.StatusCode != want {
			t.Errorf("%s: %d, want %d", name, answer.StatusCode, want)
		}
		return answer
	}
	good := b.ticket(request(nil))
	post("no ticket", 400, form("", "alice@example.test"))
	post("ticket changed", 400, form(good[:5]+"A"+good[6:], "alice@example.test"))
	post("unknown user", 400, form(good, "mallory@example.test"))
	post("H15 form of another site", 403, form(good, "alice@example.test"), func(r *http.Request) { r.Header.Set("Origin", "https://evil.tld") })
	post("H15 form of a sandboxed frame", 403, form(good, "alice@example.test"), func(r *http.Request) { r.Header.Set("Origin", "null") })
	post("H15 cross-site by Sec-Fetch-Site", 403, form(good, "alice@example.test"), func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") })
	post("the page's own form", 303, form(good, "alice@example.test"), func(r *http.Request) { r.Header.Set("Origin", b.base) })
	post("the same ticket again", 400, form(good, "alice@example.test"))

	old := b.ticket(request(nil))
	b.clock.advance(11 * time.Minute)
	post("old ticket", 400, form(old, "alice@example.test"))
	f := form(b.ticket(request(nil)), "alice@example.test")
	f.Set("deny", "1")
	answer := post("denied", 303, f)
	if u, _ := url.Parse(answer.Header.Get("Location")); u.Query().Get("error") != "access_denied" || u.Query().Has("code") {
		t.Errorf("denied: %s", u)
	}
	post("body that is too large", 400, form(strings.Repeat("x", 1<<17), "alice@example.test"))
	other := open(t, b.dir)
	if answer, _ := other.post(other.issuer+"/authorize", form(b.ticket(request(nil)), "alice@example.test")); answer.StatusCode != http.StatusBadRequest {
		t.Errorf("ticket of another process: %d", answer.StatusCode)
	}
}

func TestCodes(t *testing.T) {
	b := open(t, t.TempDir())
	code := func() string { return b.login(request(nil), "alice@example.test").Get("code") }
	for name, test := range map[string]struct {
		change func(url.Values)
		want   string
	}{
		"mismatched redirect":  {func(f url.Values) { f.Set("redirect_uri", "http://127.0.0.1:7778/callback") }, "invalid_grant"},
		"no redirect":          {func(f url.Values) { f.Del("redirect_uri") }, "invalid_grant"},
		"A07 wrong verifier":   {func(f url.Values) { f.Set("code_verifier", strings.Repeat("x", 43)) }, "invalid_grant"},
		"A07 challenge for it": {func(f url.Values) { f.Set("code_verifier", challenge()) }, "invalid_grant"},
		"no verifier":          {func(f url.Values) { f.Del("code_verifier") }, "invalid_grant"},
		"unknown code":         {func(f url.Values) { f.Set("code", "nothing") }, "invalid_grant"},
		"resource never asked": {func(f url.Values) { f.Set("resource", "http://other.test/") }, "invalid_target"},
		"audience never asked": {func(f url.Values) { f.Set("audience", "other") }, "invalid_target"},
		"unknown client":       {func(f url.Values) { f.Set("client_id", "nobody") }, "invalid_client"},
		"another secret":       {func(f url.Values) { f.Set("client_secret", "x") }, "invalid_client"},
		"no secret":            {func(f url.Values) { f.Del("client_secret") }, "invalid_client"},
		"no grant type":        {func(f url.Values) { f.Del("grant_type") }, "invalid_request"},
		"password":             {func(f url.Values) { f.Set("grant_type", "password") }, "unsupported_grant_type"},
		"machine":              {func(f url.Values) { f.Set("grant_type", "client_credentials") }, "unsupported_grant_type"},
		"parameter twice":      {func(f url.Values) { f.Add("code_verifier", verifier) }, "invalid_request"},
	} {
		f := b.codeForm(code())
		test.change(f)
		if status, got := b.token(f); status < 400 || status > 401 || got.Error != test.want || got.Access != "" {
			t.Errorf("%s: %d %+v, want %s", name, status, got, test.want)
		}
	}

	late := code()
	b.clock.advance(61 * time.Second)
	if _, got := b.token(b.codeForm(late)); got.Error != "invalid_grant" {
		t.Errorf("late code: %+v", got)
	}

	twice := code()
	_, first := b.token(b.codeForm(twice))
	if status, got := b.token(b.codeForm(twice)); status != 400 || got.Error != "invalid_grant" {
		t.Errorf("code reused: %d %+v", status, got)
	}
	if _, got := b.token(b.refreshForm(first.Refresh)); got.Error != "invalid_grant" {
		t.Errorf("the refresh token of a reused code still works: %+v", got)
	}
	if answer, _ := b.get(b.issuer + "/token?" + b.codeForm(code()).Encode()); answer.StatusCode != 405 || answer.Header.Get("Allow") == "" {
		t.Errorf("GET /token: %d", answer.StatusCode)
	}
}

func TestRefresh(t *testing.T) {
	b := open(t, t.TempDir())
	q := request(map[string][]string{"resource": {gateway + "/mcp/a", gateway + "/mcp/b"}, "audience": {"third"}})
	_, first := b.token(b.codeForm(b.login(q, "bob@example.test").Get("code")))
	refresh := func(token string, more url.Values) (int, tokens) {
		f := b.refreshForm(token)
		for name, values := range more {
			f[name] = values
		}
		return b.token(f)
	}
	if _, got := refresh(first.Refresh, url.Values{"scope": {"openid admin"}}); got.Error != "invalid_scope" {
		t.Errorf("more scope: %+v", got)
	}
	if _, got := refresh(first.Refresh, url.Values{"resource": {"http://other.test/"}}); got.Error != "invalid_target" {
		t.Errorf("other resource: %+v", got)
	}
	if _, got := refresh(first.Refresh, url.Values{"client_secret": {"x"}}); got.Error != "invalid_client" {
		t.Errorf("another secret: %+v", got)
	}
	_, second := refresh(first.Refresh, url.Values{"scope": {"profile"}, "resource": {gateway + "/mcp/b"}})
	claims := b.claims(second.Access, "at+jwt")
	if claims["scope"] != "profile" || second.ID != "" || !cmp.Equal(claims["aud"], []any{gateway, gateway + "/mcp/b"}) {
		t.Errorf("narrowed: %v", claims)
	}
	_, third := refresh(second.Refresh, nil)
	claims = b.claims(third.Access, "at+jwt")
	if third.Refresh == second.Refresh || !cmp.Equal(claims["aud"], []any{gateway, gateway + "/mcp/a", gateway + "/mcp/b", "third"}) {
		t.Errorf("whole again: %v", claims)
	}
	if _, got := refresh(second.Refresh, nil); got.Error != "invalid_grant" {
		t.Errorf("reused: %+v", got)
	}
	if _, got := refresh(third.Refresh, nil); got.Error != "invalid_grant" {
		t.Errorf("the grant outlived a reuse: %+v", got)
	}
}

// TestClient checks that the one client proves itself with the secret that this process made, in either place.
func TestClient(t *testing.T) {
	b := open(t, t.TempDir())
	code := func() url.Values { return b.codeForm(b.login(request(nil), "alice@example.test").Get("code")) }
	basic := func(secret string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth(Client, secret) }
	}
	secret := b.provider.Secret().Reveal()
	inHeader := func() url.Values {
		f := code()
		f.Del("client_id")
		f.Del("client_secret")
		return f
	}
	if status, got := b.token(inHeader(), basic(secret)); status != http.StatusOK {
		t.Errorf("secret in the header: %d %+v", status, got)
	}
	if status, got := b.token(code(), basic(secret)); status != http.StatusBadRequest || got.Error != "invalid_request" {
		t.Errorf("two ways at once: %d %+v", status, got)
	}
	answer, _ := b.post(b.issuer+"/token", inHeader(), basic("wrong"))
	if answer.StatusCode != http.StatusUnauthorized || !strings.HasPrefix(answer.Header.Get("WWW-Authenticate"), "Basic") {
		t.Errorf("wrong secret: %d %v", answer.StatusCode, answer.Header)
	}
	other := open(t, t.TempDir())
	if other.provider.Secret().Reveal() == secret {
		t.Error("two providers have the same secret")
	}
	if _, body := b.get(b.issuer + "/.well-known/openid-configuration"); bytes.Contains(body, []byte(`"none"`)) || bytes.Contains(body, []byte("client_credentials")) {
		t.Errorf("the metadata: %s", body)
	}
}

func TestDiscovery(t *testing.T) {
	b := open(t, t.TempDir())
	addresses := []string{b.issuer + "/.well-known/openid-configuration", b.issuer + "/.well-known/oauth-authorization-server"}
	for _, path := range b.provider.RootPaths() {
		addresses = append(addresses, b.base+path)
	}
	for _, address := range addresses {
		answer, body := b.get(address)
		var m map[string]any
		if err := json.Unmarshal(body, &m); err != nil || m["issuer"] != b.issuer || answer.Header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: %d %s %v", address, answer.StatusCode, body, err)
		}
	}
	meta, err := auth.GetAuthServerMetadata(context.Background(), b.issuer, b.client)
	if err != nil || meta == nil || !meta.AuthorizationResponseIssParameterSupported {
		t.Errorf("as go-sdk reads it: %+v, %v", meta, err)
	}
	answer, body := b.get(b.issuer + "/jwks")
	if answer.StatusCode != 200 || !bytes.Equal(body, b.provider.JWKS()) || bytes.Contains(body, []byte(`"d"`)) {
		t.Errorf("jwks %d %s", answer.StatusCode, body)
	}
}

// TestNoRegistration checks that the provider registers no clients, as a company's does not, and says so.
func TestNoRegistration(t *testing.T) {
	b := open(t, t.TempDir())
	answer, err := b.client.Post(b.issuer+"/register", "application/json", strings.NewReader(`{"redirect_uris":["http://localhost:1/cb"]}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusNotFound {
		t.Errorf("registering: %d", answer.StatusCode)
	}
	if _, body := b.get(b.issuer + "/.well-known/openid-configuration"); bytes.Contains(body, []byte("regist")) || bytes.Contains(body, []byte("client_id_metadata")) {
		t.Errorf("the metadata: %s", body)
	}
	answer, _ = b.get(b.issuer + "/authorize?" + request(map[string][]string{"client_id": {"https://a.test/client"}}).Encode())
	if answer.StatusCode != http.StatusBadRequest {
		t.Errorf("a client with a document: %d", answer.StatusCode)
	}
}

func TestGuardAndOrigins(t *testing.T) {
	b := open(t, t.TempDir())
	for name, test := range map[string]struct {
		method, path, header, value string
		want                        int
	}{
		"H15 rebinding Host":         {"GET", "/dev/idp/jwks", "Host", "rebind.evil.tld", 403},
		"X-Forwarded-For":            {"GET", "/dev/idp/authorize", "X-Forwarded-For", "10.0.0.1", 403},
		"Forwarded":                  {"POST", "/dev/idp/token", "Forwarded", "for=10.0.0.1", 403},
		"H15 Origin of another site": {"POST", "/dev/idp/token", "Origin", "https://evil.tld", 403},
		"H15 null Origin":            {"POST", "/dev/idp/token", "Origin", "null", 403},
		"a page of this machine":     {"OPTIONS", "/dev/idp/token", "Origin", "http://localhost:5173", 204},
		"metadata for any page":      {"GET", "/dev/idp/jwks", "Origin", "https://any.tld", 200},
		"metadata by POST":           {"POST", "/dev/idp/jwks", "X-Other", "1", 405},
		"authorize by PUT":           {"PUT", "/dev/idp/authorize", "X-Other", "1", 405},
		"nothing there":              {"GET", "/dev/idp/other", "X-Other", "1", 404},
	} {
		r, err := http.NewRequest(test.method, b.base+test.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if test.header == "Host" {
			r.Host = test.value
		} else {
			r.Header.Set(test.header, test.value)
		}
		answer, _ := b.do(r)
		if answer.StatusCode != test.want {
			t.Errorf("%s: %d, want %d", name, answer.StatusCode, test.want)
		}
		if cors := answer.Header.Get("Access-Control-Allow-Origin"); test.want == 204 && cors != test.value {
			t.Errorf("%s: Access-Control-Allow-Origin %q", name, cors)
		}
	}
}

func TestRestartElsewhere(t *testing.T) {
	dir := t.TempDir()
	before := open(t, dir)
	_, got := before.token(before.codeForm(before.login(request(nil), "alice@example.test").Get("code")))
	after := open(t, dir)
	if before.issuer == after.issuer {
		t.Fatal("both have the same address")
	}
	if !bytes.Equal(before.provider.JWKS(), after.provider.JWKS()) || before.provider.UserID("alice@example.test") != after.provider.UserID("alice@example.test") ||
		before.provider.OrganizationID("acme") != after.provider.OrganizationID("acme") {
		t.Error("keys or ids changed")
	}
	status, again := after.token(after.refreshForm(got.Refresh))
	if status != 200 {
		t.Fatalf("refresh after the restart: %d %+v", status, again)
	}
	after.claims(again.Access, "at+jwt")
}

func TestOpenRefusesIssuers(t *testing.T) {
	for _, issuer := range []string{"", "http://127.0.0.1", "http://gateway.test/dev/idp", "ftp://localhost/dev/idp", "http://localhost/dev/idp?x", "http://0.0.0.0:80/dev/idp"} {
		if _, err := Open(Options{Dir: t.TempDir(), Issuer: issuer}); err == nil {
			t.Errorf("issuer %q was taken", issuer)
		}
	}
}
