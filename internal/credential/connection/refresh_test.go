package connection

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/proxy/http1"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// nodes makes several brokers with one store.
func (b *bundle) nodes(n int) []*Broker {
	all := []*Broker{b.Broker}
	for len(all) < n {
		all = append(all, b.node())
	}
	return all
}

// storm lets n callers use the connection at the same moment, spread over nodes.
func (b *bundle) storm(nodes []*Broker, n int) {
	b.t.Helper()
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			c, err := nodes[i%len(nodes)].Credential(b.t.Context(), b.key, &b.server)
			if err != nil {
				b.t.Errorf("caller %d: %v", i, err)
				return
			}
			if !b.provider.accepts(b.header(c)) {
				b.t.Errorf("caller %d got a token that the third party does not take", i)
			}
		})
	}
	close(start)
	wg.Wait()
}

// TestRefreshWaitsForStore checks that a store that does not answer once or a few times does not fail a refresh, for
// which hundreds may wait. A store that is away for longer fails it before the provider is asked.
func TestRefreshWaitsForStore(t *testing.T) {
	for _, tc := range []struct{ silent, want int }{{0, 1}, {1, 1}, {2, 1}, {3, 1}, {1000, 0}} {
		t.Run(fmt.Sprint(tc.silent), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.connect()
			former := b.use(b.Broker)
			b.clock.advance(time.Hour - time.Second)
			b.store.away.Store(int64(tc.silent))
			_, err := b.Rejected(t.Context(), b.key, b.server, former)
			if (err == nil) != (tc.want == 1) || errors.Is(err, ErrNotConnected) || b.refreshes() != tc.want {
				t.Errorf("%v, %d refreshes", err, b.refreshes())
			}
			if err != nil && !errors.Is(err, storage.ErrUnavailable) {
				t.Errorf("the store's error is lost: %v", err)
			}
			if n := b.countOf(RefreshFailed); n != int64(min(tc.silent, len(storePauses)+1)) {
				t.Errorf("%d failures are counted", n)
			}
		})
	}
}

func TestRefreshOnce(t *testing.T) {
	b := setup(t)
	b.connect()
	nodes := b.nodes(3)
	t.Run("not due", func(*testing.T) {
		b.clock.advance(58 * time.Minute)
		b.storm(nodes, 50)
		if n := b.refreshes(); n != 0 {
			t.Errorf("%d refreshes", n)
		}
	})
	t.Run("A13 500 callers at expiry", func(*testing.T) {
		b.clock.advance(2 * time.Minute)
		b.storm(nodes, 500)
		if n := b.refreshes(); n != 1 {
			t.Errorf("%d refreshes", n)
		}
	})
	t.Run("Z-A02 many expiries", func(*testing.T) {
		before := b.refreshes()
		for range 40 {
			b.clock.advance(time.Hour)
			b.storm(nodes, 12)
		}
		if n := b.refreshes() - before; n != 40 {
			t.Errorf("%d refreshes for 40 expiries", n)
		}
	})
	if n := get(b.provider, func(p *provider) int { return p.reuses }); n != 0 {
		t.Errorf("Z-A02 reuse detection tripped %d times", n)
	}
}

func TestRefreshEarly(t *testing.T) {
	b := setup(t)
	b.connect()
	old := b.use(b.Broker)
	b.clock.advance(time.Hour - earliest)
	if c := b.use(b.Broker); c.Version() == old.Version() || b.refreshes() != 1 {
		t.Errorf("a minute before expiry: version %d, %d refreshes", c.Version(), b.refreshes())
	}
}

