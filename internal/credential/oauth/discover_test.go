package oauth

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/storage"
)

const (
	challenge = `Bearer resource_metadata="BASE/prm", scope="files:read files:list"`
	prm       = `{"resource":"BASE/mcp","authorization_servers":["BASE/as"],"scopes_supported":["all"]}`
	rest      = `"authorization_endpoint":"BASE/authorize","token_endpoint":"BASE/token","code_challenge_methods_supported":["S256"]`
	full      = `{"issuer":"BASE/as","registration_endpoint":"BASE/register","revocation_endpoint":"BASE/revoke",
		"authorization_response_iss_parameter_supported":true,"client_id_metadata_document_supported":true,
		"token_endpoint_auth_methods_supported":["none"],"scopes_supported":["offline_access"],` + rest + `}`
	asPath   = "GET /.well-known/oauth-authorization-server/as"
	asRoot   = "GET /.well-known/oauth-authorization-server"
	prmPath  = "GET /.well-known/oauth-protected-resource/mcp"
	prmRoot  = "GET /.well-known/oauth-protected-resource"
	oidcPath = "GET /.well-known/openid-configuration/as"
	oidcTail = "GET /as/.well-known/openid-configuration"
)

func ok(body string) reply { return reply{status: 200, body: body} }

func demand(challenge string) reply {
	return reply{status: 401, header: map[string]string{"WWW-Authenticate": challenge}}
}

