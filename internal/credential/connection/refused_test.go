package connection

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// configured gives the bundle's server a client that an administrator made.
func (b *bundle) configured(options storage.EntryOptions) {
	b.t.Helper()
	b.provider.set(func(p *provider) { p.noRegister, p.clientID, p.secret = true, "configured-id", "configured-secret" })
	sealed, err := b.keyring.Seal([]byte("configured-secret"), ClientSecretAD(b.server.OrganizationID, b.server.ID))
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.store.UpdateServer(b.t.Context(), b.server.OrganizationID, b.server.ID, func(s *storage.Server) error {
		s.ClientID, s.SealedClientSecret = "configured-id", sealed
		return nil
	}); err != nil {
		b.t.Fatal(err)
	}
	b.change(func(e *storage.DirectoryEntry) { e.Options = options })
}

// change edits the directory entry.
func (b *bundle) change(edit func(*storage.DirectoryEntry)) {
	b.t.Helper()
	if _, err := b.store.UpdateDirectoryEntry(b.t.Context(), b.who.OrganizationID, b.server.DirectoryID, func(e *storage.DirectoryEntry) error {
		edit(e)
		return nil
	}); err != nil {
		b.t.Fatal(err)
	}
	b.server = b.reload(b.server)
}

func (b *bundle) client() storage.OAuthClient {
	b.t.Helper()
	c, err := b.store.OAuthClient(b.t.Context(), b.server.OrganizationID, b.server.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// as makes another user's connection.
func (b *bundle) as(name string) storage.ConnectionKey {
	b.t.Helper()
	who, key := b.who, b.key
	b.who.UserID = b.user(name)
	b.key.UserID = b.who.UserID
	b.connect()
	other := b.key
	b.who, b.key = who, key
	return other
}

// refuseOnce answers the next refresh with invalid_client.
func refuseOnce() func(http.ResponseWriter, url.Values) bool {
	done := false
	return func(w http.ResponseWriter, form url.Values) bool {
		if form.Get("grant_type") != "refresh_token" || done {
			return false
		}
		done = true
		answer(w, http.StatusUnauthorized, map[string]any{"error": "invalid_client"})
		return true
	}
}

// TestClientRefusedForOne checks W13: an answer to one user's refresh concerns that user alone.
func TestClientRefusedForOne(t *testing.T) {
	for name, prepare := range map[string]func(*bundle){
		"registered": func(*bundle) {},
		"configured": func(b *bundle) { b.configured(storage.EntryOptions{AuthMethod: "client_secret_basic"}) },
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			prepare(b)
			b.connect()
			b.clock.advance(30 * time.Minute)
			bob := b.as("bob")
			b.clock.advance(30 * time.Minute)
			b.provider.set(func(p *provider) { p.instead = refuseOnce() })
			if _, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, ErrNotConnected) {
				t.Errorf("alice: %v", err)
			}
			if b.server = b.reload(b.server); b.server.Status != storage.ServerActive {
				t.Errorf("server is %s", b.server.Status)
			}
			if _, err := b.Credential(t.Context(), bob, &b.server); err != nil {
				t.Errorf("bob: %v", err)
			}
			b.clock.advance(time.Hour)
			if _, err := b.Credential(t.Context(), bob, &b.server); err != nil {
				t.Errorf("bob, refreshed: %v", err)
			}
			b.counted(map[Event]int64{RefreshFailed: 1, Broken: 1, Refreshed: 1})
			if !strings.Contains(b.log.String(), "refuses the OAuth client for one user only") {
				t.Error("silent")
			}
			b.connect()
			b.use(b.Broker)
		})
	}
}

