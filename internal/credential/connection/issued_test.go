package connection

import (
	"errors"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// former connects the user through a registered client that the gateway then replaces. It returns the user's grant and
// the client's credentials at the provider.
func (b *bundle) former() (g grant, as string) {
	b.t.Helper()
	b.provider.set(func(p *provider) { p.expires = b.clock.now().Add(24 * time.Hour).Unix() }) // with a secret
	b.connect()
	g, err := b.openGrant(b.connection())
	if err != nil {
		b.t.Fatal(err)
	}
	client, err := b.store.OAuthClient(b.t.Context(), b.key.OrganizationID, b.key.ServerID)
	if err != nil {
		b.t.Fatal(err)
	}
	auth, err := b.auth(b.server, client)
	if err != nil || auth.Secret.Empty() {
		b.t.Fatalf("the client has no secret: %v", err)
	}
	if err := b.ForgetClient(b.t.Context(), b.server); err != nil {
		b.t.Fatal(err)
	}
	// Another user's connect registers the next client.
	if _, err := b.Connect(b.t.Context(), Who{OrganizationID: b.who.OrganizationID, UserID: b.user("bob")}, b.server, ConnectRequest{}); err != nil {
		b.t.Fatal(err)
	}
	now, err := b.store.OAuthClient(b.t.Context(), b.key.OrganizationID, b.key.ServerID)
	if err != nil || now.ClientID == client.ClientID {
		b.t.Fatalf("the client is the former one: %v", err)
	}
	return g, auth.ID + " " + auth.Secret.Reveal()
}

// TestFormerClientRevokes ends connections whose client was replaced. Their tokens are revoked as the old client, whose
// secret nobody else is told. A grant that replaces such a grant belongs to another client, and continues.
func TestFormerClientRevokes(t *testing.T) {
	for name, end := range map[string]func(b *bundle) error{
		"disconnected": func(b *bundle) error { return b.Disconnect(b.t.Context(), b.key) },
		"deleted": func(b *bundle) error {
			_, err := b.DeleteServer(b.t.Context(), b.key.OrganizationID, b.key.ServerID, b.who.UserID, b.clock.now())
			return err
		},
		"run out": func(b *bundle) error {
			b.clock.advance(2 * time.Hour)
			_, err := b.Credential(b.t.Context(), b.key, &b.server)
			if err == nil {
				b.t.Error("a token of the former client was refreshed")
			}
			return nil
		},
		"connected anew": func(b *bundle) error { b.connect(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			g, as := b.former()
			if err := end(b); err != nil {
				t.Fatal(err)
			}
			b.settle(func() bool { return len(b.waiting()) == 0 })
			b.Close()
			got := get(b.provider, func(p *provider) map[string]string { return p.revokedAs })
			if len(got) != 2 || got[g.Refresh.Reveal()] != as || got[g.Access.Reveal()] != as {
				t.Errorf("revoked %v, not as %q\n%s", got, as, b.log)
			}
		})
	}
}

// TestFormerClientUnknown ends connections whose client is unknown, or whose end may end more. That is counted.
func TestFormerClientUnknown(t *testing.T) {
	for name, tc := range map[string]struct {
		by  issued
		end func(b *bundle) error
	}{
		"stored by an older version":       {end: func(b *bundle) error { return b.Disconnect(b.t.Context(), b.key) }},
		"configured, whose secret is gone": {by: issued{Kind: storage.ClientConfigured, Endpoint: "https://id.test/revoke", Elsewhere: true}, end: func(b *bundle) error { return b.Disconnect(b.t.Context(), b.key) }},
		"configured, by an older version":  {by: issued{Kind: storage.ClientConfigured}, end: func(b *bundle) error { return b.Disconnect(b.t.Context(), b.key) }},
		"configured, connected anew":       {by: issued{Kind: storage.ClientConfigured}, end: func(b *bundle) error { b.connect(); return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.former()
			b.editGrant(func(g *grant) { g.Issued = tc.by })
			if err := tc.end(b); err != nil {
				t.Fatal(err)
			}
			b.Close()
			if got := b.revoked(); len(got) != 0 || len(b.waiting()) != 0 {
				t.Errorf("revoked %v, %d wait", got, len(b.waiting()))
			}
			b.counted(map[Event]int64{NotRevoked: 1})
		})
	}
}

// TestIssuedByConfiguredClient checks that a secret that an administrator configured is stored in no connection.
func TestIssuedByConfiguredClient(t *testing.T) {
	b := setup(t)
	sealed, err := b.keyring.Seal([]byte("s3cret"), ClientSecretAD(b.key.OrganizationID, b.key.ServerID))
	if err != nil {
		t.Fatal(err)
	}
	if b.server, err = b.store.UpdateServer(t.Context(), b.key.OrganizationID, b.key.ServerID, func(s *storage.Server) error {
		s.ClientID, s.SealedClientSecret = "configured", sealed
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	b.provider.set(func(p *provider) { p.clientID, p.secret = "configured", "s3cret" })
	b.connect()
	g, err := b.openGrant(b.connection())
	if err != nil {
		t.Fatal(err)
	}
	if !g.Issued.Secret.Empty() || !g.Issued.Elsewhere || g.Issued.Endpoint != b.provider.URL+"/revoke" || g.Issued.Origins != b.provider.URL {
		t.Errorf("%+v", g.Issued)
	}
	if err := b.Disconnect(t.Context(), b.key); err != nil {
		t.Fatal(err)
	}
	b.settle(func() bool { return len(b.waiting()) == 0 })
	b.Close()
	if got := get(b.provider, func(p *provider) map[string]string { return p.revokedAs }); got[g.Refresh.Reveal()] != "configured s3cret" {
		t.Errorf("revoked %v", got)
	}
}

// TestIssuedIsLearned checks that the client of a grant that an older version stored is known after a refresh.
func TestIssuedIsLearned(t *testing.T) {
	b := setup(t)
	b.connect()
	issuedNow := func() issued {
		g, err := b.openGrant(b.connection())
		if err != nil {
			t.Fatal(err)
		}
		return g.Issued
	}
	want := issuedNow()
	b.editGrant(func(g *grant) { g.Issued = issued{} })
	b.clock.advance(time.Hour)
	b.use(b.Broker)
	if got := issuedNow(); got.Kind != storage.ClientRegistered || got.Kind != want.Kind || got.Endpoint != want.Endpoint || got.Method != want.Method {
		t.Errorf("%+v instead of %+v", got, want)
	}
}

// TestIssuedIsKnown checks that a former client can prove its identity, with two exceptions: an older version stored
// the grant, or the secret was an administrator's.
func TestIssuedIsKnown(t *testing.T) {
	client := storage.OAuthClient{Kind: storage.ClientConfigured, Endpoints: storage.OAuthEndpoints{RevocationEndpoint: "https://id.test/revoke"}}
	registered := client
	registered.Kind = storage.ClientRegistered
	secret := oauth.ClientAuth{Secret: seal.NewSecret("s")}
	for name, tc := range map[string]struct {
		by    issued
		known bool
		kept  bool
	}{
		"older version":                {by: issued{Endpoint: "https://id.test/revoke"}, kept: true},
		"configured":                   {by: issuedBy(client, secret), kept: true},
		"configured, older version":    {by: issued{Kind: storage.ClientConfigured}},
		"configured, without a secret": {by: issuedBy(client, oauth.ClientAuth{}), known: true, kept: true},
		"registered":                   {by: issuedBy(registered, secret), known: true, kept: true},
		"registered, no endpoint":      {by: issued{Kind: storage.ClientRegistered}, known: true},
	} {
		if tc.by.known() != tc.known || (tc.by.Endpoint != "") != tc.kept {
			t.Errorf("%s: known %v, endpoint %q", name, tc.by.known(), tc.by.Endpoint)
		}
	}
}

// TestStands checks when the server of a connection may revoke its tokens as it is now: while it is at the place where
// they were issued. Otherwise its configured secret would go to a provider that it is not for.
func TestStands(t *testing.T) {
	at := storage.OAuthEndpoints{Resource: "https://up.test/mcp", Issuer: "https://id.test", TokenEndpoint: "https://id.test/token", RevocationEndpoint: "https://id.test/revoke"}
	for name, c := range map[string]struct {
		kind   storage.OAuthClientKind
		change func(ended *storage.Ended, i *issued)
		want   bool
	}{
		"unchanged":                   {storage.ClientConfigured, func(*storage.Ended, *issued) {}, true},
		"the server moved":            {storage.ClientConfigured, func(e *storage.Ended, _ *issued) { e.Server.Entry.URL = "https://other.test/mcp" }, false},
		"the server is nowhere":       {storage.ClientConfigured, func(e *storage.Ended, _ *issued) { e.Server.Entry.URL = "none" }, false},
		"another resource":            {storage.ClientConfigured, func(e *storage.Ended, _ *issued) { e.Client.Endpoints.Resource = "https://up.test/v2" }, false},
		"another issuer in the entry": {storage.ClientConfigured, func(e *storage.Ended, _ *issued) { e.Server.Entry.OAuth.Issuer = "https://other.test" }, false},
		"tokens elsewhere":            {storage.ClientConfigured, func(e *storage.Ended, _ *issued) { e.Client.Endpoints.TokenEndpoint = "https://other.test/token" }, false},
		"revocations elsewhere":       {storage.ClientConfigured, func(e *storage.Ended, _ *issued) { e.Client.Endpoints.RevocationEndpoint = "https://other.test/revoke" }, false},
		"entry with other endpoints":  {storage.ClientConfigured, func(e *storage.Ended, _ *issued) { e.Server.Entry.OAuth.TokenEndpoint = "https://other.test/token" }, false},
		"no revocations any more":     {storage.ClientConfigured, func(e *storage.Ended, _ *issued) { e.Client.Endpoints.RevocationEndpoint = "" }, false},
		"no revocations ever": {storage.ClientConfigured, func(e *storage.Ended, i *issued) {
			e.Client.Endpoints.RevocationEndpoint, i.Endpoint = "", ""
		}, true},
		"registered, the server moved": {storage.ClientRegistered, func(e *storage.Ended, _ *issued) { e.Server.Entry.URL = "https://other.test/mcp" }, true},
	} {
		client := storage.OAuthClient{Kind: c.kind, Endpoints: at}
		ended := storage.Ended{
			Former: storage.Connection{Origin: "https://up.test", Resource: at.Resource, Issuer: at.Issuer}, Client: &client,
			Server: storage.Server{Entry: storage.DirectoryEntry{Source: storage.SourceCustom, URL: "https://up.test/mcp", Provider: storage.ProviderOAuth2}},
		}
		i := issued{Endpoint: at.RevocationEndpoint, Origins: "https://id.test"}
		c.change(&ended, &i)
		if got := i.stands(ended); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestRevokeAt checks at which endpoint tokens are revoked: their provider's own, also after somebody has changed the
// entry or taken the endpoint out of it.
func TestRevokeAt(t *testing.T) {
	const before, after, elsewhere = "https://id.test/revoke", "https://id.test/v2/revoke", "https://evil.test/revoke"
	custom := &storage.DirectoryEntry{Source: storage.SourceCustom}
	grant := issued{Endpoint: before, Origins: "https://id.test"}
	older := issued{Origins: "https://id.test"}
	for name, tc := range map[string]struct {
		of        issued
		now, want string
		err       error
	}{
		"unchanged":                 {of: grant, now: before, want: before},
		"another path":              {of: grant, now: after, want: after},
		"elsewhere":                 {of: grant, now: elsewhere, want: before},
		"taken out":                 {of: grant, want: before},
		"older version":             {of: older, now: after, want: after},
		"older version, elsewhere":  {of: older, now: elsewhere, err: errEndpointMoved},
		"older version, taken out":  {of: older, err: errNoEndpoint},
		"oldest version, elsewhere": {now: elsewhere, want: elsewhere},
	} {
		got, err := tc.of.revokeAt(tc.now, custom)
		if got != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for now, want := range map[string]string{"": before, after: after, elsewhere: before} {
		client := storage.OAuthClient{Endpoints: storage.OAuthEndpoints{TokenEndpoint: "https://id.test/token", RevocationEndpoint: now}}
		if got := grant.again(client, oauth.ClientAuth{}, custom); got.Endpoint != want || got.Origins != grant.Origins {
			t.Errorf("after a refresh with %q: %+v", now, got)
		}
	}
}