func TestProviderDown(t *testing.T) {
	b := setup(t)
	b.connect()
	b.provider.set(func(p *provider) { p.down = true })
	b.clock.advance(time.Hour - earliest/2)
	for range 10 {
		b.use(b.Broker) // Z-A01 a token that is still valid is used
	}
	if n := b.refreshes(); n != 1 {
		t.Errorf("Z-A01 %d attempts at once", n)
	}
	b.clock.advance(earliest)
	// Z-A01 After the expiry the error is retryable, not an error state, with at most six attempts a minute.
	before := b.refreshes()
	for range 60 {
		_, err := b.Credential(t.Context(), b.key, &b.server)
		var un *UnavailableError
		if !errors.As(err, &un) || un.RetryAfter <= 0 {
			t.Fatalf("%v", err)
		}
		b.clock.advance(time.Second)
	}
	if n := b.refreshes() - before; n > 6 || n == 0 {
		t.Errorf("Z-A01 %d attempts in a minute", n)
	}
	if got := b.status(); got != storage.ConnectionConnected {
		t.Errorf("Z-A01 status %s", got)
	}
	if !strings.Contains(b.log.String(), "msg=refreshing") {
		t.Error("Z-A01 silent")
	}
	b.provider.set(func(p *provider) { p.down, p.expiresIn = false, 600 })
	failed := int64(b.refreshes())
	b.clock.advance(lastWait + lastWait/4)
	b.use(b.Broker)
	b.counted(map[Event]int64{RefreshFailed: failed, Refreshed: 1})
	// The success ends the series of failures: the next wait is the first one again.
	b.provider.set(func(p *provider) { p.down = true })
	b.clock.advance(10 * time.Minute)
	var un *UnavailableError
	if _, err := b.Credential(t.Context(), b.key, &b.server); !errors.As(err, &un) || un.RetryAfter > firstWait+firstWait/4 {
		t.Errorf("after a success: %v", err)
	}
}

func TestInvalidGrant(t *testing.T) {
	b := setup(t)
	b.connect()
	b.provider.set(func(p *provider) { p.tokenError = "invalid_grant" })
	b.clock.advance(time.Hour)
	nodes := b.nodes(2)
	for i := range 50 {
		if _, err := nodes[i%2].Credential(t.Context(), b.key, &b.server); !errors.Is(err, ErrNotConnected) {
			t.Fatalf("A14 %v", err)
		}
		b.clock.advance(time.Second)
	}
	if n := b.refreshes(); n != 1 {
		t.Errorf("A14 %d attempts", n)
	}
	if c := b.connection(); c.SealedCredential != nil || c.Reason == "" || b.status() != storage.ConnectionError {
		t.Errorf("A14 stored %+v", c)
	}
	b.counted(map[Event]int64{Broken: 1})
	b.provider.set(func(p *provider) { p.tokenError = "" })
	b.connect()
	b.use(nodes[1])
}

func TestRejected(t *testing.T) {
	b := setup(t)
	b.connect()
	old := b.use(b.Broker)
	// Many requests were refused with the same token: one refresh.
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			c, err := b.Rejected(t.Context(), b.key, b.server, old)
			if err != nil || c.Version() == old.Version() {
				t.Errorf("%v", err)
			}
		})
	}
	wg.Wait()
	if n := b.refreshes(); n != 1 {
		t.Errorf("A15 %d refreshes", n)
	}
	// The new token is refused, too. That ends the connection.
	if _, err := b.Rejected(t.Context(), b.key, b.server, b.use(b.Broker)); !errors.Is(err, ErrNotConnected) {
		t.Errorf("A15 %v", err)
	}
	if n := b.refreshes(); n != 1 || b.status() != storage.ConnectionError {
		t.Errorf("A15 %d refreshes, status %s", n, b.status())
	}
	b.counted(map[Event]int64{Refreshed: 1, Broken: 1})
	b.settle(func() bool { return len(get(b.provider, func(p *provider) []string { return p.revoked })) == 2 })

	// An hour apart, each refusal stands alone.
	b.connect()
	for range 3 {
		b.clock.advance(30 * time.Minute)
		if _, err := b.Rejected(t.Context(), b.key, b.server, b.use(b.Broker)); err != nil {
			t.Error(err)
		}
	}
}

func TestWaiterLeavesRefresh(t *testing.T) {
	b := setup(t)
	b.connect()
	b.clock.advance(time.Hour)
	gate := make(chan struct{})
	b.provider.set(func(p *provider) { p.gate = gate })
	ctx, cancel := context.WithCancel(t.Context())
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { _, err := b.Credential(ctx, b.key, &b.server); first <- err }()
	go func() { _, err := b.Credential(t.Context(), b.key, &b.server); second <- err }()
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("first: %v", err)
	}
	close(gate)
	if err := <-second; err != nil {
		t.Errorf("second: %v", err)
	}
	b.use(b.Broker)
	if n := b.refreshes(); n != 1 {
		t.Errorf("%d refreshes", n)
	}
}