// TestClientRefused checks W13: a configured client that is refused twice puts the server into error. Tokens that have
// not expired are used, and nobody refreshes. Nobody has to connect again once the client is good again.
func TestClientRefused(t *testing.T) {
	b := setup(t)
	b.configured(storage.EntryOptions{})
	b.connect()
	b.clock.advance(30 * time.Minute)
	bob := b.as("bob")
	b.provider.set(func(p *provider) { p.secret = "another" })
	b.clock.advance(30 * time.Minute)
	for range 3 {
		if _, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, errAdministrator) {
			t.Fatalf("alice: %v", err)
		}
		if b.server = b.reload(b.server); b.server.Status != storage.ServerError {
			t.Fatalf("server is %s", b.server.Status)
		}
	}
	asked := b.refreshes()
	for _, left := range []time.Duration{29 * time.Minute, 50 * time.Second} {
		c, err := b.Credential(t.Context(), bob, &b.server)
		if err != nil {
			t.Fatalf("bob, %v before: %v", left, err)
		}
		if !b.provider.accepts(b.header(c)) {
			t.Error("bob's credential is not good")
		}
		b.clock.advance(left)
	}
	b.clock.advance(time.Minute)
	if _, err := b.Credential(t.Context(), bob, &b.server); !errors.Is(err, errAdministrator) {
		t.Errorf("bob, run out: %v", err)
	}
	if n := b.refreshes(); n != asked {
		t.Errorf("%d refreshes at a server in error", n-asked)
	}
	if c := b.connection(); c.Status != storage.ConnectionConnected {
		t.Errorf("alice's connection is %s", c.Status)
	}
	b.provider.set(func(p *provider) { p.secret = "configured-secret" })
	b.as("carol") // any connect ends the error
	b.server = b.reload(b.server)
	b.use(b.Broker)
	if b.server.Status != storage.ServerActive || b.client().Refused {
		t.Errorf("server is %s, client %+v", b.server.Status, b.client())
	}
}

// TestClientRefusedThenMoved checks S08: tokens in use while our client is refused are used no longer when the upstream
// is in doubt.
func TestClientRefusedThenMoved(t *testing.T) {
	b := setup(t)
	b.configured(storage.EntryOptions{})
	b.connect()
	b.clock.advance(30 * time.Minute)
	bob := b.as("bob")
	b.provider.set(func(p *provider) { p.secret = "another" })
	b.clock.advance(30 * time.Minute)
	_, _ = b.Credential(t.Context(), b.key, &b.server)
	b.server = b.reload(b.server)
	b.provider.set(func(p *provider) { p.issuer = p.URL + "/other" })
	if _, err := b.Connect(t.Context(), b.who, b.server, ConnectRequest{}); !errors.Is(err, ErrOAuthConfiguration) {
		t.Errorf("%v", err)
	}
	b.server = b.reload(b.server)
	if _, err := b.Credential(t.Context(), bob, &b.server); !errors.Is(err, ErrNotConnected) {
		t.Errorf("bob: %v", err)
	}
}

// TestAuthMethod checks W15: the secret goes where the provider wants it, found by asking or written in the entry.
func TestAuthMethod(t *testing.T) {
	t.Run("found out", func(t *testing.T) {
		b := setup(t)
		b.configured(storage.EntryOptions{})
		b.provider.set(func(p *provider) { p.bodyOnly = true })
		b.connect()
		if got := b.client().AuthMethod; got != "client_secret_post" || b.server.Status != storage.ServerActive {
			t.Errorf("%s, server %s", got, b.server.Status)
		}
		b.clock.advance(time.Hour)
		b.use(b.Broker)
		if n := b.refreshes(); n != 1 {
			t.Errorf("%d refreshes", n)
		}
		b.connect() // a new discovery keeps the learned facts
		if n := b.exchanges(); n != 3 {
			t.Errorf("%d exchanges", n)
		}
	})
	t.Run("found out at a refresh", func(t *testing.T) {
		b := setup(t)
		b.configured(storage.EntryOptions{})
		b.connect()
		b.provider.set(func(p *provider) { p.bodyOnly = true })
		b.clock.advance(time.Hour)
		b.use(b.Broker)
		if got := b.client().AuthMethod; got != "client_secret_post" {
			t.Errorf("%s", got)
		}
	})
	t.Run("written", func(t *testing.T) {
		b := setup(t)
		b.configured(storage.EntryOptions{AuthMethod: "client_secret_post"})
		b.provider.set(func(p *provider) { p.bodyOnly = true })
		b.connect()
		if n := b.exchanges(); n != 1 {
			t.Errorf("%d exchanges", n)
		}
	})
	t.Run("written, and wrong", func(t *testing.T) {
		b := setup(t)
		b.configured(storage.EntryOptions{AuthMethod: "client_secret_basic"})
		b.provider.set(func(p *provider) { p.bodyOnly = true })
		if r, err := b.Callback(t.Context(), b.provider.approve(*b.begin().AuthURL), ownBrowser); err != nil || r.OK {
			t.Errorf("%+v, %v", r, err)
		}
		for _, form := range get(b.provider, func(p *provider) []url.Values { return p.forms }) {
			if form.Has("client_secret") {
				t.Error("the secret is in the body")
			}
		}
	})
	t.Run("none", func(t *testing.T) {
		b := setup(t)
		b.configured(storage.EntryOptions{AuthMethod: "none"})
		b.provider.set(func(p *provider) { p.bodyOnly, p.secret = true, "" })
		b.connect()
	})
}

