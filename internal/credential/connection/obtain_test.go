package connection

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/storage"
)

// clientStore answers a write of the client with an error, and the next read with theirs.
type clientStore struct {
	*faultyStore
	put    error
	theirs storage.OAuthClient
	read   error
	wrote  *bool
}

func (s clientStore) PutOAuthClient(context.Context, storage.OAuthClient, string) error {
	*s.wrote = true
	return s.put
}

func (s clientStore) OAuthClient(ctx context.Context, organization, serverID string) (storage.OAuthClient, error) {
	if *s.wrote {
		return s.theirs, s.read
	}
	return s.faultyStore.OAuthClient(ctx, organization, serverID)
}

// TestClientNotStored checks what becomes of a connect whose client the store does not take. The client of another node
// is used if it can be, and is the only one that is.
func TestClientNotStored(t *testing.T) {
	away := &storage.UnavailableError{Reason: "it does not answer in time"}
	for name, tc := range map[string]struct {
		put    error
		change func(c *storage.OAuthClient) // theirs: the client that we would use, changed
		read   error
		want   error
	}{
		"the store is away":               {put: away, want: storage.ErrUnavailable},
		"another node's":                  {put: storage.ErrConflict},
		"another node's, elsewhere":       {put: storage.ErrConflict, change: func(c *storage.OAuthClient) { c.Issuer = "https://other.example.test" }, want: storage.ErrUnavailable},
		"another node's, that is refused": {put: storage.ErrConflict, change: func(c *storage.OAuthClient) { c.Refused = true }, want: storage.ErrUnavailable},
		"gone again":                      {put: storage.ErrConflict, read: storage.ErrNotFound, want: storage.ErrUnavailable},
		"cannot be read":                  {put: storage.ErrConflict, read: errors.New("the disk is broken"), want: nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.begin()
			theirs := b.client()
			theirs.ClientID = "theirs"
			if tc.change != nil {
				tc.change(&theirs)
			}
			if err := b.ForgetClient(t.Context(), b.server); err != nil {
				t.Fatal(err)
			}
			s := clientStore{faultyStore: b.store, put: tc.put, theirs: theirs, read: tc.read, wrote: new(bool)}
			b.Broker.store = s
			r, err := b.Connect(t.Context(), b.who, b.server, ConnectRequest{})
			used := r.AuthURL != nil && strings.Contains(*r.AuthURL, "client_id=theirs")
			if good := tc.want == nil && tc.read == nil; (err == nil) != good || used != good || (tc.want != nil && !errors.Is(err, tc.want)) {
				t.Errorf("%+v, %v", r, err)
			}
			if tc.read != nil && tc.want == nil && (!errors.Is(err, tc.read) || errors.Is(err, storage.ErrUnavailable)) {
				t.Errorf("%v", err)
			}
			if errors.Is(err, ErrOAuthConfiguration) {
				t.Errorf("an administrator is blamed: %v", err)
			}
		})
	}
}

// TestClientOfServerInError checks that the provider is looked at again before the error of a server ends.
func TestClientOfServerInError(t *testing.T) {
	b := setup(t)
	b.begin()
	b.failServer(t.Context(), b.server, errors.New("canary"))
	if !strings.Contains(b.log.String(), "out of order") || !strings.Contains(b.log.String(), "canary") {
		t.Error("silent")
	}
	b.server = b.reload(b.server)
	found := func() int { return get(b.provider, func(p *provider) int { return p.discoveries }) }
	before := found()
	b.begin()
	if found() == before {
		t.Error("it is not looked at again")
	}
	b.Broker.store = unwritable{b.store}
	b.failServer(t.Context(), b.server, errors.New("x"))
	if !strings.Contains(b.log.String(), "noting server status") {
		t.Error("that the store is away is not logged")
	}
}

