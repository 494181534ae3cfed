package connection

import (
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/storage"
)

// TestSameRecord checks that a change of anything that is stored of a client is stored.
func TestSameRecord(t *testing.T) {
	c := storage.OAuthClient{
		OrganizationID: "o", ServerID: "s", Issuer: issuer, ClientID: "id", Kind: storage.ClientRegistered, AuthMethod: oauth.AuthNone,
		RedirectURI: gatewayURL, Origin: "https://a.test", Endpoints: storage.OAuthEndpoints{TokenEndpoint: "https://id.test/token"}, Scopes: []string{"read"},
		SecretExpiresAt: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
	}
	same := c
	same.Scopes, same.SecretExpiresAt = []string{"read"}, c.SecretExpiresAt.In(time.FixedZone("x", 3600))
	if !sameRecord(c, same) {
		t.Error("it is not the same as itself")
	}
	for name, change := range map[string]func(c *storage.OAuthClient){
		"issuer":     func(c *storage.OAuthClient) { c.Issuer = "x" },
		"id":         func(c *storage.OAuthClient) { c.ClientID = "x" },
		"method":     func(c *storage.OAuthClient) { c.AuthMethod = oauth.AuthBasic },
		"kind":       func(c *storage.OAuthClient) { c.Kind = storage.ClientConfigured },
		"address":    func(c *storage.OAuthClient) { c.RedirectURI = "x" },
		"endpoints":  func(c *storage.OAuthClient) { c.Endpoints.TokenEndpoint = "x" },
		"origin":     func(c *storage.OAuthClient) { c.Origin = "x" },
		"scopes":     func(c *storage.OAuthClient) { c.Scopes = nil },
		"iss":        func(c *storage.OAuthClient) { c.IssuerInResponse = true },
		"expiry":     func(c *storage.OAuthClient) { c.SecretExpiresAt = time.Time{} },
		"resource":   func(c *storage.OAuthClient) { c.RefreshResourceOff = true },
		"is refused": func(c *storage.OAuthClient) { c.Refused = true },
	} {
		other := c
		if change(&other); sameRecord(c, other) || sameRecord(other, c) {
			t.Errorf("another %s is the same", name)
		}
	}
}

