package oidclogin

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/internal/strictjson"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const redirectURI = "https://gate.example.com/login/callback"

// idp is an OpenID provider that answers one token request with an ID token of any claims.
type idp struct {
	*httptest.Server
	key ed25519.PrivateKey

	mu       sync.Mutex
	claims   map[string]any                                     // changes of the ID token's; nil values remove
	answer   string                                             // of the token endpoint instead, when set
	refuses  func(form url.Values, authorization string) string // makes the answer of each request, "" for an ID token
	forms    []url.Values                                       // of token requests
	auths    []string                                           // Authorization of token requests
	metadata map[string]any                                     // changes of the metadata
	userinfo string                                             // what userinfo answers: status, blank, body
	asked    []string                                           // Authorization of requests for userinfo
	fetched  int
}

func newIDP(t *testing.T) *idp {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &idp{key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.serveMetadata)
	mux.HandleFunc("POST /token", p.serveToken)
	mux.HandleFunc("GET /userinfo", p.serveUserinfo)
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func (p *idp) serveMetadata(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fetched++
	m := map[string]any{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize?tenant=1", "token_endpoint": p.URL + "/token",
		"authorization_response_iss_parameter_supported": true, "userinfo_endpoint": p.URL + "/userinfo",
	}
	maps.Copy(m, p.metadata)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(m)
}

func (p *idp) serveUserinfo(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, r.Header.Get("Authorization"))
	status, body, _ := strings.Cut(p.userinfo, " ")
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(map[string]int{"200": 200, "302": 302, "401": 401, "500": 500}[status])
	_, _ = w.Write([]byte(body))
}

func (p *idp) serveToken(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forms, p.auths = append(p.forms, r.PostForm), append(p.auths, r.Header.Get("Authorization"))
	w.Header().Set("Content-Type", "application/json")
	if p.refuses != nil {
		p.answer = p.refuses(r.PostForm, r.Header.Get("Authorization"))
	}
	if p.answer != "" {
		status, body, _ := strings.Cut(p.answer, " ")
		w.WriteHeader(map[string]int{"200": 200, "400": 400, "500": 500}[status])
		_, _ = w.Write([]byte(body))
		return
	}
	now := time.Now().Unix()
	c := map[string]any{"iss": p.URL, "sub": "user-1", "aud": "console", "iat": now, "exp": now + 300}
	maps.Copy(c, p.claims)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	payload, _ := json.Marshal(c)
	b64 := base64.RawURLEncoding.EncodeToString
	signed := b64([]byte(`{"alg":"EdDSA","kid":"k"}`)) + "." + b64(payload)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"token_type": "Bearer", "access_token": "a", "id_token": signed + "." + b64(ed25519.Sign(p.key, []byte(signed))),
	})
}

func (p *idp) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.at }
func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// lacks: an organization is needed, an address would be nice.
func lacks(c *token.Claims) caller.Lack {
	_, organization := c.Object.Get("org_id")
	_, address := c.Object.Get("email")
	switch {
	case !organization:
		return caller.LacksIdentity
	case !address:
		return caller.LacksDetail
	}
	return caller.LacksNothing
}

func (p *idp) provider(t *testing.T, secret string) (*Provider, *clock) {
	t.Helper()
	keys, err := token.NewStaticKeys(token.StaticKey{ID: "k", Public: p.key.Public()})
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := token.NewIDVerifier(token.Options{Issuer: p.URL}, "console", keys, nil)
	if err != nil {
		t.Fatal(err)
	}
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	c := &clock{at: time.Now()}
	return New(Options{
		Issuer: p.URL, Client: "console", Secret: seal.NewSecret(secret), RedirectURI: redirectURI, Verifier: verifier,
		OAuth: oauth.New(netguard.New(netguard.Policy{HTTP: loopback, Allow: loopback}), nil), Now: c.now, Lacks: lacks,
	}), c
}