// TestSlowProvider checks that a slow provider does not delay a caller whose token is still valid.
func TestSlowProvider(t *testing.T) {
	b := setup(t)
	b.connect()
	b.patience = time.Nanosecond
	old := b.use(b.Broker)
	gate := make(chan struct{})
	b.provider.set(func(p *provider) { p.gate = gate })
	b.clock.advance(time.Hour - earliest/2)
	if c := b.use(b.Broker); c.Version() != old.Version() {
		t.Error("waited for the provider")
	}
	close(gate)
	b.settle(func() bool { return b.use(b.Broker).Version() != old.Version() })
	if n := b.refreshes(); n != 1 {
		t.Errorf("%d refreshes", n)
	}
}

// TestRefreshInterrupted checks A12: the losses when the process dies, or the store fails, at each point of a refresh.
func TestRefreshInterrupted(t *testing.T) {
	dying := func() error { panic("canary") }
	for name, tolerant := range map[string]bool{"tolerant provider": true, "strict provider": false} {
		t.Run("A12 killed between answer and commit, "+name, func(t *testing.T) {
			b := setup(t)
			b.connect()
			b.provider.set(func(p *provider) { p.tolerant = tolerant })
			b.clock.advance(time.Hour)
			b.store.afterEdit.Store(&dying)
			if _, err := b.Credential(t.Context(), b.key, &b.server); err == nil {
				t.Fatal("a credential that is not stored was given out")
			}
			b.store.afterEdit.Store(nil)
			if log := b.log.String(); !strings.Contains(log, "refresh panicked") || strings.Contains(log, "canary") {
				t.Errorf("L02 logged %s", log)
			}
			restarted := b.node()
			if tolerant {
				b.use(restarted)
				return
			}
			if _, err := restarted.Credential(t.Context(), b.key, &b.server); !errors.Is(err, ErrNotConnected) {
				t.Fatal(err)
			}
			if got := b.status(); got != storage.ConnectionError {
				t.Errorf("status %s", got)
			}
			if !strings.Contains(b.log.String(), "connection is broken") {
				t.Error("silent")
			}
		})
	}
	t.Run("A12 killed after the commit", func(t *testing.T) {
		b := setup(t)
		b.connect()
		b.clock.advance(time.Hour)
		want := b.header(b.use(b.Broker))
		b.Close()
		if got := b.header(b.use(b.node())); got != want {
			t.Error("another token after the restart")
		}
	})
	t.Run("A12 store does not take the tokens", func(t *testing.T) {
		b := setup(t)
		b.connect()
		b.clock.advance(time.Hour)
		full := func() error { return storage.ErrUnavailable }
		b.store.afterEdit.Store(&full)
		for range 3 {
			if _, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, ErrUnavailable) {
				t.Fatalf("%v", err)
			}
		}
		b.store.afterEdit.Store(nil)
		if !strings.Contains(b.log.String(), "refreshed tokens are not stored yet") {
			t.Error("silent")
		}
		b.Close()
		b.use(b.over(b.Memory)) // also when the configuration changes meanwhile
		if n, reuses := b.refreshes(), get(b.provider, func(p *provider) int { return p.reuses }); n != 1 || reuses != 0 {
			t.Errorf("%d refreshes, %d reuses", n, reuses)
		}
	})
	t.Run("disconnected meanwhile", func(t *testing.T) {
		b := setup(t)
		b.connect()
		b.clock.advance(time.Hour)
		gone := func() error { // with its server, whose deletion waits for no refresh
			_, err := b.DeleteServer(t.Context(), b.key.OrganizationID, b.key.ServerID, b.who.UserID, b.clock.now())
			return err
		}
		b.store.afterEdit.Store(&gone)
		if _, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, ErrNotConnected) {
			t.Fatalf("%v", err)
		}
		b.settle(func() bool { return len(b.revoked()) == 4 }) // the former tokens, and the new ones
	})
}

