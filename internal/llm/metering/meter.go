package metering

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/storage"
)

// Store is the storage of a Meter.
type Store interface {
	// AddUsage adds a batch exactly once, as storage.Usages describes.
	AddUsage(ctx context.Context, batch storage.UsageBatch) (*storage.UsageRefused, error)
	Budgets(ctx context.Context, organization string) ([]storage.Budget, error)
	BudgetSpends(ctx context.Context, organization string, since time.Time) ([]storage.BudgetSpend, error)
}

// Options holds the settings of a Meter.
type Options struct {
	Store Store
	// Epochs says when an organization's budgets have to be read again.
	Epochs *cache.Epochs
	// Dir is a directory for data that is not in the store yet, one directory for each store. Data left in it is sent
	// to the store. Default: the data is only in memory.
	Dir string
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Log returns the logger for messages to operators. It is called each time, because the logger may change. Default:
	// nothing is logged.
	Log func() *slog.Logger
	// Alert is called for budgets that reach their AlertPercent, one at a time. Default: there are no alerts.
	Alert func(Alert)
}

// Times of a Meter.
const (
	// flushEvery is the longest time for which usage is in memory only.
	flushEvery = 3 * time.Second
	// refreshEvery is the longest time for which spending on other nodes may be unknown to this one, from the moment
	// that it is in the store.
	refreshEvery = 5 * time.Second
	// longestPause is the longest pause between two attempts while the store is away, as a multiple of flushEvery.
	longestPause = 20
	// storeTimeout bounds one visit to the store, including the last one when the Meter is closed.
	storeTimeout = 10 * time.Second
	// forgetAfter is the time for which an organization's budgets stay in memory without a call.
	forgetAfter = 10 * time.Minute
)

// keptBudgets is the number of organizations whose compiled budgets are cached.
const keptBudgets = 10_000

// Meter keeps the books. It is safe for concurrent use. Close ends it.
type Meter struct {
	store Store
	now   func() time.Time
	log   func() *slog.Logger
	alert func(Alert)

	epochs *cache.Epochs
	sets   *cache.Cache[*budgetSet]

	mu      sync.Mutex
	ledgers map[string]*ledger // by organization
	book    book
	alerts  []Alert // not delivered yet
	stats   Stats
	unknown map[priced]struct{} // models whose missing price was logged
	started bool
	closed  bool

	// visit holds one element while a goroutine moves data between the store and memory. Data that the holder reads
	// from the store includes exactly the data that was sent there before. The following fields belong to the holder.
	visit   chan struct{}
	node    string
	number  int64
	queue   []*storage.UsageBatch // cut batches that may not be in the store yet
	loose   []*storage.UsageBatch // batches of queue that belong in the spool and are not there yet
	spool   spool
	adopted bool // the batches left in the spool are in the queue

	telling  sync.Mutex // held while alerts are delivered
	wake     chan struct{}
	stop     context.CancelFunc
	stopping context.Context
	running  sync.WaitGroup
}

// New makes a Meter. It starts nothing until there is something to do.
//
// The Meter is a node of its own in the store, under a unique name. So its numbers need not continue those of an
// earlier process, and no file has to record them.
func New(o Options) (*Meter, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = func() *slog.Logger { return slog.New(slog.DiscardHandler) }
	}
	if o.Alert == nil {
		o.Alert = func(Alert) {}
	}
	sets, err := cache.New(o.Epochs, cache.Options[*budgetSet]{Entries: keptBudgets})
	if err != nil {
		return nil, fmt.Errorf("making the cache of budgets: %w", err)
	}
	m := &Meter{
		store: o.Store, now: o.Now, log: o.Log, alert: o.Alert, epochs: o.Epochs, sets: sets, ledgers: make(map[string]*ledger), book: newBook(),
		unknown: make(map[priced]struct{}), visit: make(chan struct{}, 1), node: rand.Text(), spool: spool{o.Dir}, wake: make(chan struct{}, 1),
	}
	m.stopping, m.stop = context.WithCancel(context.Background())
	return m, nil
}

