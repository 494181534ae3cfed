package connection

import (
	"errors"
	"testing"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// TestRevokeNothing checks which tokens cause no revocation, and which of them are counted as not revoked: those that
// stay good.
func TestRevokeNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(of *tokensOf, auth *oauth.ClientAuth, g *grant)
		lost   int64
		told   int
	}{
		"both tokens":     {change: func(*tokensOf, *oauth.ClientAuth, *grant) {}, told: 2},
		"an access token": {change: func(_ *tokensOf, _ *oauth.ClientAuth, g *grant) { g.Refresh = seal.Secret{} }, told: 1},
		"a refresh token": {change: func(_ *tokensOf, _ *oauth.ClientAuth, g *grant) { g.Access = seal.Secret{} }, told: 1},
		"no token":        {change: func(_ *tokensOf, _ *oauth.ClientAuth, g *grant) { *g = grant{} }},
		"no endpoint":     {change: func(of *tokensOf, _ *oauth.ClientAuth, _ *grant) { of.client.Endpoints.RevocationEndpoint = "" }, lost: 1},
		"an endpoint elsewhere": {change: func(_ *tokensOf, _ *oauth.ClientAuth, g *grant) {
			g.Issued.Origins = "https://id.example.test"
		}, lost: 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.connect()
			of, auth, g := b.nobodys()
			tc.change(&of, &auth, &g)
			b.revoke(t.Context(), of, auth, g)
			b.Close()
			if got := b.revoked(); len(got) != tc.told || len(b.waiting()) != 0 || b.countOf(NotRevoked) != tc.lost {
				t.Errorf("revoked %v, %d wait, %d are lost", got, len(b.waiting()), b.countOf(NotRevoked))
			}
		})
	}
}

// TestTellOwner checks whose tokens are revoked after their connection ended: those of a user whose present connection
// cannot end with them.
func TestTellOwner(t *testing.T) {
	typed := func(b *bundle) {
		b.edit(func(c *storage.Connection) { c.Kind = storage.ProviderAPIKey })
	}
	for name, tc := range map[string]struct {
		change  func(b *bundle, told *sealedRevocation)
		want    error
		revoked bool
	}{
		"connected anew":                 {change: func(*bundle, *sealedRevocation) {}, want: errConnectedAnew},
		"connected anew, independent":    {change: func(_ *bundle, told *sealedRevocation) { told.Independent = true }, revoked: true},
		"connected anew, another client": {change: func(_ *bundle, told *sealedRevocation) { told.ClientID = "former" }, revoked: true},
		"connected anew, another issuer": {change: func(_ *bundle, told *sealedRevocation) { told.Issuer = "https://other.example.test" }, revoked: true},
		"connected anew, a configured client": {change: func(_ *bundle, told *sealedRevocation) {
			told.ClientID, told.Kind = "former", storage.ClientConfigured
		}, want: errConnectedAnew},
		"typed": {change: func(b *bundle, _ *sealedRevocation) { typed(b) }, revoked: true},
		"broken": {change: func(b *bundle, _ *sealedRevocation) {
			b.edit(func(c *storage.Connection) { fallen(c, "x", b.clock.now()) })
		}, revoked: true},
		"not connected":              {change: func(b *bundle, told *sealedRevocation) { told.UserID = b.user("nobody") }, revoked: true},
		"stored by an older version": {change: func(_ *bundle, told *sealedRevocation) { told.UserID = "" }, revoked: true},
		"the store is away":          {change: func(b *bundle, _ *sealedRevocation) { b.Broker.store = unreadable{b.store} }, want: storage.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.connect()
			c := b.connection()
			told := b.accepted("refresh")
			told.UserID, told.ServerID, told.Kind, told.ClientID, told.Issuer = c.UserID, c.ServerID, storage.ClientRegistered, c.ClientID, c.Issuer
			tc.change(b, &told)
			if err := b.tell(t.Context(), storage.Revocation{OrganizationID: c.OrganizationID}, &told); !errors.Is(err, tc.want) {
				t.Errorf("%v, want %v", err, tc.want)
			}
			if got := b.revoked(); (len(got) == 1) != tc.revoked {
				t.Errorf("revoked %v", got)
			}
		})
	}
}

// TestTellWithoutRoots checks that tokens are not sent to a provider whose certificate cannot be checked.
func TestTellWithoutRoots(t *testing.T) {
	b := setup(t)
	told := b.accepted("refresh")
	told.TrustedCA = "no certificate"
	if err := b.tell(t.Context(), storage.Revocation{}, &told); err == nil || len(b.revoked()) != 0 {
		t.Errorf("%v, revoked %v", err, b.revoked())
	}
}
