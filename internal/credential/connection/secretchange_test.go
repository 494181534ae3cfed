package connection

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// newSecret replaces the secret that an administrator configured.
func (b *bundle) newSecret(secret string) {
	b.t.Helper()
	sealed, err := b.keyring.Seal([]byte(secret), ClientSecretAD(b.server.OrganizationID, b.server.ID))
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.store.UpdateServer(b.t.Context(), b.server.OrganizationID, b.server.ID, func(s *storage.Server) error {
		s.SealedClientSecret = sealed
		return nil
	}); err != nil {
		b.t.Fatal(err)
	}
	b.server = b.reload(b.server)
}

// learn lets another user begin to connect, so that the gateway learns the endpoints of a changed entry.
func (b *bundle) learn() {
	b.t.Helper()
	b.clock.advance(sightingLifetime)
	if _, err := b.Connect(b.t.Context(), Who{OrganizationID: b.who.OrganizationID, UserID: b.user("bob")}, b.server, ConnectRequest{}); err != nil {
		b.t.Fatal(err)
	}
}

// endpointsAt returns endpoints without an issuer.
func endpointsAt(at string) storage.OAuthEndpoints {
	return storage.OAuthEndpoints{AuthorizationEndpoint: at + "/authorize", TokenEndpoint: at + "/token", RevocationEndpoint: at + "/revoke"}
}

// movedFrom connects the user at a provider with a configured client. Then an administrator moves the client to another
// provider, which may be the true one, and gives it a new secret there. "" is no new secret.
func movedFrom(t *testing.T, secret string, change func(e *storage.DirectoryEntry, other string)) *bundle {
	t.Helper()
	b := setup(t)
	b.configured(storage.EntryOptions{})
	b.change(func(e *storage.DirectoryEntry) { e.OAuth = endpointsAt(b.provider.URL) })
	b.connect()
	other, asked := otherProvider(t)
	b.change(func(e *storage.DirectoryEntry) { change(e, other) })
	if secret != "" {
		b.newSecret(secret)
	}
	t.Cleanup(func() {
		if n := asked.Load(); n != 0 {
			t.Errorf("the other provider was asked %d times", n)
		}
	})
	return b
}

const (
	configuredAs = "configured-id configured-secret"
	otherSecret  = "for the other provider"
)

// TestFormerProviderLearnsNoSecret ends a connection whose client was moved to another provider. The former provider is
// told to revoke the tokens by the client that it knows, and never gets a secret that is for the other one: an
// administrator may have pointed the entry to an address of their own, until another one mended it and replaced the
// secret.
func TestFormerProviderLearnsNoSecret(t *testing.T) {
	both := func(e *storage.DirectoryEntry, other string) { e.OAuth = endpointsAt(other) }
	with := func(options storage.EntryOptions) func(*storage.DirectoryEntry, string) {
		return func(e *storage.DirectoryEntry, other string) { e.OAuth, e.Options = endpointsAt(other), options }
	}
	for name, c := range map[string]struct {
		secret string // the new one; "": it stays
		change func(e *storage.DirectoryEntry, other string)
		as     string // "": the provider is not told
	}{
		"same secret":              {change: both, as: configuredAs},
		"another secret":           {change: both, secret: otherSecret},
		"the same secret again":    {change: both, secret: "configured-secret", as: configuredAs},
		"another authentication":   {change: with(storage.EntryOptions{AuthMethod: oauth.AuthPost}), as: configuredAs},
		"no authentication":        {change: with(storage.EntryOptions{AuthMethod: oauth.AuthNone}), as: configuredAs},
		"tokens elsewhere":         {change: func(e *storage.DirectoryEntry, other string) { e.OAuth.TokenEndpoint = other + "/token" }, secret: otherSecret},
		"revocations elsewhere":    {change: func(e *storage.DirectoryEntry, other string) { e.OAuth.RevocationEndpoint = other + "/revoke" }, secret: otherSecret},
		"no revocations":           {change: func(e *storage.DirectoryEntry, _ string) { e.OAuth.RevocationEndpoint = "" }, as: configuredAs},
		"the secret alone":         {change: func(*storage.DirectoryEntry, string) {}, secret: "new", as: "configured-id new"},
		"another path of the same": {change: func(e *storage.DirectoryEntry, _ string) { e.OAuth.TokenEndpoint += "/v2" }, secret: "new", as: "configured-id new"},
	} {
		for _, learned := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				b := movedFrom(t, c.secret, c.change)
				if learned {
					b.learn()
				}
				disconnect(b)
				b.settle(func() bool { return len(b.waiting()) == 0 })
				b.Close()
				told := get(b.provider, func(p *provider) map[string]string { return p.revokedAs })
				for _, as := range told {
					if as != c.as {
						t.Errorf("learned %v: the provider was told as %q", learned, as)
					}
				}
				if want := len(strings.Fields(c.as)); len(told) != want || b.countOf(NotRevoked) != int64(1-want/2) {
					t.Errorf("learned %v: the provider was told of %d tokens, %d connections are not revoked\n%s", learned, len(told), b.countOf(NotRevoked), b.log)
				}
			})
		}
	}
}

