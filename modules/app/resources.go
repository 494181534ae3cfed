package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/audit/record"
	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/credential/exchange"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/internal/mcp/conversation"
	"github.com/durward-gateway/durward/internal/mcp/legacysse"
	"github.com/durward-gateway/durward/internal/mcp/pinning"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/mcp/tasks"
	"github.com/durward-gateway/durward/internal/ops/storehealth"
	"github.com/durward-gateway/durward/internal/policy/evaluator"
	"github.com/durward-gateway/durward/internal/ratelimit/admission"
	"github.com/durward-gateway/durward/internal/ratelimit/window"
	"github.com/durward-gateway/durward/modules/app/metrics"
	"github.com/durward-gateway/durward/modules/app/process"
	"github.com/durward-gateway/durward/modules/app/readiness"
	"github.com/durward-gateway/durward/modules/app/usage"
	"github.com/durward-gateway/durward/storage"
)

// pool keeps the values that must outlive a configuration. Each value is keyed by the facts that identify it, so that a
// reload that changes one thing loses nothing else.
var pool = caddy.NewUsagePool()

// desk brings answers of the gateway's own to open streams of MCP 2024-11-05, of any configuration.
var desk legacysse.Desk

// openStreams is shared by all configurations: a stream of an old one ends with its right like any other.
var openStreams streams.Registry

const (
	// openTimeout is the longest time for opening a store without bringing its schema up to date.
	openTimeout = 2 * time.Minute
	// migrateTimeout is the longest time for bringing the schema up to date. A migration that is cut off begins anew, and
	// would never end.
	migrateTimeout = 24 * time.Hour
)

// resources holds a store and everything that is derived from it.
type resources struct {
	lifetime
	store storage.Store
	// remote is the store when its database may be unreachable; nil: it can be used from the beginning.
	remote    storage.RemoteStore
	connected atomic.Bool
	// watch knows whether the store serves.
	watch *storehealth.Watch
	// templates is the digest of the read-only templates of the server directory that were stored last; nil: none were.
	templates atomic.Pointer[string]
	clock     *readiness.Clock
	turns     turns
	keyrings  keyrings
	epochs    *cache.Epochs
	// servers holds the organizations' servers, each with the rules for calls to it.
	servers *evaluator.Memory
	// bearers holds the facts about bearers of tokens and API keys.
	bearers *authn.Memory
	// organization is the id of the organization of the last token; nil: there was none.
	organization atomic.Pointer[string]
	// tasks holds the tasks that calls created at upstreams.
	tasks *tasks.Owners
	// connections holds the facts about connections that the brokers of all configurations share.
	connections *connection.Memory
	// exchanges holds the tokens that identity providers gave for users.
	exchanges *exchange.Memory
	// conversations holds the sessions of MCP that the gateway began.
	conversations *conversation.Memory
	// pins holds the known tools of servers.
	pins *pinning.Memory
	// limits holds the rate limits, with their counters.
	limits *admission.Book
	// models holds the models that organizations' callers can ask for, and the failures of their providers.
	models *accounts.Memory
	// trail is the audit log.
	trail *record.Trail
	// usage holds the usage of models, and the remains of budgets.
	usage *usage.Book
	// tests counts the tests of servers.
	tests *window.Counters
	// closers close the caches.
	closers []func()
}

func (a *App) acquireResources() error {
	key := "store/" + digest(a.store.Key())
	value, _, err := pool.LoadOrNew(key, func() (caddy.Destructor, error) { return openResources(a.store) })
	if err != nil {
		return err
	}
	a.resourceKey, a.resources = key, value.(*resources)
	return a.connectBeforeReplacing()
}

func (a *App) releaseResources() error {
	if a.resources == nil {
		return nil
	}
	a.resources = nil
	_, err := pool.Delete(a.resourceKey)
	return err
}