func TestDiscover(t *testing.T) {
	minimal := `{"issuer":"BASE/as",` + rest + `}`
	root := `{"issuer":"BASE",` + rest + `}`
	probe := "POST /mcp"
	for _, tc := range []struct {
		name    string
		replies map[string]reply
		target  Target
		paths   []string // nil: not compared
		want    error
		check   func(t *testing.T, base string, d Discovery)
	}{
		{
			name:    "everything by the book",
			replies: map[string]reply{probe: demand(challenge), "GET /prm": ok(prm), asPath: ok(full)},
			paths:   []string{probe, "GET /prm", asPath},
			check: func(t *testing.T, base string, d Discovery) {
				want := Discovery{
					Endpoints: storage.OAuthEndpoints{
						Issuer: base + "/as", AuthorizationEndpoint: base + "/authorize", TokenEndpoint: base + "/token",
						RegistrationEndpoint: base + "/register", RevocationEndpoint: base + "/revoke", Resource: base + "/mcp",
					},
					Scopes: []string{"files:read", "files:list", "offline_access"}, AuthMethods: []string{"none"},
					IssuerInResponse: true, ClientMetadata: true, scopesSupported: []string{"offline_access"},
				}
				if diff := cmp.Diff(want, d, cmp.AllowUnexported(Discovery{})); diff != "" {
					t.Error(diff)
				}
			},
		},
		{
			name:    "no challenge: path-inserted document, then OpenID appended; scopes of the resource",
			replies: map[string]reply{probe: demand("Bearer"), prmPath: ok(prm), oidcTail: ok(minimal)},
			paths:   []string{probe, prmPath, asPath, oidcPath, oidcTail},
			check: func(t *testing.T, _ string, d Discovery) {
				if !cmp.Equal(d.Scopes, []string{"all"}) {
					t.Errorf("scopes %q", d.Scopes)
				}
			},
		},
		{
			name:    "a document at the root covers its paths; no scopes are none",
			replies: map[string]reply{probe: {status: 405}, prmRoot: ok(`{"resource":"BASE/","authorization_servers":["BASE/as"]}`), asPath: ok(full)},
			paths:   []string{probe, prmPath, prmRoot, asPath},
			check: func(t *testing.T, base string, d Discovery) {
				if d.Endpoints.Resource != base+"/" || len(d.Scopes) != 0 {
					t.Errorf("%+v", d)
				}
			},
		},
		{
			name:    "2025-03-26: metadata at the origin",
			replies: map[string]reply{probe: demand("Bearer"), asRoot: ok(root)},
			check: func(t *testing.T, base string, d Discovery) {
				if d.Endpoints.Issuer != base || d.Endpoints.Resource != base+"/mcp" || d.Assumed {
					t.Errorf("%+v", d)
				}
			},
		},
		{
			name:    "2025-03-26: prescribed endpoints",
			replies: map[string]reply{probe: demand("Bearer")},
			check: func(t *testing.T, base string, d Discovery) {
				if d.Endpoints.TokenEndpoint != base+"/token" || !d.Assumed {
					t.Errorf("%+v", d)
				}
			},
		},
		{name: "nothing at all and no 401", replies: map[string]reply{}, want: ErrUnsupported},
		{
			name: "a web application answers every path with a page",
			replies: map[string]reply{
				probe: demand("Bearer"), prmPath: {200, map[string]string{"Content-Type": "text/html"}, "<html>"},
				prmRoot: {302, map[string]string{"Location": "/login"}, ""}, asRoot: ok(root),
			},
			check: func(t *testing.T, base string, d Discovery) {
				if d.Endpoints.Issuer != base {
					t.Errorf("%+v", d)
				}
			},
		},
		{
			name:    "a busy server is not an old one",
			replies: map[string]reply{probe: demand("Bearer"), prmPath: {503, nil, ""}, asRoot: ok(root)},
			want:    ErrUnavailable,
		},
		{
			name:    "S05 resource_metadata points inside: not fetched, the well-known place is used",
			replies: map[string]reply{probe: demand(`Bearer resource_metadata="http://169.254.169.254/latest"`), prmPath: ok(prm), asPath: ok(full)},
			paths:   []string{probe, prmPath, asPath},
		},
		{
			name:    "S05 resource_metadata with another scheme",
			replies: map[string]reply{probe: demand(`Bearer resource_metadata="file:///etc/passwd"`), prmPath: ok(prm), asPath: ok(full)},
			paths:   []string{probe, prmPath, asPath},
		},
		{
			name:    "S08 the document is about another server",
			replies: map[string]reply{probe: demand(challenge), "GET /prm": ok(`{"resource":"https://other.example/mcp","authorization_servers":["BASE/as"]}`)},
			want:    ErrMismatch,
		},
		{
			name:    "the document is about a sibling path",
			replies: map[string]reply{probe: demand(challenge), "GET /prm": ok(`{"resource":"BASE/mc","authorization_servers":["BASE/as"]}`)},
			want:    ErrMismatch,
		},
		{
			name:    "no authorization servers",
			replies: map[string]reply{probe: demand(challenge), "GET /prm": ok(`{"resource":"BASE/mcp","authorization_servers":[]}`)},
			want:    ErrMalformed,
		},
		{
			name:    "S06 authorization server with user information",
			replies: map[string]reply{probe: demand(challenge), "GET /prm": ok(`{"resource":"BASE/mcp","authorization_servers":["https://a:b@as.example"]}`)},
			want:    ErrMalformed,
		},
		{
			name:    "duplicate members",
			replies: map[string]reply{probe: demand(challenge), "GET /prm": ok(`{"resource":"BASE/mcp","resource":"BASE/mcp","authorization_servers":["BASE/as"]}`)},
			want:    ErrMalformed,
		},
		{
			name:    "S07 another issuer",
			replies: map[string]reply{probe: demand(challenge), "GET /prm": ok(prm), asPath: ok(`{"issuer":"BASE/other",` + rest + `}`)},
			want:    ErrMismatch,
		},
		{
			name:    "an issuer with a slash that the resource did not write, which names itself",
			replies: map[string]reply{probe: demand(challenge), "GET /prm": ok(prm), asPath: ok(`{"issuer":"BASE/as/",` + rest + `}`)},
			paths:   []string{probe, "GET /prm", asPath, asPath},
			check: func(t *testing.T, base string, d Discovery) {
				if d.Endpoints.Issuer != base+"/as/" {
					t.Errorf("%+v", d)
				}
			},
		},
		{
			name: "another issuer, which names itself: nothing of the first document is used",
			replies: map[string]reply{
				probe: demand(challenge), "GET /prm": ok(prm), asPath: ok(`{"issuer":"BASE","authorization_endpoint":"https://evil.example/a","token_endpoint":"https://evil.example/t"}`),
				asRoot: ok(root),
			},
			paths: []string{probe, "GET /prm", asPath, asRoot},
			check: func(t *testing.T, base string, d Discovery) {
				if d.Endpoints.Issuer != base || d.Endpoints.TokenEndpoint != base+"/token" {
					t.Errorf("%+v", d)
				}
			},
		},
		{
			name: "2025-03-26: metadata at the origin of an issuer elsewhere, as Atlassian's",
			replies: map[string]reply{
				probe: demand("Bearer"), asRoot: ok(`{"issuer":"BASE/as",` + rest + `}`), asPath: ok(minimal),
			},
			check: func(t *testing.T, base string, d Discovery) {
				if d.Endpoints.Issuer != base+"/as" {
					t.Errorf("%+v", d)
				}
			},
		},
		{
			name: "S07 another issuer, which names a third",
			replies: map[string]reply{
				probe: demand(challenge), "GET /prm": ok(prm), asPath: ok(`{"issuer":"BASE",` + rest + `}`), asRoot: ok(`{"issuer":"BASE/third",` + rest + `}`),
			},
			paths: []string{probe, "GET /prm", asPath, asRoot},
			want:  ErrMismatch,
		},
		{
			name:    "S05 another issuer, inside",
			replies: map[string]reply{probe: demand(challenge), "GET /prm": ok(prm), asPath: ok(`{"issuer":"https://169.254.169.254",` + rest + `}`)},
			paths:   []string{probe, "GET /prm", asPath},
			want:    ErrMismatch,
		},
		{
			name:    "S07 a known issuer is taken at its word",
			target:  Target{Known: storage.OAuthEndpoints{Issuer: "BASE/as"}},
			replies: map[string]reply{asPath: ok(`{"issuer":"BASE",` + rest + `}`), asRoot: ok(root)},
			paths:   []string{asPath},
			want:    ErrMismatch,
		},
		{
			name:    "S09 deep JSON",
			replies: map[string]reply{probe: demand(challenge), "GET /prm": ok(strings.Repeat("[", 100_000))},
			want:    ErrMalformed,
		},
		{
			name:    "S09 too large",
			replies: map[string]reply{probe: demand(challenge), "GET /prm": ok(`"` + strings.Repeat("x", maxBody) + `"`)},
			want:    ErrMalformed,
		},
		{
			name:    "the issuer of the kept client is preferred",
			target:  Target{Issuer: "BASE/as"},
			replies: map[string]reply{probe: demand(challenge), "GET /prm": ok(`{"resource":"BASE/mcp","authorization_servers":["BASE/first","BASE/as"]}`), asPath: ok(full)},
			paths:   []string{probe, "GET /prm", asPath},
		},
		{
			name: "known endpoints: nothing is asked",
			target: Target{
				Known:  storage.OAuthEndpoints{AuthorizationEndpoint: "https://as.example/a", TokenEndpoint: "https://as.example/t"},
				Scopes: []string{"repo"},
			},
			check: func(t *testing.T, base string, d Discovery) {
				if d.Endpoints.Resource != base+"/mcp" || d.Endpoints.Issuer != "" || !cmp.Equal(d.Scopes, []string{"repo"}) {
					t.Errorf("%+v", d)
				}
			},
			paths: []string{},
		},
		{
			name:    "known issuer: the server is not asked, other known members win",
			target:  Target{Known: storage.OAuthEndpoints{Issuer: "BASE/as", RevocationEndpoint: "https://as.example/r"}},
			replies: map[string]reply{asPath: ok(full)},
			paths:   []string{asPath},
			check: func(t *testing.T, _ string, d Discovery) {
				if d.Endpoints.RevocationEndpoint != "https://as.example/r" {
					t.Errorf("%+v", d)
				}
			},
		},
		{
			name:   "S06 known endpoint with another scheme",
			target: Target{Known: storage.OAuthEndpoints{AuthorizationEndpoint: "javascript:alert(1)", TokenEndpoint: "https://as.example/t"}},
			want:   ErrMalformed, paths: []string{},
		},
		{
			name:   "A04 half of the endpoints known: the upstream does not supply the other half",
			target: Target{Known: storage.OAuthEndpoints{AuthorizationEndpoint: "https://as.example/a"}},
			want:   ErrMalformed, paths: []string{},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFake(t, tc.replies)
			tc.target.URL = f.URL + "/mcp"
			tc.target.Issuer = strings.ReplaceAll(tc.target.Issuer, "BASE", f.URL)
			tc.target.Known.Issuer = strings.ReplaceAll(tc.target.Known.Issuer, "BASE", f.URL)
			d, err := newClient().Discover(t.Context(), tc.target)
			if !errors.Is(err, tc.want) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			if tc.paths != nil {
				got := f.paths()
				if len(got)+len(tc.paths) > 0 && !cmp.Equal(got, tc.paths) {
					t.Error(cmp.Diff(tc.paths, got))
				}
			}
			if tc.check != nil {
				tc.check(t, f.URL, d)
			}
		})
	}
}

