package connection

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/storage"
)

// takingStore counts the attempts that are taken from it. It fails with err instead, if there is one.
type takingStore struct {
	*faultyStore
	taken  *int
	err    error
	server error // of reading the server
}

func (s takingStore) TakeAttempt(ctx context.Context, hash []byte, now time.Time) (storage.Attempt, error) {
	if *s.taken++; s.err != nil {
		return storage.Attempt{}, s.err
	}
	return s.faultyStore.TakeAttempt(ctx, hash, now)
}

func (s takingStore) Server(ctx context.Context, organization, id string) (storage.Server, error) {
	if s.server != nil {
		return storage.Server{}, s.server
	}
	return s.faultyStore.Server(ctx, organization, id)
}

// TestStateOfNobody checks A01: no attempt is looked for with a state, or a handle, that cannot be ours.
func TestStateOfNobody(t *testing.T) {
	for name, tc := range map[string]struct {
		states []string
		asked  int
	}{
		"none":         {nil, 0},
		"empty":        {[]string{""}, 0},
		"two":          {[]string{"a", "a"}, 0},
		"too long":     {[]string{strings.Repeat("a", maxState+1)}, 0},
		"just as long": {[]string{strings.Repeat("a", maxState)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			taken := 0
			b.Broker.store = takingStore{faultyStore: b.store, taken: &taken}
			if _, err := b.Callback(t.Context(), url.Values{"state": tc.states, "code": {"x"}}, ownBrowser); !errors.Is(err, ErrState) || taken != tc.asked {
				t.Errorf("%v, asked %d times", err, taken)
			}
			if taken = 0; len(tc.states) != 1 {
				return
			}
			if _, err := b.Resume(t.Context(), tc.states[0], ownBrowser); !errors.Is(err, ErrState) || taken != tc.asked {
				t.Errorf("handle: %v, asked %d times", err, taken)
			}
		})
	}
}

// TestCallbackCannotBegin checks that nothing is answered, and no provider asked, when the attempt cannot be read. Only
// an attempt that is gone counts as one that nobody made.
func TestCallbackCannotBegin(t *testing.T) {
	away := &storage.UnavailableError{Reason: "it does not answer in time"}
	for name, tc := range map[string]struct {
		happens func(b *bundle)
		want    error
	}{
		"the attempt cannot be taken": {func(b *bundle) {
			b.Broker.store = takingStore{faultyStore: b.store, taken: new(int), err: away}
		}, storage.ErrUnavailable},
		"the server cannot be read": {func(b *bundle) {
			b.Broker.store = takingStore{faultyStore: b.store, taken: new(int), server: away}
		}, storage.ErrUnavailable},
		"the server is gone": {func(b *bundle) {
			b.Broker.store = takingStore{faultyStore: b.store, taken: new(int), server: storage.ErrNotFound}
		}, ErrState},
		"closed": {func(b *bundle) { b.Close() }, ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			q := b.provider.approve(*b.begin().AuthURL)
			tc.happens(b)
			r, err := b.Callback(t.Context(), q, ownBrowser)
			if diff := cmp.Diff(CallbackResult{}, r); diff != "" || !errors.Is(err, tc.want) || errors.Is(err, ErrState) != (tc.want == ErrState) {
				t.Errorf("%v, %s", err, diff)
			}
			b.nothingStored()
		})
	}
}

