package authserver

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/durward-gateway/durward/storage"
)

// checkClient checks what holds for each client that describes itself.
func checkClient(t *testing.T, c *Client) {
	t.Helper()
	if n := len(c.RedirectURIs); n == 0 || n > maxRedirects || len(strings.Join(c.RedirectURIs, "")) > maxRedirectTexts {
		t.Errorf("redirect URIs %q", c.RedirectURIs)
	}
	for _, redirect := range c.RedirectURIs {
		if !c.Allows(redirect) {
			t.Errorf("%q was taken, and is not allowed", redirect)
		}
	}
	if utf8.RuneCountInString(c.Name) > maxName || strings.ContainsAny(c.Name, "\x00\r\n\u202e") {
		t.Errorf("name %q", c.Name)
	}
	if !slices.Equal(c.GrantTypes, []string{GrantCode}) && !slices.Equal(c.GrantTypes, []string{GrantCode, GrantRefresh}) {
		t.Errorf("grant types %q", c.GrantTypes)
	}
}

// FuzzDocument checks that a metadata document makes a public client of its own address, or nothing.
func FuzzDocument(f *testing.F) {
	const id = "https://client.example.com/client.json"
	for _, body := range []string{
		`{"client_id":"` + id + `","redirect_uris":["https://client.example.com/back"]}`,
		`{"client_id":"` + id + `","client_name":"\u202eA","redirect_uris":["http://127.0.0.1/"],"grant_types":["refresh_token","authorization_code"],"token_endpoint_auth_method":"none"}`,
		`{"client_id":"` + id + `","client_id":"b","redirect_uris":["javascript:alert(1)"]}`, `[]`, `{"client_id":"` + id + `","client_secret":"s"}`,
	} {
		f.Add(id, []byte(body))
	}
	f.Fuzz(func(t *testing.T, id string, body []byte) {
		c, err := readDocument(id, body)
		if err != nil {
			if c != nil || !errors.Is(err, ErrDocument) {
				t.Errorf("%+v, %v: the reason tells of the network", c, err)
			}
			return
		}
		if c.ID != id || !c.Public() || c.AuthMethod != AuthNone || c.Agent != nil {
			t.Errorf("%+v is not the public client of %q", c, id)
		}
		checkClient(t, c)
	})
}

// FuzzRegistration checks that a registration makes a client that can be stored and answered, or an error for the client.
func FuzzRegistration(f *testing.F) {
	for _, body := range []string{
		`{"redirect_uris":["https://client.example.com/back"]}`, `{"redirect_uris":["http://localhost/","com.example.app:/back"],"client_name":"A","scope":"a b"}`,
		`{"redirect_uris":["cursor://anysphere/back"],"token_endpoint_auth_method":"client_secret_post","grant_types":["authorization_code","implicit"]}`,
		`{"redirect_uris":null}`, `{"redirect_uris":[1]}`, `{"redirect_uris":["https://a/?&&&&"],"response_types":["token"]}`, `null`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := registering(body)
		if err != nil {
			e := new(Error)
			if r != nil || !errors.As(err, &e) || e.Status != http.StatusBadRequest && e.Status != http.StatusRequestEntityTooLarge {
				t.Errorf("%+v, %v", r, err)
			}
			return
		}
		c := &r.Client
		stored, err := json.Marshal(c.RedirectURIs)
		if err != nil || len(stored)+len(c.Name) > storage.MaxClientTexts || !utf8.ValidString(c.Name) {
			t.Errorf("%d bytes are stored, %v", len(stored)+len(c.Name), err)
		}
		if c.ID != "" || c.SecretHash != "" || !slices.Contains(AuthMethods(), c.AuthMethod) {
			t.Errorf("the client chooses %+v", c)
		}
		checkClient(t, c)
		if _, err := json.Marshal(r.Answer("secret")); err != nil {
			t.Error(err)
		}
	})
}

