package oauth

import (
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

const goodToken = `{"access_token":"a","token_type":"Bearer","refresh_token":"r","expires_in":60}`

// TestGrantRequests checks what is sent for the grants without a browser, and that nothing is sent empty.
func TestGrantRequests(t *testing.T) {
	f := newFake(t, map[string]reply{"POST /token": ok(goodToken)})
	client := ClientAuth{ID: "id", Secret: seal.NewSecret("s"), Method: AuthPost}
	sent := func(want url.Values, got Tokens, err error) {
		t.Helper()
		if err != nil || got.Access.Reveal() != "a" || !got.Refresh.Empty() || !got.ExpiresAt.Equal(start.Add(time.Minute)) {
			t.Errorf("%v %v, refresh %v", got.ExpiresAt, err, !got.Refresh.Empty())
		}
		if diff := cmp.Diff(want, f.last(t).form); diff != "" {
			t.Error(diff)
		}
	}
	proof := url.Values{"client_id": {"id"}, "client_secret": {"s"}}
	with := func(more url.Values) url.Values {
		for name, values := range proof {
			more[name] = values
		}
		return more
	}
	got, err := newClient().ClientCredentials(t.Context(), ClientCredentialsRequest{Endpoint: f.URL + "/token", Client: client})
	sent(with(url.Values{"grant_type": {"client_credentials"}}), got, err)
	got, err = newClient().ClientCredentials(t.Context(), ClientCredentialsRequest{
		Endpoint: f.URL + "/token", Client: client, Audience: "aud", Resource: "urn:r", Scope: "a b",
	})
	sent(with(url.Values{"grant_type": {"client_credentials"}, "audience": {"aud"}, "resource": {"urn:r"}, "scope": {"a b"}}), got, err)
	got, err = newClient().RedeemAssertion(t.Context(), AssertionRequest{
		Endpoint: f.URL + "/token", Client: ClientAuth{ID: "id", Method: AuthNone}, Assertion: seal.NewSecret("x.y.z"), Resource: "urn:r", Scope: "a",
	})
	sent(url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {"x.y.z"}, "client_id": {"id"}, "resource": {"urn:r"}, "scope": {"a"},
	}, got, err)
}

// TestGrantAnswers judges answers to these grants, and checks that no answer shows what was sent (A10).
func TestGrantAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		answer reply
		class  Class
		code   string
	}{
		"a token":               {ok(`{"access_token":"a","token_type":"bearer"}`), Good, ""},
		"no token_type":         {ok(`{"access_token":"a"}`), Refused, ""},
		"a token for a key":     {ok(`{"access_token":"a","token_type":"DPoP"}`), Refused, ""},
		"a redirect":            {reply{307, map[string]string{"Location": "/elsewhere"}, ``}, Refused, ""},
		"an expired assertion":  {reply{400, nil, `{"error":"invalid_grant","error_description":"x.ASSERTION-CANARY.z"}`}, Refused, CodeInvalidGrant},
		"the assertion as code": {reply{400, nil, `{"error":"x.ASSERTION-CANARY.z"}`}, Refused, ""},
		"a refused client":      {reply{401, nil, `{"error":"invalid_client","error_description":"SECRET-CANARY"}`}, Refused, CodeInvalidClient},
		"busy":                  {reply{503, nil, ``}, Later, ""},
	} {
		f := newFake(t, map[string]reply{"POST /token": c.answer})
		got, err := newClient().RedeemAssertion(t.Context(), AssertionRequest{
			Endpoint: f.URL + "/token", Client: ClientAuth{ID: "id", Secret: seal.NewSecret("SECRET-CANARY"), Method: AuthBasic}, Assertion: seal.NewSecret("x.ASSERTION-CANARY.z"),
		})
		if ClassOf(err) != c.class || Code(err) != c.code || (err == nil) == got.Access.Empty() {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error()+Description(err), "CANARY") {
			t.Errorf("A10 %s: %v %s shows a secret", name, err, Description(err))
		}
	}
}