// Call is a call to a model that is about to be made.
type Call struct {
	Organization string
	// Subject selects the budgets. Its user, key, agent, alias and model also name the usage.
	Subject limit.Subject
	// Kind is the kind of the provider, such as "openai" or "anthropic". Kind and name of the provider select the
	// prices.
	Kind string
	// Input and Output hold the expected numbers of tokens, as reserved at rate limits.
	Input, Output int64
	// Uncounted marks a call that the gateway makes for itself in the course of another. Its tokens cost money, but it
	// does not count as a request.
	Uncounted bool
}

// Hold is a call that was let through, with its estimated cost reserved. Its owner must end it with Settle or Release,
// however the call ended. The first of them counts and later ones do nothing. Both are safe on nil and for concurrent
// use, and report whether they were the first.
type Hold struct {
	meter    *Meter
	call     Call
	price    Price
	priced   bool
	at       time.Time
	estimate int64
	aside    int64 // in each of charges: the estimate, or as much as the counters have room for
	charges  []*counter
	ended    bool
}

// Settle records the usage of the call, or the assumed usage when it is not known (attack T07).
func (h *Hold) Settle(used Tokens) bool {
	if h == nil {
		return false
	}
	return h.meter.settle(h, used)
}

// Release records nothing: the provider was not reached, or charged nothing for its answer.
func (h *Hold) Release() bool {
	if h == nil {
		return false
	}
	h.meter.mu.Lock()
	defer h.meter.mu.Unlock()
	return h.end()
}

// end gives back the reserved amount. The caller holds the meter's lock.
func (h *Hold) end() bool {
	if h.ended {
		return false
	}
	h.ended = true
	for _, c := range h.charges {
		c.reserved -= h.aside
		c.holds--
	}
	return true
}

func (m *Meter) settle(h *Hold, used Tokens) bool {
	first, late := m.enterUsed(h, used)
	if late { // independent of the request, which may have ended
		var visit sync.WaitGroup
		visit.Go(m.last)
		visit.Wait()
	}
	return first
}

// enterUsed records the usage of a call, if that was not done yet. late reports that the Meter is closed, and that its
// last visit to the store may be over.
func (m *Meter) enterUsed(h *Hold, used Tokens) (first, late bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !h.end() {
		return false, false
	}
	used = used.sane()
	cost := h.price.Cost(used)
	if !h.priced {
		m.stats.Unpriced++
	}
	counts := storage.UsageCounts{Requests: 1, InputTokens: used.Input, OutputTokens: used.Output, CachedTokens: used.Cached, Cost: cost}
	if h.call.Uncounted {
		counts.Requests = 0
	}
	if m.book.write(&h.call, h.at, counts) {
		m.hurry()
	}
	m.spend(h, cost)
	return true, m.closed
}

// hurry starts the goroutine's next round now.
func (m *Meter) hurry() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Stats holds counts of finished and open work of a Meter.
type Stats struct {
	Batches  int64 // accepted by the store
	Failures int64 // failed attempts to send a batch
	Rows     int64 // that may not be in the store yet
	Aside    int64 // rows and spends that the store could not keep
	Coarse   int64 // requests recorded without user, key and agent, because there were too many rows
	Unpriced int64 // calls to models without a price
	Refused  int64 // calls that a budget refused for lack of room
	Alerts   int64
}

// Stats returns the present numbers.
func (m *Meter) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stats
	s.Rows = int64(len(m.book.rows) + m.book.underway)
	s.Coarse = m.book.coarse
	return s
}

// maxUnknown bounds the number of remembered models without a price.
const maxUnknown = 1_000

// missed logs, once for each model, that it has no price.
func (m *Meter) missed(c *Call) {
	of := priced{c.Kind, c.Subject.ProviderName, c.Subject.Model}
	m.mu.Lock()
	_, known := m.unknown[of]
	known = known || len(m.unknown) >= maxUnknown
	if !known {
		m.unknown[of] = struct{}{}
	}
	m.mu.Unlock()
	if !known {
		m.log().Warn("a model has no price: its calls cost nothing in usage and budgets until the price table names it",
			"kind", of.kind, "provider", of.provider, "model", of.model)
	}
}