// TestSameClient checks that a server with a configured client uses that one alone, and any other server none such.
func TestSameClient(t *testing.T) {
	for name, tc := range map[string]struct {
		configured string
		kind       storage.OAuthClientKind
		id         string
		want       bool
	}{
		"configured":             {"id", storage.ClientConfigured, "id", true},
		"another is configured":  {"id", storage.ClientConfigured, "other", false},
		"registered before":      {"id", storage.ClientRegistered, "id", false},
		"registered":             {"", storage.ClientRegistered, "id", true},
		"a document":             {"", storage.ClientMetadata, "id", true},
		"no longer configured":   {"", storage.ClientConfigured, "id", false},
		"no longer, without one": {"", storage.ClientConfigured, "", false},
	} {
		if got := sameClient(storage.Server{ClientID: tc.configured}, storage.OAuthClient{Kind: tc.kind, ClientID: tc.id}); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestUsable checks with which stored client a user may be sent to a provider.
func TestUsable(t *testing.T) {
	b := setup(t)
	now := b.clock.now()
	b.app.MetadataURL = "https://gate.example.test/client.json"
	good := storage.OAuthClient{Kind: storage.ClientRegistered, ClientID: "id", RedirectURI: b.app.RedirectURI, Issuer: issuer}
	for name, tc := range map[string]struct {
		change func(s *storage.Server, c *storage.OAuthClient)
		want   bool
	}{
		"good":                  {func(*storage.Server, *storage.OAuthClient) {}, true},
		"for another address":   {func(_ *storage.Server, c *storage.OAuthClient) { c.RedirectURI = "https://former.example.test" }, false},
		"another is configured": {func(s *storage.Server, _ *storage.OAuthClient) { s.ClientID = "configured" }, false},
		"refused":               {func(_ *storage.Server, c *storage.OAuthClient) { c.Refused = true }, false},
		"configured, refused": {func(s *storage.Server, c *storage.OAuthClient) {
			s.ClientID, c.Kind, c.Refused = "id", storage.ClientConfigured, true
		}, true},
		"its secret lasts":         {func(_ *storage.Server, c *storage.OAuthClient) { c.SecretExpiresAt = now.Add(attemptLifetime + 1) }, true},
		"its secret does not last": {func(_ *storage.Server, c *storage.OAuthClient) { c.SecretExpiresAt = now.Add(attemptLifetime) }, false},
		"our document": {func(_ *storage.Server, c *storage.OAuthClient) {
			c.Kind, c.ClientID = storage.ClientMetadata, b.app.MetadataURL
		}, true},
		"a former document":         {func(_ *storage.Server, c *storage.OAuthClient) { c.Kind = storage.ClientMetadata }, false},
		"the entry's issuer":        {func(s *storage.Server, _ *storage.OAuthClient) { s.Entry.OAuth.Issuer = issuer }, true},
		"not of the entry's issuer": {func(s *storage.Server, _ *storage.OAuthClient) { s.Entry.OAuth.Issuer = "https://other.example.test" }, false},
	} {
		s, c := storage.Server{}, good
		if tc.change(&s, &c); b.usable(s, c) != tc.want {
			t.Errorf("%s: %v", name, !tc.want)
		}
	}
}

// TestLearnedHere checks where the issuer of a client may have been learned. If it was not learned at the server's own
// origin, an administrator has pointed the server elsewhere.
func TestLearnedHere(t *testing.T) {
	for name, tc := range map[string]struct {
		origin, resource, entry string
		want                    bool
	}{
		"here":                       {origin: "https://a.test", want: true},
		"elsewhere":                  {origin: "https://b.test"},
		"elsewhere, of our resource": {origin: "https://b.test", resource: "https://a.test/mcp"},
		"an own scheme":              {resource: "api://app", want: true},
		"the entry's resource":       {resource: "https://b.test/mcp", entry: "https://b.test/mcp", want: true},
		"our resource":               {resource: "https://a.test/mcp", want: true},
		"another's resource":         {resource: "https://b.test/mcp"},
	} {
		s := storage.Server{Entry: storage.DirectoryEntry{URL: "https://a.test/mcp", OAuth: storage.OAuthEndpoints{Resource: tc.entry}}}
		c := storage.OAuthClient{Origin: tc.origin, Endpoints: storage.OAuthEndpoints{Resource: tc.resource}}
		if got := learnedHere(s, c); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for _, tc := range []struct {
		a, b string
		want bool
	}{
		{"https://a.test/x", "https://A.test:443/y", true},
		{"https://a.test", "https://b.test", false},
		{"a.test", "a.test", false},
		{"https://a.test", "a.test", false},
		{"", "https://a.test", false},
	} {
		if got := sameOrigin(tc.a, tc.b); got != tc.want {
			t.Errorf("%q and %q: %v", tc.a, tc.b, got)
		}
	}
}

// TestAuthOfClient checks how our client proves its identity: with the secret of its kind, in the place that the entry
// says.
func TestAuthOfClient(t *testing.T) {
	b := setup(t)
	seals := func(text string, registered bool) []byte {
		place := ClientSecretAD(b.server.OrganizationID, b.server.ID)
		if registered {
			place = oauthClientAD(b.server.OrganizationID, b.server.ID)
		}
		sealed, err := b.keyring.Seal([]byte(text), place)
		if err != nil {
			t.Fatal(err)
		}
		return sealed
	}
	for name, tc := range map[string]struct {
		kind           storage.OAuthClientKind
		registered     []byte
		configured     []byte
		method, entry  string
		roots          string
		secret, wanted string // wanted: the method
		fails          bool
	}{
		"registered":                        {kind: storage.ClientRegistered, registered: seals("r", true), configured: seals("c", false), method: oauth.AuthBasic, secret: "r", wanted: oauth.AuthBasic},
		"registered without a secret":       {kind: storage.ClientRegistered, configured: seals("c", false), method: oauth.AuthNone, wanted: oauth.AuthNone},
		"configured":                        {kind: storage.ClientConfigured, registered: seals("r", true), configured: seals("c", false), method: oauth.AuthBasic, secret: "c", wanted: oauth.AuthBasic},
		"configured without a secret":       {kind: storage.ClientConfigured, method: oauth.AuthNone, wanted: oauth.AuthNone},
		"the entry says where":              {kind: storage.ClientConfigured, configured: seals("c", false), method: oauth.AuthBasic, entry: oauth.AuthPost, secret: "c", wanted: oauth.AuthPost},
		"the entry says where, no secret":   {kind: storage.ClientConfigured, method: oauth.AuthNone, entry: oauth.AuthPost, wanted: oauth.AuthNone},
		"the entry says that there is none": {kind: storage.ClientConfigured, configured: seals("c", false), method: oauth.AuthBasic, entry: oauth.AuthNone, wanted: oauth.AuthNone},
		"of another place":                  {kind: storage.ClientConfigured, configured: seals("c", true), fails: true},
		"no certificate":                    {kind: storage.ClientRegistered, roots: "no certificate", fails: true},
	} {
		s := b.server
		s.SealedClientSecret, s.Entry.Options.AuthMethod, s.Entry.Options.TrustedCA = tc.configured, tc.entry, tc.roots
		got, err := b.auth(s, storage.OAuthClient{Kind: tc.kind, ClientID: "id", SealedSecret: tc.registered, AuthMethod: tc.method})
		if (err != nil) != tc.fails {
			t.Errorf("%s: %v", name, err)
		}
		if !tc.fails && (got.ID != "id" || got.Secret.Reveal() != tc.secret || got.Method != tc.wanted) {
			t.Errorf("%s: %q by %s", name, got.Secret.Reveal(), got.Method)
		}
	}
}