// TestRefreshSendsNoOtherSecret refreshes after an administrator has moved a client to another provider, which nobody has
// connected to yet. The former provider may be asked, but not with a secret that is for the other one.
func TestRefreshSendsNoOtherSecret(t *testing.T) {
	moved := func(e *storage.DirectoryEntry, other string) { e.OAuth = endpointsAt(other) }
	for name, c := range map[string]struct {
		secret    string
		change    func(e *storage.DirectoryEntry, other string)
		refreshes int
	}{
		"same secret":    {change: moved, refreshes: 1},
		"another secret": {change: moved, secret: otherSecret},
		"another secret, sent no more": {secret: otherSecret, refreshes: 1, change: func(e *storage.DirectoryEntry, other string) {
			e.OAuth, e.Options.AuthMethod = endpointsAt(other), oauth.AuthNone
		}},
		"the secret alone": {secret: "configured-secret", refreshes: 1, change: func(*storage.DirectoryEntry, string) {}},
	} {
		b := movedFrom(t, c.secret, c.change)
		if name == "another secret, sent no more" {
			b.provider.set(func(p *provider) { p.clientID = "" })
		}
		b.clock.advance(2 * time.Hour)
		if _, err := b.Credential(t.Context(), b.key, &b.server); (err == nil) != (c.refreshes == 1) || (err != nil && !errors.Is(err, ErrNotConnected)) {
			t.Errorf("%s: %v", name, err)
		}
		if n := b.refreshes(); n != c.refreshes {
			t.Errorf("%s: the former provider was asked %d times, want %d", name, n, c.refreshes)
		}
	}
}

// TestRefreshOfRegisteredClient refreshes after the entry has named another provider's endpoints. The secret of a registered
// client belongs to it alone, so the former provider is asked.
func TestRefreshOfRegisteredClient(t *testing.T) {
	b := setup(t)
	b.provider.set(func(p *provider) { p.expires = b.clock.now().Add(48 * time.Hour).Unix() })
	b.connect()
	other, _ := otherProvider(t)
	b.change(func(e *storage.DirectoryEntry) { e.OAuth.TokenEndpoint = other + "/token" })
	b.clock.advance(2 * time.Hour)
	if _, err := b.Credential(t.Context(), b.key, &b.server); err != nil || b.refreshes() != 1 {
		t.Errorf("%v; the provider was asked %d times", err, b.refreshes())
	}
}

// TestCallbackSendsNoOtherSecret changes the provider and the secret of a client while a user is at the former provider.
func TestCallbackSendsNoOtherSecret(t *testing.T) {
	b := setup(t)
	b.configured(storage.EntryOptions{})
	b.change(func(e *storage.DirectoryEntry) { e.OAuth = endpointsAt(b.provider.URL) })
	r := b.begin()
	other, _ := otherProvider(t)
	b.change(func(e *storage.DirectoryEntry) { e.OAuth = endpointsAt(other) })
	b.newSecret(otherSecret)
	got, err := b.Callback(t.Context(), b.provider.approve(*r.AuthURL), ownBrowser)
	if n := get(b.provider, func(p *provider) int { return p.exchanges }); err != nil || got.OK || n != 0 || !strings.Contains(got.Reason, "connect again") {
		t.Errorf("%+v, %v; the former provider was asked %d times", got, err, n)
	}
}

