package token

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Defaults of KeySetOptions.
const (
	DefaultCoolDown     = 30 * time.Second
	DefaultRetryAfter   = 5 * time.Second
	DefaultMaxAge       = 10 * time.Minute
	DefaultMaxStale     = time.Hour
	DefaultFetchTimeout = 5 * time.Second
)

// KeySetOptions describes a remote key set. A zero duration means its default.
type KeySetOptions struct {
	// Issuer is the issuer's identifier, an https address (or http to this machine). Required.
	Issuer string
	// JWKSURL is the address of the keys; "" to learn it from the issuer's metadata.
	JWKSURL string
	// Client makes the fetches. It must apply the egress rules, because the addresses come from a document. Its
	// redirect rule and cookie jar are not used. Required.
	Client *http.Client
	// CheckURL checks every address before it is fetched; nil allows only https, or http to this machine.
	CheckURL func(*url.URL) error
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Logger gets one line for each failed fetch and for each key that is left out; nil means none.
	Logger *slog.Logger

	// CoolDown is the least time between two fetches that unknown kids cause.
	CoolDown time.Duration
	// RetryAfter is the least time between a failed fetch and the next.
	RetryAfter time.Duration
	// MaxAge is the maximum age of the keys while the issuer answers.
	MaxAge time.Duration
	// MaxStale is the maximum age of the keys while the issuer does not answer.
	MaxStale time.Duration
	// FetchTimeout bounds each request, the reading of the answer included.
	FetchTimeout time.Duration
}

// KeySet holds the key set of an issuer. It fetches the keys when they are first asked for, and use keeps them up to
// date. It is a KeySource, safe for concurrent use.
//
//   - Nothing is fetched before the first question, so that a process starts while its identity provider is down (J28).
//     Without keys the answer is ErrUnavailable; a failed fetch is repeated by the next question after RetryAfter.
//   - One fetch runs at a time, and every caller that needs it waits for it. It does not end when one of them gives up.
//   - From four fifths of MaxAge on, a question starts a refresh and does not wait for it. From MaxAge on it waits,
//     unless the issuer is known to be failing: then keys are served up to MaxStale, and after that ErrUnavailable (J27).
//   - A kid that is not in the set causes a refetch (J25), but only one per CoolDown, whoever asks (J24).
//   - A refresh replaces the set: a key that the issuer has withdrawn is gone (J26, CVE-2025-22149).
type KeySet struct {
	options   KeySetOptions
	issuer    *url.URL
	fetcher   *fetcher
	fetchLife context.Context // of all fetches: none ends with the request that caused it
	stop      context.CancelFunc
	running   sync.WaitGroup

	current atomic.Pointer[snapshot] // nil until the first success

	mu           sync.Mutex
	closed       bool
	flight       *flight   // nil when no fetch runs
	failedAt     time.Time // of the latest fetch, zero when that succeeded
	failure      error     // of that fetch, nil when it succeeded
	unknownAt    time.Time // when an unknown kid last caused a fetch
	jwksURL      *url.URL  // nil until discovered, and again after a failure
	discoveredAt time.Time
}

// snapshot holds one fetched set.
type snapshot struct {
	keys  keyList
	at    time.Time                // when the fetch began: a key withdrawn later may still be in it
	found atomic.Pointer[keyFound] // the last lookup: an issuer signs with one key for months
}

// keyFound holds the result of a lookup by kid and algorithm.
type keyFound struct {
	kid, alg string
	key      crypto.PublicKey
}

// find returns the key for kid and alg. The last result is kept, so that the same question is searched only once.
func (s *snapshot) find(kid, alg string) (crypto.PublicKey, error) {
	if last := s.found.Load(); last != nil && last.kid == kid && last.alg == alg {
		return last.key, nil
	}
	key, err := s.keys.find(kid, alg)
	if key != nil {
		s.found.Store(&keyFound{kid, alg, key})
	}
	return key, err
}

// flight describes a running fetch. Its fields are set before done is closed.
type flight struct {
	done chan struct{}
	err  error
}

var errClosed = errors.New("the key set is closed")