// FuzzRedirect checks that an address to which codes are sent is the one that was registered, whoever reads it: only the
// port of a loopback address may be another one.
func FuzzRedirect(f *testing.F) {
	for _, pair := range [][2]string{
		{"https://client.example.com/back?x=1", "https://client.example.com/back?x=1"}, {"http://127.0.0.1/back", "http://127.0.0.1:4711/back"},
		{"http://[::1]:1/", "http://[::1]:2/"}, {"http://localhost/", "http://localhost:80.evil/"}, {"com.example.app:/back", "com.example.app:/back"},
		{"https://a.example", "https://a.example@evil"}, {"javascript://a/%0aalert(1)", "javascript://a/%0aalert(1)"}, {"http://localhost/a", "http://127.0.0.1/a"}, {"http://localhost/a", "http://localhost/b"}, {"https://a%2eb/", "https://a.b/"}, {"vscode://x", "vscode://y"},
	} {
		f.Add(pair[0], pair[1])
	}
	f.Fuzz(func(t *testing.T, registered, asked string) {
		c := &Client{RedirectURIs: []string{registered}}
		confidential := &Client{RedirectURIs: []string{registered}, SecretHash: HashSecret("s")}
		if confidential.Allows(asked) && asked != registered {
			t.Errorf("%q is allowed for a client with a secret, which registered %q", asked, registered)
		}
		if !c.Allows(asked) {
			return
		}
		u, ok := ParseRedirect(asked)
		r, registeredToo := ParseRedirect(registered)
		if !ok || !registeredToo || u.Scheme != r.Scheme || u.Hostname() != r.Hostname() || u.EscapedPath() != r.EscapedPath() || u.RawQuery != r.RawQuery {
			t.Fatalf("%q is allowed, registered is %q", asked, registered)
		}
		if u.Scheme != "http" && asked != registered || slices.Contains([]string{"javascript", "data", "file", "vbscript", "blob", "about"}, u.Scheme) {
			t.Errorf("%q is allowed, registered is %q", asked, registered)
		}
		to, err := url.Parse(AnswerURI(asked, url.Values{"code": {"dwc_&=#?/\r\n"}, "iss": {"https://gate.example.com"}}))
		if err != nil || to.Scheme != u.Scheme || to.Host != u.Host || to.EscapedPath() != u.EscapedPath() || to.Fragment != "" {
			t.Fatalf("the answer to %q goes to %v, %v", asked, to, err)
		}
		if values := to.Query(); values["code"][len(values["code"])-1] != "dwc_&=#?/\r\n" {
			t.Errorf("the answer to %q has %v", asked, values)
		}
		if sources := FormSources(asked); strings.ContainsAny(sources, ";,\"\r\n\x00") {
			t.Errorf("the policy for %q has %q", asked, sources)
		}
		if origin, ok := RedirectOrigin(asked); !ok || !strings.HasPrefix(origin, u.Scheme+"://") || strings.ContainsAny(origin[len(u.Scheme)+len("://"):], "/?#") {
			t.Errorf("the origin of %q is %q", asked, origin)
		}
	})
}

// FuzzAuthorization checks what is read from the parameters of an authorization request.
func FuzzAuthorization(f *testing.F) {
	const challenge = "code_challenge_method=S256&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
	for _, query := range []string{
		"response_type=code&client_id=a&redirect_uri=https%3A%2F%2Fa%2Fb&state=s&scope=b+a+a&resource=https%3A%2F%2Fgate.test%2Fmcp%2Fa&" + challenge,
		"response_type=code&scope=%22&" + challenge, "response_type=code&resource=a&resource=b&audience=https%3A%2F%2Fgate.test%2F&" + challenge,
		"response_type=token&" + challenge, "response_type=code&response_type=code", "response_type=code&prompt=none&" + challenge, "response_type=code&request=x&" + challenge,
	} {
		f.Add(query)
	}
	ours := func(target string) bool { return strings.HasPrefix(target, "https://gate.test/") }
	f.Fuzz(func(t *testing.T, query string) {
		form, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		a, err := ReadAuthorization(form, ours)
		if err != nil {
			e := new(Error)
			if !errors.As(err, &e) || ErrorAnswer(err).Get("error") == "" {
				t.Errorf("%v", err)
			}
			return
		}
		if !IsChallenge(a.Challenge) || form.Get("response_type") != "code" || form.Has("request") || form.Has("request_uri") {
			t.Errorf("%+v was taken", a)
		}
		if !slices.IsSorted(a.Scopes) || len(a.Scopes) > maxScopes || slices.Contains(a.Scopes, "") {
			t.Errorf("scopes %q", a.Scopes)
		}
		if again, err := Scopes(strings.Join(a.Scopes, " ")); err != nil || !slices.Equal(again, a.Scopes) {
			t.Errorf("scopes %q are %q, %v, when they are read again", a.Scopes, again, err)
		}
		if len(a.Targets) > maxTargets || slices.ContainsFunc(a.Targets, func(target string) bool { return !ours(target) }) {
			t.Errorf("targets %q", a.Targets)
		}
		for _, value := range []string{a.ClientID, a.RedirectURI, a.State, a.Nonce} {
			if len(value) > maxText {
				t.Errorf("%d bytes were taken", len(value))
			}
		}
	})
}

// FuzzHandle checks that what a code or refresh token names is read in one way, before its tag is known to be good.
func FuzzHandle(f *testing.F) {
	f.Add(Handle{"organization", "login", 7}.append(nil))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
	f.Add([]byte{0, 0, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, size, ok := readHandle(raw)
		if !ok {
			return
		}
		again, length, ok := readHandle(h.append(nil))
		if size > len(raw) || !ok || again != h || length > size || h.Generation < 0 {
			t.Errorf("%+v of %d of %d bytes, and %+v of %d", h, size, len(raw), again, length)
		}
	})
}
