package exchange

import (
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/internal/cache/expiring"
	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/seal"
)

const (
	// maxTokens is the largest number of tokens in memory, and maxFailures that of remembered failures.
	maxTokens   = 20_000
	maxFailures = 20_000
	// metadataLifetime is the time for which the endpoints of an identity provider are remembered, and placeLifetime that
	// for the place of a client's secret.
	metadataLifetime = 10 * time.Minute
	placeLifetime    = 24 * time.Hour
	// maxRemembered bounds what is remembered about identity providers and clients.
	maxRemembered = 1_000
)

// Memory holds the tokens and failures that exchangers of several configurations share.
type Memory struct {
	tokens    expiring.Map[key, kept]
	failures  expiring.Map[key, failure]
	providers expiring.Map[string, oauth.Discovery] // by issuer
	places    expiring.Map[clientAt, string]        // the authentication method that works
	versions  atomic.Int64
}

// NewMemory makes a Memory.
func NewMemory() *Memory {
	m := new(Memory)
	m.tokens.Most, m.failures.Most, m.providers.Most, m.places.Most = maxTokens, maxFailures, maxRemembered, maxRemembered
	return m
}

// clientAt names a client at a token endpoint.
type clientAt struct{ endpoint, client string }

// kept is a token in memory.
type kept struct {
	token   seal.Secret
	version int64
	expires time.Time
	at      time.Time
	forced  bool // the server had refused the token before it
}

// These are the lifetimes of tokens in memory.
const (
	// unknownLifetime is that of a token whose end the identity provider does not tell.
	unknownLifetime = time.Minute
	// maxLifetime is the longest: what an identity provider takes from a user shows after that time at the latest.
	maxLifetime = time.Hour
	// earliest is the time before its end at which a token is replaced; a quarter of a short life.
	earliest     = time.Minute
	lifeFraction = 4
)

// keep keeps a token that was got at a time, as long as it may be used.
func (m *Memory) keep(k key, t oauth.Tokens, forced bool, at time.Time) kept {
	made := kept{token: t.Access, version: m.versions.Add(1), expires: t.ExpiresAt, at: at, forced: forced}
	if made.expires.IsZero() {
		made.expires = at.Add(unknownLifetime)
	}
	life := made.expires.Sub(at)
	m.tokens.Set(k, made, at.Add(min(life-min(earliest, life/lifeFraction), maxLifetime)), at)
	return made
}

// Times for which an identity provider that refused or did not answer is left alone, for each proof and server.
const (
	firstWait = 10 * time.Second
	lastWait  = time.Minute
	// failureLifetime is the time after a wait for which a failure is remembered. A failure within it doubles the wait.
	failureLifetime = 10 * time.Minute
)

// failure is a failed exchange.
type failure struct {
	err  error
	wait time.Duration
	next time.Time
}

// failed returns the remembered failure of exchanges that should not be tried yet; nil when there is none.
func (m *Memory) failed(k key, now time.Time) error {
	last, ok := m.failures.Get(k, now)
	if !ok || !now.Before(last.next) {
		return nil
	}
	return waiting(last.err, last.next.Sub(now))
}

// fail remembers a failure, and returns its error. The time to wait doubles with each failure. Up to a quarter is added at
// random, so that users of one identity provider do not come back together.
func (m *Memory) fail(k key, err error, now time.Time) error {
	f := failure{err: err, wait: firstWait}
	if last, ok := m.failures.Get(k, now); ok {
		f.wait = min(2*last.wait, lastWait)
	}
	f.next = now.Add(f.wait + rand.N(f.wait/4)) // #nosec G404 -- no secret depends on it
	m.failures.Set(k, f, f.next.Add(failureLifetime), now)
	return waiting(err, f.next.Sub(now))
}

// waiting returns an error with the time after which a new try makes sense.
func waiting(err error, wait time.Duration) error {
	if away, ok := err.(*connection.UnavailableError); ok { //nolint:errorlint // it is our own
		return &connection.UnavailableError{RetryAfter: wait, Cause: away.Cause}
	}
	return err
}
