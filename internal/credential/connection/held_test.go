package connection

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// unreadable is a store that cannot read any connection.
type unreadable struct{ *faultyStore }

func (unreadable) Connection(context.Context, storage.ConnectionKey) (storage.Connection, error) {
	return storage.Connection{}, &storage.UnavailableError{Reason: "it does not answer in time"}
}

// withoutRefresh makes the provider give tokens that cannot be refreshed.
func (b *bundle) withoutRefresh() {
	b.provider.set(func(p *provider) {
		p.instead = func(w http.ResponseWriter, _ url.Values) bool {
			access := "access-" + random()
			p.access[access] = &family{}
			answer(w, http.StatusOK, map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": p.expiresIn})
			return true
		}
	})
}

// breakConnection ends the connection as a refusal of the provider does.
func (b *bundle) breakConnection() {
	b.t.Helper()
	if err := b.mark(b.t.Context(), b.key, b.connection().Version, "x", false); err != nil {
		b.t.Fatal(err)
	}
}

// TestConnectedAndGone checks that only a connection with a credential for the present server counts as one. Only a
// connection that was taken away, or never existed, is gone.
func TestConnectedAndGone(t *testing.T) {
	elsewhere := func(e *storage.DirectoryEntry) { e.URL = "https://elsewhere.example.test/mcp" }
	for name, tc := range map[string]struct {
		happens         func(b *bundle)
		connected, gone bool
	}{
		"never connected": {happens: func(b *bundle) { b.server.Status = storage.ServerActive }, gone: true},
		"connected":       {happens: func(b *bundle) { b.connect() }, connected: true},
		"disconnected": {happens: func(b *bundle) {
			b.connect()
			if err := b.Disconnect(b.t.Context(), b.key); err != nil {
				b.t.Fatal(err)
			}
		}, gone: true},
		"broken":       {happens: func(b *bundle) { b.connect(); b.breakConnection() }},
		"moved":        {happens: func(b *bundle) { b.connect(); b.change(elsewhere) }},
		"pending":      {happens: func(b *bundle) { b.connect(); b.server.Status = storage.ServerPending }},
		"out of order": {happens: func(b *bundle) { b.connect(); b.server.Status = storage.ServerError }},
		"exchanged": {happens: func(b *bundle) {
			b.server.Entry.Provider, b.server.Status = storage.ProviderTokenExchange, storage.ServerActive
		}, connected: true},
		"exchanged, pending": {happens: func(b *bundle) {
			b.server.Entry.Provider, b.server.Status = storage.ProviderTokenExchange, storage.ServerPending
		}},
		"for itself": {happens: func(b *bundle) {
			b.server.Entry.Provider, b.server.Status = storage.ProviderClientCredentials, storage.ServerActive
		}, connected: true},
		"a workload": {happens: func(b *bundle) {
			b.server.Entry.Provider, b.server.Status = storage.ProviderWorkloadIdentity, storage.ServerActive
		}, connected: true},
		"for itself, out of order": {happens: func(b *bundle) {
			b.server.Entry.Provider, b.server.Status = storage.ProviderClientCredentials, storage.ServerError
		}},
		"no credentials": {happens: func(b *bundle) { b.server.Entry.RequiresAuth, b.server.Entry.Provider = false, storage.ProviderNone }, connected: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			tc.happens(b)
			for range 2 { // first read, then remembered
				if got, err := b.Connected(t.Context(), b.key, &b.server); err != nil || got != tc.connected {
					t.Errorf("connected: %v, %v", got, err)
				}
				if got, err := b.Gone(t.Context(), b.key, &b.server); err != nil || got != tc.gone {
					t.Errorf("gone: %v, %v", got, err)
				}
			}
		})
	}
}

// TestConnectedUnknown checks that a store without an answer, or a closed broker, makes nobody count as connected or
// gone.
func TestConnectedUnknown(t *testing.T) {
	for name, tc := range map[string]struct {
		happens func(b *bundle)
		want    error
	}{
		"the store is away": {func(b *bundle) { b.Broker.store = unreadable{b.store} }, storage.ErrUnavailable},
		"closed":            {func(b *bundle) { b.Close() }, ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.connect()
			tc.happens(b)
			if got, err := b.Connected(t.Context(), b.key, &b.server); got || !errors.Is(err, tc.want) {
				t.Errorf("connected: %v, %v", got, err)
			}
			if got, err := b.Gone(t.Context(), b.key, &b.server); got || !errors.Is(err, tc.want) {
				t.Errorf("gone: %v, %v", got, err)
			}
			if c, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, tc.want) || c.Version() != 0 {
				t.Errorf("credential: %v", err)
			}
		})
	}
}