// TestSecretOfAnotherEndpoint checks that a secret which only the token endpoint has accepted is not remembered for a
// revocation endpoint elsewhere that the entry names no more.
func TestSecretOfAnotherEndpoint(t *testing.T) {
	const id = "client"
	before, after := seal.NewSecret("before"), seal.NewSecret("after")
	client := func(revokeAt string) storage.OAuthClient {
		return storage.OAuthClient{Kind: storage.ClientConfigured, ClientID: id, Endpoints: storage.OAuthEndpoints{TokenEndpoint: "https://id.test/token", RevocationEndpoint: revokeAt}}
	}
	for name, c := range map[string]struct {
		then, learned, named string
		after                bool // the next secret is remembered
	}{
		"unchanged":           {"https://id.test/revoke", "https://id.test/revoke", "", true},
		"taken out":           {"https://id.test/revoke", "", "", true},
		"elsewhere":           {"https://revoke.test/", "https://revoke.test/", "https://revoke.test/", true},
		"elsewhere, removed":  {"https://revoke.test/", "", "", false},
		"elsewhere, mended":   {"https://revoke.test/", "https://id.test/revoke", "https://id.test/revoke", true},
		"elsewhere, outdated": {"https://revoke.test/", "https://revoke.test/", "https://id.test/revoke", false},
	} {
		custom := &storage.DirectoryEntry{Source: storage.SourceCustom, OAuth: storage.OAuthEndpoints{RevocationEndpoint: c.named}}
		i := issuedBy(client(c.then), oauth.ClientAuth{ID: id, Secret: before})
		next := i.again(client(c.learned), oauth.ClientAuth{ID: id, Secret: after}, custom)
		if next.had(id, after) != c.after || next.had(id, before) == c.after {
			t.Errorf("%s: the secret for %s is the one before: %v, after: %v", name, next.Endpoint, next.had(id, before), next.had(id, after))
		}
	}
	if i := issuedBy(client(""), oauth.ClientAuth{ID: id}); i.had(id, seal.Secret{}) || i.had(id, before) {
		t.Error("a client without a secret had one")
	}
}

// TestOlderGrantIsRevoked ends a connection of a version that kept nothing of a configured client, where nothing has
// changed: the server knows the client.
func TestOlderGrantIsRevoked(t *testing.T) {
	b := setup(t)
	b.configured(storage.EntryOptions{})
	b.change(func(e *storage.DirectoryEntry) { e.OAuth = endpointsAt(b.provider.URL) })
	b.connect()
	b.editGrant(func(g *grant) { g.Issued = issued{Kind: g.Issued.Kind, Origins: g.Issued.Origins} })
	disconnect(b)
	b.settle(func() bool { return len(b.waiting()) == 0 })
	b.Close()
	if told := get(b.provider, func(p *provider) map[string]string { return p.revokedAs }); len(told) != 2 || b.countOf(NotRevoked) != 0 {
		t.Errorf("the provider was told of %d tokens, %d connections are not revoked\n%s", len(told), b.countOf(NotRevoked), b.log)
	}
}

// TestOutdated checks which entries name another provider than a client's.
func TestOutdated(t *testing.T) {
	learned := endpointsAt("https://id.test")
	without := learned
	without.RevocationEndpoint = ""
	for name, c := range map[string]struct {
		learned, named storage.OAuthEndpoints
		want           bool
	}{
		"the same":              {learned, learned, false},
		"nothing":               {learned, storage.OAuthEndpoints{}, false},
		"other paths":           {learned, endpointsAt("https://id.test/v2"), false},
		"revocations are new":   {without, endpointsAt("https://id.test"), false},
		"tokens elsewhere":      {learned, storage.OAuthEndpoints{TokenEndpoint: "https://other.test/token"}, true},
		"revocations elsewhere": {learned, storage.OAuthEndpoints{RevocationEndpoint: "https://other.test/revoke"}, true},
		"no URL":                {learned, storage.OAuthEndpoints{TokenEndpoint: "nowhere"}, true},
	} {
		if got := outdated(storage.OAuthClient{Endpoints: c.learned}, &storage.DirectoryEntry{OAuth: c.named}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
