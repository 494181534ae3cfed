package connection

import (
	"bytes"
	"context"
	"log/slog"
	"net/netip"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/proxy/http1"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/sqlite/sqlitetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	gatewayURL = "https://gate.example.test"
	appURL     = "https://app.example.test/connected"
	issuer     = "https://id.example.test"
)

type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(0, c.at.Load()).UTC() }
func (c *clock) advance(d time.Duration) { c.at.Add(int64(d)) }

// lockedBuffer collects the log.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// bundle is a broker in which everything is real except the third party.
type bundle struct {
	*Broker
	t        testing.TB
	store    *faultyStore
	provider *provider
	master   seal.MasterKey
	keyring  *seal.Keyring
	clock    *clock
	log      *lockedBuffer
	counts   *sync.Map // Event -> *atomic.Int64
	who      Who
	server   storage.Server
	key      storage.ConnectionKey
}

// faultyStore lets a test interfere with the store's work.
type faultyStore struct {
	storage.Store
	// afterEdit runs between the provider's answer and the commit. Its error stands for an error of the commit.
	afterEdit atomic.Pointer[func() error]
	putErr    atomic.Pointer[error]
	// revocationErr makes storing a revocation fail.
	revocationErr atomic.Pointer[error]
	keysErr       atomic.Pointer[error]
	// away is the number of following requests to the store without an answer. It counts the requests that a refresh
	// makes before it asks the provider.
	away atomic.Int64
	// Hooks that run once, just before a connection is changed or deleted.
	beforeUpdate, beforeDelete atomic.Pointer[func()]
}

func (f *faultyStore) answers() error {
	if f.away.Add(-1) >= 0 {
		return &storage.UnavailableError{Reason: "it does not answer in time"}
	}
	return nil
}

func (f *faultyStore) OAuthClient(ctx context.Context, organization, serverID string) (storage.OAuthClient, error) {
	if err := f.answers(); err != nil {
		return storage.OAuthClient{}, err
	}
	return f.Store.OAuthClient(ctx, organization, serverID)
}

func (f *faultyStore) DataKeys(ctx context.Context) ([]storage.DataKey, error) {
	if err := f.keysErr.Load(); err != nil {
		return nil, *err
	}
	return f.Store.DataKeys(ctx)
}

func (f *faultyStore) UpdateConnection(ctx context.Context, key storage.ConnectionKey, edit func(context.Context, *storage.Connection) error) (storage.Connection, error) {
	if err := f.answers(); err != nil {
		return storage.Connection{}, err
	}
	if happens := f.beforeUpdate.Swap(nil); happens != nil {
		(*happens)()
	}
	return f.Store.UpdateConnection(ctx, key, func(ctx context.Context, c *storage.Connection) error {
		if err := edit(ctx, c); err != nil {
			return err
		}
		if hook := f.afterEdit.Load(); hook != nil {
			return (*hook)()
		}
		return nil
	})
}

func (f *faultyStore) DeleteConnection(ctx context.Context, key storage.ConnectionKey) (storage.Connection, error) {
	if happens := f.beforeDelete.Swap(nil); happens != nil {
		(*happens)()
	}
	return f.Store.DeleteConnection(ctx, key)
}

func (f *faultyStore) AddRevocation(ctx context.Context, v storage.Revocation) error {
	if err := f.revocationErr.Load(); err != nil {
		return *err
	}
	return f.Store.AddRevocation(ctx, v)
}

func (f *faultyStore) PutConnection(ctx context.Context, c storage.Connection) (storage.Connection, error) {
	if err := f.putErr.Load(); err != nil {
		return storage.Connection{}, *err
	}
	return f.Store.PutConnection(ctx, c)
}