// NewKeySet checks options and returns a set that has fetched nothing yet. The caller must Close it.
func NewKeySet(options KeySetOptions) (*KeySet, error) {
	issuer, err := parseURL(options.Issuer)
	if err != nil {
		return nil, fmt.Errorf("issuer %q: %w", options.Issuer, err)
	}
	if issuer.RawQuery != "" || issuer.ForceQuery {
		return nil, fmt.Errorf("issuer %q: has a query", options.Issuer) // RFC 8414 section 2
	}
	if options.Client == nil {
		return nil, errors.New("an HTTP client is needed")
	}
	if options.CheckURL == nil {
		options.CheckURL = httpsOrLoopback
	}
	if err := options.CheckURL(issuer); err != nil {
		return nil, fmt.Errorf("issuer %q: %w", options.Issuer, err)
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	for _, d := range []struct {
		field    *time.Duration
		standard time.Duration
	}{
		{&options.CoolDown, DefaultCoolDown},
		{&options.RetryAfter, DefaultRetryAfter},
		{&options.MaxAge, DefaultMaxAge},
		{&options.MaxStale, DefaultMaxStale},
		{&options.FetchTimeout, DefaultFetchTimeout},
	} {
		if *d.field < 0 {
			return nil, errors.New("a duration is negative")
		}
		if *d.field == 0 {
			*d.field = d.standard
		}
	}
	s := &KeySet{options: options, issuer: issuer, fetcher: newFetcher(options.Client, options.Issuer, options.CheckURL)}
	if options.JWKSURL != "" {
		if s.jwksURL, err = parseURL(options.JWKSURL); err != nil {
			return nil, fmt.Errorf("key set address %q: %w", options.JWKSURL, err)
		}
		if err := options.CheckURL(s.jwksURL); err != nil {
			return nil, fmt.Errorf("key set address %q: %w", options.JWKSURL, err)
		}
	}
	s.fetchLife, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// Close ends a running fetch and waits for its goroutine. Afterwards every question is answered with ErrUnavailable.
// It may be called more than once.
func (s *KeySet) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.current.Store(nil)
	s.stop()
	s.running.Wait()
}

// Standing returns when the present keys were fetched, zero when there are none, and the error of the last fetch, nil when
// it succeeded. It fetches nothing.
func (s *KeySet) Standing() (fetched time.Time, failure error) {
	if set := s.current.Load(); set != nil {
		fetched = set.at
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return fetched, s.failure
}

// Key implements KeySource. It waits for a fetch only where it must, until ctx is done.
func (s *KeySet) Key(ctx context.Context, kid, alg string) (any, error) {
	set, fetched, err := s.usable(ctx)
	if err != nil {
		return nil, err
	}
	key, err := set.find(kid, alg)
	if key != nil || err != nil {
		return answer(key, err)
	}
	set, err = s.refetch(ctx, set, fetched)
	if err != nil {
		return nil, err
	}
	return answer(set.find(kid, alg))
}

// usable returns keys that may be used, and whether they were fetched for this question.
func (s *KeySet) usable(ctx context.Context) (set *snapshot, fetched bool, err error) {
	now := s.options.Now()
	set = s.current.Load()
	if set != nil && now.Sub(set.at) < s.options.MaxAge*4/5 {
		return set, false, nil
	}
	s.mu.Lock()
	set = s.current.Load() // a fetch may have ended meanwhile
	fresh := set != nil && now.Sub(set.at) < s.options.MaxAge
	stale := set != nil && now.Sub(set.at) < s.options.MaxStale
	if fresh && now.Sub(set.at) < s.options.MaxAge*4/5 {
		s.mu.Unlock()
		return set, false, nil
	}
	failing := s.failure
	running := s.flight
	if running == nil && (failing == nil || now.Sub(s.failedAt) >= s.options.RetryAfter) {
		running = s.start(now)
	}
	s.mu.Unlock()
	switch {
	case fresh, stale && failing != nil:
		return set, false, nil
	case running == nil:
		return nil, false, unavailable("the latest fetch of the keys failed", failing)
	}
	if err := s.wait(ctx, running); err != nil {
		// This is the first failure after a time in which no question caused a refresh. (With ctx done the fetch may
		// still run.)
		if set := s.current.Load(); set != nil && stale && ctx.Err() == nil {
			return set, false, nil
		}
		return nil, false, err
	}
	if set = s.current.Load(); set == nil {
		return nil, false, unavailable("asking for a key", errClosed)
	}
	return set, true, nil
}

// refetch looks for keys newer than old, in which a kid was not found. fetched says that old was fetched for this
// very question. Then the fetch is not repeated, and counts as the one that unknown kids may cause.
func (s *KeySet) refetch(ctx context.Context, old *snapshot, fetched bool) (*snapshot, error) {
	now := s.options.Now()
	s.mu.Lock()
	set := s.current.Load()
	switch {
	case s.closed || set == nil:
		s.mu.Unlock()
		return nil, unavailable("asking for a key", errClosed)
	case fetched:
		s.unknownAt = now
		s.mu.Unlock()
		return set, nil
	case set != old: // another goroutine's refetch has just ended
		s.mu.Unlock()
		return set, nil
	}
	running := s.flight
	if running == nil {
		if !s.unknownAt.IsZero() && now.Sub(s.unknownAt) < s.options.CoolDown {
			failing := s.failure
			s.mu.Unlock()
			if failing != nil { // without the issuer, nothing tells whether the kid is a new one
				return nil, unavailable("an unknown kid while the latest fetch of the keys failed", failing)
			}
			return set, nil
		}
		s.unknownAt = now
		running = s.start(now)
	}
	s.mu.Unlock()
	if err := s.wait(ctx, running); err != nil {
		return nil, err
	}
	if set = s.current.Load(); set == nil {
		return nil, unavailable("asking for a key", errClosed)
	}
	return set, nil
}

// wait waits for a fetch. When ctx is done, the fetch continues for the other callers.
func (s *KeySet) wait(ctx context.Context, f *flight) error {
	select {
	case <-f.done:
	case <-ctx.Done():
		return unavailable("waiting for the keys", context.Cause(ctx))
	}
	if f.err != nil {
		return unavailable("fetching the keys", f.err)
	}
	return nil
}

// start begins a fetch; the caller holds mu. On a closed set it returns a fetch that has already failed.
func (s *KeySet) start(now time.Time) *flight {
	f := &flight{done: make(chan struct{})}
	if s.closed {
		f.err = errClosed
		close(f.done)
		return f
	}
	s.flight = f
	address := s.jwksURL
	if s.options.JWKSURL == "" && now.Sub(s.discoveredAt) >= s.options.MaxStale {
		address = nil // the issuer may have moved its keys
	}
	s.running.Go(func() {
		keys, from, err := s.fetch(s.fetchLife, address)
		s.finish(f, &snapshot{keys: keys, at: now}, from, err)
	})
	return f
}

// finish publishes the result of a fetch.
func (s *KeySet) finish(f *flight, set *snapshot, from *url.URL, err error) {
	if err != nil {
		s.options.Logger.Warn("fetching an identity provider's keys failed", "issuer", s.options.Issuer, "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f.err = err
	s.flight = nil
	switch {
	case s.closed:
		f.err = errClosed
	case err != nil:
		s.failure, s.failedAt = err, s.options.Now()
		if s.options.JWKSURL == "" {
			s.jwksURL = nil
		}
	default:
		if s.jwksURL != from {
			s.jwksURL, s.discoveredAt = from, set.at
		}
		s.failure, s.failedAt = nil, time.Time{}
		s.current.Store(set)
	}
	close(f.done)
}

// fetch gets the keys from address, and returns the address used. When address is nil, fetch discovers it.
func (s *KeySet) fetch(life context.Context, address *url.URL) (keyList, *url.URL, error) {
	if address == nil {
		ctx, cancel := context.WithTimeout(life, s.options.FetchTimeout)
		defer cancel()
		var err error
		if address, err = s.fetcher.discover(ctx, s.issuer); err != nil {
			return nil, nil, err
		}
	}
	ctx, cancel := context.WithTimeout(life, s.options.FetchTimeout)
	defer cancel()
	document, err := s.fetcher.get(ctx, address.String())
	if err != nil {
		return nil, nil, fmt.Errorf("key set: %w", err)
	}
	keys, skipped, err := parseKeys(document)
	if err != nil {
		return nil, nil, err
	}
	for _, why := range skipped {
		s.options.Logger.Debug("a key of an identity provider is not used", "issuer", s.options.Issuer, "reason", why)
	}
	return keys, address, nil
}