// begin begins a login whose nonce the provider will repeat, and returns the answer that it gives.
func (p *idp) begin(t *testing.T, o *Provider) (Attempt, url.Values) {
	t.Helper()
	_, a, err := o.Begin(t.Context(), Purpose{Return: "/approvals"})
	if err != nil {
		t.Fatal(err)
	}
	p.set(func() { p.claims = map[string]any{"nonce": a.Nonce} })
	return a, url.Values{"code": {"c-1"}, "state": {a.State}, "iss": {p.URL}}
}

func TestLogin(t *testing.T) {
	p := newIDP(t)
	o, _ := p.provider(t, "")
	address, a, err := o.Begin(t.Context(), Purpose{Return: "/approvals/1"})
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	challenge := sha256.Sum256([]byte(a.Verifier.Reveal()))
	for name, want := range map[string]string{
		"response_type": "code", "client_id": "console", "redirect_uri": redirectURI, "scope": "openid profile email", "state": a.State,
		"nonce": a.Nonce, "code_challenge": base64.RawURLEncoding.EncodeToString(challenge[:]), "code_challenge_method": "S256", "tenant": "1", "resource": "",
	} {
		if got := q.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if a.Return != "/approvals/1" || a.Issuer != p.URL || len(a.State) != 43 || len(a.Nonce) != 43 || a.State == a.Nonce || strings.Contains(address, a.Verifier.Reveal()) {
		t.Errorf("attempt %+v", a)
	}
	p.set(func() {
		p.claims, p.userinfo = map[string]any{"nonce": a.Nonce}, `200 {"sub":"user-1","org_id":"acme"}`
	})
	finished, err := o.Finish(t.Context(), url.Values{"code": {"c-1"}, "state": {a.State}, "iss": {p.URL}}, a)
	if err != nil {
		t.Fatal(err)
	}
	claims := finished.Claims
	if claims.Subject != "user-1" {
		t.Errorf("claims %+v", claims)
	}
	if strings.Count(finished.IDToken.Reveal(), ".") != 2 {
		t.Error("the ID token is not kept")
	}
	form := p.forms[0]
	if form.Get("code") != "c-1" || form.Get("code_verifier") != a.Verifier.Reveal() || form.Get("redirect_uri") != redirectURI || form.Get("client_id") != "console" || p.auths[0] != "" {
		t.Errorf("token request %v %v", form, p.auths)
	}
	if p.fetched != 1 {
		t.Errorf("the metadata was fetched %d times", p.fetched)
	}
}

func TestLoginWithSecret(t *testing.T) {
	p := newIDP(t)
	o, clock := p.provider(t, "s3cret")
	a, answer := p.begin(t, o)
	p.set(func() { p.claims["org_id"], p.claims["email"] = "acme", "a@b" })
	if _, err := o.Finish(t.Context(), answer, a); err != nil {
		t.Fatal(err)
	}
	if len(p.asked) != 0 {
		t.Error("userinfo was asked although nothing is missing")
	}
	if p.auths[0] != "Basic "+base64.StdEncoding.EncodeToString([]byte("console:s3cret")) || p.forms[0].Has("client_secret") {
		t.Errorf("token request %v %v", p.forms[0], p.auths)
	}
	// The provider moves, and a day later that is known.
	p.set(func() { p.metadata = map[string]any{"authorization_endpoint": p.URL + "/elsewhere"} })
	clock.advance(metadataLifetime)
	if address, _, err := o.Begin(t.Context(), Purpose{Return: "/"}); err != nil || !strings.HasPrefix(address, p.URL+"/elsewhere?") {
		t.Errorf("%s, %v", address, err)
	}
}

// TestAnswerToAnotherLogin checks that nothing is sent anywhere when the browser's answer does not belong to the
// attempt.
func TestAnswerToAnotherLogin(t *testing.T) {
	p := newIDP(t)
	o, clock := p.provider(t, "")
	a, good := p.begin(t, o)
	for name, change := range map[string]func(url.Values, *Attempt){
		"no state":                     func(q url.Values, _ *Attempt) { q.Del("state") },
		"another state":                func(q url.Values, _ *Attempt) { q.Set("state", oauth.NewState()) },
		"two states":                   func(q url.Values, _ *Attempt) { q.Add("state", q.Get("state")) },
		"an attempt without state":     func(q url.Values, a *Attempt) { a.State = ""; q.Set("state", "") },
		"another issuer's attempt":     func(_ url.Values, a *Attempt) { a.Issuer = "https://other.example.com" },
		"A04 another issuer":           func(q url.Values, _ *Attempt) { q.Set("iss", "https://other.example.com") },
		"A04 an issuer with a slash":   func(q url.Values, _ *Attempt) { q.Set("iss", p.URL+"/") },
		"A04 no issuer, though spoken": func(q url.Values, _ *Attempt) { q.Del("iss") },
		"two codes":                    func(q url.Values, _ *Attempt) { q.Add("code", "c-2") },
		"no code":                      func(q url.Values, _ *Attempt) { q.Del("code") },
		"a code and an error":          func(q url.Values, _ *Attempt) { q.Set("error", "access_denied") },
		"too old":                      func(_ url.Values, a *Attempt) { a.Expires = clock.now() },
	} {
		t.Run(name, func(t *testing.T) {
			query, attempt := maps.Clone(good), a
			change(query, &attempt)
			if finished, err := o.Finish(t.Context(), query, attempt); !errors.Is(err, ErrAnswer) || finished != (Finished{}) {
				t.Errorf("%v, %v", finished.Claims, err)
			}
		})
	}
	if len(p.forms) != 0 {
		t.Errorf("the provider was asked %d times", len(p.forms))
	}
}

func TestLoginRefused(t *testing.T) {
	const ok = `200 {"token_type":"Bearer","access_token":"a"`
	for name, c := range map[string]struct {
		change func(p *idp, q url.Values)
		want   error
	}{
		"denied":                      {func(_ *idp, q url.Values) { q.Del("code"); q.Set("error", "access_denied") }, ErrDenied},
		"A07 a code of another login": {func(p *idp, _ url.Values) { p.answer = `400 {"error":"invalid_grant"}` }, ErrAnswer},
		"the client is unknown":       {func(p *idp, _ url.Values) { p.answer = `400 {"error":"invalid_client"}` }, ErrRefused},
		"the provider fails":          {func(p *idp, _ url.Values) { p.answer = "500 {}" }, ErrProvider},
		"no ID token":                 {func(p *idp, _ url.Values) { p.answer = ok + "}" }, ErrRefused},
		"an ID token that is a list":  {func(p *idp, _ url.Values) { p.answer = ok + `,"id_token":["x"]}` }, ErrRefused},
		"no access token":             {func(p *idp, _ url.Values) { p.answer = `200 {"token_type":"Bearer"}` }, ErrRefused},
		"the provider is busy":        {func(p *idp, _ url.Values) { p.answer = "429 {}" }, ErrProvider},
		"A09 no JWT":                  {func(p *idp, _ url.Values) { p.answer = ok + `,"id_token":"x"}` }, token.ErrInvalid},
		"another login's nonce":       {func(p *idp, _ url.Values) { p.claims["nonce"] = oauth.NewNonce() }, token.ErrInvalid},
		"no nonce":                    {func(p *idp, _ url.Values) { p.claims["nonce"] = nil }, token.ErrInvalid},
		"for another client":          {func(p *idp, _ url.Values) { p.claims["aud"] = "other" }, token.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			p := newIDP(t)
			o, _ := p.provider(t, "")
			a, answer := p.begin(t, o)
			p.set(func() { c.change(p, answer) })
			if finished, err := o.Finish(t.Context(), answer, a); !errors.Is(err, c.want) || finished != (Finished{}) {
				t.Errorf("%v, %v", finished.Claims, err)
			}
		})
	}
}