func setup(t testing.TB) *bundle {
	t.Helper()
	b := &bundle{t: t, provider: newProvider(t), clock: &clock{}, log: &lockedBuffer{}, counts: &sync.Map{}}
	b.clock.at.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixNano())
	store := sqlitetest.Open(t)
	b.store = &faultyStore{Store: store}
	var err error
	if b.master, err = seal.ParseMasterKey(seal.NewMasterKey()); err != nil {
		t.Fatal(err)
	}
	b.keyring = b.keys()
	org, err := store.ResolveOrganization(t.Context(), storage.OrganizationClaim{Issuer: issuer, ID: uuid.NewString(), Slug: "acme"}, b.clock.now())
	if err != nil {
		t.Fatal(err)
	}
	b.who.OrganizationID = org.ID
	b.who.UserID = b.user("alice")
	b.server = b.makeServer(storage.DirectoryEntry{
		Slug: "demo", URL: b.provider.URL + "/mcp", Provider: storage.ProviderOAuth2, RequiresAuth: true,
	})
	b.key = storage.ConnectionKey{OrganizationID: org.ID, UserID: b.who.UserID, ServerID: b.server.ID}
	b.Broker = b.node()
	return b
}

// keys opens the store's data keys, as another process would.
func (b *bundle) keys() *seal.Keyring {
	b.t.Helper()
	keyring, err := seal.OpenKeyring(b.t.Context(), []seal.MasterKey{b.master}, b.store, b.clock.now)
	if err != nil {
		b.t.Fatal(err)
	}
	return keyring
}

// behind makes a node that does not know the newest data key, with which all others seal from now on.
func (b *bundle) behind() *Broker {
	b.t.Helper()
	b.keyring = b.keys()
	behind := b.node()
	if err := b.store.AddDataKey(b.t.Context(), seal.NewDataKey(b.master, 2, b.clock.now().Add(-time.Minute))); err != nil {
		b.t.Fatal(err)
	}
	b.keyring = b.keys()
	return behind
}

// node makes another broker with the same store, as another process would.
func (b *bundle) node() *Broker {
	b.t.Helper()
	epochs := &cache.Epochs{}
	cancel := b.store.OnChange(epochs.Bump)
	memory, err := NewMemory(epochs, b.clock.now)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { cancel(); memory.Close() })
	return b.over(memory)
}