// TestResource checks W14: the parameter is left out if the entry says so, and if a refresh is refused because of it.
func TestResource(t *testing.T) {
	t.Run("off", func(t *testing.T) {
		b := setup(t)
		b.change(func(e *storage.DirectoryEntry) { e.Options.ResourceOff = true })
		u, err := url.Parse(*b.begin().AuthURL)
		if err != nil || u.Query().Has("resource") {
			t.Errorf("%s, %v", u, err)
		}
		b.connect()
		b.clock.advance(time.Hour)
		b.use(b.Broker)
		for i, form := range get(b.provider, func(p *provider) []url.Values { return p.forms }) {
			if form.Has("resource") {
				t.Errorf("request %d has a resource", i)
			}
		}
	})
	t.Run("turned off keeps connections", func(t *testing.T) {
		b := setup(t)
		b.connect()
		b.change(func(e *storage.DirectoryEntry) { e.Options.ResourceOff = true })
		b.clock.advance(time.Hour)
		b.use(b.Broker)
	})
	for name, refusal := range map[string]map[string]any{
		"invalid_target":         {"error": "invalid_target"},
		"Entra ID, AADSTS901002": {"error": "invalid_request", "error_description": "AADSTS901002: The 'resource' request parameter is not supported."},
		"Entra ID, AADSTS9010010": {"error": "invalid_request",
			"error_description": "AADSTS9010010: The resource parameter provided in the request doesn't match with the requested scopes."},
		"without a word": {"error": "invalid_request"},
	} {
		t.Run("refused at refresh, "+name, func(t *testing.T) {
			b := setup(t)
			b.connect()
			b.provider.set(func(p *provider) {
				p.instead = func(w http.ResponseWriter, form url.Values) bool {
					if form.Get("grant_type") != "refresh_token" || !form.Has("resource") {
						return false
					}
					answer(w, http.StatusBadRequest, refusal)
					return true
				}
			})
			for range 2 {
				b.clock.advance(time.Hour)
				b.use(b.Broker)
			}
			if n := b.refreshes(); n != 3 {
				t.Errorf("%d refreshes instead of one more", n)
			}
			b.clock.advance(sightingLifetime)
			b.begin() // a new discovery keeps the learned facts
			if !b.client().RefreshResourceOff {
				t.Error("not remembered")
			}
		})
	}
}

// TestAuthorizationParams checks W16: they are sent, and never replace ours.
func TestAuthorizationParams(t *testing.T) {
	b := setup(t)
	b.change(func(e *storage.DirectoryEntry) {
		e.Options.AuthorizationParams = map[string]string{
			"access_type": "offline", "prompt": "consent", "user_scope": "a,b", "state": "mine", "redirect_uri": "https://evil.example",
		}
	})
	began := b.begin()
	u, err := url.Parse(*began.AuthURL)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	for name, want := range map[string]string{
		"access_type": "offline", "prompt": "consent", "user_scope": "a,b", "state": began.State, "redirect_uri": gatewayURL + CallbackPath,
	} {
		if got := q[name]; len(got) != 1 || got[0] != want {
			t.Errorf("%s is %q", name, got)
		}
	}
}