func openResources(opener StoreOpener) (*resources, error) {
	ctx, cancel := context.WithTimeout(context.Background(), migrateTimeout)
	defer cancel()
	store, err := opener.Open(ctx)
	if err != nil {
		return nil, fmt.Errorf("opening store: %w", err)
	}
	r := &resources{store: store, epochs: new(cache.Epochs), tests: window.New(time.Now), exchanges: exchange.NewMemory(), tasks: &tasks.Owners{Store: store, Now: time.Now},
		trail: record.NewTrail(metrics.WatchAudit, metrics.ForgetAudit)}
	r.remote, _ = store.(storage.RemoteStore)
	r.turns.turn = make(chan struct{}, 1)
	r.clock = readiness.NewClock(time.Now, processLog)
	r.watch = storehealth.New(store.Ping, tellOfStore(processLog), time.Now)
	if err := r.makeCaches(); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	if err := r.openUsage(opener); err != nil {
		r.closeCaches()
		return nil, errors.Join(err, store.Close())
	}
	unsubscribe := store.OnChange(r.epochs.Bump)
	judgeAgain := &streams.Rejudger{Streams: &openStreams, Hold: r.hold}
	unsubscribeJudge := store.OnChange(judgeAgain.Changed)
	unsubscribeClock := func() {}
	if r.remote != nil {
		cancel := r.remote.OnClock(r.clock.Told)
		unsubscribeClock = func() {
			cancel()
			metrics.SetClockAhead(0) // a store that is still open sets it again
		}
	}
	if r.remote == nil {
		r.watch.Start()
	}
	endSweeping := r.sweepTasks()
	r.close = func() {
		endSweeping()
		r.watch.Close()
		metrics.SetStoreFailing(false)
		unsubscribeClock()
		unsubscribeJudge()
		unsubscribe()
		r.closeCaches()
		_ = r.trail.Close() // records that are not shipped stay in the journal
		_ = store.Close()
	}
	return r, nil
}

// processLog returns the log of what outlives configurations.
func processLog() *zap.Logger { return caddy.Log().Named("durward") }

// sweepTasks deletes tasks that are over, at intervals.
func (r *resources) sweepTasks() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var sweeping sync.WaitGroup
	sweeping.Go(func() {
		r.tasks.KeepSweeping(ctx, func(err error) { processLog().Warn("tasks that are over stay in the store", zap.Error(err)) })
	})
	return func() {
		cancel()
		sweeping.Wait()
	}
}

func (r *resources) makeCaches() (err error) {
	defer func() {
		if err != nil {
			r.closeCaches()
		}
	}()
	if r.servers, err = evaluator.NewMemory(r.epochs); err != nil {
		return err
	}
	r.closers = append(r.closers, r.servers.Close)
	r.bearers, err = authn.NewMemory(authn.MemoryOptions{Epochs: r.epochs, Store: r.store, Now: time.Now, NewNotes: func() any { return new(bearerNotes) }})
	if err != nil {
		return fmt.Errorf("making the memory of bearers: %w", err)
	}
	r.closers = append(r.closers, r.bearers.Close)
	if r.pins, err = pinning.NewMemory(r.epochs); err != nil {
		return err
	}
	r.closers = append(r.closers, r.pins.Close)
	if r.conversations, err = conversation.NewMemory(r.epochs); err != nil {
		return err
	}
	r.closers = append(r.closers, r.conversations.Close)
	if r.models, err = accounts.NewMemory(r.epochs, time.Now); err != nil {
		return err
	}
	r.closers = append(r.closers, r.models.Close)
	if r.limits, err = admission.NewBook(r.epochs, r.store, window.New(time.Now), metrics.AddLimitCounters); err != nil {
		return err
	}
	r.closers = append(r.closers, r.limits.Close)
	r.connections, err = connection.NewMemory(r.epochs, time.Now)
	if err != nil {
		return fmt.Errorf("making the memory of connections: %w", err)
	}
	r.closers = append(r.closers, r.connections.Close)
	return nil
}

// usageDirectory is the directory for entries that are not stored yet. It is in the data directory, with one part for
// each store.
const usageDirectory = "usage"

// openUsage opens the book. A configuration that is only tried has a directory of its own. Closing the book stores the
// entries it finds there: entries of the real directory would go into the store of the trial, and be lost.
func (r *resources) openUsage(opener StoreOpener) (err error) {
	dir := LocalDirectory()
	if local, ok := opener.(DataDirectory); ok {
		dir = local.DataDirectory()
	}
	if tried, trying := process.Trial(); trying {
		dir = tried
	}
	if r.usage, err = usage.Open(r.store, r.epochs, filepath.Join(dir, usageDirectory, digest(opener.Key())[:16])); err != nil {
		return err
	}
	r.closers = append(r.closers, r.usage.Close)
	return nil
}

func (r *resources) closeCaches() {
	for _, closeCache := range r.closers {
		closeCache()
	}
}

// Destruct closes the resources after the last request that uses them: a reload that names another store must not cut
// the streams of the old one.
func (r *resources) Destruct() error {
	r.retire()
	return nil
}