// over makes another broker with the same memory, as a reload of the configuration does.
func (b *bundle) over(memory *Memory) *Broker {
	b.t.Helper()
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	guard := netguard.New(netguard.Policy{Allow: loopback, HTTP: loopback})
	br, err := New(Config{
		Store: b.store, Keyring: b.keyring, OAuth: oauth.New(guard, b.clock.now), Memory: memory, CheckURL: guard.CheckURL, PublicURL: gatewayURL,
		ReturnURLs: []string{"https://app.example.test/connected"}, Now: b.clock.now, Count: b.count,
		Log: slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(br.Close)
	return br
}

func (b *bundle) count(e Event) {
	n, _ := b.counts.LoadOrStore(e, new(atomic.Int64))
	n.(*atomic.Int64).Add(1)
}

// counted checks the number of events so far. Revocations happen in the background: they count only where they are
// wanted.
func (b *bundle) counted(want map[Event]int64) {
	b.t.Helper()
	got := map[Event]int64{}
	b.counts.Range(func(e, n any) bool {
		if _, wanted := want[e.(Event)]; wanted || !slices.Contains([]Event{Revoked, RevokeFailed, NotRevoked}, e.(Event)) {
			got[e.(Event)] = n.(*atomic.Int64).Load()
		}
		return true
	})
	if diff := cmp.Diff(want, got); diff != "" {
		b.t.Errorf("events (-want +got)\n%s", diff)
	}
}

func (b *bundle) user(name string) string {
	b.t.Helper()
	u, err := b.store.ResolveUser(b.t.Context(), storage.UserClaim{
		OrganizationID: b.who.OrganizationID, Issuer: issuer, Subject: name, DerivedID: uuid.NewString(), Kind: storage.UserPerson,
	}, b.clock.now())
	if err != nil {
		b.t.Fatal(err)
	}
	return u.ID
}

func (b *bundle) makeServer(e storage.DirectoryEntry) storage.Server {
	b.t.Helper()
	now := b.clock.now()
	e.ID, e.OrganizationID, e.Name, e.Protocol, e.Source = uuid.NewString(), b.who.OrganizationID, e.Slug, storage.ProtocolMCP, storage.SourceCustom
	e.CreatedAt, e.UpdatedAt = now, now
	if err := b.store.CreateDirectoryEntry(b.t.Context(), e); err != nil {
		b.t.Fatal(err)
	}
	s := storage.Server{
		ID: uuid.NewString(), OrganizationID: b.who.OrganizationID, Name: e.Slug, Slug: e.Slug, DirectoryID: e.ID,
		Status: storage.ServerActive, CreatedBy: b.who.UserID, CreatedAt: now, UpdatedAt: now,
	}
	if e.Provider == storage.ProviderOAuth2 {
		s.Status = storage.ServerPending
	}
	if err := b.store.CreateServer(b.t.Context(), s); err != nil {
		b.t.Fatal(err)
	}
	return b.reload(s)
}

func (b *bundle) reload(s storage.Server) storage.Server {
	b.t.Helper()
	s, err := b.store.Server(b.t.Context(), s.OrganizationID, s.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// begin starts an attempt.
func (b *bundle) begin() ConnectResult {
	b.t.Helper()
	r, err := b.Connect(b.t.Context(), b.who, b.server, ConnectRequest{ReturnURL: appURL})
	if err != nil {
		b.t.Fatal(err)
	}
	if r.AuthURL == nil {
		b.t.Fatal("no auth_url")
	}
	return r
}

// connect makes the connection.
func (b *bundle) connect() CallbackResult {
	b.t.Helper()
	r, err := b.Callback(b.t.Context(), b.provider.approve(*b.begin().AuthURL), ownBrowser)
	if err != nil || !r.OK {
		b.t.Fatalf("callback: %+v, %v\n%s", r, err, b.log)
	}
	b.server = b.reload(b.server)
	return r
}

func (b *bundle) connection() storage.Connection {
	b.t.Helper()
	c, err := b.store.Connection(b.t.Context(), b.key)
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

func (b *bundle) status() storage.ConnectionStatus {
	b.t.Helper()
	page, err := b.store.Servers(b.t.Context(), storage.ServerFilter{
		OrganizationID: b.who.OrganizationID, UserID: b.who.UserID, ID: b.server.ID, Now: b.clock.now(),
		Page: storage.PageRequest{Number: 1, Limit: 10},
	})
	if err != nil || len(page.Items) != 1 {
		b.t.Fatal(page, err)
	}
	return page.Items[0].ConnectionStatus
}

// header returns the value that a credential puts on a request to the server.
func (b *bundle) header(c Credential) string {
	b.t.Helper()
	u, err := url.Parse(b.server.Entry.URL)
	if err != nil {
		b.t.Fatal(err)
	}
	r := &http1.Request{URL: u}
	if err := c.Apply(r); err != nil {
		b.t.Fatal(err)
	}
	return r.Get("Authorization")
}

// use gets the credential and checks that the third party accepts it.
func (b *bundle) use(br *Broker) Credential {
	b.t.Helper()
	c, err := br.Credential(b.t.Context(), b.key, &b.server)
	if err != nil {
		b.t.Fatalf("credential: %v\n%s", err, b.log)
	}
	if !b.provider.accepts(b.header(c)) {
		b.t.Fatal("the third party does not take the credential")
	}
	return c
}

func (b *bundle) refreshes() int {
	return get(b.provider, func(p *provider) int { return p.refreshes })
}

// settle waits for background work, so that a test can look at its results.
func (b *bundle) settle(cond func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !cond(); {
		if time.Now().After(deadline) {
			b.t.Fatal("did not come about")
		}
		runtime.Gosched() // background work speaks HTTP: there is no channel to wait on
	}
}

func has(s []string, prefix string) bool {
	for _, x := range s {
		if strings.HasPrefix(x, prefix) {
			return true
		}
	}
	return false
}
