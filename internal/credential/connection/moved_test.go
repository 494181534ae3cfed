package connection

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// otherProvider counts the requests to an address that somebody puts in the provider's place.
func otherProvider(t *testing.T) (url string, asked *atomic.Int64) {
	asked = new(atomic.Int64)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusBadRequest)
	}))
	t.Cleanup(other.Close)
	return other.URL, asked
}

// TestEndpointsMoved checks that an administrator who changes only the endpoints of a directory entry is sent no
// tokens of users who connected before. The gateway registers no client here: the entry names all that it needs.
func TestEndpointsMoved(t *testing.T) {
	refresh := func(b *bundle) {
		b.clock.advance(2 * time.Hour)
		if _, err := b.Credential(b.t.Context(), b.key, &b.server); !errors.Is(err, ErrNotConnected) {
			b.t.Errorf("credential: %v", err)
		}
		if c := b.connection(); !strings.Contains(c.Reason, "token endpoint has changed") {
			b.t.Errorf("connection is %q, because of %q", c.Status, c.Reason)
		}
	}
	tokens := func(at string) func(e *storage.DirectoryEntry) {
		return func(e *storage.DirectoryEntry) { e.OAuth.TokenEndpoint = at + "/token" }
	}
	revocations := func(at string) func(e *storage.DirectoryEntry) {
		return func(e *storage.DirectoryEntry) { e.OAuth.RevocationEndpoint = at + "/revoke" }
	}
	again := func(b *bundle) { // by other endpoints, each but the token endpoint
		b.clock.advance(2 * time.Hour)
		b.use(b.Broker)
		deleteServer(b)
	}
	for name, c := range map[string]struct {
		change    func(at string) func(e *storage.DirectoryEntry)
		end       func(b *bundle)
		discovers bool
		cleared   bool // the administrator takes the endpoint out of the entry again
		older     bool // a version stored the connection that did not keep the revocation endpoint
		lost      bool // its tokens stay good
	}{
		"refreshed":                        {change: tokens, end: refresh},
		"refreshed, discovered before":     {change: tokens, end: refresh, discovers: true},
		"refreshed, cleared":               {change: tokens, end: refresh, discovers: true, cleared: true},
		"disconnected":                     {change: revocations, end: disconnect},
		"disconnected, discovered before":  {change: revocations, end: disconnect, discovers: true},
		"deleted with the server":          {change: revocations, end: deleteServer},
		"deleted, cleared":                 {change: revocations, end: deleteServer, discovers: true, cleared: true},
		"deleted after a refresh":          {change: revocations, end: again},
		"deleted, only the tokens' moved":  {change: tokens, end: deleteServer},
		"disconnected, the tokens' moved":  {change: tokens, end: disconnect},
		"refreshed, both endpoints moved":  {change: both(tokens, revocations), end: refresh},
		"deleted, both of them have moved": {change: both(tokens, revocations), end: deleteServer},
		"disconnected, stored before":      {change: revocations, end: disconnect, older: true, lost: true},
		"refreshed, stored before":         {change: both(tokens, revocations), end: refresh, older: true, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.configured(storage.EntryOptions{})
			b.change(func(e *storage.DirectoryEntry) {
				if e.OAuth.Issuer = b.provider.URL; !c.discovers {
					e.OAuth = storage.OAuthEndpoints{
						AuthorizationEndpoint: b.provider.URL + "/authorize", TokenEndpoint: b.provider.URL + "/token", RevocationEndpoint: b.provider.URL + "/revoke",
					}
				}
			})
			before := b.server.Entry.OAuth
			b.connect()
			if c.older {
				b.editGrant(func(g *grant) { g.Issued = issued{Kind: g.Issued.Kind, Origins: g.Issued.Origins} })
			}
			other, asked := otherProvider(t)
			b.change(c.change(other))
			// The administrator's own connect makes the gateway learn the new endpoints.
			b.clock.advance(sightingLifetime)
			if _, err := b.Connect(t.Context(), Who{OrganizationID: b.who.OrganizationID, UserID: b.user("mallory")}, b.server, ConnectRequest{}); err != nil {
				t.Fatal(err)
			}
			if at := b.client().Endpoints; !strings.HasPrefix(at.TokenEndpoint, other) && !strings.HasPrefix(at.RevocationEndpoint, other) {
				t.Fatalf("the gateway has not learned the endpoints: %+v", at)
			}
			if c.cleared {
				b.change(func(e *storage.DirectoryEntry) { e.OAuth = before })
			}
			c.end(b)
			b.settle(func() bool { return len(b.waiting()) == 0 })
			b.Close()
			if asked.Load() != 0 {
				t.Errorf("the other address was asked %d times\n%s", asked.Load(), b.log)
			}
			if got := b.countOf(NotRevoked); got != 0 != c.lost {
				t.Errorf("%d connections were not revoked\n%s", got, b.log)
			}
			if log := b.log.String(); c.lost && !strings.Contains(log, "the revocation endpoint has changed") {
				t.Errorf("the reason is not logged: %s", log)
			}
			if got := get(b.provider, func(p *provider) int { return len(p.revoked) }); c.lost == (got != 0) {
				t.Errorf("the provider was told of %d tokens", got)
			}
		})
	}
}

