package connection

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// lateStore lets a test act right after the write that ends a connection.
type lateStore struct {
	*faultyStore
	then func()
}

func (s lateStore) DeleteConnection(ctx context.Context, key storage.ConnectionKey) (storage.Connection, error) {
	c, err := s.faultyStore.DeleteConnection(ctx, key)
	s.then()
	return c, err
}

func (s lateStore) DeleteServer(ctx context.Context, organization, id, by string, now time.Time) (storage.DeletedServer, error) {
	d, err := s.faultyStore.DeleteServer(ctx, organization, id, by, now)
	s.then()
	return d, err
}

func (s lateStore) UpdateConnection(ctx context.Context, key storage.ConnectionKey, edit func(context.Context, *storage.Connection) error) (storage.Connection, error) {
	c, err := s.faultyStore.UpdateConnection(ctx, key, edit)
	s.then()
	return c, err
}

// TestUnsavedWhileEnding ends a connection while its refresh has tokens that the store did not take. The end gets the
// connection's lock before the tokens are noted as not stored. They are still revoked, at once.
func TestUnsavedWhileEnding(t *testing.T) {
	for name, end := range map[string]func(b *bundle) error{
		"disconnected": func(b *bundle) error { return b.Disconnect(b.t.Context(), b.key) },
		"the server is deleted": func(b *bundle) error {
			_, err := b.DeleteServer(b.t.Context(), b.key.OrganizationID, b.key.ServerID, b.who.UserID, b.clock.now())
			return err
		},
		"undone": func(b *bundle) error {
			g, err := b.openGrant(b.connection())
			if err != nil {
				return err
			}
			token, err := b.undoToken(b.key, g.ID)
			if err != nil {
				return err
			}
			_, err = b.Undo(b.t.Context(), token)
			return err
		},
		"broken": func(b *bundle) error {
			return b.mark(b.t.Context(), b.key, b.connection().Version, "x", false)
		},
		"broken by its refresh": func(b *bundle) error {
			b.change(func(e *storage.DirectoryEntry) { e.OAuth.Issuer = "https://other.example.test" })
			_, err := b.Rejected(b.t.Context(), b.key, b.server, Credential{kind: storage.ProviderOAuth2, version: b.connection().Version})
			if errors.Is(err, ErrNotConnected) {
				return nil
			}
			return errors.Join(err, errors.New("it goes on"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.connect()
			client, err := b.store.OAuthClient(t.Context(), b.key.OrganizationID, b.key.ServerID)
			if err != nil {
				t.Fatal(err)
			}
			b.Broker.store = lateStore{b.store, func() {
				b.unsaved.put(b.key, unsavedTokens{
					tokens: oauth.Tokens{Access: seal.NewSecret("late access"), Refresh: seal.NewSecret("late refresh")}, server: b.server, client: client,
				})
			}}
			if err := end(b); err != nil {
				t.Fatal(err)
			}
			if n := len(b.unsaved.keys()); n != 0 {
				t.Errorf("%d are kept", n)
			}
			b.Close()
			got := b.revoked()
			if len(got) != 4 || !slices.Contains(got, "late access") || !slices.Contains(got, "late refresh") || len(b.waiting()) != 0 {
				t.Errorf("revoked %v, %d wait", got, len(b.waiting()))
			}
		})
	}
}

// TestDeleteServerFails checks that nothing is revoked when the store keeps the server.
func TestDeleteServerFails(t *testing.T) {
	b := setup(t)
	b.connect()
	if _, err := b.DeleteServer(t.Context(), b.key.OrganizationID, "another", b.who.UserID, b.clock.now()); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("%v", err)
	}
	b.use(b.Broker)
	b.Close()
	if got := b.revoked(); len(got) != 0 || len(b.waiting()) != 0 {
		t.Errorf("revoked %v", got)
	}
}

// TestUndoLasts checks that undo is possible for its time, and not a moment longer. A connection that cannot be undone
// stays.
func TestUndoLasts(t *testing.T) {
	b := setup(t)
	first := b.connect()
	b.clock.advance(undoLifetime)
	if _, err := b.Undo(t.Context(), first.Undo); !errors.Is(err, ErrUndo) {
		t.Errorf("late: %v", err)
	}
	b.use(b.Broker)
	second := b.connect()
	b.clock.advance(undoLifetime - time.Nanosecond)
	if key, err := b.Undo(t.Context(), second.Undo); err != nil || key != b.key {
		t.Errorf("%v, %v", key, err)
	}
}

