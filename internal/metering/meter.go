package metering

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/limit"
	"github.com/durward-gateway/durward/storage"
)

// Store is what a Meter keeps its books in.
type Store interface {
	// AddUsage adds a batch exactly once, as storage.Usages says.
	AddUsage(ctx context.Context, batch storage.UsageBatch) (*storage.UsageRefused, error)
	Budgets(ctx context.Context, organization string) ([]storage.Budget, error)
	BudgetSpends(ctx context.Context, organization string, since time.Time) ([]storage.BudgetSpend, error)
}

// Options of a Meter.
type Options struct {
	Store Store
	// Epochs say when an organization's budgets have to be read again.
	Epochs *cache.Epochs
	// Dir is a directory for what is not in the store yet, one for each store. Whatever is left in it is brought there. Default:
	// it is in memory alone.
	Dir string
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Log is asked where to log what operators should know, each time: who logs may change. Default: nothing is logged.
	Log func() *slog.Logger
	// Alert is told of budgets that reach their AlertPercent, one at a time. Default: nobody is.
	Alert func(Alert)
}

// Times of a Meter.
const (
	// flushEvery is how long what was used may be in memory alone.
	flushEvery = 3 * time.Second
	// refreshEvery is how long a budget's other spenders, on other nodes, may be unknown to this one, from when they are
	// in the store.
	refreshEvery = 5 * time.Second
	// longestPause is the longest pause between two attempts while the store is away, in times of flushEvery.
	longestPause = 20
	// storeTimeout bounds one visit to the store, and the last one when the Meter is closed.
	storeTimeout = 10 * time.Second
	// forgetAfter is how long an organization's budgets are kept in memory without a call.
	forgetAfter = 10 * time.Minute
)

// keptBudgets is the number of organizations whose budgets are kept compiled.
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
	alerts  []Alert // that nobody was told of yet
	stats   Stats
	unknown map[priced]struct{} // models whose price was missed in the log
	started bool
	closed  bool

	// visit is held, as the one element in it, by whoever moves something between the store and memory: what is read there
	// then is known to hold what was sent there, and nothing else. What follows belongs to its holder.
	visit   chan struct{}
	node    string
	number  int64
	queue   []*storage.UsageBatch // that were cut, and are not known to be in the store
	loose   []*storage.UsageBatch // of queue, those that should be in the spool and are not
	spool   spool
	adopted bool // what was left in the spool is in the queue

	telling  sync.Mutex // held while somebody is told of alerts
	wake     chan struct{}
	stop     context.CancelFunc
	stopping context.Context
	running  sync.WaitGroup
}

// New makes a Meter. It starts nothing until there is something to do.
//
// It is a node of its own in the store, under a name that no other has: its numbers need not go on where another process
// has left them, and no file says what they are.
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
	// Subject is what budgets are matched with. Its user, key, agent, alias and model are whose usage it is.
	Subject limit.Subject
	// Kind is the provider's, by which, with its name, prices are found: "openai", "anthropic".
	Kind string
	// Input and Output are how many tokens it is expected to take, as they are reserved at rate limits.
	Input, Output int64
	// Uncounted is a call that the gateway makes for itself in the course of another: its tokens cost, and it is no request.
	Uncounted bool
}

// Hold is a call that was let through, with its estimated cost set aside. Whoever has one ends it with Settle or Release,
// whatever became of the call; the first of them counts and later ones do nothing.
// Both are safe on nil and for concurrent use, and report whether they were the first.
type Hold struct {
	meter    *Meter
	call     Call
	price    Price
	priced   bool
	at       time.Time
	estimate int64
	aside    int64 // in each of charges: the estimate, or what their numbers have room for
	charges  []*counter
	ended    bool
}

// Settle writes down what the call used, or is taken to have used when nobody learnt it (attack T07).
func (h *Hold) Settle(used Tokens) bool {
	if h == nil {
		return false
	}
	return h.meter.settle(h, used)
}

// Release writes nothing down: the provider was not reached, or took nothing for its answer.
func (h *Hold) Release() bool {
	if h == nil {
		return false
	}
	h.meter.mu.Lock()
	defer h.meter.mu.Unlock()
	return h.end()
}

// end gives back what was set aside. The meter's lock is held.
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
	if late { // apart from the request, which may have ended
		var visit sync.WaitGroup
		visit.Go(m.last)
		visit.Wait()
	}
	return first
}

// enterUsed writes down what a call used, if nobody has. late: the Meter is closed, and its last visit to the store may be over.
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

// hurry makes the goroutine begin its next round now.
func (m *Meter) hurry() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Stats are what a Meter has done, and what it has to do.
type Stats struct {
	Batches  int64 // that the store took
	Failures int64 // attempts to send one that ended in an error
	Rows     int64 // that are not known to be in the store
	Aside    int64 // rows and spends that the store could not keep
	Coarse   int64 // requests that were written down without user, key and agent, because there were too many rows
	Unpriced int64 // calls to models without a price
	Refused  int64 // calls that a budget had no room for
	Alerts   int64
}

// Stats returns the numbers of the moment.
func (m *Meter) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.stats
	s.Rows = int64(len(m.book.rows) + m.book.underway)
	s.Coarse = m.book.coarse
	return s
}

// maxUnknown bounds the models that are remembered to have been missed.
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
