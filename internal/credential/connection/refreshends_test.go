package connection

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// refusingStore fails the next requests of a refresh with an error of its own.
type refusingStore struct {
	*faultyStore
	client, update error
	left           *atomic.Int64 // requests that fail
	asked          *atomic.Int64
}

func (s refusingStore) fails(err error) error {
	if err == nil {
		return nil
	}
	if s.asked.Add(1); s.left.Add(-1) < 0 {
		return nil
	}
	return err
}

func (s refusingStore) OAuthClient(ctx context.Context, organization, serverID string) (storage.OAuthClient, error) {
	if err := s.fails(s.client); err != nil {
		return storage.OAuthClient{}, err
	}
	return s.faultyStore.OAuthClient(ctx, organization, serverID)
}

func (s refusingStore) UpdateConnection(ctx context.Context, key storage.ConnectionKey, edit func(context.Context, *storage.Connection) error) (storage.Connection, error) {
	if err := s.fails(s.update); err != nil {
		return storage.Connection{}, err
	}
	return s.faultyStore.UpdateConnection(ctx, key, edit)
}

// TestRefreshStoreFails checks that a refresh is tried again if the store does not answer in time, whatever it was asked
// for. It is not tried again if the store says that it cannot.
func TestRefreshStoreFails(t *testing.T) {
	away := error(&storage.UnavailableError{Reason: "it does not answer in time"})
	broken := errors.New("the disk is broken")
	for name, tc := range map[string]struct {
		client, update error
		want           error
		asked          int64
	}{
		"the client, not in time":     {client: away, asked: 2},
		"the connection, not in time": {update: away, asked: 2},
		"the client, never":           {client: broken, want: broken, asked: 1},
		"the connection, never":       {update: broken, want: broken, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.connect()
			former := b.use(b.Broker)
			s := refusingStore{faultyStore: b.store, client: tc.client, update: tc.update, left: new(atomic.Int64), asked: new(atomic.Int64)}
			s.left.Store(1)
			b.Broker.store = s
			_, err := b.Rejected(t.Context(), b.key, b.server, former)
			if !errors.Is(err, tc.want) || errors.Is(err, ErrNotConnected) || s.asked.Load() != tc.asked {
				t.Errorf("%v, asked %d times", err, s.asked.Load())
			}
			if n := b.countOf(RefreshFailed); n != 1 {
				t.Errorf("%d failures are counted", n)
			}
			if n := b.refreshes(); (n == 1) != (tc.want == nil) || n > 1 {
				t.Errorf("%d refreshes", n)
			}
		})
	}
}

// TestRefusalNotStored checks that a refresh token is not sent again at once when the store cannot note that the
// provider refused it. The provider may take the second request for the theft of the token.
func TestRefusalNotStored(t *testing.T) {
	b := setup(t)
	b.connect()
	b.provider.set(func(p *provider) { p.tokenError = "invalid_grant" })
	full := func() error { return storage.ErrUnavailable }
	b.store.afterEdit.Store(&full)
	b.clock.advance(time.Hour)
	if _, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, ErrNotConnected) {
		t.Errorf("%v", err)
	}
	if n := b.refreshes(); n != 1 {
		t.Errorf("the token was sent %d times", n)
	}
	b.counted(map[Event]int64{RefreshFailed: 1})
}

// TestRefreshForgetsFailures checks that a provider that answered is not left alone for longer because of failures
// before that answer.
func TestRefreshForgetsFailures(t *testing.T) {
	b := setup(t)
	b.connect()
	for range 2 {
		b.clock.advance(time.Hour)
		b.provider.set(func(p *provider) { p.down = true })
		var un *UnavailableError
		if _, err := b.Credential(t.Context(), b.key, &b.server); !errors.As(err, &un) || un.RetryAfter >= 2*firstWait {
			t.Fatalf("%v: it is left alone for %v", err, un.RetryAfter)
		}
		b.provider.set(func(p *provider) { p.down = false })
		b.clock.advance(2 * firstWait)
		b.use(b.Broker)
	}
}

// TestRefreshWithoutClient checks that a connection ends when its client is gone from the store: nobody can be asked
// for the next token.
func TestRefreshWithoutClient(t *testing.T) {
	b := setup(t)
	b.connect()
	former := b.use(b.Broker)
	b.Broker.store = clientless{b.store}
	if c, err := b.Rejected(t.Context(), b.key, b.server, former); !errors.Is(err, ErrNotConnected) || c.Version() != 0 {
		t.Errorf("%v", err)
	}
	if c := b.connection(); c.Status != storage.ConnectionError || c.SealedCredential != nil || b.refreshes() != 0 {
		t.Errorf("stored %+v after %d refreshes", c, b.refreshes())
	}
}