// TestUndoStoreAway checks that a store without an answer does not make a token count as expired.
func TestUndoStoreAway(t *testing.T) {
	b := setup(t)
	r := b.connect()
	b.Broker.store = unreadable{b.store}
	if _, err := b.Undo(t.Context(), r.Undo); !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, ErrUndo) {
		t.Errorf("read: %v", err)
	}
	b.Broker.store = undeletable{b.store}
	if _, err := b.Undo(t.Context(), r.Undo); !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, ErrUndo) {
		t.Errorf("deleted: %v", err)
	}
	b.Broker.store = b.store
	b.use(b.Broker)
	if _, err := b.Undo(t.Context(), r.Undo); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// undeletable is a store that deletes no connection.
type undeletable struct{ *faultyStore }

func (undeletable) DeleteConnection(context.Context, storage.ConnectionKey) (storage.Connection, error) {
	return storage.Connection{}, &storage.UnavailableError{Reason: "it does not answer in time"}
}

// TestEndForgetsRetries checks that a provider that did not answer is left alone only for one connection. The next
// connection, which another node may make, does not wait.
func TestEndForgetsRetries(t *testing.T) {
	for name, end := range map[string]func(b *bundle, r CallbackResult) error{
		"disconnected": func(b *bundle, _ CallbackResult) error { return b.Disconnect(b.t.Context(), b.key) },
		"undone":       func(b *bundle, r CallbackResult) error { _, err := b.Undo(b.t.Context(), r.Undo); return err },
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			r := b.connect()
			b.provider.set(func(p *provider) { p.down = true })
			var un *UnavailableError
			if _, err := b.Rejected(t.Context(), b.key, b.server, b.use(b.Broker)); !errors.As(err, &un) {
				t.Fatalf("%v", err)
			}
			b.provider.set(func(p *provider) { p.down = false })
			if err := end(b, r); err != nil {
				t.Fatal(err)
			}
			(*b.anew())()
			if _, err := b.Rejected(t.Context(), b.key, b.server, b.use(b.Broker)); err != nil {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestUserLeavesWhileDisconnecting checks that late tokens are stored to be revoked although the user, whose request it
// is, has left.
func TestUserLeavesWhileDisconnecting(t *testing.T) {
	b := setup(t)
	b.connect()
	client := b.client()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	b.Broker.store = lateStore{b.store, func() {
		b.unsaved.put(b.key, unsavedTokens{tokens: oauth.Tokens{Access: seal.NewSecret("late")}, server: b.server, client: client})
		leave()
	}}
	b.outOfOrder(true)
	if err := b.Disconnect(ctx, b.key); err != nil {
		t.Fatal(err)
	}
	b.Close()
	if n := len(b.waiting()); n != 2 || len(b.unstored.list()) != 0 {
		t.Errorf("%d wait, %d of them in memory alone", n, len(b.unstored.list()))
	}
}

// TestUnsavedWithoutRoots checks that late tokens of a provider whose certificate cannot be checked are counted as not
// revoked.
func TestUnsavedWithoutRoots(t *testing.T) {
	b := setup(t)
	b.connect()
	server := b.server
	server.Entry.Options.TrustedCA = "no certificate"
	b.unsaved.put(b.key, unsavedTokens{tokens: oauth.Tokens{Access: seal.NewSecret("late")}, server: server, client: b.client()})
	b.revokeUnsaved(t.Context(), b.key)
	if n := b.countOf(NotRevoked); n != 1 || len(b.waiting()) != 0 || len(b.unsaved.keys()) != 0 {
		t.Errorf("%d are lost, %d wait, %d are kept", n, len(b.waiting()), len(b.unsaved.keys()))
	}
}

// TestUnsavedWhenStoreIsAway checks that late tokens are kept as long as nobody knows what became of their connection.
func TestUnsavedWhenStoreIsAway(t *testing.T) {
	b := setup(t)
	b.unsave()
	b.Broker.store = unreadable{b.store}
	if err := b.RevokeDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.Broker.store = b.store
	b.edit(func(c *storage.Connection) { c.SealedCredential = []byte("what no key opens") })
	if err := b.RevokeDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(b.unsaved.keys()); n != 1 || len(b.revoked()) != 0 || len(b.waiting()) != 0 {
		t.Errorf("%d are kept, revoked %v, %d wait", n, b.revoked(), len(b.waiting()))
	}
}