func TestMetadataRefused(t *testing.T) {
	for name, change := range map[string]any{
		"S07 another issuer":      map[string]any{"issuer": "https://other.example.com"},
		"S06 a script":            map[string]any{"authorization_endpoint": "javascript:alert(1)"},
		"S01 an internal address": map[string]any{"token_endpoint": "http://169.254.169.254/token"},
		"A05 plain PKCE only":     map[string]any{"code_challenge_methods_supported": []string{"plain"}},
		"no codes":                map[string]any{"response_types_supported": []string{"id_token"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newIDP(t)
			o, _ := p.provider(t, "")
			p.set(func() { p.metadata = change.(map[string]any) })
			if address, _, err := o.Begin(t.Context(), Purpose{Return: "/"}); !errors.Is(err, ErrProvider) || address != "" {
				t.Errorf("%s, %v", address, err)
			}
		})
	}
	p := newIDP(t)
	o, _ := p.provider(t, "")
	p.Close()
	if _, _, err := o.Begin(context.WithoutCancel(t.Context()), Purpose{Return: "/"}); !errors.Is(err, ErrProvider) {
		t.Errorf("a provider that is down: %v", err)
	}
}

func TestLocalPath(t *testing.T) {
	for _, good := range []string{"/", "/approvals", "/approvals/0190?x=1&y=%2F", "/api/oauth/held", "/a;b"} {
		if got := LocalPath(good, "/f"); got != good {
			t.Errorf("%s becomes %s", good, got)
		}
	}
	for _, bad := range []string{
		"", "approvals", "//evil.example", "/\\evil.example", "/\t/evil.example", "/a//b", "https://evil.example/", "javascript:alert(1)", "/a#b", "/a\r\nX: y",
		"/../x", "/a/./b", "/%2f/evil.example", "/%2e%2e/x", "/ a", "/é", "/" + strings.Repeat("a", 2100), "/%", "\\/evil.example", "///evil.example",
	} {
		if got := LocalPath(bad, "/f"); got != "/f" {
			t.Errorf("%q is taken: %s", bad, got)
		}
	}
}

