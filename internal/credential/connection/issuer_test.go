package connection

import (
	"net/url"
	"testing"

	"github.com/durward-gateway/durward/storage"
)

// TestUnknownIssuer checks endpoints that were configured without an issuer: iss can be compared only with the origin
// that the user was sent to.
func TestUnknownIssuer(t *testing.T) {
	for _, tc := range []struct {
		name string
		iss  func(b *bundle) string
		ok   bool
	}{
		{"A04 iss of another origin", func(*bundle) string { return "https://evil.example.test" }, false},
		{"A04 iss that is no URL", func(*bundle) string { return "evil" }, false},
		{"A04 iss below the name of ours", func(b *bundle) string { return b.provider.URL + ".evil.example.test" }, false},
		{"the origin's", func(b *bundle) string { return b.provider.URL }, true},
		{"below the origin", func(b *bundle) string { return b.provider.URL + "/tenant" }, true},
		{"none", func(*bundle) string { return "" }, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := setup(t)
			s := b.makeServer(storage.DirectoryEntry{
				Slug: "configured", URL: b.provider.URL + "/mcp", Provider: storage.ProviderOAuth2, RequiresAuth: true,
				OAuth: storage.OAuthEndpoints{AuthorizationEndpoint: b.provider.URL + "/authorize", TokenEndpoint: b.provider.URL + "/token"},
			})
			secret, err := b.keyring.Seal([]byte("secret"), ClientSecretAD(s.OrganizationID, s.ID))
			if err != nil {
				t.Fatal(err)
			}
			if s, err = b.store.UpdateServer(t.Context(), s.OrganizationID, s.ID, func(s *storage.Server) error {
				s.ClientID, s.SealedClientSecret = "client", secret
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			begun, err := b.Connect(t.Context(), b.who, s, ConnectRequest{})
			if err != nil {
				t.Fatal(err)
			}
			answer := b.provider.approve(*begun.AuthURL)
			answer.Del("iss")
			if iss := tc.iss(b); iss != "" {
				answer.Set("iss", iss)
			}
			before := get(b.provider, func(p *provider) int { return p.exchanges })
			r, err := b.Callback(t.Context(), answer, ownBrowser)
			if err != nil {
				t.Fatal(err)
			}
			asked := get(b.provider, func(p *provider) int { return p.exchanges }) - before
			if !tc.ok && (r.OK || asked != 0) {
				t.Errorf("taken: %+v, %d token requests", r, asked)
			}
			if tc.ok && asked != 1 {
				t.Errorf("%d token requests, %+v\n%s", asked, r, b.log)
			}
		})
	}
}

// TestIssuerElsewhere checks that a provider may ask its users at another origin than that of its issuer, if the issuer
// is known.
func TestIssuerElsewhere(t *testing.T) {
	client := storage.OAuthClient{Endpoints: storage.OAuthEndpoints{AuthorizationEndpoint: "https://login.example.test/authorize"}}
	answer := url.Values{"state": {"s"}, "code": {"c"}, "iss": {issuer}}
	if code, err := codeOf(answer, issuer, client); err != nil || code.Reveal() != "c" {
		t.Errorf("known: %v", err)
	}
	if _, err := codeOf(answer, "", client); err == nil {
		t.Error("unknown: it is taken")
	}
}