// TestCredentialOfOtherServer checks that no credential is available with the record of another server or organization.
func TestCredentialOfOtherServer(t *testing.T) {
	b := setup(t)
	b.connect()
	server, organization := b.server, b.server
	server.ID, organization.OrganizationID = "another", "another"
	for _, s := range []storage.Server{server, organization} {
		if c, err := b.Credential(t.Context(), b.key, &s); !errors.Is(err, storage.ErrNotFound) || c.Version() != 0 {
			t.Errorf("%v", err)
		}
	}
}

// TestPendingServer checks that no credential goes to a server that an administrator has not finished.
func TestPendingServer(t *testing.T) {
	b := setup(t)
	b.connect()
	b.server.Status = storage.ServerPending
	if c, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, errAdministrator) || c.Version() != 0 {
		t.Errorf("%v", err)
	}
}

// TestWithoutRefreshToken uses a token that cannot be refreshed until it expires, and not a moment longer.
func TestWithoutRefreshToken(t *testing.T) {
	b := setup(t)
	b.withoutRefresh()
	b.connect()
	for _, d := range []time.Duration{0, time.Hour - earliest, earliest - time.Nanosecond} {
		b.clock.advance(d)
		b.use(b.Broker)
	}
	b.clock.advance(time.Nanosecond)
	var not *NotConnectedError
	if _, err := b.Credential(t.Context(), b.key, &b.server); !errors.As(err, &not) || not.Reason != "the access has expired" {
		t.Errorf("%v", err)
	}
	if n := b.refreshes(); n != 0 || b.status() != storage.ConnectionError {
		t.Errorf("%d refreshes, status %s", n, b.status())
	}
}

// TestServerInError checks that tokens are good until they expire while the provider refuses our client. While the
// server itself is in doubt, they go nowhere.
func TestServerInError(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		refused bool
		expires time.Time
		good    bool
	}{
		"refused client":            {refused: true, expires: now.Add(time.Nanosecond), good: true},
		"refused client, no expiry": {refused: true, good: true},
		"refused client, run out":   {refused: true, expires: now},
		"in doubt":                  {expires: now.Add(time.Hour)},
		"in doubt, no expiry":       {},
	} {
		t.Run(name, func(t *testing.T) {
			h := held{clientRefused: tc.refused}
			c, err := h.inError(Credential{version: 1, expires: tc.expires}, now)
			if (err == nil) != tc.good || (c.version == 1) != tc.good || (err != nil && !errors.Is(err, errAdministrator)) {
				t.Errorf("%v, %v", c.version, err)
			}
		})
	}
}

// TestRefreshIsSpread checks that tokens are refreshed in the minute before the last, or in the last quarter of a short
// life. They are not all refreshed at one moment, but each at the same moment on every node.
func TestRefreshIsSpread(t *testing.T) {
	b := setup(t)
	began := b.clock.now()
	for life, early := range map[time.Duration]time.Duration{time.Hour: time.Minute, 4 * time.Minute: time.Minute, 40 * time.Second: 10 * time.Second, 0: 0, -time.Hour: 0} {
		seen := map[time.Duration]bool{}
		for n := range 50 {
			c := storage.Connection{ID: fmt.Sprint("connection ", n), Kind: storage.ProviderOAuth2, Version: 1, UpdatedAt: began, ExpiresAt: began.Add(life)}
			h := b.hold(c, grant{Refresh: seal.NewSecret("r")})
			before := c.ExpiresAt.Sub(h.refreshAt)
			if before < early || before > early+early/2 {
				t.Errorf("life %v: %v before the end", life, before)
			}
			if again := b.hold(c, grant{}); !again.refreshAt.Equal(h.refreshAt) || again.refreshable || !h.refreshable {
				t.Errorf("life %v: another moment the second time", life)
			}
			seen[before] = true
		}
		if (len(seen) < 25) != (early == 0) {
			t.Errorf("life %v: %d moments", life, len(seen))
		}
	}
	if h := b.hold(storage.Connection{Kind: storage.ProviderOAuth2}, grant{}); !h.refreshAt.IsZero() {
		t.Error("a token without an end is refreshed")
	}
}

