package authserver

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
)

const challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM" // RFC 7636 appendix B

// codeOf returns the OAuth code of an error; "" for none.
func codeOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func TestPKCE(t *testing.T) {
	const verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	if !Proves(verifier, challenge) {
		t.Error("the RFC's verifier does not prove its challenge")
	}
	for _, other := range []string{"", verifier[:42], verifier + "x", strings.Repeat("a", 129), challenge} {
		if Proves(other, challenge) {
			t.Errorf("%q proves the challenge", other)
		}
	}
	if long := strings.Repeat("a", 129); Proves(long, base64.RawURLEncoding.EncodeToString([]byte(HashSecret(long)))) {
		t.Error("a verifier of 129 characters is taken")
	}
	for text, want := range map[string]bool{challenge: true, challenge + "=": false, challenge[:42]: false, challenge + "AA": false, strings.Replace(challenge, "-", "+", 1): false, "": false} {
		if IsChallenge(text) != want {
			t.Errorf("IsChallenge(%q) is not %v", text, want)
		}
	}
}

func TestReadAuthorization(t *testing.T) {
	for name, c := range map[string]struct {
		change func(url.Values)
		code   string // "": it is good
	}{
		"as clients send it":     {func(url.Values) {}, ""},
		"query mode":             {func(f url.Values) { f.Set("response_mode", "query") }, ""},
		"no state":               {func(f url.Values) { f.Del("state") }, ""},
		"two resources":          {func(f url.Values) { f.Add("resource", "https://gateway.test/mcp/b") }, ""},
		"implicit":               {func(f url.Values) { f.Set("response_type", "token") }, "unsupported_response_type"},
		"hybrid":                 {func(f url.Values) { f.Set("response_type", "code id_token") }, "unsupported_response_type"},
		"no response type":       {func(f url.Values) { f.Del("response_type") }, "unsupported_response_type"},
		"fragment mode":          {func(f url.Values) { f.Set("response_mode", "fragment") }, "invalid_request"},
		"a form for the answer":  {func(f url.Values) { f.Set("response_mode", "form_post") }, "invalid_request"},
		"no challenge":           {func(f url.Values) { f.Del("code_challenge") }, "invalid_request"},
		"plain":                  {func(f url.Values) { f.Set("code_challenge_method", "plain") }, "invalid_request"},
		"plain by default":       {func(f url.Values) { f.Del("code_challenge_method") }, "invalid_request"},
		"a short challenge":      {func(f url.Values) { f.Set("code_challenge", challenge[:42]) }, "invalid_request"},
		"a request object":       {func(f url.Values) { f.Set("request", "e30") }, "request_not_supported"},
		"its address":            {func(f url.Values) { f.Set("request_uri", "https://a.test/r") }, "request_uri_not_supported"},
		"without a question":     {func(f url.Values) { f.Set("prompt", "login none") }, "login_required"},
		"two clients":            {func(f url.Values) { f.Add("client_id", "other") }, "invalid_request"},
		"two redirect URIs":      {func(f url.Values) { f.Add("redirect_uri", "https://evil.test/") }, "invalid_request"},
		"a long state":           {func(f url.Values) { f.Set("state", strings.Repeat("s", maxText+1)) }, "invalid_request"},
		"a quote in a scope":     {func(f url.Values) { f.Set("scope", `a "b"`) }, "invalid_scope"},
		"many scopes":            {func(f url.Values) { f.Set("scope", strings.Repeat("a ", maxScopes+1)) }, "invalid_scope"},
		"another's resource":     {func(f url.Values) { f.Set("resource", "https://other.test/mcp") }, "invalid_target"},
		"a resource with a hash": {func(f url.Values) { f.Set("resource", "https://gateway.test/mcp/a#x") }, "invalid_target"},
		"a relative resource":    {func(f url.Values) { f.Set("resource", "/mcp/a") }, "invalid_target"},
		"an empty audience":      {func(f url.Values) { f.Set("audience", "") }, "invalid_target"},
	} {
		form := url.Values{
			"client_id": {"client"}, "redirect_uri": {"http://127.0.0.1/cb"}, "response_type": {"code"}, "state": {"st"}, "scope": {"b a b"},
			"code_challenge": {challenge}, "code_challenge_method": {"S256"}, "resource": {"https://gateway.test/mcp/a"},
		}
		c.change(form)
		got, err := ReadAuthorization(form, func(target string) bool { return strings.HasPrefix(target, "https://gateway.test/mcp/") })
		if codeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && (got.ClientID != "client" || got.Challenge != challenge || !slices.Equal(got.Scopes, []string{"a", "b"}) || got.Targets[0] != "https://gateway.test/mcp/a") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	many := url.Values{}
	for i := range maxTargets + 1 {
		many.Add("resource", "https://gateway.test/"+strings.Repeat("x", i))
	}
	if _, err := Targets(many, nil); codeOf(err) != "invalid_target" {
		t.Errorf("many targets: %v", err)
	}
	if refusal := ErrorAnswer(errors.New("a cause")); refusal.Get("error") != "server_error" || strings.Contains(refusal.Encode(), "cause") {
		t.Errorf("an inner error is shown as %v", refusal)
	}
}

func TestReadForm(t *testing.T) {
	var largest strings.Builder
	for i := 0; largest.Len() < MaxBody; i++ {
		pair := fmt.Sprintf("%c=%s&", 'A'+i, strings.Repeat("b", 2000))
		largest.WriteString(pair[:min(len(pair), MaxBody-largest.Len())])
	}
	for name, c := range map[string]struct {
		contentType, body string
		status            int
	}{
		"a form":                {"application/x-www-form-urlencoded; charset=utf-8", "a=1&resource=x&resource=y", 0},
		"JSON":                  {"application/json", `{}`, 400},
		"no type":               {"", "a=1", 400},
		"twice":                 {"application/x-www-form-urlencoded", "code=1&code=1", 400},
		"a bad escape":          {"application/x-www-form-urlencoded", "a=%zz", 400},
		"the largest body":      {"application/x-www-form-urlencoded", largest.String(), 0},
		"one that is larger":    {"application/x-www-form-urlencoded", largest.String() + "&", 413},
		"a parameter too long":  {"application/x-www-form-urlencoded", "a=" + strings.Repeat("b", maxText+1), 400},
		"a long assertion":      {"application/x-www-form-urlencoded", "assertion=" + strings.Repeat("b", maxAssertion), 0},
		"a client's assertion":  {"application/x-www-form-urlencoded", "client_assertion=" + strings.Repeat("b", maxAssertion), 0},
		"too long a client's":   {"application/x-www-form-urlencoded", "client_assertion=" + strings.Repeat("b", maxAssertion+1), 400},
		"too long an assertion": {"application/x-www-form-urlencoded", "assertion=" + strings.Repeat("b", maxAssertion+1), 400},
	} {
		r := httptest.NewRequest(http.MethodPost, "/token?client_secret=in+the+address", strings.NewReader(c.body))
		r.Header.Set("Content-Type", c.contentType)
		form, err := ReadForm(httptest.NewRecorder(), r)
		status := 0
		if err != nil {
			status = ErrorOf(err).Status
		}
		if status != c.status || form.Has("client_secret") {
			t.Errorf("%s: %d %v, form %v", name, status, err, form)
		}
	}
}

func TestAuthenticate(t *testing.T) {
	assertion := "client_assertion=x&client_assertion_type=" + url.QueryEscape(assertionType)
	clients := map[string]*Client{"public": {ID: "public"}, "secret id": {ID: "secret id", SecretHash: HashSecret("p w")}}
	find := func(_ context.Context, id string) (*Client, error) {
		if c, ok := clients[id]; ok {
			return c, nil
		}
		if IsDocumentURL(id) {
			return nil, ErrDocument
		}
		return nil, ErrNoClient
	}
	basic := func(user, password string) func(*http.Request) {
		return func(r *http.Request) { r.SetBasicAuth(user, password) }
	}
	for name, c := range map[string]struct {
		form   string
		header func(*http.Request)
		want   string // the client, or the error
	}{
		"public":                   {"client_id=public", nil, "public"},
		"public, with a secret":    {"client_id=public&client_secret=x", nil, "invalid_client"},
		"in the body":              {"client_id=secret+id&client_secret=p+w", nil, "secret id"},
		"in the header":            {"", basic("secret+id", "p+w"), "secret id"}, // RFC 6749 section 2.3.1: form-encoded first
		"in the header, id twice":  {"client_id=secret+id", basic("secret+id", "p+w"), "secret id"},
		"in the header, other id":  {"client_id=public", basic("secret+id", "p+w"), "invalid_request"},
		"both ways":                {"client_id=secret+id&client_secret=p+w", basic("secret+id", "p+w"), "invalid_request"},
		"not encoded":              {"", basic("secret%zz", "p w"), "invalid_request"},
		"a wrong secret":           {"client_id=secret+id&client_secret=p", nil, "invalid_client"},
		"no secret":                {"client_id=secret+id", nil, "invalid_client"},
		"an empty secret":          {"client_id=secret+id&client_secret=", nil, "invalid_client"},
		"nobody":                   {"", nil, "invalid_client"},
		"unknown":                  {"client_id=other", nil, "invalid_client"},
		"no document there":        {"client_id=https%3A%2F%2Fa.test%2Fc", nil, "invalid_client"},
		"a long id":                {"client_id=" + strings.Repeat("p", maxText+1), nil, "invalid_client"},
		"another scheme":           {"client_id=public", func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }, "invalid_client"},
		"two headers":              {"", func(r *http.Request) { r.SetBasicAuth("secret+id", "p+w"); r.Header.Add("Authorization", "Basic x") }, "invalid_client"},
		"public, in the header":    {"", basic("public", ""), "public"},
		"public, header's secret":  {"", basic("public", "x"), "invalid_client"},
		"the hash for the secret":  {"client_id=secret+id&client_secret=" + HashSecret("p w"), nil, "invalid_client"},
		"an unknown one, in Basic": {"", basic("other", "x"), "invalid_client"},
		"an assertion, for none":   {"client_id=public&" + assertion, nil, "invalid_client"},
		"an assertion, for a key":  {"client_id=secret+id&" + assertion, nil, "invalid_client"},
		"an assertion and Basic":   {assertion, basic("secret+id", "p+w"), "invalid_request"},
		"an assertion and secret":  {"client_id=secret+id&client_secret=p+w&" + assertion, nil, "invalid_request"},
		"an assertion, no type":    {"client_id=public&client_assertion=x", nil, "invalid_client"},
		"another assertion":        {"client_id=public&client_assertion=x&client_assertion_type=saml", nil, "invalid_client"},
		"a type, no assertion":     {"client_id=public&client_assertion_type=" + url.QueryEscape(assertionType), nil, "invalid_client"},
	} {
		r := httptest.NewRequest(http.MethodPost, "/token", nil)
		if c.header != nil {
			c.header(r)
		}
		form, err := url.ParseQuery(c.form)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		client, err := Authenticate(w, r, form, find)
		got := codeOf(err)
		if err == nil {
			got = client.ID
		}
		if got != c.want {
			t.Errorf("%s: %v %v, want %s", name, client, err, c.want)
		}
		if told := w.Header().Get("WWW-Authenticate") != ""; told != (c.header != nil && err != nil) {
			t.Errorf("%s: WWW-Authenticate %q", name, w.Header().Get("WWW-Authenticate"))
		}
	}
}