// TestForgottenClient checks W18: a client that the provider has forgotten, or let expire, is registered again
// automatically.
func TestForgottenClient(t *testing.T) {
	registers := func(b *bundle) int { return get(b.provider, func(p *provider) int { return p.registers }) }
	t.Run("seen at a refresh", func(t *testing.T) {
		b := setup(t)
		b.connect()
		b.clock.advance(30 * time.Minute)
		bob := b.as("bob")
		b.provider.set(func(p *provider) { p.forgetful, p.registered = true, nil })
		b.clock.advance(30 * time.Minute)
		if _, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, ErrNotConnected) || errors.Is(err, errAdministrator) {
			t.Fatal(err)
		}
		if b.server = b.reload(b.server); b.server.Status != storage.ServerActive {
			t.Errorf("server is %s", b.server.Status)
		}
		b.clock.advance(29*time.Minute + 30*time.Second)
		if _, err := b.Credential(t.Context(), bob, &b.server); err != nil {
			t.Errorf("bob, whose token has not run out: %v", err)
		}
		if !strings.Contains(b.log.String(), "has forgotten the OAuth client") {
			t.Error("silent")
		}
		b.connect()
		b.use(b.Broker)
		if n := registers(b); n != 2 {
			t.Errorf("%d registrations", n)
		}
	})
	t.Run("seen before a browser is sent there", func(t *testing.T) {
		b := setup(t)
		b.connect()
		b.provider.set(func(p *provider) { p.forgetful, p.registered = true, nil })
		b.clock.advance(proofLifetime)
		b.connect()
		if n := registers(b); n != 2 || !strings.Contains(b.log.String(), "has forgotten the OAuth client") {
			t.Errorf("%d registrations\n%s", n, b.log)
		}
	})
	words := func(status int, code string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { answer(w, status, map[string]any{"error": code}) }
	}
	said := func(message string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			answer(w, http.StatusUnprocessableEntity, map[string]any{"message": message})
		}
	}
	refused, unread, away := words(401, "invalid_client"), words(400, "invalid_request"), words(503, "")
	for _, tc := range []struct {
		name    string
		secret  bool
		answers []func(http.ResponseWriter) // to the requests without a user's code; the last one to all others
		want    int
	}{
		{"refused once", false, []func(http.ResponseWriter){refused, words(400, "invalid_grant")}, 1},
		{"refused once, then away", false, []func(http.ResponseWriter){refused, away}, 1},
		{"refused twice", false, []func(http.ResponseWriter){refused}, 2},
		{"refused twice in Supabase's words", false, []func(http.ResponseWriter){said("Unrecognized client_id")}, 2},
		{"refused for something else in its words", false, []func(http.ResponseWriter){said("Required parameter: code")}, 1},
		{"known with its secret in the other place", true, []func(http.ResponseWriter){refused, words(400, "invalid_grant")}, 1},
		{"refused, and not looked at in the other place", true, []func(http.ResponseWriter){refused, unread, refused, unread}, 2},
		{"refused once, and not looked at in the other place", true, []func(http.ResponseWriter){refused, unread, words(400, "invalid_grant")}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := setup(t)
			if tc.secret {
				b.provider.set(func(p *provider) { p.expires = b.clock.now().Add(24 * time.Hour).Unix() })
			}
			b.connect()
			b.clock.advance(proofLifetime)
			asked := 0
			b.provider.set(func(p *provider) {
				p.instead = func(w http.ResponseWriter, form url.Values) bool {
					if form.Get("grant_type") == "refresh_token" || p.codes[form.Get("code")] != nil {
						return false
					}
					tc.answers[min(asked, len(tc.answers)-1)](w)
					asked++
					return true
				}
			})
			b.begin()
			if n := registers(b); n != tc.want {
				t.Errorf("%d registrations after %d requests, want %d", n, asked, tc.want)
			}
			if tc.want == 1 {
				b.use(b.Broker) // refreshed with the client that it was made with
			}
		})
	}
	t.Run("known still", func(t *testing.T) {
		b := setup(t)
		b.connect()
		b.clock.advance(proofLifetime)
		b.Broker = b.node()
		b.connect()
		if n := registers(b); n != 1 {
			t.Errorf("%d registrations", n)
		}
	})
	t.Run("its secret expires", func(t *testing.T) {
		b := setup(t)
		b.provider.set(func(p *provider) { p.expires = b.clock.now().Add(24 * time.Hour).Unix() })
		b.connect()
		b.clock.advance(24*time.Hour - attemptLifetime)
		b.connect()
		if n := registers(b); n != 2 {
			t.Errorf("%d registrations", n)
		}
	})
	t.Run("registered for another address of the gateway", func(t *testing.T) {
		b := setup(t)
		b.connect()
		c, err := b.store.OAuthClient(t.Context(), b.who.OrganizationID, b.server.ID)
		if err != nil {
			t.Fatal(err)
		}
		c.RedirectURI = "https://former.example.test" + CallbackPath
		if err := b.store.PutOAuthClient(t.Context(), c, c.ClientID); err != nil {
			t.Fatal(err)
		}
		b.connect()
		if n := registers(b); n != 2 {
			t.Errorf("%d registrations", n)
		}
	})
	t.Run("by hand", func(t *testing.T) {
		b := setup(t)
		b.connect()
		b.failServer(t.Context(), b.server, errIssuerChanged)
		b.server = b.reload(b.server)
		if err := b.ForgetClient(t.Context(), b.server); err != nil {
			t.Fatal(err)
		}
		if b.server = b.reload(b.server); b.server.Status != storage.ServerActive {
			t.Errorf("server is %s", b.server.Status)
		}
		if err := b.ForgetClient(t.Context(), b.server); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("twice: %v", err)
		}
		b.connect()
		if n := registers(b); n != 2 {
			t.Errorf("%d registrations", n)
		}
	})
}