// TestCallbackAfterChange checks that a code is redeemed only for the server, and by the client, with which the user
// began. No request is sent otherwise.
func TestCallbackAfterChange(t *testing.T) {
	client := func(edit func(c *storage.OAuthClient)) func(b *bundle) {
		return func(b *bundle) {
			c := b.client()
			former := c.ClientID
			edit(&c)
			if err := b.store.PutOAuthClient(b.t.Context(), c, former); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	entry := func(edit func(e *storage.DirectoryEntry)) func(b *bundle) {
		return func(b *bundle) { b.change(edit) }
	}
	for name, happens := range map[string]func(b *bundle){
		"no authentication":          entry(func(e *storage.DirectoryEntry) { e.RequiresAuth = false }),
		"another authentication":     entry(func(e *storage.DirectoryEntry) { e.Provider = storage.ProviderAPIKey }),
		"another address":            entry(func(e *storage.DirectoryEntry) { e.URL = "https://evil.example.test/mcp" }),
		"an address that is none":    entry(func(e *storage.DirectoryEntry) { e.URL = "evil" }),
		"another resource":           entry(func(e *storage.DirectoryEntry) { e.OAuth.Resource = "https://evil.example.test" }),
		"another issuer":             entry(func(e *storage.DirectoryEntry) { e.OAuth.Issuer = "https://evil.example.test" }),
		"another client":             client(func(c *storage.OAuthClient) { c.ClientID = "another" }),
		"another token endpoint":     client(func(c *storage.OAuthClient) { c.Endpoints.TokenEndpoint += "/elsewhere" }),
		"another kind of client":     client(func(c *storage.OAuthClient) { c.Kind = storage.ClientConfigured }),
		"another address of ours":    func(b *bundle) { b.app.RedirectURI = "https://other.example.test" + CallbackPath },
		"no client":                  func(b *bundle) { b.Broker.store = clientless{b.store} },
		"a client that is not known": func(b *bundle) { b.store.away.Store(1) },
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			q := b.provider.approve(*b.begin().AuthURL)
			happens(b)
			r, err := b.Callback(t.Context(), q, ownBrowser)
			if err != nil || r.OK || r.Undo != "" || !strings.Contains(r.Reason, "configuration has changed") {
				t.Errorf("%+v, %v", r, err)
			}
			if n := b.exchanges(); n != 0 {
				t.Errorf("%d token requests", n)
			}
			if c := b.connection(); c.Status != storage.ConnectionError || c.SealedCredential != nil || c.Reason != r.Reason {
				t.Errorf("stored %+v", c)
			}
		})
	}
}