// TestServerJustChanged checks that a caller with the server record from before or after a change does not end a
// connection that fits the present one.
func TestServerJustChanged(t *testing.T) {
	b := setup(t)
	b.connect()
	other := b.server
	other.Entry.URL = "https://elsewhere.example.test/mcp"
	var un *UnavailableError
	if c, err := b.Credential(t.Context(), b.key, &other); !errors.As(err, &un) || un.RetryAfter != time.Second || c.Version() != 0 {
		t.Errorf("%v", err)
	}
	b.use(b.Broker)
	b.counted(map[Event]int64{})
}

// TestMarkOfFormer checks that a fault of a former state of the connection breaks no later state. A store that cannot
// write the fault does not end the connection.
func TestMarkOfFormer(t *testing.T) {
	b := setup(t)
	b.connect()
	version := b.connection().Version
	if err := b.end(t.Context(), b.key, version-1, "x"); !errors.Is(err, ErrNotConnected) {
		t.Error(err)
	}
	full := func() error { return storage.ErrUnavailable }
	b.store.afterEdit.Store(&full)
	if err := b.end(t.Context(), b.key, version, "x"); !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, ErrNotConnected) {
		t.Error(err)
	}
	b.store.afterEdit.Store(nil)
	b.use(b.Broker)
	b.counted(map[Event]int64{})
	if got := b.revoked(); len(got) != 0 || len(b.waiting()) != 0 {
		t.Errorf("revoked %v", got)
	}
}

// TestUnreadableIsKept checks that a credential that no key opens stays for a person who examines it. Nothing is
// revoked (Z-F08).
func TestUnreadableIsKept(t *testing.T) {
	b := setup(t)
	b.connect()
	b.edit(func(c *storage.Connection) { c.SealedCredential = []byte("what no key opens") })
	b.clock.advance(time.Second)
	full := func() error { return storage.ErrUnavailable }
	b.store.afterEdit.Store(&full)
	if _, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, ErrNotConnected) {
		t.Errorf("where that cannot be noted: %v", err)
	}
	b.store.afterEdit.Store(nil)
	var not *NotConnectedError
	if _, err := b.Credential(t.Context(), b.key, &b.server); !errors.As(err, &not) || not.Reason != "the stored credential cannot be read" {
		t.Errorf("%v", err)
	}
	if log := b.log.String(); !strings.Contains(log, "stored credential cannot be opened") || !strings.Contains(log, "connection is broken") {
		t.Error("silent")
	}
	c := b.connection()
	if string(c.SealedCredential) != "what no key opens" || c.Status != storage.ConnectionError || !c.ExpiresAt.IsZero() || !c.UpdatedAt.Equal(b.clock.now()) {
		t.Errorf("stored %+v", c)
	}
	b.counted(map[Event]int64{Broken: 1})
	if got := b.revoked(); len(got) != 0 || len(b.waiting()) != 0 {
		t.Errorf("revoked %v", got)
	}
}

// TestEarlyRefreshFails refreshes a token that is still valid for a while. The token is used when the provider does not
// answer, or when an administrator has to act first. It is not used when the provider has ended the access, or when the
// caller has left.
func TestEarlyRefreshFails(t *testing.T) {
	t.Run("access ended", func(t *testing.T) {
		b := setup(t)
		b.connect()
		b.provider.set(func(p *provider) { p.tokenError = "invalid_grant" })
		b.clock.advance(time.Hour - earliest/2)
		if c, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, ErrNotConnected) || c.Version() != 0 {
			t.Errorf("%v", err)
		}
	})
	t.Run("client refused", func(t *testing.T) {
		b := setup(t)
		b.configured(storage.EntryOptions{})
		b.connect()
		b.provider.set(func(p *provider) { p.secret = "another" })
		b.clock.advance(time.Hour - earliest/2)
		b.use(b.Broker)
		if b.refreshes() == 0 {
			t.Error("the provider was not asked")
		}
		if b.server = b.reload(b.server); b.server.Status != storage.ServerError {
			t.Errorf("the server is %s", b.server.Status)
		}
		b.use(b.Broker)
		b.clock.advance(earliest)
		if c, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, errAdministrator) || c.Version() != 0 {
			t.Errorf("run out: %v", err)
		}
	})
	t.Run("left", func(t *testing.T) {
		b := setup(t)
		b.connect()
		var recent Recent // a remembered connection is found there at once
		if _, err := b.CredentialOf(t.Context(), b.key, &b.server, &recent); err != nil {
			t.Fatal(err)
		}
		b.patience = time.Hour
		gate := make(chan struct{})
		b.provider.set(func(p *provider) { p.gate = gate })
		b.clock.advance(time.Hour - earliest/2)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if c, err := b.CredentialOf(ctx, b.key, &b.server, &recent); !errors.Is(err, context.Canceled) || c.Version() != 0 {
			t.Errorf("%v", err)
		}
		close(gate)
	})
}