func TestDisconnect(t *testing.T) {
	b := setup(t)
	b.connect()
	b.use(b.Broker)
	if err := b.Disconnect(t.Context(), b.key); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, ErrNotConnected) {
		t.Errorf("A16 %v", err)
	}
	b.settle(func() bool { return len(get(b.provider, func(p *provider) []string { return p.revoked })) == 2 })
	if err := b.Disconnect(t.Context(), b.key); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("twice: %v", err)
	}

	b.connect()
	if _, err := b.DeleteServer(t.Context(), b.server.OrganizationID, b.server.ID, b.who.UserID, b.clock.now()); err != nil {
		t.Fatal(err)
	}
	b.settle(func() bool { return len(get(b.provider, func(p *provider) []string { return p.revoked })) == 4 })
	if _, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, ErrNotConnected) {
		t.Errorf("A16 %v", err)
	}
}

func TestCloseEndsRevocations(t *testing.T) {
	b := setup(t)
	b.connect()
	b.provider.Close() // revocations fail; Close must not hang on them
	if err := b.Disconnect(t.Context(), b.key); err != nil {
		t.Fatal(err)
	}
	b.Close()
	b.Close()
	if _, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
}

func TestMovedUpstream(t *testing.T) {
	for name, move := range map[string]func(b *bundle, e *storage.DirectoryEntry){
		"another origin":   func(_ *bundle, e *storage.DirectoryEntry) { e.URL = "https://evil.example.test/mcp" },
		"another resource": func(_ *bundle, e *storage.DirectoryEntry) { e.OAuth.Resource = "https://evil.example.test/" },
		"another issuer":   func(_ *bundle, e *storage.DirectoryEntry) { e.OAuth.Issuer = "https://evil.example.test" },
		"another events":   func(_ *bundle, e *storage.DirectoryEntry) { e.EventsURL = "https://evil.example.test/events" },
		"another kind":     func(_ *bundle, e *storage.DirectoryEntry) { e.Provider = storage.ProviderAPIKey },
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.connect()
			old := b.use(b.Broker)
			stale := b.server
			if _, err := b.store.UpdateDirectoryEntry(t.Context(), b.who.OrganizationID, b.server.DirectoryID, func(e *storage.DirectoryEntry) error {
				move(b, e)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			b.server = b.reload(b.server)
			if _, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, ErrNotConnected) {
				t.Fatalf("%v", err)
			}
			if c := b.connection(); c.Status != storage.ConnectionError || c.SealedCredential != nil {
				t.Errorf("stored %+v", c)
			}
			if _, err := b.Credential(t.Context(), b.key, &stale); !errors.Is(err, ErrNotConnected) {
				t.Errorf("%v", err)
			}
			u, err := url.Parse("https://evil.example.test/mcp")
			if err != nil {
				t.Fatal(err)
			}
			r := &http1.Request{URL: u}
			if err := old.Apply(r); err == nil || len(r.Fields) != 0 {
				t.Errorf("applied to another origin: %v", err)
			}
		})
	}
}

func TestCorruptCredential(t *testing.T) {
	for name, corrupt := range map[string]func(b *bundle, c *storage.Connection){
		"Z-F08 bytes changed": func(_ *bundle, c *storage.Connection) { c.SealedCredential[len(c.SealedCredential)-1] ^= 1 },
		"Z-F08 key missing":   func(_ *bundle, c *storage.Connection) { c.SealedCredential[4] = 9 },
		"L11 another user's": func(b *bundle, c *storage.Connection) {
			sealed, err := b.sealGrant(storage.ConnectionKey{OrganizationID: b.who.OrganizationID, UserID: "bob", ServerID: b.server.ID}, grant{Access: seal.NewSecret("x")})
			if err != nil {
				b.t.Fatal(err)
			}
			c.SealedCredential = sealed
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.connect()
			if _, err := b.store.UpdateConnection(t.Context(), b.key, func(_ context.Context, c *storage.Connection) error {
				corrupt(b, c)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if _, err := b.Credential(t.Context(), b.key, &b.server); !errors.Is(err, ErrNotConnected) {
					t.Errorf("%v", err)
				}
			}
			if got := b.status(); got != storage.ConnectionError {
				t.Errorf("status %s", got)
			}
			b.connect()
			b.use(b.Broker)
		})
	}
}

