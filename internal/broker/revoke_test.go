package broker

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// revoked are the tokens that the provider was told to forget.
func (b *bundle) revoked() []string {
	return get(b.provider, func(p *provider) []string { return slices.Clone(p.revoked) })
}

// waiting are the revocations that are stored.
func (b *bundle) waiting() []storage.Revocation {
	b.t.Helper()
	all, err := b.store.DueRevocations(b.t.Context(), b.clock.now().Add(365*24*time.Hour), 100)
	if err != nil {
		b.t.Fatal(err)
	}
	return all
}

func (b *bundle) outOfOrder(is bool) {
	b.provider.mu.Lock()
	defer b.provider.mu.Unlock()
	b.provider.revokesNothing = is
}

// TestRevokedAgain ends a connection while its provider's revocation endpoint is out of order: another process tells it again once
// it is back, and its server's end does not keep it from that.
func TestRevokedAgain(t *testing.T) {
	b := setup(t)
	b.connect()
	b.outOfOrder(true)
	gone, err := b.store.DeleteServer(t.Context(), b.server.OrganizationID, b.server.ID, b.who.UserID, b.clock.now())
	if err != nil {
		t.Fatal(err)
	}
	b.ServerDeleted(t.Context(), gone)
	b.Close()
	if n := len(b.waiting()); n != 1 || len(b.revoked()) != 0 {
		t.Fatalf("%d wait, revoked %v", n, b.revoked())
	}
	next := b.node()
	due := func(after time.Duration) {
		t.Helper()
		b.clock.advance(after)
		if err := next.RevokeDue(t.Context()); err != nil {
			t.Error(err)
		}
	}
	due(0) // not yet
	if w := b.waiting(); len(w) != 1 || w[0].Attempts != 0 {
		t.Errorf("asked at once: %+v", w)
	}
	due(firstRevokeWait)
	if w := b.waiting(); len(w) != 1 || w[0].Attempts != 1 || !w[0].NextAt.Equal(b.clock.now().Add(firstRevokeWait)) {
		t.Errorf("after one more attempt: %+v", w)
	}
	b.outOfOrder(false)
	due(time.Hour)
	if got := b.revoked(); len(got) != 2 || len(b.waiting()) != 0 {
		t.Errorf("revoked %v, %d wait", got, len(b.waiting()))
	}
	due(time.Hour)
	if got := b.revoked(); len(got) != 2 {
		t.Errorf("told again: %v", got)
	}
	b.counted(map[Event]int64{RevokeFailed: 2, Revoked: 1})
}

// TestRevokedNever gives up a revocation after a day, and keeps nothing where the provider cannot be told.
func TestRevokedNever(t *testing.T) {
	b := setup(t)
	b.connect()
	b.outOfOrder(true)
	if err := b.Disconnect(t.Context(), b.key); err != nil {
		t.Fatal(err)
	}
	b.settle(func() bool { return len(b.waiting()) == 1 })
	for range 40 {
		b.clock.advance(time.Hour)
		if err := b.RevokeDue(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if n := len(b.waiting()); n != 0 {
		t.Errorf("%d wait after two days", n)
	}
	if n, _ := b.counts.Load(NotRevoked); n == nil {
		t.Error("nobody counts what was given up")
	}
}

// TestUnsavedIsRevoked ends a connection whose newest tokens the store did not take yet: at the node that has them, and at another one.
func TestUnsavedIsRevoked(t *testing.T) {
	for name, elsewhere := range map[string]bool{"here": false, "at another node": true} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.connect()
			b.clock.advance(time.Hour)
			full := func() error { return storage.ErrUnavailable }
			b.store.afterEdit.Store(&full)
			if _, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, ErrUnavailable) {
				t.Fatalf("%v", err)
			}
			b.store.afterEdit.Store(nil)
			late := b.unsaved.tokens[b.key].tokens.Refresh.Reveal()
			if late == "" {
				t.Fatal("there is no token that is not stored")
			}
			ends := b.Broker
			if elsewhere {
				ends = b.node()
			}
			if err := ends.Disconnect(t.Context(), b.key); err != nil {
				t.Fatal(err)
			}
			if elsewhere {
				if err := b.RevokeDue(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			b.settle(func() bool { return slices.Contains(b.revoked(), late) && len(b.waiting()) == 0 })
			if len(b.unsaved.keys()) != 0 {
				t.Error("it is kept still")
			}
		})
	}
}

// TestReplacedIsRevoked connects anew. The former grant is revoked only where its entry says that this does not end the new one.
func TestReplacedIsRevoked(t *testing.T) {
	for name, independent := range map[string]bool{"by default": false, "independent tokens": true} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			if _, err := b.store.UpdateDirectoryEntry(t.Context(), b.who.OrganizationID, b.server.DirectoryID, func(e *storage.DirectoryEntry) error {
				e.Options.IndependentTokens = independent
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			b.server = b.reload(b.server)
			b.connect()
			former, err := b.openGrant(b.connection())
			if err != nil {
				t.Fatal(err)
			}
			b.connect()
			newer, err := b.openGrant(b.connection())
			if err != nil {
				t.Fatal(err)
			}
			b.settle(func() bool { return len(b.waiting()) == 0 })
			b.Close()
			got := b.revoked()
			if slices.Contains(got, former.Refresh.Reveal()) != independent || slices.Contains(got, newer.Refresh.Reveal()) {
				t.Errorf("revoked %v; former %s, newer %s", got, former.Refresh.Reveal(), newer.Refresh.Reveal())
			}
		})
	}
}