// TestClientCannotBeRead checks that no connection ends because the store cannot read the client.
func TestClientCannotBeRead(t *testing.T) {
	b := setup(t)
	b.connect()
	next := b.node()
	b.store.away.Store(1)
	if c, err := next.Credential(t.Context(), b.key, &b.server); !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, ErrNotConnected) || c.Version() != 0 {
		t.Errorf("%v", err)
	}
	b.use(next)
	b.counted(map[Event]int64{})
}

// clientless is a store that has lost the client.
type clientless struct{ *faultyStore }

func (clientless) OAuthClient(context.Context, string, string) (storage.OAuthClient, error) {
	return storage.OAuthClient{}, storage.ErrNotFound
}

// TestClientGone checks that a token goes nowhere when its issuer is no longer known, and that its user is told to
// connect again.
func TestClientGone(t *testing.T) {
	b := setup(t)
	b.connect()
	next := b.node()
	next.store = clientless{b.store}
	if c, err := next.Credential(t.Context(), b.key, &b.server); !errors.Is(err, ErrNotConnected) || c.Version() != 0 {
		t.Errorf("%v", err)
	}
}

// TestFitsItsKind checks that a credential typed as one kind is not sent as another kind, at the same address.
func TestFitsItsKind(t *testing.T) {
	b := setup(t)
	b.change(func(e *storage.DirectoryEntry) { e.Provider = storage.ProviderAPIKey })
	b.server.Status = storage.ServerActive
	if _, err := b.connectTyped(t.Context(), b.key, b.server, storage.ProviderAPIKey, grant{Key: seal.NewSecret("k")}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Credential(t.Context(), b.key, &b.server); err != nil {
		t.Fatalf("%v", err)
	}
	b.change(func(e *storage.DirectoryEntry) { e.Provider = storage.ProviderBearerToken })
	b.server.Status = storage.ServerActive
	if c, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, ErrNotConnected) || c.Version() != 0 {
		t.Errorf("%v", err)
	}
	if new(held).fits(site{}) {
		t.Error("a connection that is none fits to a server that is nowhere")
	}
}

// TestPlacedAsAsked checks that a credential goes on a request by the parameters of the requested server, even if it
// was remembered for other parameters. It is not sent at all when the parameters are wrong.
func TestPlacedAsAsked(t *testing.T) {
	b := setup(t)
	b.change(func(e *storage.DirectoryEntry) { e.Provider = storage.ProviderAPIKey })
	b.server.Status = storage.ServerActive
	if _, err := b.connectTyped(t.Context(), b.key, b.server, storage.ProviderAPIKey, grant{Key: seal.NewSecret("k")}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"X-First", "X-Second", "X-First"} {
		b.server.Entry.AuthParams.Name = name
		if c, err := b.Credential(t.Context(), b.key, &b.server); err != nil || c.params.Name != name {
			t.Errorf("%s: %q, %v", name, c.params.Name, err)
		}
	}
	b.server.Entry.AuthParams.Name = "Host"
	if c, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, ErrNotConnected) || c.Version() != 0 {
		t.Errorf("%q, %v", c.params.Name, err)
	}
	h := held{cred: Credential{kind: storage.ProviderAPIKey}}
	if c, err := h.on(storage.AuthParams{}); err != nil || c.kind != storage.ProviderAPIKey {
		t.Errorf("without parameters, nothing worked out before: %+v, %v", c, err)
	}
	h.place(storage.AuthParams{Name: "X-First"})
	if c, err := h.on(storage.AuthParams{Name: "X-Second"}); err != nil || c.params.Name != "X-Second" {
		t.Errorf("worked out before: %q, %v", c.params.Name, err)
	}
}
