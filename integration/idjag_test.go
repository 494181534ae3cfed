package integration

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth/extauth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

const grantAssertion = "urn:ietf:params:oauth:grant-type:jwt-bearer"

// assertingOption configures the clients that present assertions, an issuer whose assertions are not taken, and one whose
// keys cannot be fetched.
const assertingOption = `identity oidc <mute> {
			login_client durward
		}
		identity oidc http://127.0.0.1:1 {
			login_client durward
			id_jag
		}
		authorization_server on {
			oauth_client assistant {
				name "An assistant"
				secret {env.ASSISTANT_SECRET}
				redirect_uri https://assistant.example.com/back
			}
			oauth_client other {
				secret {env.ASSISTANT_SECRET}
				redirect_uri https://other.example.com/back
			}
			oauth_client public {
				redirect_uri https://public.example.com/back
			}
		}`

// asserting is a gateway that takes the identity assertions of its identity provider, and none of another one, mute.
type asserting struct {
	*gateway
	mute *identityProvider
}

func newAsserting(t *testing.T) *asserting {
	t.Helper()
	a := &asserting{mute: newIdentityProvider(t)}
	a.gateway = startGateway(t, settings{
		identity: "login_client durward\n\t\t\tid_jag", option: strings.ReplaceAll(assertingOption, "<mute>", a.mute.issuer()), env: []string{"ASSISTANT_SECRET=s3cret"},
	})
	return a
}

// claims returns the claims of an assertion about a user for the client assistant at a server. A nil value leaves a claim out.
func (a *asserting) claims(user claims, s server, changes claims) claims {
	return a.identity.complete(user.with(claims{
		"client_id": "assistant", "azp": nil, "resource": a.url + s.path, "exp": time.Now().Add(5 * time.Minute).Unix(),
	}).with(changes), a.url)
}

func (a *asserting) assertion(user claims, s server, changes claims) string {
	return a.identity.sign(a.claims(user, s, changes), typed("oauth-id-jag+jwt"))
}

// typed returns the header of a token of a type.
func typed(kind string) map[string]any {
	return map[string]any{"alg": "ES256", "typ": kind, "kid": kidES256}
}