// TestFirstConnectNotNoted checks that nobody is sent to a provider for a server that stays pending.
func TestFirstConnectNotNoted(t *testing.T) {
	b := setup(t)
	b.Broker.store = unwritable{b.store}
	if r, err := b.Connect(t.Context(), b.who, b.server, ConnectRequest{}); !errors.Is(err, storage.ErrUnavailable) || r.AuthURL != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestUnusableClientWithoutProvider checks that a client that cannot be used is not used when the provider is away.
func TestUnusableClientWithoutProvider(t *testing.T) {
	b := setup(t)
	b.begin()
	b.provider.Close()
	b.app.RedirectURI = "https://other.example.test" + CallbackPath
	if r, err := b.Connect(t.Context(), b.who, b.server, ConnectRequest{}); !errors.Is(err, ErrOAuthConfiguration) || r.AuthURL != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestClientOfBrokenProvider checks that nobody is sent to a provider whose metadata is wrong: only one that does not answer
// is believed to be as it was.
func TestClientOfBrokenProvider(t *testing.T) {
	b := setup(t)
	b.begin()
	b.clock.advance(sightingLifetime)
	b.provider.set(func(p *provider) { p.issuer = p.URL + "/nowhere" })
	if r, err := b.Connect(t.Context(), b.who, b.server, ConnectRequest{}); !errors.Is(err, ErrOAuthConfiguration) || r.AuthURL != nil {
		t.Errorf("%+v, %v", r, err)
	}
	b.provider.Close()
	b.begin()
}

// TestSecretEndIsKept checks that the end of a registered secret is known after another look at the provider.
func TestSecretEndIsKept(t *testing.T) {
	b := setup(t)
	end := b.clock.now().Add(24 * time.Hour).Truncate(time.Second)
	b.provider.set(func(p *provider) { p.expires = end.Unix() })
	for range 2 {
		b.begin()
		if got := b.client().SecretExpiresAt; !got.Equal(end) {
			t.Errorf("it ends at %s", got)
		}
		b.clock.advance(sightingLifetime)
		b.change(func(e *storage.DirectoryEntry) { e.Scopes = []string{"more"} }) // the record changes
	}
}

// TestNewClientIsBelieved checks that a client that was registered just now is not tried before a browser is sent there.
func TestNewClientIsBelieved(t *testing.T) {
	b := setup(t)
	b.begin()
	b.clock.advance(sightingLifetime)
	b.begin()
	if n := b.exchanges(); n != 0 {
		t.Errorf("it was tried %d times", n)
	}
}

// TestSecretOfConfiguredClient checks which configured clients need a secret, and that a secret that cannot be read just
// now is nobody's mistake.
func TestSecretOfConfiguredClient(t *testing.T) {
	configure := func(b *bundle, secret []byte, edit func(e *storage.DirectoryEntry)) {
		b.provider.set(func(p *provider) { p.noRegister = true })
		if _, err := b.store.UpdateServer(t.Context(), b.server.OrganizationID, b.server.ID, func(s *storage.Server) error {
			s.ClientID, s.SealedClientSecret = "configured-id", secret
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		b.change(edit)
	}
	for name, tc := range map[string]struct {
		secret string
		edit   func(e *storage.DirectoryEntry)
		ok     bool
		method string
	}{
		"none":                       {edit: func(*storage.DirectoryEntry) {}},
		"none, and public":           {edit: func(e *storage.DirectoryEntry) { e.Public = true }, ok: true, method: oauth.AuthNone},
		"none is used":               {edit: func(e *storage.DirectoryEntry) { e.Options.AuthMethod = oauth.AuthNone }, ok: true, method: oauth.AuthNone},
		"one that is not used":       {secret: "s", edit: func(e *storage.DirectoryEntry) { e.Options.AuthMethod = oauth.AuthNone }, ok: true, method: oauth.AuthNone},
		"one":                        {secret: "s", edit: func(*storage.DirectoryEntry) {}, ok: true, method: oauth.AuthBasic},
		"one, although it is public": {secret: "s", edit: func(e *storage.DirectoryEntry) { e.Public = true }, ok: true, method: oauth.AuthBasic},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			var secret []byte
			if tc.secret != "" {
				var err error
				if secret, err = b.keyring.Seal([]byte(tc.secret), ClientSecretAD(b.server.OrganizationID, b.server.ID)); err != nil {
					t.Fatal(err)
				}
			}
			configure(b, secret, tc.edit)
			_, err := b.Connect(t.Context(), b.who, b.server, ConnectRequest{})
			if (err == nil) != tc.ok || (err != nil && !errors.Is(err, ErrOAuthConfiguration)) {
				t.Fatalf("%v", err)
			}
			if tc.ok && b.client().AuthMethod != tc.method {
				t.Errorf("by %s", b.client().AuthMethod)
			}
		})
	}
	t.Run("its key cannot be looked up", func(t *testing.T) {
		b := setup(t)
		behind := b.behind()
		secret, err := b.keyring.Seal([]byte("s"), ClientSecretAD(b.server.OrganizationID, b.server.ID))
		if err != nil {
			t.Fatal(err)
		}
		configure(b, secret, func(*storage.DirectoryEntry) {})
		away := error(&storage.UnavailableError{Reason: "it does not answer in time"})
		b.store.keysErr.Store(&away)
		if _, err := behind.Connect(t.Context(), b.who, b.server, ConnectRequest{}); !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, ErrOAuthConfiguration) {
			t.Errorf("%v", err)
		}
	})
}

// TestLearnedMethodGivesWay checks that the place of the secret that was found out gives way to what an administrator
// writes, and to a client without a secret.
func TestLearnedMethodGivesWay(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(e *storage.DirectoryEntry)
		want string
	}{
		"nothing is written": {func(*storage.DirectoryEntry) {}, oauth.AuthPost},
		"basic is written":   {func(e *storage.DirectoryEntry) { e.Options.AuthMethod = oauth.AuthBasic }, oauth.AuthBasic},
		"none is written":    {func(e *storage.DirectoryEntry) { e.Options.AuthMethod = oauth.AuthNone }, oauth.AuthNone},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.configured(storage.EntryOptions{})
			b.provider.set(func(p *provider) { p.bodyOnly = true })
			b.connect()
			b.change(tc.edit)
			b.clock.advance(sightingLifetime)
			b.begin()
			if got := b.client().AuthMethod; got != tc.want {
				t.Errorf("by %s, want %s", got, tc.want)
			}
		})
	}
	t.Run("nothing was found out", func(t *testing.T) {
		b := setup(t)
		b.configured(storage.EntryOptions{AuthMethod: oauth.AuthPost})
		b.begin()
		if got := b.client().AuthMethod; got != oauth.AuthPost {
			t.Errorf("by %s", got)
		}
	})
	t.Run("the secret is taken away", func(t *testing.T) {
		b := setup(t)
		b.configured(storage.EntryOptions{})
		b.begin()
		if _, err := b.store.UpdateServer(t.Context(), b.server.OrganizationID, b.server.ID, func(s *storage.Server) error {
			s.SealedClientSecret = nil
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		b.change(func(e *storage.DirectoryEntry) { e.Public = true })
		b.clock.advance(sightingLifetime)
		b.begin()
		if got := b.client().AuthMethod; got != oauth.AuthNone {
			t.Errorf("by %s", got)
		}
	})
}

// TestForgetClientFails checks that an administrator is told when the client is still there, or its server still out of
// order.
func TestForgetClientFails(t *testing.T) {
	away := &storage.UnavailableError{Reason: "it does not answer in time"}
	for name, tc := range map[string]struct {
		happens func(b *bundle)
		want    error
	}{
		"it cannot be read":       {func(b *bundle) { b.store.away.Store(1) }, storage.ErrUnavailable},
		"there is none":           {func(b *bundle) { b.Broker.store = clientless{b.store} }, storage.ErrNotFound},
		"it is not stored":        {func(b *bundle) { b.Broker.store = clientStore{faultyStore: b.store, put: away, wrote: new(bool)} }, storage.ErrUnavailable},
		"the server is not ended": {func(b *bundle) { b.Broker.store = unwritable{b.store} }, storage.ErrUnavailable},
		"the server is gone": {func(b *bundle) {
			b.Broker.store = serverless{b.store}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.begin()
			b.failServer(t.Context(), b.server, errIssuerChanged)
			b.server = b.reload(b.server)
			tc.happens(b)
			if err := b.ForgetClient(t.Context(), b.server); !errors.Is(err, tc.want) {
				t.Errorf("%v, want %v", err, tc.want)
			}
		})
	}
}

// serverless is a store that has lost the server.
type serverless struct{ *faultyStore }

func (serverless) UpdateServer(context.Context, string, string, func(*storage.Server) error) (storage.Server, error) {
	return storage.Server{}, storage.ErrNotFound
}

// TestForgottenIsLookedAt checks that the next connect looks at the provider again after the client was forgotten by
// hand.
func TestForgottenIsLookedAt(t *testing.T) {
	b := setup(t)
	b.begin()
	c := b.client()
	if err := b.ForgetClient(t.Context(), b.server); err != nil {
		t.Fatal(err)
	}
	if b.sightings.recent(serverKeyOf(b.server), sightOf(b.server, c), b.clock.now()) || b.proofs.recent(serverKeyOf(b.server), c.ClientID, b.clock.now()) {
		t.Error("it is believed still")
	}
}

// TestFormNotKept checks that a token counts even if the way in which its provider wants to be asked is not stored.
func TestFormNotKept(t *testing.T) {
	b := setup(t)
	b.configured(storage.EntryOptions{})
	b.connect()
	b.provider.set(func(p *provider) { p.bodyOnly = true })
	b.clock.advance(time.Hour)
	b.Broker.store = clientStore{
		faultyStore: b.store, put: &storage.UnavailableError{Reason: "it does not answer in time"}, wrote: new(bool), theirs: b.client(),
	}
	b.use(b.Broker)
	if !strings.Contains(b.log.String(), "noting how a provider wants to be asked") {
		t.Error("silent")
	}
}

// TestForgetConfiguredClient checks that a client that an administrator configured is not forgotten by hand.
func TestForgetConfiguredClient(t *testing.T) {
	b := setup(t)
	b.configured(storage.EntryOptions{})
	b.begin()
	if err := b.ForgetClient(t.Context(), b.server); !errors.Is(err, storage.ErrNotFound) || b.client().Refused {
		t.Errorf("%v, %+v", err, b.client())
	}
}