func FuzzLocalPath(f *testing.F) {
	for _, seed := range []string{"/approvals?x=1", "//e", "/\\e", "/%2f%2fe", "/a/../..//e", "/;//e"} {
		f.Add(seed)
	}
	site, err := url.Parse("https://gate.example.com/login")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got := LocalPath(raw, "/f")
		to, err := site.Parse(got)
		if err != nil || to.Host != site.Host || to.Scheme != site.Scheme || to.User != nil || strings.HasPrefix(got, "//") || strings.ContainsAny(got, "\\\r\n\t ") {
			t.Fatalf("%q leads to %v, %v", raw, to, err)
		}
	})
}

// TestProvenAt checks when a login counts as fresh: as the provider says, never in the future, and without its word only where
// it was told to ask.
func TestProvenAt(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		claims, prompt string
		want           time.Time
	}{
		"an hour ago, told to ask": {`{"auth_time":1772362800}`, PromptLogin, now.Add(-time.Hour)},
		"an hour ago":              {`{"auth_time":1772362800}`, "", now.Add(-time.Hour)},
		"in the future":            {`{"auth_time":1772370000}`, "", now},
		"nothing said":             {`{}`, "", time.Time{}},
		"nothing said, other ask":  {`{}`, "consent", time.Time{}},
		"nothing said, told":       {`{}`, PromptLogin, now},
		"no number":                {`{"auth_time":"1772362800"}`, "", time.Time{}},
	} {
		object, err := strictjson.Parse([]byte(c.claims), strictjson.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		a := Attempt{Purpose: Purpose{Prompt: c.prompt}}
		if at := a.ProvenAt(&token.Claims{Object: object}, now); !at.Equal(c.want) {
			t.Errorf("%s: %v, want %v", name, at, c.want)
		}
	}
}