// TestTokenLastsWhenEndpointMoved checks that a good access token goes on when the token endpoint has moved. The
// administrator may have made a mistake, and may mend it before the token runs out.
func TestTokenLastsWhenEndpointMoved(t *testing.T) {
	b := setup(t)
	b.configured(storage.EntryOptions{})
	b.change(func(e *storage.DirectoryEntry) { e.OAuth.Issuer = b.provider.URL })
	b.connect()
	other, _ := otherProvider(t)
	b.change(func(e *storage.DirectoryEntry) { e.OAuth.TokenEndpoint = other + "/token" })
	b.clock.advance(sightingLifetime)
	if _, err := b.Connect(t.Context(), Who{OrganizationID: b.who.OrganizationID, UserID: b.user("mallory")}, b.server, ConnectRequest{}); err != nil {
		t.Fatal(err)
	}
	expires := b.connection().ExpiresAt
	b.clock.advance(expires.Sub(b.clock.now()) - time.Second)
	b.use(b.Broker)
	if got := b.status(); got != storage.ConnectionConnected {
		t.Errorf("the connection is %s", got)
	}
}

// TestCodeInFlight changes the token endpoint while a user is at the provider. The code is not sent there.
func TestCodeInFlight(t *testing.T) {
	b := setup(t)
	b.configured(storage.EntryOptions{})
	b.change(func(e *storage.DirectoryEntry) { e.OAuth.Issuer = b.provider.URL })
	r := b.begin()
	other, asked := otherProvider(t)
	b.change(func(e *storage.DirectoryEntry) { e.OAuth.TokenEndpoint = other + "/token" })
	b.clock.advance(sightingLifetime)
	if _, err := b.Connect(t.Context(), Who{OrganizationID: b.who.OrganizationID, UserID: b.user("mallory")}, b.server, ConnectRequest{}); err != nil {
		t.Fatal(err)
	}
	got, err := b.Callback(t.Context(), b.provider.approve(*r.AuthURL), ownBrowser)
	if err != nil || got.OK || asked.Load() != 0 || !strings.Contains(got.Reason, "connect again") {
		t.Errorf("%+v, %v; the other address was asked %d times", got, err, asked.Load())
	}
}

// TestMayGoTo checks which endpoints tokens may be sent to.
func TestMayGoTo(t *testing.T) {
	i := issued{Kind: storage.ClientRegistered, Origins: "https://id.example.test https://revoke.example.test"}
	custom := &storage.DirectoryEntry{Source: storage.SourceCustom}
	for at, may := range map[string]bool{
		"https://id.example.test/v2/token":        true,
		"https://id.example.test:443/token":       true,
		"https://revoke.example.test/revoke":      true,
		"":                                        true, // nothing is sent
		"https://tokens.example.test/token":       false,
		"https://id.example.test.evil.test/token": false,
		"https://id.example.test@evil.test/token": false,
		"http://id.example.test/token":            false,
		"://":                                     false,
	} {
		if got := i.mayGoTo(at, custom); got != may {
			t.Errorf("%q: %v", at, got)
		}
	}
	const elsewhere = "https://tokens.example.test/token"
	if older := (issued{}); !older.mayGoTo(elsewhere, custom) {
		t.Error("a grant of an older version cannot be refreshed")
	}
	if !i.mayGoTo(elsewhere, &storage.DirectoryEntry{Source: storage.SourceCatalogue}) {
		t.Error("an operator cannot follow a provider")
	}
}

func both(first, second func(at string) func(*storage.DirectoryEntry)) func(at string) func(*storage.DirectoryEntry) {
	return func(at string) func(*storage.DirectoryEntry) {
		return func(e *storage.DirectoryEntry) { first(at)(e); second(at)(e) }
	}
}

func disconnect(b *bundle) {
	if err := b.Disconnect(b.t.Context(), b.key); err != nil {
		b.t.Error(err)
	}
}

func deleteServer(b *bundle) {
	if _, err := b.DeleteServer(b.t.Context(), b.key.OrganizationID, b.key.ServerID, b.who.UserID, b.clock.now()); err != nil {
		b.t.Error(err)
	}
}