// TestStillKnown checks when a provider is asked whether it knows our client before a user is sent there. A client of an
// administrator is not asked about: nothing could replace it. An answer is believed for a while, a silence is not.
func TestStillKnown(t *testing.T) {
	for name, tc := range map[string]struct {
		kind   storage.OAuthClientKind
		status int
		code   string
		known  bool
		asked  [2]int // requests of the first check, and of the second one right after it
	}{
		"registered, known":     {kind: storage.ClientRegistered, status: http.StatusBadRequest, code: "invalid_grant", known: true, asked: [2]int{1, 0}},
		"registered, silence":   {kind: storage.ClientRegistered, status: http.StatusServiceUnavailable, known: true, asked: [2]int{1, 1}},
		"registered, forgotten": {kind: storage.ClientRegistered, status: http.StatusUnauthorized, code: "invalid_client", asked: [2]int{4, 4}},
		"configured":            {kind: storage.ClientConfigured, status: http.StatusUnauthorized, code: "invalid_client", known: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.provider.set(func(p *provider) { p.expires = b.clock.now().Add(24 * time.Hour).Unix() }) // with a secret
			b.connect()
			c := b.client()
			c.Kind = tc.kind
			b.doubt(b.server)
			asked := 0
			b.provider.set(func(p *provider) {
				p.instead = func(w http.ResponseWriter, _ url.Values) bool {
					asked++
					answer(w, tc.status, map[string]any{"error": tc.code})
					return true
				}
			})
			for i, want := range tc.asked {
				asked = 0
				if got := b.stillKnown(t.Context(), b.server, c); got != tc.known || asked != want {
					t.Errorf("check %d: known %v after %d requests, want %v after %d", i+1, got, asked, tc.known, want)
				}
			}
		})
	}
}
