package connection

import (
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// disconnectUnheard disconnects the user while the provider accepts no revocations.
func (b *bundle) disconnectUnheard() {
	b.t.Helper()
	b.outOfOrder(true)
	disconnect(b)
	b.settle(func() bool { return b.tried() == 1 })
	b.outOfOrder(false)
}

// TestConnectedAnewElsewhere connects again after an administrator has moved the entry to another provider without naming
// an issuer. The former provider is told to revoke the former tokens.
func TestConnectedAnewElsewhere(t *testing.T) {
	for name, disconnected := range map[string]bool{"connected anew": false, "disconnected before": true} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.configured(storage.EntryOptions{})
			b.change(func(e *storage.DirectoryEntry) { e.OAuth = endpointsAt(b.provider.URL) })
			b.connect()
			former := b.provider
			if disconnected {
				b.disconnectUnheard()
			}
			b.provider = newProvider(t)
			b.provider.set(func(p *provider) { p.clientID, p.secret = "configured-id", "configured-secret" })
			b.change(func(e *storage.DirectoryEntry) { e.OAuth = endpointsAt(b.provider.URL) })
			b.clock.advance(sightingLifetime)
			b.connect()
			if disconnected {
				b.clock.advance(time.Minute)
				if err := b.node().RevokeDue(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			b.settle(func() bool { return len(b.waiting()) == 0 })
			b.use(b.Broker)
			b.Close()
			told := get(former, func(p *provider) map[string]string { return p.revokedAs })
			for _, as := range told {
				if as != configuredAs {
					t.Errorf("the former provider was told as %q", as)
				}
			}
			if len(told) != 2 || len(b.revoked()) != 0 || b.countOf(NotRevoked) != 0 {
				t.Errorf("%d former tokens were revoked, and %d new ones; %d are not\n%s", len(told), len(b.revoked()), b.countOf(NotRevoked), b.log)
			}
		})
	}
}

// TestConnectedAnewAfterIssuer connects again after an administrator has added the issuer to the entry. The provider is
// the same. To revoke the former tokens there may end the new ones.
func TestConnectedAnewAfterIssuer(t *testing.T) {
	for name, c := range map[string]struct {
		public, disconnected bool
		lost                 int64
	}{
		"public":                      {public: true},
		"with a secret":               {},
		"public, disconnected before": {public: true, disconnected: true, lost: 1},
		"secret, disconnected before": {disconnected: true, lost: 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.configured(storage.EntryOptions{})
			if c.public {
				b.provider.set(func(p *provider) { p.clientID = "" })
			}
			named := func(issuer bool) {
				b.change(func(e *storage.DirectoryEntry) {
					if e.OAuth = endpointsAt(b.provider.URL); issuer {
						e.OAuth.Issuer = b.provider.URL
					}
					if c.public {
						e.Public, e.Options.AuthMethod = true, oauth.AuthNone
					}
				})
				b.clock.advance(sightingLifetime)
			}
			named(false)
			b.connect()
			if c.disconnected {
				b.disconnectUnheard()
			}
			named(true)
			b.connect()
			b.clock.advance(time.Minute)
			if err := b.node().RevokeDue(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.settle(func() bool { return len(b.waiting()) == 0 })
			b.use(b.Broker)
			b.Close()
			if got := b.revoked(); len(got) != 0 || b.countOf(NotRevoked) != c.lost {
				t.Errorf("revoked %v, which may end the new connection; %d are not, want %d\n%s", got, b.countOf(NotRevoked), c.lost, b.log)
			}
		})
	}
}

// TestSameProvider checks what tells providers apart: their issuers, or else the endpoints that both grants remember.
func TestSameProvider(t *testing.T) {
	b := setup(t)
	const here, there = "https://id.test https://revoke.test", "https://other.test"
	for name, c := range map[string]struct {
		issuer, origins     string // of the connection
		hasIssuer, hasOther string // of the other grant
		want                bool
	}{
		"same issuer":                 {issuer, here, issuer, there, true},
		"another issuer":              {issuer, here, "https://other.example.test", here, false},
		"no issuer, same endpoints":   {"", here, "", here, true},
		"no issuer, one in common":    {"", here, "", "https://revoke.test https://new.test", true},
		"no issuer, other endpoints":  {"", here, "", there, false},
		"issuer added":                {issuer, here, "", here, true},
		"issuer taken out":            {"", here, issuer, here, true},
		"issuer added, moved":         {issuer, here, "", there, false},
		"no issuer, older connection": {"", "", "", here, true},
		"no issuer, older grant":      {"", here, "", "", true},
		"issuer added, older grant":   {issuer, here, "", "", false},
	} {
		sealed, err := b.sealGrant(b.key, grant{Access: seal.NewSecret("a"), Issued: issued{Origins: c.origins}})
		if err != nil {
			t.Fatal(err)
		}
		of := storage.Connection{ConnectionKey: b.key, Issuer: c.issuer, SealedCredential: sealed}
		if got := b.sameProvider(&of, c.hasIssuer, c.hasOther); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	unreadable := storage.Connection{ConnectionKey: b.key, SealedCredential: []byte("what no key opens")}
	if !b.sameProvider(&unreadable, "", there) {
		t.Error("a grant that cannot be read is of another provider")
	}
}
