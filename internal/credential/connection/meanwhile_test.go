package connection

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/storage"
)

// anew returns a hook that connects the user once more, through another node.
func (b *bundle) anew() *func() {
	b.t.Helper()
	here := b.Broker
	connect := func() {
		b.Broker = b.node()
		b.connect()
		b.Broker = here
	}
	return &connect
}

// TestBrokenMeanwhileConnected checks that a fault of one connection does not count against a connection that replaced
// it.
func TestBrokenMeanwhileConnected(t *testing.T) {
	for name, breaks := range map[string]func(b *bundle){
		"cannot be read": func(b *bundle) {
			b.edit(func(c *storage.Connection) { c.SealedCredential[len(c.SealedCredential)-1] ^= 1 })
		},
		"has expired": func(b *bundle) {
			b.editGrant(func(g *grant) { g.Refresh = grant{}.Refresh })
			b.clock.advance(2 * time.Hour)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.connect()
			breaks(b)
			b.store.beforeUpdate.Store(b.anew())
			if _, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, ErrNotConnected) {
				t.Errorf("the connection that was looked at: %v", err)
			}
			if b.store.beforeUpdate.Load() != nil {
				t.Fatal("nobody meant to mark it")
			}
			if c := b.connection(); c.Status != storage.ConnectionConnected || c.Reason != "" || c.SealedCredential == nil {
				t.Errorf("the new connection is %s, %q", c.Status, c.Reason)
			}
			b.use(b.node())
			b.counted(map[Event]int64{})
		})
	}
}

// edit changes the stored connection, as another node would. It tells no provider about a credential that it removes.
func (b *bundle) edit(change func(c *storage.Connection)) {
	b.t.Helper()
	untold := func(context.Context, storage.Ended) ([]storage.Revocation, error) { return nil, nil }
	if _, err := b.store.UpdateConnection(storage.WithEnding(b.t.Context(), untold), b.key, func(_ context.Context, c *storage.Connection) error {
		change(c)
		return nil
	}); err != nil {
		b.t.Fatal(err)
	}
}

// editGrant changes the sealed grant of the connection.
func (b *bundle) editGrant(change func(g *grant)) {
	b.t.Helper()
	b.edit(func(c *storage.Connection) {
		g, err := b.openGrant(*c)
		if err != nil {
			b.t.Fatal(err)
		}
		change(&g)
		if c.SealedCredential, err = b.sealGrant(b.key, g); err != nil {
			b.t.Fatal(err)
		}
	})
}

// TestUndoMeanwhileConnected checks that a user who connects again during an undo stays connected. Nothing of the new
// grant is revoked.
func TestUndoMeanwhileConnected(t *testing.T) {
	b := setup(t)
	first := b.connect()
	b.store.beforeDelete.Store(b.anew())
	if _, err := b.Undo(t.Context(), first.Undo); !errors.Is(err, ErrUndo) {
		t.Fatalf("%v", err)
	}
	if b.store.beforeDelete.Load() != nil {
		t.Fatal("nobody meant to delete")
	}
	kept := b.connection()
	if kept.Status != storage.ConnectionConnected || kept.Reason != "" {
		t.Errorf("the new connection is %s, %q", kept.Status, kept.Reason)
	}
	b.use(b.node())
	if _, err := b.Undo(t.Context(), first.Undo); !errors.Is(err, ErrUndo) {
		t.Errorf("twice: %v", err)
	}
	if diff := cmp.Diff(kept, b.connection()); diff != "" {
		t.Errorf("stored (-want +got)\n%s", diff)
	}
	if w := b.waiting(); len(w) != 0 || len(b.revoked()) != 0 {
		t.Errorf("%d wait, revoked %v", len(w), b.revoked())
	}
}
