package connection

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// own makes the bundle's server one whose tokens the gateway gets for itself, at a provider for clients alone.
func own(t *testing.T) *bundle {
	t.Helper()
	b := setup(t)
	b.configured(storage.EntryOptions{})
	b.provider.set(func(p *provider) { p.grants = []string{oauth.GrantClientCredentials, oauth.GrantAssertion} })
	b.change(func(e *storage.DirectoryEntry) { e.Provider = storage.ProviderClientCredentials })
	b.lifecycle(storage.ServerActive)
	return b
}

// lifecycle sets the status of the bundle's server.
func (b *bundle) lifecycle(status storage.ServerStatus) {
	b.t.Helper()
	if _, err := b.store.UpdateServer(b.t.Context(), b.server.OrganizationID, b.server.ID, func(s *storage.Server) error { s.Status = status; return nil }); err != nil {
		b.t.Fatal(err)
	}
	b.server = b.reload(b.server)
}

// ownClient gets the server's client, and reads the server anew.
func (b *bundle) ownClient() (storage.OAuthClient, oauth.ClientAuth, error) {
	b.t.Helper()
	client, auth, err := b.OwnClient(b.t.Context(), &b.server)
	b.server = b.reload(b.server)
	return client, auth, err
}

// TestOwnClient checks that the authorization server of an upstream is discovered for the grant, remembered, and shown the
// administrator's client.
func TestOwnClient(t *testing.T) {
	b := own(t)
	client, auth, err := b.ownClient()
	if err != nil {
		t.Fatalf("%v\n%s", err, b.log)
	}
	if client.Endpoints.TokenEndpoint != b.provider.URL+"/token" || client.Endpoints.Resource != b.provider.URL+"/mcp" || strings.Join(client.Scopes, " ") != "read" ||
		auth.ID != "configured-id" || auth.Secret.Reveal() != "configured-secret" || auth.Method != oauth.AuthBasic || auth.Audience != b.provider.URL {
		t.Errorf("%+v, %s by %s for %s", client, auth.ID, auth.Method, auth.Audience)
	}
	before := get(b.provider, func(p *provider) int { return p.discoveries })
	if _, _, err := b.ownClient(); err != nil || get(b.provider, func(p *provider) int { return p.discoveries }) != before {
		t.Errorf("asked again at once: %v", err)
	}
	b.clock.advance(sightingLifetime)
	b.provider.Close() // what is known goes on
	if _, auth, err = b.ownClient(); err != nil || auth.ID != "configured-id" {
		t.Errorf("a server that does not answer: %v", err)
	}
	if _, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, errObtained) {
		t.Errorf("a connection: %v", err)
	}
	if got := b.status(); got != storage.ConnectionConnected {
		t.Errorf("everybody is %s", got)
	}

	// The endpoint that an entry names is the audience: an issuer beside it need not be that endpoint's.
	b = own(t)
	b.change(func(e *storage.DirectoryEntry) {
		e.OAuth = storage.OAuthEndpoints{Issuer: issuer, TokenEndpoint: b.provider.URL + "/token"}
	})
	if _, auth, err := b.ownClient(); err != nil || auth.Audience != b.provider.URL+"/token" {
		t.Errorf("for %s, %v", auth.Audience, err)
	}
	for name, change := range map[string]func(*bundle){
		"a server for users alone": func(b *bundle) { b.provider.set(func(p *provider) { p.grants = []string{"authorization_code"} }) },
		"another issuer":           func(b *bundle) { b.provider.set(func(p *provider) { p.issuer = issuer }) },
	} {
		b := own(t)
		change(b)
		if _, _, err := b.ownClient(); !errors.Is(err, ErrOAuthConfiguration) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOwnClientKept checks that no change of an administrator's entry, and none of the upstream, takes a client's secret, or the
// tokens that it gets, to another place than the one where it was first used.
func TestOwnClientKept(t *testing.T) {
	for name, c := range map[string]struct {
		change func(e *storage.DirectoryEntry, other string)
		source storage.Source
		stays  bool // it goes on at the other place
	}{
		"another upstream": {change: func(e *storage.DirectoryEntry, other string) { e.URL = other + "/mcp" }},
		"another stream":   {change: func(e *storage.DirectoryEntry, other string) { e.EventsURL = other + "/events" }},
		"another issuer":   {change: func(e *storage.DirectoryEntry, other string) { e.OAuth.Issuer = other }},
		"another endpoint": {change: func(e *storage.DirectoryEntry, other string) { e.OAuth.TokenEndpoint = other + "/token" }},
		"another endpoint beside the issuer": {change: func(e *storage.DirectoryEntry, other string) {
			e.OAuth = storage.OAuthEndpoints{Issuer: strings.TrimSuffix(e.URL, "/mcp"), TokenEndpoint: other + "/token"}
		}},
		"another path": {change: func(e *storage.DirectoryEntry, _ string) {
			e.URL = strings.TrimSuffix(e.URL, "/mcp") + "/mcp?tenant=2"
			e.OAuth.Issuer = strings.TrimSuffix(e.URL, "/mcp?tenant=2")
		}, stays: true},
		"the operator's other upstream": {change: func(e *storage.DirectoryEntry, other string) { e.URL = other + "/mcp"; e.OAuth.Issuer = other }, source: storage.SourceConfig, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := own(t)
			if _, _, err := b.ownClient(); err != nil {
				t.Fatal(err)
			}
			other := newProvider(t)
			other.set(func(p *provider) { p.grants = []string{oauth.GrantClientCredentials} })
			asked := func() int { return get(other, func(p *provider) int { return p.discoveries + p.exchanges }) }
			b.change(func(e *storage.DirectoryEntry) {
				if c.change(e, other.URL); c.source != "" {
					e.Source = c.source
				}
			})
			b.server.Entry.Source = storage.SourceCustom
			if c.source != "" {
				b.server.Entry.Source = c.source
			}
			_, auth, err := b.OwnClient(t.Context(), &b.server)
			b.server = b.reload(b.server)
			if c.stays {
				if err != nil || auth.Secret.Empty() {
					t.Errorf("%v\n%s", err, b.log)
				}
				return
			}
			if !errors.Is(err, errIssuerChanged) || !auth.Secret.Empty() || b.server.Status != storage.ServerError || asked() != 0 {
				t.Errorf("%v, the server is %s, the other place was asked %d times", err, b.server.Status, asked())
			}
			// A place that does not answer is no way around it.
			other.Close()
			b.lifecycle(storage.ServerActive)
			b.clock.advance(sightingLifetime)
			if _, auth, err := b.ownClient(); !errors.Is(err, errIssuerChanged) || !auth.Secret.Empty() {
				t.Errorf("a place that does not answer: %v", err)
			}
		})
	}
	t.Run("the upstream names another", func(t *testing.T) {
		for _, source := range []storage.Source{storage.SourceCustom, storage.SourceConfig} {
			b := own(t)
			if _, _, err := b.ownClient(); err != nil {
				t.Fatal(err)
			}
			b.provider.set(func(p *provider) { p.issuer = p.URL + "/other" })
			b.clock.advance(sightingLifetime)
			b.server.Entry.Source = source
			_, auth, err := b.ownClient()
			if !errors.Is(err, errIssuerChanged) || !auth.Secret.Empty() || b.server.Status != storage.ServerError {
				t.Errorf("%s: %v, the server is %s", source, err, b.server.Status)
			}
		}
	})
	t.Run("another client", func(t *testing.T) {
		b := own(t)
		if _, _, err := b.ownClient(); err != nil {
			t.Fatal(err)
		}
		b.change(func(e *storage.DirectoryEntry) { e.OAuth.Issuer = b.provider.URL + "/other" })
		b.provider.set(func(p *provider) { p.issuer = p.URL + "/other" })
		if _, err := b.store.UpdateServer(t.Context(), b.server.OrganizationID, b.server.ID, func(s *storage.Server) error { s.ClientID = "new-id"; return nil }); err != nil {
			t.Fatal(err)
		}
		b.server = b.reload(b.server)
		if client, _, err := b.ownClient(); err != nil || client.ClientID != "new-id" || client.Issuer != b.provider.URL+"/other" {
			t.Errorf("%+v, %v", client, err)
		}
	})
}

// TestOwnClientKey checks that a client with a key proves itself by that, and never by another method.
func TestOwnClientKey(t *testing.T) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	key, err := oauth.ReadSigningKey(seal.NewSecret(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))))
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := key.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for method, works := range map[string]bool{oauth.AuthPrivateKey: true, oauth.AuthBasic: false, oauth.AuthPost: false, "": false} { // the metadata lists secrets alone
		b := own(t)
		b.newSecret(encoded.Reveal())
		b.change(func(e *storage.DirectoryEntry) { e.Options.AuthMethod = method })
		_, auth, err := b.ownClient()
		if (err == nil) != works || !auth.Secret.Empty() || works && (auth.Key == nil || auth.Method != oauth.AuthPrivateKey) {
			t.Errorf("%q: by %q, %v", method, auth.Method, err)
		}
	}
	b := own(t)
	b.change(func(e *storage.DirectoryEntry) { e.Options.AuthMethod = oauth.AuthPrivateKey })
	if _, auth, err := b.ownClient(); !errors.Is(err, ErrOAuthConfiguration) || !auth.Secret.Empty() {
		t.Errorf("a secret where a key is needed: %v", err)
	}
}