// unsigned returns a JWT with a header and claims, and a signature that nobody checks.
func unsigned(header, claims string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

// TestExchangeForAssertion checks that only an identity assertion for the server that was asked for is used: any other token
// would open something else to whoever is shown it.
func TestExchangeForAssertion(t *testing.T) {
	const header, at, server = `{"alg":"ES256","typ":"oauth-id-jag+jwt"}`, "https://mcp.example/mcp", "https://as.example"
	issued := func(raw, kind string) reply {
		return ok(`{"access_token":"` + raw + `","token_type":"N_A","issued_token_type":"urn:ietf:params:oauth:token-type:` + kind + `"}`)
	}
	claims := func(aud, more string) string { return `{"aud":` + aud + `,"exp":1767323045` + more + `}` }
	own := `"` + server + `"`
	for name, c := range map[string]struct {
		answer reply
		class  Class
		cause  error
	}{
		"an assertion":                    {issued(unsigned(header, claims(own, `,"resource":"`+at+`"`)), "id-jag"), Good, nil},
		"without a resource":              {issued(unsigned(header, claims(own, ``)), "id-jag"), Good, nil},
		"a list of one audience":          {issued(unsigned(header, claims(`[`+own+`]`, ``)), "id-jag"), Good, nil},
		"a final slash":                   {issued(unsigned(header, claims(`"`+server+`/"`, ``)), "id-jag"), Good, nil},
		"for another server":              {issued(unsigned(header, claims(`"https://gateway.example"`, ``)), "id-jag"), Refused, ErrMismatch},
		"for another server too":          {issued(unsigned(header, claims(`[`+own+`,"https://gateway.example"]`, ``)), "id-jag"), Refused, ErrMismatch},
		"for nobody":                      {issued(unsigned(header, `{"exp":1767323045}`), "id-jag"), Refused, ErrMismatch},
		"for another resource":            {issued(unsigned(header, claims(own, `,"resource":"https://other.example/mcp"`)), "id-jag"), Refused, ErrMismatch},
		"for another resource too":        {issued(unsigned(header, claims(own, `,"resource":["`+at+`","https://other.example/mcp"]`)), "id-jag"), Refused, ErrMismatch},
		"an ID token":                     {issued(unsigned(`{"alg":"ES256","typ":"JWT"}`, claims(own, ``)), "id-jag"), Refused, ErrMalformed},
		"called an access token":          {issued(unsigned(header, claims(own, ``)), "access_token"), Refused, ErrMalformed},
		"not called anything":             {ok(`{"access_token":"` + unsigned(header, claims(own, ``)) + `","token_type":"N_A"}`), Refused, ErrMalformed},
		"opaque":                          {issued("opaque", "id-jag"), Refused, ErrMalformed},
		"without an end":                  {issued(unsigned(header, `{"aud":`+own+`}`), "id-jag"), Refused, ErrMalformed},
		"an audience twice":               {issued(unsigned(header, `{"aud":"https://gateway.example","aud":`+own+`,"exp":1767323045}`), "id-jag"), Refused, ErrMalformed},
		"a user without the right to it":  {reply{400, nil, `{"error":"access_denied"}`}, Refused, nil},
		"a server that is not known":      {reply{400, nil, `{"error":"invalid_target"}`}, Refused, nil},
		"an error with status 200":        {ok(`{"error":"invalid_grant"}`), Refused, nil},
		"a page":                          {reply{200, nil, `<html>`}, Refused, ErrMalformed},
		"a page of an error":              {reply{400, nil, `<html>`}, Refused, ErrMalformed},
		"busy":                            {reply{429, nil, ``}, Later, nil},
		"an error that repeats the proof": {reply{400, nil, `{"error":"SUBJECT-CANARY"}`}, Refused, nil},
	} {
		f := newFake(t, map[string]reply{"POST /token": c.answer})
		got, err := newClient().ExchangeForAssertion(t.Context(), TokenExchangeRequest{
			Endpoint: f.URL + "/token", Client: ClientAuth{ID: "gateway", Method: AuthNone}, Subject: seal.NewSecret("SUBJECT-CANARY"), SubjectType: "id_token",
			Audience: server, Resource: at, Scope: "read",
		})
		if ClassOf(err) != c.class || (err == nil) == got.Empty() || c.cause != nil && !errors.Is(err, c.cause) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error()+Description(err), "CANARY") {
			t.Errorf("A10 %s: %v shows a secret", name, err)
		}
		if diff := cmp.Diff(url.Values{
			"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "subject_token": {"SUBJECT-CANARY"}, "client_id": {"gateway"},
			"subject_token_type": {"urn:ietf:params:oauth:token-type:id_token"}, "requested_token_type": {"urn:ietf:params:oauth:token-type:id-jag"},
			"audience": {server}, "resource": {at}, "scope": {"read"},
		}, f.last(t).form); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestDiscoverGrant checks what a server must have for each grant, and that no client is sent to endpoints that are assumed.
func TestDiscoverGrant(t *testing.T) {
	document := func(grants string) string {
		return `{"issuer":"BASE/as","token_endpoint":"BASE/token","scopes_supported":["offline_access"],"grant_types_supported":` + grants + `}`
	}
	machines := map[string]reply{"POST /mcp": demand(challenge), "GET /prm": ok(prm), asPath: ok(document(`["client_credentials"]`))}
	for name, c := range map[string]struct {
		replies map[string]reply
		known   storage.OAuthEndpoints
		grant   string
		want    error
	}{
		"for clients alone":                    {machines, storage.OAuthEndpoints{}, GrantClientCredentials, nil},
		"for clients alone, asked for users":   {machines, storage.OAuthEndpoints{}, "", ErrMalformed}, // no authorization endpoint
		"for clients alone, with an assertion": {machines, storage.OAuthEndpoints{}, GrantAssertion, ErrUnsupported},
		"no list": {map[string]reply{"POST /mcp": demand(challenge), "GET /prm": ok(prm), asPath: ok(`{"issuer":"BASE/as","token_endpoint":"BASE/token"}`)},
			storage.OAuthEndpoints{}, GrantAssertion, nil},
		"another issuer":          {map[string]reply{"POST /mcp": demand(challenge), "GET /prm": ok(prm), asPath: ok(`{"issuer":"https://evil.example","token_endpoint":"BASE/token"}`)}, storage.OAuthEndpoints{}, GrantAssertion, ErrMismatch},
		"another resource":        {map[string]reply{"POST /mcp": demand(challenge), "GET /prm": ok(`{"resource":"https://evil.example/mcp","authorization_servers":["BASE/as"]}`)}, storage.OAuthEndpoints{}, GrantClientCredentials, ErrMismatch},
		"no document at all":      {map[string]reply{"POST /mcp": demand(`Bearer`)}, storage.OAuthEndpoints{}, GrantClientCredentials, ErrUnsupported},
		"an endpoint of the file": {nil, storage.OAuthEndpoints{TokenEndpoint: "http://127.0.0.1:1/token"}, GrantClientCredentials, nil},
	} {
		f := newFake(t, c.replies)
		got, err := newClient().Discover(t.Context(), Target{URL: f.URL + "/mcp", Known: c.known, Grant: c.grant})
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && (got.Assumed || got.Endpoints.TokenEndpoint == "" || strings.Contains(strings.Join(got.Scopes, " "), offlineAccess)) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestGrantOf checks by which grant the tokens of each kind are got.
func TestGrantOf(t *testing.T) {
	asserts := storage.EntryOptions{RequestedTokenType: storage.TokenIdentityAssertion}
	for want, entries := range map[string][]storage.DirectoryEntry{
		"":                     {{Provider: storage.ProviderOAuth2}, {Provider: storage.ProviderTokenExchange}, {Provider: storage.ProviderAPIKey}},
		GrantClientCredentials: {{Provider: storage.ProviderClientCredentials}},
		GrantAssertion:         {{Provider: storage.ProviderWorkloadIdentity}, {Provider: storage.ProviderTokenExchange, Options: asserts}},
	} {
		for _, e := range entries {
			if e.RequiresAuth = true; GrantOf(&e) != want {
				t.Errorf("%s: %q", e.Provider, GrantOf(&e))
			}
			if e.RequiresAuth = false; GrantOf(&e) != "" {
				t.Errorf("%s without authentication: %q", e.Provider, GrantOf(&e))
			}
		}
	}
}

func FuzzReadAssertion(f *testing.F) {
	f.Add(unsigned(`{"typ":"oauth-id-jag+jwt"}`, `{"aud":"a","exp":1,"resource":["b"]}`))
	f.Add("a.b.c")
	f.Add("..")
	f.Fuzz(func(t *testing.T, raw string) {
		a, err := ReadAssertion(seal.NewSecret(raw))
		if err == nil && a.ExpiresAt.Before(time.Unix(0, 0)) || err != nil && !errors.Is(err, ErrMalformed) {
			t.Errorf("%+v %v", a, err)
		}
	})
}