func TestDiscoverUnreachable(t *testing.T) {
	f := newFake(t, nil)
	f.Close()
	if _, err := newClient().Discover(t.Context(), Target{URL: f.URL + "/mcp"}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("Z-U01 closed port: %v", err)
	}
	if _, err := newClient().Discover(t.Context(), Target{URL: "https://10.0.0.1/mcp"}); !errors.Is(err, ErrMalformed) {
		t.Errorf("S03 private address: %v", err)
	}
}

func TestMetadata(t *testing.T) {
	good := map[string]string{
		"issuer": `"BASE/as"`, "authorization_endpoint": `"BASE/authorize"`, "token_endpoint": `"BASE/token"`,
		"code_challenge_methods_supported": `["plain","S256"]`,
	}
	for _, tc := range []struct {
		name, member, value string // value "" removes
		want                error
	}{
		{"as it is", "x", `1`, nil},
		{"A05 no code_challenge_methods_supported", "code_challenge_methods_supported", ``, ErrUnsupported},
		{"A05 only plain", "code_challenge_methods_supported", `["plain"]`, ErrUnsupported},
		{"A05 lower case", "code_challenge_methods_supported", `["s256"]`, ErrUnsupported},
		{"A05 a string", "code_challenge_methods_supported", `"S256"`, ErrMalformed},
		{"S06 javascript", "authorization_endpoint", `"javascript:alert(1)"`, ErrMalformed},
		{"S06 file", "token_endpoint", `"file:///etc/passwd"`, ErrMalformed},
		{"S06 gopher", "token_endpoint", `"gopher://127.0.0.1:6379/_"`, ErrMalformed},
		{"S06 http to the world", "token_endpoint", `"http://1.1.1.1/token"`, ErrMalformed},
		{"S06 user information", "authorization_endpoint", `"https://a:b@as.example/"`, ErrMalformed},
		{"S06 shell characters", "authorization_endpoint", `"https://$(calc).example/"`, ErrMalformed},
		{"S06 private registration endpoint", "registration_endpoint", `"https://10.0.0.1/"`, ErrMalformed},
		{"S06 metadata address as revocation endpoint", "revocation_endpoint", `"https://169.254.169.254/"`, ErrMalformed},
		{"no token endpoint", "token_endpoint", ``, ErrMalformed},
		{"null registration endpoint is none", "registration_endpoint", `null`, nil},
		{"token endpoint is a number", "token_endpoint", `1`, ErrMalformed},
		{"no issuer", "issuer", ``, ErrMismatch},
		{"S07 upper case", "issuer", `"BASE/AS"`, ErrMismatch},
		{"response types without code", "response_types_supported", `["token"]`, ErrUnsupported},
		{"grants without authorization_code", "grant_types_supported", `["client_credentials"]`, ErrUnsupported},
		{"flag is a string", "client_id_metadata_document_supported", `"true"`, ErrMalformed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var members []string
			for k, v := range good {
				if k != tc.member {
					members = append(members, `"`+k+`":`+v)
				}
			}
			if tc.value != "" {
				members = append(members, `"`+tc.member+`":`+tc.value)
			}
			f := newFake(t, map[string]reply{asPath: ok("{" + strings.Join(members, ",") + "}")})
			_, err := newClient().FetchMetadata(t.Context(), f.URL+"/as")
			if !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

func TestSameIssuer(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"https://as.example", "https://as.example", true},
		{"https://as.example", "https://as.example/", true},
		{"https://as.example/x", "https://as.example/x/", false},
		{"https://as.example/x", "https://as.example/X", false},
		{"https://as.example", "https://AS.example", false},
		{"https://as.example", "https://as.example:443", false},
		{"https://as.example", "", false},
	} {
		if got := sameIssuer(tc.a, tc.b); got != tc.want {
			t.Errorf("sameIssuer(%q, %q) = %v", tc.a, tc.b, got)
		}
	}
}

func TestCovers(t *testing.T) {
	for _, tc := range []struct {
		resource, upstream string
		want               bool
	}{
		{"https://h.example/mcp", "https://h.example/mcp", true},
		{"https://h.example/mcp/", "https://h.example/mcp", true},
		{"https://h.example", "https://h.example/mcp", true},
		{"https://H.example:443/", "https://h.example/mcp", true},
		{"https://h.example/a", "https://h.example/a/b", true},
		{"https://h.example/a/b", "https://h.example/a", false},
		{"https://h.example/mc", "https://h.example/mcp", false},
		{"https://h.example/a", "https://h.example/a/../b", false},
		{"http://h.example/mcp", "https://h.example/mcp", false},
		{"https://h.example:8443/mcp", "https://h.example/mcp", false},
		{"https://h.example.evil.example/mcp", "https://h.example/mcp", false},
		{"https://u@h.example/mcp", "https://h.example/mcp", false},
		{"https://h.example/mcp#x", "https://h.example/mcp", false},
		{"https://h.example/mcp?t=1", "https://h.example/mcp?t=1", true},
		{"https://h.example/mcp?t=1", "https://h.example/mcp?t=2", false},
		{"https://h.example/?t=1", "https://h.example/mcp?t=1", false},
		{"https://h.example/mcp", "https://h.example/mcp?t=2", true},
		{"", "https://h.example/mcp", false},
	} {
		u, err := url.Parse(tc.upstream)
		if err != nil {
			t.Fatal(err)
		}
		if got := covers(tc.resource, u); got != tc.want {
			t.Errorf("covers(%q, %q) = %v", tc.resource, tc.upstream, got)
		}
	}
}

func TestBearerChallenge(t *testing.T) {
	for _, tc := range []struct {
		name  string
		lines []string
		want  Challenge
		found bool
	}{
		{"none", nil, Challenge{}, false},
		{"bare", []string{"Bearer"}, Challenge{}, true},
		{"another scheme first", []string{`Basic realm="x", Bearer scope="a b"`}, Challenge{Scope: "a b"}, true},
		{"the one with metadata wins", []string{`Bearer scope="a"`, `bearer resource_metadata="https://h/m", error="invalid_token"`},
			Challenge{ResourceMetadata: "https://h/m", Error: "invalid_token"}, true},
		{"without quotes", []string{`Bearer error=insufficient_scope, scope="a b"`}, Challenge{Scope: "a b", Error: "insufficient_scope"}, true},
		{"one broken line hides nothing", []string{`Bearer ="`, `Bearer scope="a"`}, Challenge{Scope: "a"}, true},
		{"too long", []string{`Bearer scope="` + strings.Repeat("a", maxChallenge) + `"`}, Challenge{}, false},
	} {
		got, found := BearerChallenge(http.Header{"Www-Authenticate": tc.lines})
		if got != tc.want || found != tc.found {
			t.Errorf("%s: %+v %v", tc.name, got, found)
		}
	}
}

func TestScopes(t *testing.T) {
	for _, tc := range []struct {
		name       string
		configured []string
		challenge  string
		listed     []string
		supported  []string
		want       []string
		err        error
	}{
		{"configured word for word", []string{"a"}, "b", []string{"c"}, []string{"offline_access"}, []string{"a"}, nil},
		{"challenge before list", nil, "b", []string{"c"}, nil, []string{"b"}, nil},
		{"offline_access where it is listed", nil, "", []string{"c"}, []string{"offline_access"}, []string{"c", "offline_access"}, nil},
		{"never alone", nil, "", nil, []string{"offline_access"}, nil, nil},
		{"forbidden characters", nil, "", []string{"a\"b"}, nil, nil, ErrMalformed},
		{"too many", nil, strings.Repeat("a ", maxScope), nil, nil, nil, ErrMalformed},
	} {
		got, err := chooseScopes(tc.configured, tc.challenge, tc.listed, tc.supported)
		if !errors.Is(err, tc.err) || err == nil && !cmp.Equal(got, tc.want) {
			t.Errorf("%s: %q, %v", tc.name, got, err)
		}
	}
}

func FuzzMetadata(f *testing.F) {
	f.Add(full)
	f.Add(prm)
	f.Add(`{"issuer":"BASE/as","token_endpoint":null}`)
	check := func(raw string) error {
		if !strings.HasPrefix(raw, "https://") {
			return errors.New("scheme")
		}
		return nil
	}
	upstream, _ := url.Parse("https://h.example/mcp")
	f.Fuzz(func(t *testing.T, s string) {
		v, err := parseObject([]byte(strings.ReplaceAll(s, "BASE", "https://h.example")))
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatal(err)
			}
			return
		}
		if d, err := parseServer(v, "https://h.example/as", check, needOf("")); err == nil {
			if d.Endpoints.Issuer != "https://h.example/as" || check(d.Endpoints.TokenEndpoint) != nil || check(d.Endpoints.AuthorizationEndpoint) != nil {
				t.Fatalf("%+v", d)
			}
		}
		if p, err := parseProtected(v, upstream, check); err == nil {
			if len(p.servers) == 0 || !covers(p.resource, upstream) {
				t.Fatalf("%+v", p)
			}
		}
	})
}

func FuzzChallenge(f *testing.F) {
	f.Add(challenge)
	f.Add(`Basic realm="a,b", Bearer x="\"", error=insufficient_scope`)
	f.Add(`Bearer "`)
	f.Fuzz(func(t *testing.T, s string) {
		c, found := BearerChallenge(http.Header{"Www-Authenticate": {s}})
		if !found && c != (Challenge{}) {
			t.Fatalf("%+v", c)
		}
	})
}