// TestCallbackOfOlderVersion redeems the code of an attempt that does not say at which endpoint.
func TestCallbackOfOlderVersion(t *testing.T) {
	b := setup(t)
	q := b.provider.approve(*b.begin().AuthURL)
	a, err := b.store.TakeAttempt(t.Context(), stateHash(q.Get("state")), b.clock.now())
	if err != nil {
		t.Fatal(err)
	}
	made, err := b.openAttempt(a)
	if err != nil {
		t.Fatal(err)
	}
	made.TokenEndpoint = ""
	plain, err := made.encode()
	if err != nil {
		t.Fatal(err)
	}
	if a.Sealed, err = b.keyring.Seal(plain, attemptAD(a.ConnectionKey, a.StateHash)); err != nil {
		t.Fatal(err)
	}
	if err := b.store.CreateAttempt(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if r, err := b.Callback(t.Context(), q, ownBrowser); err != nil || !r.OK {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestCallbackOfAnother checks that an attempt is opened only for the user and the state that it was made for.
func TestCallbackOfAnother(t *testing.T) {
	for name, change := range map[string]func(b *bundle, a *storage.Attempt){
		"another user": func(b *bundle, a *storage.Attempt) { a.UserID = b.user("mallory") },
		"no attempt at all": func(b *bundle, a *storage.Attempt) {
			sealed, err := b.keyring.Seal([]byte("x"), attemptAD(a.ConnectionKey, a.StateHash))
			if err != nil {
				b.t.Fatal(err)
			}
			a.Sealed = sealed
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			q := b.provider.approve(*b.begin().AuthURL)
			a, err := b.store.TakeAttempt(t.Context(), stateHash(q.Get("state")), b.clock.now())
			if err != nil {
				t.Fatal(err)
			}
			change(b, &a)
			if err := b.store.CreateAttempt(t.Context(), a); err != nil {
				t.Fatal(err)
			}
			r, err := b.Callback(t.Context(), q, ownBrowser)
			if err != nil || r.OK || r.ReturnURL != "" || r.Reason != "The connection could not be made." || b.exchanges() != 0 {
				t.Errorf("%+v, %v, %d token requests", r, err, b.exchanges())
			}
		})
	}
}

// TestCallbackReasons checks what the user is told of an answer that gives no tokens. Tokens that came with it are
// revoked: nobody will ever use them.
func TestCallbackReasons(t *testing.T) {
	const refused = "The provider refused to connect. Please try again."
	for name, tc := range map[string]struct {
		status      int
		body        string
		resourceOff bool
		reason      string
		revoked     int
	}{
		"busy":                                   {status: 503, reason: "The provider could not be reached. Please try again."},
		"refused":                                {status: 400, body: `{"error":"invalid_grant"}`, reason: refused},
		"the resource refused":                   {status: 400, body: `{"error":"invalid_target"}`, reason: resourceRefused},
		"the resource refused that was not sent": {status: 400, body: `{"error":"invalid_target"}`, resourceOff: true, reason: refused},
		"not understood":                         {status: 200, body: `{"access_token":"a","token_type":"DPoP"}`, reason: "The provider's answer could not be understood."},
		"not understood, with a refresh token": {
			status: 200, body: `{"access_token":"a","token_type":"DPoP","refresh_token":"r"}`, reason: "The provider's answer could not be understood.", revoked: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.change(func(e *storage.DirectoryEntry) { e.Options.ResourceOff = tc.resourceOff })
			q := b.provider.approve(*b.begin().AuthURL)
			b.provider.set(func(p *provider) {
				p.instead = func(w http.ResponseWriter, form url.Values) bool {
					w.WriteHeader(tc.status)
					_, _ = io.WriteString(w, tc.body)
					return true
				}
			})
			r, err := b.Callback(t.Context(), q, ownBrowser)
			if err != nil || r.OK || r.Reason != tc.reason {
				t.Errorf("%+v, %v", r, err)
			}
			if c := b.connection(); c.Reason != tc.reason {
				t.Errorf("stored %+v", c)
			}
			if !strings.Contains(b.log.String(), "connection attempt failed") {
				t.Error("silent")
			}
			b.Close()
			if got := b.revoked(); len(got) != tc.revoked || len(b.waiting()) != 0 {
				t.Errorf("revoked %v, %d wait", got, len(b.waiting()))
			}
		})
	}
}

// TestCallbackSecretAway checks that no request is sent without the secret of our client.
func TestCallbackSecretAway(t *testing.T) {
	b := setup(t)
	b.configured(storage.EntryOptions{})
	q := b.provider.approve(*b.begin().AuthURL)
	if _, err := b.store.UpdateServer(t.Context(), b.server.OrganizationID, b.server.ID, func(s *storage.Server) error {
		s.SealedClientSecret = []byte("what no key opens")
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if r, err := b.Callback(t.Context(), q, ownBrowser); err != nil || r.OK || b.exchanges() != 0 {
		t.Errorf("%+v, %v, %d token requests", r, err, b.exchanges())
	}
}

// TestCallbackDenied checks what the user is told of a provider that sends no code. An answer of a foreign provider is
// not read at all.
func TestCallbackDenied(t *testing.T) {
	for name, tc := range map[string]struct {
		code, description, iss string
		reason                 string
	}{
		"by the user":             {code: "access_denied", reason: "Access was denied at the provider."},
		"because of the resource": {code: "invalid_target", reason: resourceRefused},
		"for another reason":      {code: "server_error", reason: "The provider refused to connect."},
		"by somebody else":        {code: "access_denied", iss: "https://evil.example.test", reason: "The answer did not come from the expected provider."},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			q := url.Values{"state": {b.begin().State}, "error": {tc.code}, "iss": {b.provider.URL}}
			if tc.iss != "" {
				q.Set("iss", tc.iss)
			}
			if r, err := b.Callback(t.Context(), q, ownBrowser); err != nil || r.OK || r.Reason != tc.reason {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

// TestFailureIsNoted checks that the last failure of an attempt is shown at a connection that does not work. It is not
// shown at one that works, nor when the attempt's browser may be anybody's.
func TestFailureIsNoted(t *testing.T) {
	fails := func(b *bundle, w Whose) {
		q := b.provider.approve(*b.begin().AuthURL)
		q.Del("code")
		q.Set("error", "access_denied")
		if r, err := b.Callback(b.t.Context(), q, whose(w)); err != nil || r.OK {
			b.t.Errorf("%+v, %v", r, err)
		}
	}
	const denied = "Access was denied at the provider."
	t.Run("twice", func(t *testing.T) {
		b := setup(t)
		for range 2 {
			fails(b, Own)
			if c := b.connection(); c.Reason != denied || c.Status != storage.ConnectionError || !c.UpdatedAt.Equal(b.clock.now()) {
				t.Errorf("stored %+v", c)
			}
			b.edit(func(c *storage.Connection) { c.Reason = "former" })
			b.clock.advance(time.Minute)
		}
	})
	t.Run("somebody's browser", func(t *testing.T) {
		b := setup(t)
		fails(b, Own)
		b.edit(func(c *storage.Connection) { c.Reason = "former" })
		fails(b, Unproven)
		if c := b.connection(); c.Reason != "former" {
			t.Errorf("stored %+v", c)
		}
	})
	t.Run("connected", func(t *testing.T) {
		b := setup(t)
		b.connect()
		before := b.connection()
		fails(b, Own)
		if diff := cmp.Diff(before, b.connection()); diff != "" {
			t.Errorf("stored (-want +got)\n%s", diff)
		}
		if strings.Contains(b.log.String(), "noting failed attempt") {
			t.Error("that there is nothing to note is logged")
		}
	})
	t.Run("the store is away", func(t *testing.T) {
		b := setup(t)
		b.connect()
		b.breakConnection()
		full := func() error { return storage.ErrUnavailable }
		b.store.afterEdit.Store(&full)
		fails(b, Own)
		if !strings.Contains(b.log.String(), "noting failed attempt") {
			t.Error("silent")
		}
	})
	t.Run("disconnected meanwhile", func(t *testing.T) {
		b := setup(t)
		b.connect()
		b.breakConnection()
		gone := func() {
			if err := b.Disconnect(b.t.Context(), b.key); err != nil {
				b.t.Error(err)
			}
		}
		b.store.beforeUpdate.Store(&gone)
		fails(b, Own)
		if strings.Contains(b.log.String(), "noting failed attempt") {
			t.Error("that there is nothing to note is logged")
		}
	})
}

// TestExpiry checks that a token is used no longer than a year, whatever its provider says.
func TestExpiry(t *testing.T) {
	b := setup(t)
	now := b.clock.now()
	for in, want := range map[time.Time]time.Time{
		{}:                            {},
		now.Add(time.Hour):            now.Add(time.Hour),
		now.Add(time.Hour + 1):        now.Add(time.Hour),
		now.Add(maxTokenLifetime):     now.Add(maxTokenLifetime),
		now.Add(maxTokenLifetime * 2): now.Add(maxTokenLifetime),
		now.Add(-time.Hour):           now.Add(-time.Hour),
	} {
		if got := b.expiry(oauth.Tokens{ExpiresAt: in}); !got.Equal(want) || got.IsZero() != want.IsZero() {
			t.Errorf("%v: %v, want %v", in, got, want)
		}
	}
}

// TestConnectEndsError checks that a connection that works ends the error of its server. If that cannot be noted, the
// connection works nevertheless.
func TestConnectEndsError(t *testing.T) {
	b := setup(t)
	q := b.provider.approve(*b.begin().AuthURL)
	b.failServer(t.Context(), b.server, errors.New("x"))
	b.Broker.store = unwritable{b.store}
	if r, err := b.Callback(t.Context(), q, ownBrowser); err != nil || !r.OK {
		t.Errorf("%+v, %v", r, err)
	}
	if !strings.Contains(b.log.String(), "noting server status") || b.reload(b.server).Status != storage.ServerError {
		t.Errorf("silent: %s", b.log)
	}
	b.Broker.store = b.store
	if r, err := b.Callback(t.Context(), b.provider.approve(*b.begin().AuthURL), ownBrowser); err != nil || !r.OK {
		t.Errorf("%+v, %v", r, err)
	}
	if got := b.reload(b.server).Status; got != storage.ServerActive {
		t.Errorf("the server is %s", got)
	}
}

// unwritable is a store that changes no server.
type unwritable struct{ *faultyStore }

func (unwritable) UpdateServer(context.Context, string, string, func(*storage.Server) error) (storage.Server, error) {
	return storage.Server{}, &storage.UnavailableError{Reason: "it does not answer in time"}
}

// TestRefusedClientIsDoubted checks that a refusal of our client makes the next connect look at the provider again,
// even if the provider seems to know the client.
func TestRefusedClientIsDoubted(t *testing.T) {
	b := setup(t)
	b.connect()
	b.provider.set(func(p *provider) {
		p.instead = func(w http.ResponseWriter, form url.Values) bool {
			code := "invalid_grant"
			if p.codes[form.Get("code")] != nil {
				code = "invalid_client"
			}
			answer(w, http.StatusBadRequest, map[string]any{"error": code})
			return true
		}
	})
	found := func() int { return get(b.provider, func(p *provider) int { return p.discoveries }) }
	before := found()
	if r, err := b.Callback(t.Context(), b.provider.approve(*b.begin().AuthURL), ownBrowser); err != nil || r.OK {
		t.Errorf("%+v, %v", r, err)
	}
	if n := found(); n != before {
		t.Errorf("%d discoveries before the refusal", n-before)
	}
	b.begin()
	if found() == before {
		t.Error("the provider is not looked at again")
	}
}
