package connection

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// CallbackPath is the path below the public URL to which providers send browsers back.
const CallbackPath = "/api/oauth/callback"

// Config holds the settings of a broker. Members without a default must be given.
type Config struct {
	Store   storage.Store
	Keyring *seal.Keyring
	OAuth   Protocol
	// Memory is the state that brokers with the same store share. It outlives the broker.
	Memory *Memory
	// CheckURL refuses addresses that egress does not allow. It is called with the address to which a user's browser is
	// sent, because that address comes from a provider's metadata, which is untrusted.
	CheckURL func(*url.URL) error
	// PublicURL is the gateway's own address, without a slash at the end.
	PublicURL string
	// ReturnURLs lists the addresses that a return_url may begin with: an origin, and a path that matches by whole
	// segments.
	ReturnURLs []string
	// LoopbackReturnURLs also allows every address of this machine as return_url, for development.
	LoopbackReturnURLs bool
	// ClientMetadataURL is the address of our client-id metadata document. Default: the document is not used.
	ClientMetadataURL string
	// ClientName is the name that providers show to users. Default: durward.
	ClientName string
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Count receives every event. Default: events are not counted.
	Count func(Event)
	// Log receives the messages for operators, never a secret. Default: nothing is logged.
	Log *slog.Logger
}

// Event is a change of a connection that is not an action of its user.
type Event string

// Events that are counted.
const (
	Refreshed     Event = "refreshed"
	RefreshFailed Event = "refresh_failed" // the connection stays: a new try, or an administrator, may help
	Broken        Event = "broken"         // its user must connect anew
	Revoked       Event = "revoked"        // the provider was told to forget its tokens
	RevokeFailed  Event = "revoke_failed"  // the provider did not accept the revocation; it is told again
	NotRevoked    Event = "not_revoked"    // the provider never accepted the revocation, or there is no way to tell it
)

// Limits of the broker's own work, independent of any request.
const (
	attemptLifetime = 10 * time.Minute
	undoLifetime    = 10 * time.Minute
	// providerDeadline limits a conversation with a provider (discovery and registration, an exchange, a refresh),
	// together with the write of its result.
	providerDeadline = 30 * time.Second
	revokeDeadline   = 10 * time.Second
	// closeDeadline limits the time that Close waits for revocations and refreshes. The longest refresh takes 10 s.
	closeDeadline = 12 * time.Second
	// revokers is the maximum number of revocations sent at one time. revokersOfOne is the maximum for one
	// organization, whose provider may hang.
	revokers      = 8
	revokersOfOne = 2
	// patience is the maximum time that a caller with a valid token waits for a newer one.
	patience = 3 * time.Second
)

// Broker keeps connections. It is safe for concurrent use.
type Broker struct {
	store      storage.Store
	keyring    *seal.Keyring
	undoTokens *seal.TokenSealer
	oauth      Protocol
	checkURL   func(*url.URL) error
	app        oauth.Application
	returns    returnURLs
	now        func() time.Time
	count      func(Event)
	log        *slog.Logger

	*Memory
	patience  time.Duration
	refreshes singleflight.Group

	// ctx is the context of work that outlives requests. It ends when Close stops waiting.
	ctx     context.Context
	cancel  context.CancelFunc
	closing sync.Mutex
	closed  bool
	ending  chan struct{} // closed together with the broker
	work    sync.WaitGroup
	turns   *turns // turns of revocations
	alarm   *alarm // alarm for revocations to try again
}

// New makes a broker.
func New(c Config) (*Broker, error) {
	if c.Store == nil || c.Keyring == nil || c.OAuth == nil || c.Memory == nil || c.CheckURL == nil {
		return nil, errors.New("broker: Store, Keyring, OAuth, Memory and CheckURL are required")
	}
	if _, err := origin(c.PublicURL); err != nil {
		return nil, fmt.Errorf("reading public URL: %w", err)
	}
	returns, err := parseReturnURLs(c.ReturnURLs, c.LoopbackReturnURLs)
	if err != nil {
		return nil, err
	}
	if c.ClientName == "" {
		c.ClientName = "durward"
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Count == nil {
		c.Count = func(Event) {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	b := &Broker{
		store: c.Store, keyring: c.Keyring, undoTokens: c.Keyring.Sealer("broker undo"), oauth: c.OAuth,
		checkURL: c.CheckURL,
		app: oauth.Application{
			Name: c.ClientName, RedirectURI: strings.TrimRight(c.PublicURL, "/") + CallbackPath, MetadataURL: c.ClientMetadataURL,
		},
		returns: returns, Memory: c.Memory, patience: patience, now: c.Now, count: c.Count, log: c.Log, turns: newTurns(), alarm: newAlarm(),
		ending: make(chan struct{}),
	}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b, nil
}

// Close waits for refreshes and revocations for a limited time, and then stops those that are left. It is idempotent.
func (b *Broker) Close() {
	b.closing.Lock()
	if !b.closed {
		close(b.ending)
	}
	b.closed = true
	b.closing.Unlock()
	done := make(chan struct{})
	go func() { b.work.Wait(); close(done) }()
	timer := time.NewTimer(closeDeadline)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
	b.cancel()
	<-done
}

// begin registers work that Close waits for. It returns false when the broker is closed.
func (b *Broker) begin() bool {
	b.closing.Lock()
	defer b.closing.Unlock()
	if b.closed {
		return false
	}
	b.work.Add(1)
	return true
}

// apart returns a context for work that must not end halfway when the request that began it ends. The context keeps the
// request's values, has its own deadline, and ends with the broker.
func (b *Broker) apart(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d)
	stop := context.AfterFunc(b.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// Who identifies a caller.
type Who struct{ OrganizationID, UserID string }

// keyedLock is a set of locks, one per key in use.
type keyedLock struct {
	mu    sync.Mutex
	locks map[string]*heldLock
}

type heldLock struct {
	sem   chan struct{}
	users int
}

// lock waits for the key's lock until ctx ends.
func (k *keyedLock) lock(ctx context.Context, key string) (unlock func(), err error) {
	k.mu.Lock()
	if k.locks == nil {
		k.locks = map[string]*heldLock{}
	}
	l, ok := k.locks[key]
	if !ok {
		l = &heldLock{sem: make(chan struct{}, 1)}
		k.locks[key] = l
	}
	l.users++
	k.mu.Unlock()
	leave := func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(k.locks, key)
		}
	}
	select {
	case l.sem <- struct{}{}:
		return func() { <-l.sem; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}
