package connection

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/durward-gateway/durward/internal/cache/expiring"
	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// Times for which a provider that did not answer is left alone: at most six attempts a minute for each connection
// (Z-A01).
const (
	firstWait = 10 * time.Second
	lastWait  = time.Minute
	// failureLifetime is the time after a wait for which a failure is remembered. A failure within it doubles the wait.
	failureLifetime = time.Hour
)

// retries remembers the connections whose providers did not answer. The zero value is ready.
type retries struct {
	failures expiring.Map[storage.ConnectionKey, retry]
}

type retry struct {
	wait time.Duration
	next time.Time
}

// wait returns how long to leave the provider alone. 0 means that it may be asked now.
func (r *retries) wait(key storage.ConnectionKey, now time.Time) time.Duration {
	if last, ok := r.failures.Get(key, now); ok {
		return max(0, last.next.Sub(now))
	}
	return 0
}

// failed notes a failure and returns the time to wait now. The time doubles with each failure. Up to a quarter is added
// at random, so that connections of one provider do not come back together.
func (r *retries) failed(key storage.ConnectionKey, now time.Time) time.Duration {
	wait := firstWait
	if last, ok := r.failures.Get(key, now); ok {
		wait = min(2*last.wait, lastWait)
	}
	spread := wait + rand.N(wait/4) // #nosec G404 -- no secret depends on it
	next := now.Add(spread)
	r.failures.Set(key, retry{wait: wait, next: next}, next.Add(failureLifetime), now)
	return spread
}

func (r *retries) forget(key storage.ConnectionKey) { r.failures.Delete(key) }

// unsaved keeps tokens that the store could not take from a provider's answer, until it can. The zero value is ready.
type unsaved struct {
	mu     sync.Mutex
	tokens map[storage.ConnectionKey]unsavedTokens
}

type unsavedTokens struct {
	spent  seal.Secret // the refresh token that was redeemed for them
	tokens oauth.Tokens
	grant  string // the id of their grant
	issued issued
	// The provider's server and our client are kept here, because the connection may end before the tokens are stored.
	server storage.Server
	client storage.OAuthClient
}

func (u *unsaved) put(key storage.ConnectionKey, t unsavedTokens) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.tokens == nil {
		u.tokens = map[storage.ConnectionKey]unsavedTokens{}
	}
	u.tokens[key] = t
}

// take returns the tokens that the provider gave for the refresh token spent.
func (u *unsaved) take(key storage.ConnectionKey, spent seal.Secret) (oauth.Tokens, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	t, ok := u.tokens[key]
	if !ok || !t.spent.Equal(spent) {
		return oauth.Tokens{}, false
	}
	return t.tokens, true
}

func (u *unsaved) get(key storage.ConnectionKey) (t unsavedTokens, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	t, ok = u.tokens[key]
	return t, ok
}

// forget drops and returns the tokens kept for a connection. ok is false when there were none.
func (u *unsaved) forget(key storage.ConnectionKey) (t unsavedTokens, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	t, ok = u.tokens[key]
	delete(u.tokens, key)
	return t, ok
}

// keys lists the connections with tokens kept here.
func (u *unsaved) keys() []storage.ConnectionKey {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Collect(maps.Keys(u.tokens))
}