// TestRejectedByAnother checks that no token is refreshed for a server, or through a client, for which it was not
// issued. A 401 comes from wherever the server is now.
func TestRejectedByAnother(t *testing.T) {
	for name, tc := range map[string]struct {
		happens func(b *bundle)
		reason  string
	}{
		"another origin": {func(b *bundle) {
			b.change(func(e *storage.DirectoryEntry) { e.URL = "https://evil.example.test/mcp" })
		}, "address or issuer has changed"},
		"another issuer": {func(b *bundle) {
			b.change(func(e *storage.DirectoryEntry) { e.OAuth.Issuer = "https://evil.example.test" })
		}, "address or issuer has changed"},
		"another resource": {func(b *bundle) {
			b.change(func(e *storage.DirectoryEntry) { e.OAuth.Resource = "https://evil.example.test" })
		}, "address or issuer has changed"},
		"a configured client": {func(b *bundle) {
			s, err := b.store.UpdateServer(b.t.Context(), b.server.OrganizationID, b.server.ID, func(s *storage.Server) error {
				s.ClientID = "configured-id"
				return nil
			})
			if err != nil {
				b.t.Fatal(err)
			}
			b.server = s
		}, "OAuth client has changed"},
		"a forgotten client": {func(b *bundle) {
			if err := b.ForgetClient(b.t.Context(), b.server); err != nil {
				b.t.Fatal(err)
			}
		}, "OAuth client has changed"},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.connect()
			former := b.use(b.Broker)
			tc.happens(b)
			var not *NotConnectedError
			if _, err := b.Rejected(t.Context(), b.key, b.server, former); !errors.As(err, &not) || !strings.Contains(not.Reason, tc.reason) {
				t.Errorf("%v", err)
			}
			if c := b.connection(); c.SealedCredential != nil || c.Status != storage.ConnectionError || b.refreshes() != 0 {
				t.Errorf("stored %+v after %d refreshes", c, b.refreshes())
			}
		})
	}
}

// TestRejectedWithoutRefreshToken checks that a refused token that cannot be refreshed ends the connection.
func TestRejectedWithoutRefreshToken(t *testing.T) {
	b := setup(t)
	b.withoutRefresh()
	b.connect()
	var not *NotConnectedError
	if _, err := b.Rejected(t.Context(), b.key, b.server, b.use(b.Broker)); !errors.As(err, &not) || not.Reason != "the server refuses the credential" {
		t.Errorf("%v", err)
	}
	if n := b.refreshes(); n != 0 || b.status() != storage.ConnectionError {
		t.Errorf("%d refreshes, status %s", n, b.status())
	}
}

// TestRejectedThenRunOut checks A15: only a second refusal soon after the first ends the connection. A token that runs
// out soon after a refusal is refreshed, and so is one that is refused a while later.
func TestRejectedThenRunOut(t *testing.T) {
	begin := func(t *testing.T, expiresIn int) *bundle {
		b := setup(t)
		b.provider.set(func(p *provider) { p.expiresIn = expiresIn })
		b.connect()
		if _, err := b.Rejected(t.Context(), b.key, b.server, b.use(b.Broker)); err != nil {
			t.Fatal(err)
		}
		return b
	}
	t.Run("runs out", func(t *testing.T) {
		b := begin(t, 60)
		b.clock.advance(time.Minute)
		b.use(b.Broker)
		b.counted(map[Event]int64{Refreshed: 2})
	})
	for _, tc := range []struct {
		after time.Duration
		ends  bool
	}{{rejectedTwice - time.Microsecond, true}, {rejectedTwice, false}} {
		t.Run("refused after "+tc.after.String(), func(t *testing.T) {
			b := begin(t, 3600)
			b.clock.advance(tc.after)
			if _, err := b.Rejected(t.Context(), b.key, b.server, b.use(b.Broker)); errors.Is(err, ErrNotConnected) != tc.ends {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestUnsavedOfDeletedServer deletes a server through another node, while this node stores tokens that it could not
// store before. They are revoked.
func TestUnsavedOfDeletedServer(t *testing.T) {
	b := setup(t)
	late := b.unsave()
	other := b.node()
	gone := func() error {
		_, err := other.DeleteServer(t.Context(), b.key.OrganizationID, b.key.ServerID, b.who.UserID, b.clock.now())
		return err
	}
	b.store.afterEdit.Store(&gone)
	if _, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, ErrNotConnected) {
		t.Fatalf("%v", err)
	}
	b.settle(func() bool { return len(b.revoked()) == 4 && len(b.waiting()) == 0 })
	if n := len(b.unsaved.keys()); n != 0 || !has(b.revoked(), late) || b.refreshes() != 1 {
		t.Errorf("%d are kept, revoked %v, %d refreshes", n, b.revoked(), b.refreshes())
	}
}