// present shows an assertion at the token endpoint as a client; one without a secret is public.
func (a *asserting) present(client, secret, assertion string, more url.Values) (int, members) {
	a.t.Helper()
	form := url.Values{"grant_type": {grantAssertion}, "assertion": {assertion}}
	for name, values := range more {
		form[name] = values
	}
	header := []string{"Content-Type", "application/x-www-form-urlencoded"}
	if secret == "" {
		form.Set("client_id", client)
	} else {
		header = append(header, "Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(client+":"+secret)))
	}
	answer := a.send(http.MethodPost, "/oauth/token", "", form.Encode(), header...)
	var got members
	answer.decode(a.t, &got)
	return answer.status, got
}

// loggedIn exchanges an assertion for an access token.
func (a *asserting) loggedIn(assertion string) string {
	a.t.Helper()
	status, got := a.present("assistant", "s3cret", assertion, nil)
	access, _ := got["access_token"].(string)
	if status != http.StatusOK || access == "" {
		a.t.Fatalf("an assertion: %d %v", status, got)
	}
	return access
}

// sessions lists a user's sessions with clients.
func (a *asserting) sessions(user claims) []members {
	a.t.Helper()
	var page struct{ Data []members }
	a.send(http.MethodGet, "/api/sessions", a.token(user), nil).want(a.t, http.StatusOK).decode(a.t, &page)
	return page.Data
}

// TestIDJAG goes the way of an enterprise's client: an assertion of the identity provider, an access token, a call.
func TestIDJAG(t *testing.T) {
	t.Parallel()
	a := newAsserting(t)
	s := a.createServer(answering(t).url, nil)
	call := func(access string, at server) answer { return a.mcp(access, at, "", toolCall("echo")) }

	var metadata struct {
		Grants   []string `json:"grant_types_supported"`
		Profiles []string `json:"authorization_grant_profiles_supported"`
	}
	a.send(http.MethodGet, "/.well-known/oauth-authorization-server", "", nil).want(t, http.StatusOK).decode(t, &metadata)
	if !slices.Contains(metadata.Grants, grantAssertion) || len(metadata.Profiles) != 1 || metadata.Profiles[0] != "urn:ietf:params:oauth:grant-profile:id-jag" {
		t.Errorf("the metadata: %+v", metadata)
	}
	status, tokens := a.present("assistant", "s3cret", a.assertion(alice, s, nil), url.Values{"resource": {a.url + s.path}})
	lifetime, _ := tokens["expires_in"].(float64)
	if status != http.StatusOK || tokens["token_type"] != "Bearer" || lifetime > 900 || lifetime < 840 || tokens["refresh_token"] != nil {
		t.Fatalf("an assertion: %d %v", status, tokens)
	}
	access, _ := tokens["access_token"].(string)
	if got := call(access, s); got.status != http.StatusOK || refusedTool(got) {
		t.Errorf("a call: %d %s", got.status, got.body)
	}
	other := a.createServer(answering(t).url, nil)
	if got := call(access, other); got.status != http.StatusUnauthorized {
		t.Errorf("at another server: %d", got.status)
	}
	if got := a.send(http.MethodGet, "/api/servers", access, nil); got.status != http.StatusUnauthorized {
		t.Errorf("at the API: %d", got.status)
	}
	t.Run("what an assertion does not name is unknown", func(t *testing.T) {
		governed := a.ruled(members{"name": "all", "authorized": true}, members{"name": "no", "authorized": false, "roles_groups": []string{"group:sales"}})
		for name, c := range map[string]struct {
			groups  any
			refused bool
		}{"named": {[]string{"engineering"}, false}, "none": {[]string{}, false}, "denied": {[]string{"sales"}, true}, "not named": {nil, true}} {
			got := call(a.loggedIn(a.assertion(alice, governed, claims{"groups": c.groups})), governed)
			if refusedTool(got) != c.refused {
				t.Errorf("groups that are %s: %d %s", name, got.status, got.body)
			}
		}
	})
	t.Run("one login", func(t *testing.T) {
		before := a.sessions(alice)
		again := a.loggedIn(a.assertion(alice, s, nil))
		after := a.sessions(alice)
		if len(after) != len(before) {
			t.Errorf("%d sessions, and then %d", len(before), len(after))
		}
		for _, session := range after {
			if session["resource"] != a.url+s.path {
				continue
			}
			if session["client_id"] != "assistant" || session["client_name"] != "An assistant" || session["issuer"] != a.identity.issuer() {
				t.Errorf("the session: %v", session)
			}
			a.send(http.MethodDelete, "/api/sessions/"+session["id"].(string), a.token(alice), nil).want(t, http.StatusNoContent)
		}
		for name, token := range map[string]string{"first": access, "second": again} {
			if got := call(token, s); got.status != http.StatusUnauthorized {
				t.Errorf("the %s token after the end of the session: %d", name, got.status)
			}
		}
		if got := call(a.loggedIn(a.assertion(alice, s, nil)), s); got.status != http.StatusOK {
			t.Errorf("a new session: %d", got.status)
		}
		if got := call(access, s); got.status != http.StatusUnauthorized {
			t.Errorf("the token of the session that was ended came back: %d", got.status)
		}
	})
	t.Run("revoked", func(t *testing.T) {
		running, before := a.loggedIn(a.assertion(bob, s, nil)), a.assertion(bob, s, nil)
		a.send(http.MethodPost, "/api/users/"+bob["sub"].(string)+"/revoke", a.token(admin), members{}).want(t, http.StatusOK)
		if got := call(running, s); got.status != http.StatusUnauthorized {
			t.Errorf("a token of the login: %d", got.status)
		}
		if status, got := a.present("assistant", "s3cret", before, nil); status != http.StatusBadRequest || got["error"] != "invalid_grant" {
			t.Errorf("an assertion from before: %d %v", status, got)
		}
	})
	t.Run("recorded", func(t *testing.T) {
		got := a.send(http.MethodGet, "/api/audit?kind=login&limit=100", a.token(admin), nil).want(t, http.StatusOK)
		for _, says := range []string{`"client.login"`, `"by":"assertion"`, `"client":"assistant"`, `"issuer":"` + a.identity.issuer()} {
			if !strings.Contains(string(got.body), says) {
				t.Errorf("no record says %s: %s", says, got.body)
			}
		}
	})
}

// TestAttackIDJAG presents assertions that are not good, or not for this request (attack rows A and J).
func TestAttackIDJAG(t *testing.T) {
	t.Parallel()
	a := newAsserting(t)
	s := a.createServer(answering(t).url, nil)
	foreign := "0190aaaa-0000-7000-8000-00000000f04e"
	a.send(http.MethodGet, "/api/servers", a.mute.sign(a.mute.complete(claims{"sub": "somebody", "org_id": foreign}, a.url), typed("at+jwt")), nil).want(t, http.StatusOK)
	used := a.assertion(alice, s, claims{"jti": "used"})
	a.loggedIn(used)
	at := func(seconds int) int64 { return time.Now().Add(time.Duration(seconds) * time.Second).Unix() }
	changed := func(changes claims) string { return a.assertion(alice, s, changes) }
	good := func() string { return a.assertion(alice, s, nil) }
	unsigned := func() string {
		return encodeJSON(t, map[string]any{"alg": "none", "typ": "oauth-id-jag+jwt"}) + "." + encodeJSON(t, a.claims(alice, s, nil)) + "."
	}
	for name, c := range map[string]struct {
		assertion      string
		client, secret string // default: assistant
		more           url.Values
		want           string
	}{
		"a replay":                           {assertion: used, want: "400 invalid_grant"},
		"a replay, signed again":             {assertion: changed(claims{"jti": "used"}), want: "400 invalid_grant"},
		"J17 another audience":               {assertion: changed(claims{"aud": "https://other.example.com"}), want: "400 invalid_grant"},
		"J17 the server as audience":         {assertion: changed(claims{"aud": a.url + s.path}), want: "400 invalid_grant"},
		"J17 two audiences":                  {assertion: changed(claims{"aud": []string{a.url, "https://other.example.com"}}), want: "400 invalid_grant"},
		"another client":                     {assertion: good(), client: "other", secret: "s3cret", want: "400 invalid_grant"},
		"for another client":                 {assertion: changed(claims{"client_id": "other"}), want: "400 invalid_grant"},
		"for no client":                      {assertion: changed(claims{"client_id": nil}), want: "400 invalid_grant"},
		"a client without its secret":        {assertion: good(), client: "assistant", want: "401 invalid_client"},
		"a client with another secret":       {assertion: good(), client: "assistant", secret: "guess", want: "401 invalid_client"},
		"a public client":                    {assertion: changed(claims{"client_id": "public"}), client: "public", want: "400 unauthorized_client"},
		"a client that is an address":        {assertion: changed(claims{"client_id": a.mute.issuer() + "/id"}), client: a.mute.issuer() + "/id", want: "401 invalid_client"},
		"nobody":                             {assertion: good(), client: "nobody", secret: "s3cret", want: "401 invalid_client"},
		"J11 an ID token":                    {assertion: a.identity.sign(a.claims(alice, s, nil), typed("JWT")), want: "400 invalid_grant"},
		"J11 an access token":                {assertion: a.token(alice), want: "400 invalid_grant"},
		"J13 expired":                        {assertion: changed(claims{"iat": at(-400), "exp": at(-100)}), want: "400 invalid_grant"},
		"J13 no exp":                         {assertion: changed(claims{"exp": nil}), want: "400 invalid_grant"},
		"J14 no iat":                         {assertion: changed(claims{"iat": nil}), want: "400 invalid_grant"},
		"J15 an hour":                        {assertion: changed(claims{"exp": at(3600)}), want: "400 invalid_grant"},
		"no jti":                             {assertion: changed(claims{"jti": nil}), want: "400 invalid_grant"},
		"bound to a key":                     {assertion: changed(claims{"cnf": members{"jkt": "x"}}), want: "400 invalid_grant"},
		"narrowed by details":                {assertion: changed(claims{"authorization_details": []any{}}), want: "400 invalid_grant"},
		"another tenant":                     {assertion: changed(claims{"tenant": "evil"}), want: "400 invalid_grant"},
		"a resource of elsewhere":            {assertion: changed(claims{"resource": "https://other.example.com/mcp/x"}), want: "400 invalid_grant"},
		"no resource":                        {assertion: changed(claims{"resource": nil}), want: "400 invalid_target"},
		"more than the assertion is for":     {assertion: good(), more: url.Values{"resource": {a.url}}, want: "400 invalid_target"},
		"another resource":                   {assertion: good(), more: url.Values{"resource": {a.url + "/mcp/other"}}, want: "400 invalid_target"},
		"no such server":                     {assertion: changed(claims{"resource": a.url + "/mcp/no-such-server"}), want: "400 invalid_target"},
		"a server of another organization's": {assertion: a.assertion(eve, s, nil), want: "400 invalid_target"},
		"J16 an issuer without the word":     {assertion: a.mute.sign(a.claims(alice, s, claims{"iss": a.mute.issuer()}), typed("oauth-id-jag+jwt")), want: "400 invalid_grant"},
		"J16 signed by another issuer":       {assertion: a.mute.sign(a.claims(alice, s, nil), typed("oauth-id-jag+jwt")), want: "400 invalid_grant"},
		"J16 the gateway's own name":         {assertion: changed(claims{"iss": a.url}), want: "400 invalid_grant"},
		"J04 unsigned":                       {assertion: unsigned(), want: "400 invalid_grant"},
		"J21 no organization":                {assertion: changed(claims{"org_id": nil}), want: "400 invalid_grant"},
		"J21 another issuer's organization":  {assertion: changed(claims{"org_id": foreign}), want: "400 invalid_grant"},
		"a machine":                          {assertion: changed(claims{"sub": "assistant"}), want: "400 invalid_grant"},
		"a machine by its grant":             {assertion: changed(claims{"gty": "client_credentials"}), want: "400 invalid_grant"},
		"azp of another":                     {assertion: changed(claims{"azp": "other"}), want: "400 invalid_grant"},
		"nothing":                            {assertion: "", want: "400 invalid_request"},
		"no JWT":                             {assertion: "x", want: "400 invalid_grant"},
		"two of them":                        {assertion: good(), more: url.Values{"assertion": {good(), good()}}, want: "400 invalid_request"},
		"keys that cannot be fetched":        {assertion: changed(claims{"iss": "http://127.0.0.1:1"}), want: "503 temporarily_unavailable"},
	} {
		if c.client == "" {
			c.client, c.secret = "assistant", "s3cret"
		}
		status, got := a.present(c.client, c.secret, c.assertion, c.more)
		if said := fmt.Sprint(status, " ", got["error"]); said != c.want || got["access_token"] != nil {
			t.Errorf("%s: %s %v, want %s", name, said, got, c.want)
		}
		text, _ := json.Marshal(got)
		if strings.Contains(string(text), "alice") || strings.Contains(string(text), foreign) {
			t.Errorf("%s: the answer tells of users: %s", name, text)
		}
	}
	if got := a.mcp(good(), s, "", toolCall("echo")); got.status != http.StatusUnauthorized {
		t.Errorf("J11 an assertion as an access token: %d", got.status)
	}
	if got := a.sessions(alice); len(got) != 1 {
		t.Errorf("attacks made logins: %v", got)
	}
	// A refused assertion is not used up: the client may present it as it should.
	kept := good()
	if status, _ := a.present("other", "s3cret", kept, nil); status != http.StatusBadRequest {
		t.Fatal(status)
	}
	a.loggedIn(kept)
}

// TestIDJAGClient lets the enterprise handler of the official Go SDK do all: it exchanges an ID token at the identity provider
// for an assertion, finds the gateway's token endpoint, and calls a tool.
func TestIDJAGClient(t *testing.T) {
	t.Parallel()
	a := newAsserting(t)
	s := a.createServer(newMCPServer(t, nil).url, nil)
	idToken := a.identity.sign(a.identity.complete(alice, "assistant at the provider"), typed("JWT"))
	asked := make(chan url.Values, 8)
	a.identity.mu.Lock()
	a.identity.exchange = func(form url.Values) any {
		asked <- form
		return members{
			"access_token": a.assertion(alice, s, claims{"aud": form.Get("audience"), "resource": form.Get("resource")}), "token_type": "N_A", "expires_in": 300,
			"issued_token_type": "urn:ietf:params:oauth:token-type:id-jag",
		}
	}
	a.identity.mu.Unlock()
	credentials := func(id string) *oauthex.ClientCredentials {
		return &oauthex.ClientCredentials{ClientID: id, ClientSecretAuth: &oauthex.ClientSecretAuth{ClientSecret: "s3cret"}}
	}
	handler, err := extauth.NewEnterpriseHandler(&extauth.EnterpriseHandlerConfig{
		IdPIssuerURL: a.identity.issuer(), IdPCredentials: credentials("assistant at the provider"),
		MCPAuthServerURL: a.url, MCPResourceURI: a.url + s.path, MCPCredentials: credentials("assistant"), HTTPClient: newClient(t),
		IDTokenFetcher: func(context.Context) (*oauth2.Token, error) {
			return new(oauth2.Token).WithExtra(map[string]any{"id_token": idToken}), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(within(t, callTimeout), &mcp.StreamableClientTransport{
		Endpoint: a.url + s.path, HTTPClient: &http.Client{Transport: transport}, OAuthHandler: handler, MaxRetries: -1,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	result, err := session.CallTool(within(t, callTimeout), &mcp.CallToolParams{Name: "upper", Arguments: map[string]any{"text": "let in"}})
	if err != nil || textOf(result) != "LET IN" {
		t.Errorf("%v, %v", result, err)
	}
	if form := <-asked; form.Get("subject_token") != idToken || form.Get("audience") != a.url {
		t.Errorf("the client asked for %v", form)
	}
}

// TestIDJAGOff asks a gateway that takes no assertions.
func TestIDJAGOff(t *testing.T) {
	t.Parallel()
	d := devGateway(t, "", "")
	c := newOAuthClient(t, d.url, newLanding(t)+"/back")
	status, got := c.post("/oauth/token", "application/x-www-form-urlencoded", url.Values{"grant_type": {grantAssertion}, "client_id": {c.id}, "assertion": {"x"}}.Encode())
	if status != http.StatusBadRequest || got["error"] != "unsupported_grant_type" {
		t.Errorf("%d %v", status, got)
	}
	response := newPerson(t).visit(d.url+"/.well-known/oauth-authorization-server").want(t, http.StatusOK)
	if body := string(response.body); strings.Contains(body, "jwt-bearer") || strings.Contains(body, "authorization_grant_profiles_supported") {
		t.Errorf("the metadata: %s", body)
	}
}
