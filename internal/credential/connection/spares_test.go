package connection

import (
	"errors"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// TestSpares checks for which clients a grant can be revoked without ending the grant that replaces it.
func TestSpares(t *testing.T) {
	replaced := &storage.Connection{Kind: storage.ProviderOAuth2, ClientID: "new", Issuer: issuer}
	for name, c := range map[string]struct {
		by          *storage.Connection
		client      storage.OAuthClient
		independent bool
		want        bool
	}{
		"nothing replaces it":    {client: storage.OAuthClient{ClientID: "new", Issuer: issuer}, want: true},
		"typed replaces it":      {by: &storage.Connection{Kind: storage.ProviderAPIKey, ClientID: "new", Issuer: issuer}, client: storage.OAuthClient{ClientID: "new", Issuer: issuer}, want: true},
		"same client":            {by: replaced, client: storage.OAuthClient{Kind: storage.ClientRegistered, ClientID: "new", Issuer: issuer}},
		"independent":            {by: replaced, client: storage.OAuthClient{Kind: storage.ClientConfigured, ClientID: "new", Issuer: issuer}, independent: true, want: true},
		"another issuer":         {by: replaced, client: storage.OAuthClient{Kind: storage.ClientConfigured, ClientID: "new", Issuer: "https://other.example.test"}, want: true},
		"registered before":      {by: replaced, client: storage.OAuthClient{Kind: storage.ClientRegistered, ClientID: "old", Issuer: issuer}, want: true},
		"metadata document":      {by: replaced, client: storage.OAuthClient{Kind: storage.ClientMetadata, ClientID: "old", Issuer: issuer}, want: true},
		"configured before":      {by: replaced, client: storage.OAuthClient{Kind: storage.ClientConfigured, ClientID: "old", Issuer: issuer}},
		"of a kind nobody knows": {by: replaced, client: storage.OAuthClient{ClientID: "old", Issuer: issuer}},
	} {
		if got := new(Broker).spares(c.by, c.client, issued{}, c.independent); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestIssuedTo checks that only the client that got a connection's tokens is told them.
func TestIssuedTo(t *testing.T) {
	c := storage.Connection{Kind: storage.ProviderOAuth2, ClientID: "id", Issuer: issuer}
	typed := c
	typed.Kind = storage.ProviderAPIKey
	for name, tc := range map[string]struct {
		of     storage.Connection
		client storage.OAuthClient
		want   bool
	}{
		"itself":             {c, storage.OAuthClient{ClientID: "id", Issuer: issuer}, true},
		"another":            {c, storage.OAuthClient{ClientID: "other", Issuer: issuer}, false},
		"of another issuer":  {c, storage.OAuthClient{ClientID: "id", Issuer: "https://other.example.test"}, false},
		"a typed credential": {typed, storage.OAuthClient{ClientID: "id", Issuer: issuer}, false},
	} {
		if got := issuedTo(tc.of, tc.client); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestProviderWithoutOrigin checks that tokens go to no configured endpoint if the provider's own is no URL.
func TestProviderWithoutOrigin(t *testing.T) {
	i := issuedBy(storage.OAuthClient{Endpoints: storage.OAuthEndpoints{TokenEndpoint: "nowhere"}}, oauth.ClientAuth{})
	if i.mayGoTo("https://id.example.test/token", &storage.DirectoryEntry{Source: storage.SourceCustom}) {
		t.Error("tokens may go anywhere")
	}
}

// TestEndWithoutClient ends the connection of a server whose OAuth client is gone. The connection remembers it.
func TestEndWithoutClient(t *testing.T) {
	b := setup(t)
	b.connect()
	if err := b.ForgetClient(t.Context(), b.server); err != nil {
		t.Fatal(err)
	}
	if err := b.Disconnect(t.Context(), b.key); err != nil {
		t.Fatal(err)
	}
	b.settle(func() bool { return len(b.waiting()) == 0 })
	b.Close()
	if got := b.revoked(); len(got) != 2 || b.countOf(NotRevoked) != 0 {
		t.Errorf("revoked %v, %d not", got, b.countOf(NotRevoked))
	}
}

// TestEndTyped ends a typed credential. No provider has to be told, so nothing is counted.
func TestEndTyped(t *testing.T) {
	b := setup(t)
	b.change(func(e *storage.DirectoryEntry) { e.Provider = storage.ProviderAPIKey })
	if _, err := b.Connect(t.Context(), b.who, b.server, ConnectRequest{APIKey: seal.NewSecret("k")}); err != nil {
		t.Fatal(err)
	}
	if err := b.Disconnect(t.Context(), b.key); err != nil {
		t.Fatal(err)
	}
	if got := b.countOf(NotRevoked); got != 0 || len(b.waiting()) != 0 {
		t.Errorf("%d are not revoked, %d wait", got, len(b.waiting()))
	}
}

// TestRefusedIsNotRevoked checks that a provider that has ended a grant itself is sent no revocation.
func TestRefusedIsNotRevoked(t *testing.T) {
	b := setup(t)
	b.connect()
	b.provider.set(func(p *provider) { p.tokenError = "invalid_grant" })
	b.clock.advance(2 * time.Hour)
	if _, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, ErrNotConnected) {
		t.Errorf("%v", err)
	}
	if n := len(b.waiting()); n != 0 {
		t.Errorf("%d wait", n)
	}
	b.Close()
	if got := b.revoked(); len(got) != 0 {
		t.Errorf("revoked %v", got)
	}
}

// TestLateTokensAreForgotten checks that tokens that were never stored are forgotten once their revocation is stored.
// They are revoked once.
func TestLateTokensAreForgotten(t *testing.T) {
	b := setup(t)
	b.unsave()
	if err := b.Disconnect(t.Context(), b.key); err != nil {
		t.Fatal(err)
	}
	if kept := b.unsaved.keys(); len(kept) != 0 {
		t.Errorf("%v are kept", kept)
	}
	b.Close()
	if got := b.revoked(); len(got) != 4 {
		t.Errorf("revoked %v: each token once", got)
	}
}

// TestReplacedTokensAreForgotten checks that late tokens are forgotten as soon as another connection replaces theirs.
func TestReplacedTokensAreForgotten(t *testing.T) {
	b := setup(t)
	b.unsave()
	b.connect()
	if kept := b.unsaved.keys(); len(kept) != 0 {
		t.Errorf("%v are kept", kept)
	}
	b.Close()
	if got := b.revoked(); len(got) != 0 {
		t.Errorf("revoked %v: that may end the new connection", got)
	}
}
