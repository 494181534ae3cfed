package admission

import (
	"context"
	"fmt"
	"reflect"
	"strconv"
	"sync"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/ratelimit/cluster"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/internal/ratelimit/window"
	"github.com/durward-gateway/durward/storage"
)

// Book holds the rate limits of all organizations and the counters of this process. It outlives configurations, so that
// a reload opens no window. It is safe for concurrent use.
type Book struct {
	counters *window.Counters
	kept     func(delta int)

	means   *limit.Means // of answers of models, by alias
	results *limit.Means // of tool results, by server
	store   Store
	epochs  *cache.Epochs

	sets    *cache.Cache[*limit.Set]     // by organization, in their present state
	matches *cache.Cache[*limit.Matched] // by organization and all properties that a limit may be for

	// last holds the previous set of each organization: most writes in an organization change no limit.
	mu   sync.Mutex
	last map[string]compiledLimits

	shared string // the server of the counters that ledger is about
	ledger *cluster.Ledger

	closers  []func() // of the caches
	sweeping sync.WaitGroup
	stop     chan struct{}
}

// Store is the store's part with the rate limits.
type Store interface {
	EnabledRateLimits(ctx context.Context, organization string) ([]storage.RateLimit, error)
}

type compiledLimits struct {
	of  []storage.RateLimit
	set *limit.Set
}

const (
	keptLimitSets = 50_000
	keptMatches   = 200_000 // about 1 KiB each, with four limits
	// sweepLimits is the interval at which counters that nobody charges any more are deleted.
	sweepLimits = 20 * time.Second
)

// nothingMatched is the match for organizations that limit nothing.
var nothingMatched = limit.Compile("", nil).Match(&limit.Subject{})

// NewBook makes a book over the counters of this process. Its cached limits end with epochs. kept is told by how much the
// number of counters has changed since the last sweep.
func NewBook(epochs *cache.Epochs, store Store, counters *window.Counters, kept func(delta int)) (*Book, error) {
	b := &Book{
		counters: counters, kept: kept, means: limit.NewMeans(nil), results: limit.NewMeans(nil),
		store: store, epochs: epochs, stop: make(chan struct{}), last: make(map[string]compiledLimits),
	}
	var err error
	if b.sets, err = newCache[*limit.Set](b, keptLimitSets); err == nil {
		b.matches, err = newCache[*limit.Matched](b, keptMatches)
	}
	if err != nil {
		b.closeCaches()
		return nil, fmt.Errorf("making the caches of rate limits: %w", err)
	}
	b.sweeping.Go(b.sweep)
	return b, nil
}

func newCache[V any](b *Book, entries int64) (*cache.Cache[V], error) {
	made, err := cache.New(b.epochs, cache.Options[V]{Entries: entries})
	if err == nil {
		b.closers = append(b.closers, made.Close)
	}
	return made, err
}

// sweep deletes counters at intervals until the book is closed.
func (b *Book) sweep() {
	ticker := time.NewTicker(sweepLimits)
	defer ticker.Stop()
	known := 0
	defer func() { b.kept(-known) }()
	for {
		select {
		case <-b.stop:
			return
		case <-ticker.C:
			b.counters.Sweep()
			now := b.counters.Len()
			b.kept(now - known)
			known = now
		}
	}
}

// Close ends the sweeping and frees the caches. It must be called once.
func (b *Book) Close() {
	close(b.stop)
	b.sweeping.Wait()
	b.closeCaches()
}

// CountWith returns the ledger of this process's counters at a counter server; "" is no server. The ledger of another
// server is dropped: that server does not hear of calls that pass from now on.
func (b *Book) CountWith(server string) *cluster.Ledger {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ledger == nil || b.shared != server {
		b.shared, b.ledger = server, new(cluster.Ledger)
	}
	return b.ledger
}

// Counters returns the counters of this process.
func (b *Book) Counters() *window.Counters { return b.counters }

func (b *Book) closeCaches() {
	for _, closeCache := range b.closers {
		closeCache()
	}
}

// Set returns the organization's limits that are enforced now. Errors are the store's.
func (b *Book) Set(ctx context.Context, organization string) (*limit.Set, error) {
	return b.sets.Get(ctx, cache.NewKey(organization, "limits"), func(ctx context.Context) (*limit.Set, error) {
		found, err := b.store.EnabledRateLimits(ctx, organization)
		if err != nil {
			return nil, fmt.Errorf("reading rate limits: %w", err)
		}
		return b.compile(organization, found), nil
	})
}

// compile makes a set, unless the organization's last one is equal: the last one remembers the names of subjects.
func (b *Book) compile(organization string, found []storage.RateLimit) *limit.Set {
	b.mu.Lock()
	defer b.mu.Unlock()
	last, known := b.last[organization]
	if known && reflect.DeepEqual(last.of, found) {
		return last.set
	}
	set := limit.Compile(organization, found)
	if known {
		set.Remember(last.set)
	}
	if !known && len(b.last) >= keptLimitSets {
		for other := range b.last { // any entry: only names are lost
			delete(b.last, other)
			break
		}
	}
	if len(found) == 0 {
		delete(b.last, organization)
	} else {
		b.last[organization] = compiledLimits{found, set}
	}
	return set
}

// Matched returns the limits that count a caller's traffic now: a change of limits is in effect before the API has
// answered it. The result may be used for one call. Errors are the store's; on an error the call must not pass.
func (b *Book) Matched(ctx context.Context, organization string, s *limit.Subject) (*limit.Matched, error) {
	set, err := b.Set(ctx, organization)
	if err != nil {
		return nil, err
	}
	if set.Len() == 0 {
		return nothingMatched, nil
	}
	return b.matches.GetAlone(ctx, matchKey(organization, s), func(ctx context.Context) (*limit.Matched, error) {
		// The set is read again, because the match may be kept under a later epoch than that of the first set.
		set, err := b.Set(ctx, organization)
		if err != nil {
			return nil, err
		}
		return set.Match(s), nil
	})
}

// matchKey makes a key from all properties of a subject that limits may be for. Lists go in with their lengths, so that
// no role reads as a group.
func matchKey(organization string, s *limit.Subject) cache.Key {
	var room [32]string
	fields := append(room[:0], string(s.Traffic), s.UserID, s.UserSub, s.UserEmail, s.AgentID, s.APIKeyID, s.ServerID, s.ServerSlug,
		s.ProviderID, s.ProviderName, s.Model, s.Alias, s.Via)
	for _, names := range [...][]string{s.Roles, s.Groups, s.Teams, s.Projects} {
		fields = append(append(fields, strconv.Itoa(len(names))), names...)
	}
	return cache.NewKey(organization, fields...)
}
