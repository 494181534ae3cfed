package app

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

// Limits holds the rate limits of all organizations: the limits for a call, and the engine that counts it. It is safe
// for concurrent use.
type Limits struct {
	*limitBook
	engine      *limit.Engine
	coordinator *cluster.Coordinator // nil: this node counts alone
}

// limitBook holds the rate limits and their counters. It outlives configurations, so that a reload opens no window.
type limitBook struct {
	counters *window.Counters // of this process

	means   *limit.Means
	results *limit.Means // of tool results, by server
	store   enabledLimits
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

type enabledLimits interface {
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

// NewLimits makes the limits over the counters of this process. Cached limits of the store end with epochs.
func NewLimits(epochs *cache.Epochs, store enabledLimits, counters *window.Counters) (*Limits, error) {
	l := &limitBook{
		counters: counters, means: limit.NewMeans(nil), results: limit.NewMeans(nil),
		store: store, epochs: epochs, stop: make(chan struct{}), last: make(map[string]compiledLimits),
	}
	var err error
	if l.sets, err = limitCache[*limit.Set](l, epochs, keptLimitSets); err == nil {
		l.matches, err = limitCache[*limit.Matched](l, epochs, keptMatches)
	}
	if err != nil {
		l.closeCaches()
		return nil, fmt.Errorf("making the caches of rate limits: %w", err)
	}
	l.sweeping.Go(func() { l.sweep(counters) })
	return &Limits{limitBook: l, engine: limit.NewEngine(limit.Local{Counters: counters})}, nil
}

func limitCache[V any](l *limitBook, epochs *cache.Epochs, entries int64) (*cache.Cache[V], error) {
	made, err := cache.New(epochs, cache.Options[V]{Entries: entries})
	if err == nil {
		l.closers = append(l.closers, made.Close)
	}
	return made, err
}

func (l *limitBook) sweep(counters *window.Counters) {
	ticker := time.NewTicker(sweepLimits)
	defer ticker.Stop()
	kept := 0
	defer func() { limitCounters.Sub(float64(kept)) }()
	for {
		select {
		case <-l.stop:
			return
		case <-ticker.C:
			counters.Sweep()
			limitCounters.Add(float64(counters.Len() - kept))
			kept = counters.Len()
		}
	}
}

// Close ends the sweeping and frees the caches. It must be called once.
func (l *limitBook) Close() {
	close(l.stop)
	l.sweeping.Wait()
	l.closeCaches()
}

// countWith returns the ledger of this process's counters at a counter server; "" is no server. The ledger of another
// server is dropped: that server does not hear of calls that pass from now on.
func (l *limitBook) countWith(server string) *cluster.Ledger {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ledger == nil || l.shared != server {
		l.shared, l.ledger = server, new(cluster.Ledger)
	}
	return l.ledger
}

func (l *limitBook) closeCaches() {
	for _, closeCache := range l.closers {
		closeCache()
	}
}

// Engine returns the engine that counts calls, in the counters that enforce limits.
func (l *Limits) Engine() *limit.Engine { return l.engine }

// Means returns the mean sizes of the answers of aliases of models.
func (l *limitBook) Means() *limit.Means { return l.means }

// Set returns the organization's limits that are enforced now. Errors are the store's.
func (l *limitBook) Set(ctx context.Context, organization string) (*limit.Set, error) {
	return l.sets.Get(ctx, cache.NewKey(organization, "limits"), func(ctx context.Context) (*limit.Set, error) {
		found, err := l.store.EnabledRateLimits(ctx, organization)
		if err != nil {
			return nil, fmt.Errorf("reading rate limits: %w", err)
		}
		return l.compile(organization, found), nil
	})
}

// compile makes a set, unless the organization's last one is equal: the last one remembers the names of subjects.
func (l *limitBook) compile(organization string, found []storage.RateLimit) *limit.Set {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, known := l.last[organization]
	if known && reflect.DeepEqual(last.of, found) {
		return last.set
	}
	set := limit.Compile(organization, found)
	if known {
		set.Remember(last.set)
	}
	if !known && len(l.last) >= keptLimitSets {
		for other := range l.last { // any entry: only names are lost
			delete(l.last, other)
			break
		}
	}
	if len(found) == 0 {
		delete(l.last, organization)
	} else {
		l.last[organization] = compiledLimits{found, set}
	}
	return set
}

// Matched returns the limits that count a caller's traffic now: a change of limits is in effect before the API has
// answered it. The result may be used for one call. Errors are the store's; on an error the call must not pass.
func (l *limitBook) Matched(ctx context.Context, organization string, s *limit.Subject) (*limit.Matched, error) {
	set, err := l.Set(ctx, organization)
	if err != nil {
		return nil, err
	}
	if set.Len() == 0 {
		return nothingMatched, nil
	}
	return l.matches.GetAlone(ctx, matchKey(organization, s), func(ctx context.Context) (*limit.Matched, error) {
		// The set is read again, because the match may be kept under a later epoch than that of the first set.
		set, err := l.Set(ctx, organization)
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
