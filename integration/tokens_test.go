package integration

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestTokens checks which tokens a server accepts, and that callers without one learn where to log in.
func TestTokens(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	s := g.createServer(sessionUpstream(t).url, nil)
	es256 := map[string]any{"alg": "ES256", "typ": "at+jwt", "kid": kidES256}
	for _, tt := range []struct {
		name   string
		claims claims
		header map[string]any
		status int
	}{
		{"ES256", alice, es256, http.StatusOK},
		{"RS256", alice, map[string]any{"alg": "RS256", "typ": "JWT", "kid": kidRS256}, http.StatusOK},
		{"for this server only", alice.with(claims{"aud": g.url + s.path}), es256, http.StatusOK},
		{"for another server", alice.with(claims{"aud": g.url + "/mcp/other"}), es256, http.StatusUnauthorized},
		{"for nobody", alice.with(claims{"aud": nil}), es256, http.StatusUnauthorized},
		{"of another issuer", alice.with(claims{"iss": "https://elsewhere.example"}), es256, http.StatusUnauthorized},
		{"expired", alice.with(claims{"iat": time.Now().Add(-time.Hour).Unix(), "exp": time.Now().Add(-time.Minute).Unix()}), es256, http.StatusUnauthorized},
		{"without an end", alice.with(claims{"exp": nil}), es256, http.StatusUnauthorized},
		{"another algorithm than the key's", alice, map[string]any{"alg": "RS256", "kid": kidES256}, http.StatusUnauthorized},
		{"no algorithm", alice, map[string]any{"alg": "none", "kid": kidES256}, http.StatusUnauthorized},
		{"without an organization", alice.with(claims{"org_id": nil}), es256, http.StatusForbidden},
		{"of another organization", eve, es256, http.StatusNotFound},
	} {
		t.Run(tt.name, func(t *testing.T) {
			token := g.identity.sign(g.identity.complete(tt.claims, g.url), tt.header)
			a := g.send(http.MethodPost, s.path, token, initialize, "Accept", acceptBoth).want(t, tt.status)
			if challenge := a.header.Get("WWW-Authenticate"); (tt.status == http.StatusUnauthorized) != strings.Contains(challenge, `error="invalid_token"`) {
				t.Errorf("the challenge is %q", challenge)
			}
		})
	}

	challenge := g.send(http.MethodPost, s.path, "", initialize, "Accept", acceptBoth).want(t, http.StatusUnauthorized).header.Get("WWW-Authenticate")
	metadata := "/.well-known/oauth-protected-resource" + s.path
	if want := `Bearer resource_metadata="` + g.url + metadata + `"`; challenge != want {
		t.Errorf("the challenge is %q, not %q", challenge, want)
	}
	var document struct {
		Resource             string   `json:"resource"`
		AuthorizationServers []string `json:"authorization_servers"`
	}
	g.send(http.MethodGet, metadata, "", nil).want(t, http.StatusOK).decode(t, &document)
	if document.Resource != g.url+s.path || len(document.AuthorizationServers) != 1 || document.AuthorizationServers[0] != g.identity.issuer() {
		t.Errorf("%+v", document)
	}
}