// TestKeyLookupFails checks that a failed key lookup costs nobody the connection, on no node. It works again when the
// store answers.
func TestKeyLookupFails(t *testing.T) {
	for name, use := range map[string]func(b *bundle, br *Broker) error{
		"read": func(b *bundle, br *Broker) error {
			_, err := br.Credential(t.Context(), b.key, &b.server)
			return err
		},
		"refreshed": func(b *bundle, br *Broker) error {
			_, err := br.refreshOnce(t.Context(), b.key, b.server, b.connection().Version, true)
			return err
		},
		"undone": func(b *bundle, br *Broker) error {
			plain, err := b.keyring.Open(b.connection().SealedCredential, credentialAD(b.key))
			if err != nil {
				return err
			}
			var g grant
			if err := json.Unmarshal(plain, &g); err != nil {
				return err
			}
			token, err := b.undoToken(b.key, g.ID)
			if err != nil {
				return err
			}
			_, err = br.Undo(t.Context(), token)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.connect()
			behind := b.behind()
			if _, err := b.store.UpdateConnection(t.Context(), b.key, func(_ context.Context, c *storage.Connection) (err error) {
				c.SealedCredential, _, err = b.keyring.Reseal(c.SealedCredential, credentialAD(b.key))
				return err
			}); err != nil {
				t.Fatal(err)
			}
			stored := b.connection()
			if stored.SealedCredential[4] != 2 {
				t.Fatal("it is not sealed with the new key")
			}
			away := error(&storage.UnavailableError{Reason: "it does not answer in time"})
			b.store.keysErr.Store(&away)
			if err := use(b, behind); !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, ErrNotConnected) || errors.Is(err, ErrUndo) {
				t.Errorf("%v", err)
			}
			if diff := cmp.Diff(stored, b.connection()); diff != "" {
				t.Errorf("stored (-want +got)\n%s", diff)
			}
			b.store.keysErr.Store(nil)
			b.use(behind)
		})
	}
}

// TestCallbackKeyLookupFails checks that a failed key lookup when the browser comes back ends the attempt, because a
// code works only once. The user is told to connect again.
func TestCallbackKeyLookupFails(t *testing.T) {
	b := setup(t)
	behind := b.behind()
	b.Broker = b.node()
	q := b.provider.approve(*b.begin().AuthURL)
	away := error(&storage.UnavailableError{Reason: "it does not answer in time"})
	b.store.keysErr.Store(&away)
	r, err := behind.Callback(t.Context(), q, ownBrowser)
	if err != nil || r.OK || !strings.Contains(r.Reason, "connect again") || b.exchanges() != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	b.store.keysErr.Store(nil)
	b.connect()
	b.use(behind)
}

// TestNothingLeaks checks L01: no secret of the whole life of a connection reaches the log at debug level, or an error.
func TestNothingLeaks(t *testing.T) {
	b := setup(t)
	began := b.begin()
	q := b.provider.approve(*began.AuthURL)
	secrets := []string{q.Get("state"), q.Get("code")}
	if r, err := b.Callback(t.Context(), q, ownBrowser); err != nil || !r.OK {
		t.Fatal(err)
	}
	b.server = b.reload(b.server)
	c := b.use(b.Broker)
	b.provider.set(func(p *provider) { p.down = true })
	b.clock.advance(2 * time.Hour)
	_, err := b.Credential(t.Context(), b.key, &b.server)
	b.provider.set(func(p *provider) { p.down, p.tokenError = false, "invalid_grant" })
	b.clock.advance(time.Minute)
	_, err2 := b.Credential(t.Context(), b.key, &b.server)
	out := b.log.String() + err.Error() + err2.Error()
	secrets = append(secrets, strings.TrimPrefix(b.header(c), "Bearer "))
	for token := range get(b.provider, func(p *provider) map[string]*family { return p.live }) {
		secrets = append(secrets, token)
	}
	db, dbErr := b.store.Connection(t.Context(), b.key)
	if dbErr != nil {
		t.Fatal(dbErr)
	}
	out += db.Reason
	for _, s := range secrets {
		for _, form := range []string{s, hex.EncodeToString([]byte(s)), base64.StdEncoding.EncodeToString([]byte(s))} {
			if strings.Contains(out, form) {
				t.Errorf("L01 %q is shown in:\n%s", s, out)
			}
		}
	}
}
