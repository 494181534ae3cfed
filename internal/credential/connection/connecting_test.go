package connection

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// TestVisible checks which characters a credential may have.
func TestVisible(t *testing.T) {
	for s, want := range map[string]bool{
		"": true, "!": true, "~": true, "a~!z": true, " ": false, "a b": false, "\x1f": false, "\x7f": false, "é": false, "a\n": false,
	} {
		if got := visible(s, false); got != want {
			t.Errorf("%q: %v", s, got)
		}
		blanks := want || strings.Contains(s, " ")
		if got := visible(s, true); got != blanks {
			t.Errorf("%q with blanks: %v", s, got)
		}
	}
}

// TestTypedGrant checks what a user may type, at its limits. An unknown kind takes nothing.
func TestTypedGrant(t *testing.T) {
	s := seal.NewSecret
	for name, tc := range map[string]struct {
		kind storage.Provider
		req  ConnectRequest
		ok   bool
	}{
		"just as long":           {storage.ProviderAPIKey, ConnectRequest{APIKey: s(strings.Repeat("a", maxCredential))}, true},
		"too long":               {storage.ProviderAPIKey, ConnectRequest{APIKey: s(strings.Repeat("a", maxCredential+1))}, false},
		"a password in UTF-8":    {storage.ProviderBasicAuth, ConnectRequest{Username: s("é"), Password: s("ß")}, true},
		"a password that is not": {storage.ProviderBasicAuth, ConnectRequest{Username: s("u"), Password: s("\xff")}, false},
		"begins with a control":  {storage.ProviderBasicAuth, ConnectRequest{Username: s("\x01u"), Password: s("p")}, false},
		"an unknown kind":        {"telepathy", ConnectRequest{APIKey: s("k")}, false},
	} {
		g, err := typedGrant(tc.kind, tc.req)
		if (err == nil) != tc.ok || (tc.ok && g.ID == "") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestConnectRefused checks that nothing begins where it could not end: at an address that nobody may be sent to, or
// with a store that keeps nothing.
func TestConnectRefused(t *testing.T) {
	typed := func(b *bundle) { b.change(func(e *storage.DirectoryEntry) { e.Provider = storage.ProviderAPIKey }) }
	for name, tc := range map[string]struct {
		happens func(b *bundle)
		want    error
	}{
		"the provider's address is forbidden": {func(b *bundle) {
			b.checkURL = func(*url.URL) error { return errors.New("not there") }
		}, ErrOAuthConfiguration},
		"the attempt is not stored":    {func(b *bundle) { b.Broker.store = attemptless{b.store} }, storage.ErrUnavailable},
		"no certificate":               {func(b *bundle) { b.server.Entry.Options.TrustedCA = "no certificate" }, ErrOAuthConfiguration},
		"the connection is not read":   {func(b *bundle) { b.Broker.store = unreadable{b.store} }, storage.ErrUnavailable},
		"the client is not read":       {func(b *bundle) { b.store.away.Store(1) }, storage.ErrUnavailable},
		"typed, not stored":            {func(b *bundle) { typed(b); full := storage.ErrUnavailable; b.store.putErr.Store(&full) }, storage.ErrUnavailable},
		"typed, not read":              {func(b *bundle) { typed(b); b.Broker.store = unreadable{b.store} }, storage.ErrUnavailable},
		"typed, to nowhere":            {func(b *bundle) { typed(b); b.server.Entry.URL = "nowhere" }, ErrOAuthConfiguration},
		"typed, into a header of ours": {func(b *bundle) { typed(b); b.server.Entry.AuthParams.Name = "Host" }, ErrOAuthConfiguration},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			tc.happens(b)
			r, err := b.Connect(t.Context(), b.who, b.server, ConnectRequest{APIKey: seal.NewSecret("k")})
			if !errors.Is(err, tc.want) || r != (ConnectResult{}) {
				t.Errorf("%+v, %v", r, err)
			}
			if tc.want == ErrOAuthConfiguration && errors.Is(err, storage.ErrUnavailable) {
				t.Errorf("%v", err)
			}
			if _, err := b.store.Connection(t.Context(), b.key); !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("something is stored: %v", err)
			}
		})
	}
}

// TestNoClientIsLogged checks that an administrator finds out why nobody can connect.
func TestNoClientIsLogged(t *testing.T) {
	b := setup(t)
	b.provider.set(func(p *provider) { p.noRegister = true })
	if _, err := b.Connect(t.Context(), b.who, b.server, ConnectRequest{}); !errors.Is(err, ErrOAuthConfiguration) || !strings.Contains(b.log.String(), "no OAuth client") {
		t.Errorf("%v\n%s", err, b.log)
	}
}

// TestConnectAfresh checks that a new connection does not suffer from the former one: neither from its provider's
// silence, nor from a permission that was just noted.
func TestConnectAfresh(t *testing.T) {
	b := setup(t)
	b.connect()
	b.retries.failed(b.key, b.clock.now())
	b.wants.due(b.key, b.clock.now())
	b.connect()
	if b.retries.wait(b.key, b.clock.now()) != 0 || !b.wants.due(b.key, b.clock.now()) {
		t.Error("it waits")
	}
}

// TestConnectTogether checks that users who connect to one server at the same moment look for its client one after the
// other.
func TestConnectTogether(t *testing.T) {
	b := setup(t)
	unlock, err := b.clients.lock(t.Context(), b.server.ID)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := b.Connect(context.WithoutCancel(t.Context()), b.who, b.server, ConnectRequest{})
		done <- err
	}()
	b.settle(func() bool {
		b.clients.mu.Lock()
		defer b.clients.mu.Unlock()
		return b.clients.locks[b.server.ID].users == 2
	})
	if n := get(b.provider, func(p *provider) int { return p.discoveries }); n != 0 {
		t.Errorf("%d discoveries", n)
	}
	unlock()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("it waits for ever")
	}
}