func TestReadRegistration(t *testing.T) {
	for name, c := range map[string]struct{ body, code string }{
		"as clients send it":      {`{"redirect_uris":["http://127.0.0.1:1/cb"],"client_name":"C","token_endpoint_auth_method":"none","grant_types":["authorization_code","refresh_token"],"response_types":["code"],"scope":"a","application_type":"native"}`, ""},
		"the least":               {`{"redirect_uris":["https://a.test/cb"]}`, ""},
		"nulls":                   {`{"redirect_uris":["https://a.test/cb"],"client_name":null,"grant_types":null}`, ""},
		"no redirect URI":         {`{}`, "invalid_redirect_uri"},
		"an empty list of them":   {`{"redirect_uris":[]}`, "invalid_redirect_uri"},
		"eleven of them":          {`{"redirect_uris":["https://a.test/0"` + strings.Repeat(`,"https://a.test/1"`, 10) + `]}`, "invalid_redirect_uri"},
		"one elsewhere":           {`{"redirect_uris":["https://a.test/","http://a.test/"]}`, "invalid_redirect_uri"},
		"one that is a number":    {`{"redirect_uris":["https://a.test/",1]}`, "invalid_client_metadata"},
		"a member twice":          {`{"redirect_uris":["https://a.test/"],"redirect_uris":["https://b.test/"]}`, "invalid_client_metadata"},
		"implicit":                {`{"redirect_uris":["https://a.test/"],"response_types":["token"]}`, "invalid_client_metadata"},
		"refresh tokens alone":    {`{"redirect_uris":["https://a.test/"],"grant_types":["refresh_token"]}`, "invalid_client_metadata"},
		"another way of proof":    {`{"redirect_uris":["https://a.test/"],"token_endpoint_auth_method":"tls_client_auth"}`, "invalid_client_metadata"},
		"a number for a name":     {`{"redirect_uris":["https://a.test/"],"client_name":1}`, "invalid_client_metadata"},
		"a long name":             {`{"redirect_uris":["https://a.test/"],"client_name":"` + strings.Repeat("ü", maxName+1) + `"}`, "invalid_client_metadata"},
		"a name that turns round": {`{"redirect_uris":["https://a.test/"],"client_name":"` + "\u202e" + `"}`, "invalid_client_metadata"},
		"a list":                  {`[]`, "invalid_client_metadata"},
		"no JSON":                 {`{`, "invalid_client_metadata"},
	} {
		r := httptest.NewRequest(http.MethodPost, "/register", strings.NewReader(c.body))
		r.Header.Set("Content-Type", "application/json")
		if _, err := ReadRegistration(httptest.NewRecorder(), r); codeOf(err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/register", strings.NewReader(`{"redirect_uris":["https://a.test/cb"],"grant_types":["authorization_code","client_credentials"],"client_name":"`+strings.Repeat("ü", maxName)+`","scope":"s"}`))
	r.Header.Set("Content-Type", "application/json")
	asked, err := ReadRegistration(httptest.NewRecorder(), r)
	if err != nil {
		t.Fatal(err)
	}
	asked.Client.ID = "id"
	answer := asked.Answer("secret")
	if !slices.Equal(asked.Client.GrantTypes, []string{GrantCode}) || asked.Client.AuthMethod != AuthBasic || answer["client_secret"] != "secret" || answer["scope"] != "s" || answer["client_id"] != "id" {
		t.Errorf("%+v, answer %v", asked, answer)
	}
	if answer = asked.Answer(""); answer["client_secret"] != nil {
		t.Errorf("the answer to a public client has a secret: %v", answer)
	}
	r = httptest.NewRequest(http.MethodPost, "/register", strings.NewReader(`{"redirect_uris":["https://a.test/cb"]}`))
	if _, err := ReadRegistration(httptest.NewRecorder(), r); codeOf(err) != "invalid_client_metadata" {
		t.Errorf("a body without its type: %v", err)
	}
}

// TestEndpointOrigins checks which web pages may call an endpoint (H15).
func TestEndpointOrigins(t *testing.T) {
	h := Restricted(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }, func(origin string) bool { return origin == "https://console.test" }, http.MethodPost)
	for _, c := range []struct {
		method  string
		origins []string
		status  int
	}{
		{http.MethodPost, nil, 200},
		{http.MethodPost, []string{"http://localhost:6274"}, 200},
		{http.MethodPost, []string{"https://console.test"}, 200},
		{http.MethodOptions, []string{"https://console.test"}, 204},
		{http.MethodGet, nil, 405},
		{http.MethodPost, []string{"https://evil.test"}, 403},
		{http.MethodOptions, []string{"https://evil.test"}, 403},
		{http.MethodPost, []string{"null"}, 403},
		{http.MethodPost, []string{"https://console.test", "https://evil.test"}, 403},
	} {
		r := httptest.NewRequest(c.method, "/token", nil)
		r.Header["Origin"] = c.origins
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		allowed := w.Header().Get("Access-Control-Allow-Origin")
		if w.Code != c.status || (allowed != "") != (len(c.origins) > 0 && c.status < 300) {
			t.Errorf("%s from %v: %d, allowed %q", c.method, c.origins, w.Code, allowed)
		}
	}
	w := httptest.NewRecorder()
	Public(func(w http.ResponseWriter, _ *http.Request) { WriteJSON(w, http.StatusOK, nil) }).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/jwks", nil))
	if w.Code != http.StatusOK || w.Header().Get("Access-Control-Allow-Origin") != "*" || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("a document: %d %v", w.Code, w.Header())
	}
}
