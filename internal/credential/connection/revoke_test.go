package connection

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// revoked returns the tokens that the provider was told to forget.
func (b *bundle) revoked() []string {
	return get(b.provider, func(p *provider) []string { return slices.Clone(p.revoked) })
}

// waiting returns the revocations that are stored.
func (b *bundle) waiting() []storage.Revocation {
	b.t.Helper()
	all, err := b.store.DueRevocations(b.t.Context(), b.clock.now().Add(365*24*time.Hour), 100, 100)
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

// TestRevokedAgain ends a connection while its provider's revocation endpoint is out of order. Another process tells it
// again once the endpoint is back. The deletion of the server does not prevent that.
func TestRevokedAgain(t *testing.T) {
	b := setup(t)
	b.connect()
	b.outOfOrder(true)
	if _, err := b.DeleteServer(t.Context(), b.server.OrganizationID, b.server.ID, b.who.UserID, b.clock.now()); err != nil {
		t.Fatal(err)
	}
	b.Close()
	if w := b.waiting(); len(w) != 1 || w[0].Attempts != 1 || len(b.revoked()) != 0 {
		t.Fatalf("wait %+v, revoked %v", w, b.revoked())
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
	if w := b.waiting(); len(w) != 1 || w[0].Attempts != 1 {
		t.Errorf("asked at once: %+v", w)
	}
	// 1 s, 2 s, 4 s after the first try, and so on: the time doubles.
	since := time.Duration(0)
	for n, at := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second} {
		if w := b.waiting(); !w[0].NextAt.Equal(w[0].CreatedAt.Add(at)) {
			t.Errorf("attempt %d is due after %v", n+2, w[0].NextAt.Sub(w[0].CreatedAt))
		}
		due(at - since)
		since = at
		if w := b.waiting(); w[0].Attempts != n+2 {
			t.Errorf("%d attempts instead of %d", w[0].Attempts, n+2)
		}
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
	b.counted(map[Event]int64{RevokeFailed: 5, Revoked: 1})
}

// TestRevokedNever gives up a revocation after a day, and keeps nothing if the provider cannot be told.
func TestRevokedNever(t *testing.T) {
	b := setup(t)
	b.connect()
	b.outOfOrder(true)
	if err := b.Disconnect(t.Context(), b.key); err != nil {
		t.Fatal(err)
	}
	b.settle(func() bool { return b.tried() == 1 && b.telling() == 0 })
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

// unsave leaves the newest tokens of the connection in memory only, and returns their refresh token.
func (b *bundle) unsave() string {
	b.t.Helper()
	b.connect()
	b.clock.advance(time.Hour)
	full := func() error { return storage.ErrUnavailable }
	b.store.afterEdit.Store(&full)
	if _, err := b.Credential(b.t.Context(), b.key, &b.server); !errors.Is(err, ErrUnavailable) {
		b.t.Fatalf("%v", err)
	}
	b.store.afterEdit.Store(nil)
	late, ok := b.unsaved.get(b.key)
	if !ok {
		b.t.Fatal("there is no token that is not stored")
	}
	return late.tokens.Refresh.Reveal()
}

// independent sets whether the entry says that its tokens are independent.
func (b *bundle) independent(is bool) {
	b.t.Helper()
	if _, err := b.store.UpdateDirectoryEntry(b.t.Context(), b.who.OrganizationID, b.server.DirectoryID, func(e *storage.DirectoryEntry) error {
		e.Options.IndependentTokens = is
		return nil
	}); err != nil {
		b.t.Fatal(err)
	}
	b.server = b.reload(b.server)
}

// TestUnsavedIsRevoked ends, or replaces, a connection whose newest tokens the store did not take yet.
func TestUnsavedIsRevoked(t *testing.T) {
	disconnect := func(b *bundle, by *Broker) {
		if err := by.Disconnect(b.t.Context(), b.key); err != nil {
			b.t.Fatal(err)
		}
	}
	anew := func(b *bundle, by *Broker) {
		here := b.Broker
		b.Broker = by
		b.connect()
		b.Broker = here
	}
	for name, tc := range map[string]struct {
		independent bool
		ends        func(b *bundle)
		revoked     bool
	}{
		"disconnected here":           {ends: func(b *bundle) { disconnect(b, b.Broker) }, revoked: true},
		"disconnected elsewhere":      {ends: func(b *bundle) { disconnect(b, b.node()) }, revoked: true},
		"broken elsewhere":            {ends: func(b *bundle) { b.edit(func(c *storage.Connection) { fallen(c, "x", b.clock.now()) }) }, revoked: true},
		"anew here":                   {ends: func(b *bundle) { anew(b, b.Broker) }},
		"anew here, independent":      {independent: true, ends: func(b *bundle) { anew(b, b.Broker) }, revoked: true},
		"anew elsewhere":              {ends: func(b *bundle) { anew(b, b.node()) }},
		"anew elsewhere, independent": {independent: true, ends: func(b *bundle) { anew(b, b.node()) }, revoked: true},
		"broken by its refresh": {ends: func(b *bundle) {
			client, err := b.store.OAuthClient(b.t.Context(), b.key.OrganizationID, b.key.ServerID)
			if err != nil {
				b.t.Fatal(err)
			}
			former := client.ClientID
			client.ClientID = "another"
			if err := b.store.PutOAuthClient(b.t.Context(), client, former); err != nil {
				b.t.Fatal(err)
			}
			b.clock.advance(time.Hour)
			if _, err := b.Credential(b.t.Context(), b.key, &b.server); !errors.Is(err, ErrNotConnected) {
				b.t.Fatalf("%v", err)
			}
		}, revoked: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.independent(tc.independent)
			late := b.unsave()
			tc.ends(b)
			if err := b.RevokeDue(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.settle(func() bool { return len(b.waiting()) == 0 }) // another node may be at it
			b.Close()
			if got := slices.Contains(b.revoked(), late); got != tc.revoked || len(b.unsaved.keys()) != 0 || len(b.waiting()) != 0 {
				t.Errorf("revoked: %v, %d kept, %d wait\n%s", got, len(b.unsaved.keys()), len(b.waiting()), b.log)
			}
		})
	}
}

// TestUnsavedStays sweeps while the connection is unchanged: its newest tokens are for the next refresh.
func TestUnsavedStays(t *testing.T) {
	b := setup(t)
	b.unsave()
	if err := b.RevokeDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(b.unsaved.keys()) != 1 {
		t.Error("it is gone")
	}
	b.counted(map[Event]int64{RefreshFailed: 1})
	b.clock.advance(time.Hour)
	b.use(b.Broker)
	b.counted(map[Event]int64{RefreshFailed: 1, Refreshed: 1})
	if n := len(b.unsaved.keys()); n != 0 {
		t.Errorf("%d are kept although they are stored", n)
	}
	if got := b.revoked(); len(got) != 0 {
		t.Errorf("revoked %v", got)
	}
}

// TestRevocationNotStored ends a connection while neither its provider nor the store accepts the revocation.
func TestRevocationNotStored(t *testing.T) {
	b := setup(t)
	b.connect()
	b.outOfOrder(true)
	full := storage.ErrUnavailable
	b.store.revocationErr.Store(&full)
	if err := b.Disconnect(t.Context(), b.key); err != nil {
		t.Fatal(err)
	}
	b.Close()
	b.store.revocationErr.Store(nil)
	b.outOfOrder(false)
	next := b.over(b.Memory)
	b.clock.advance(time.Hour)
	if err := next.RevokeDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := b.revoked(); len(got) != 2 || len(b.waiting()) != 0 || len(next.unstored.list()) != 0 {
		t.Errorf("revoked %v, %d wait, %d in memory", got, len(b.waiting()), len(next.unstored.list()))
	}
}

// TestTypedReplacesGrant types a credential for an account that was connected: there is no new grant to spare.
func TestTypedReplacesGrant(t *testing.T) {
	b := setup(t)
	b.connect()
	if _, err := b.store.UpdateDirectoryEntry(t.Context(), b.who.OrganizationID, b.server.DirectoryID, func(e *storage.DirectoryEntry) error {
		e.Provider = storage.ProviderBearerToken
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Connect(t.Context(), b.who, b.reload(b.server), ConnectRequest{BearerToken: seal.NewSecret("t")}); err != nil {
		t.Fatal(err)
	}
	b.Close()
	if got := b.revoked(); len(got) != 2 {
		t.Errorf("revoked %v\n%s", got, b.log)
	}
}

// TestReplacedIsRevoked connects again. The former grant is revoked only if its entry says that this does not end the
// new one.
func TestReplacedIsRevoked(t *testing.T) {
	for name, independent := range map[string]bool{"by default": false, "independent tokens": true} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.independent(independent)
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
