package metering

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const acme = "acme"

// noon of a day in the middle of a month.
var noon = time.Date(2026, 3, 17, 12, 0, 0, 0, time.UTC)

// clock is a time that tests move.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = t
}

// fault is the outcome of an AddUsage.
type fault int

const (
	works       fault = iota
	away              // nothing is committed
	lostItsWord       // it is committed, but the answer is an error
	hangs             // reading the spends never ends by itself
)

var errAway = errors.New("the store is away")

// memory is a store that keeps the promises of storage.Usages and storage.Budgets, and fails when a test says so.
type memory struct {
	mu      sync.Mutex
	epochs  *cache.Epochs
	numbers map[string]int64
	sent    map[string]storage.UsageBatch // by node and number
	changed []string                      // batches that were sent again with other content
	usage   map[storage.Usage]storage.UsageCounts
	budgets []storage.Budget
	spends  map[storage.BudgetSpend]int64 // Cost is 0 in the key
	fault   func() fault
	reads   int

	spendReads int
}

func newMemory() *memory {
	return &memory{
		epochs: new(cache.Epochs), numbers: make(map[string]int64), sent: make(map[string]storage.UsageBatch),
		usage: make(map[storage.Usage]storage.UsageCounts), spends: make(map[storage.BudgetSpend]int64), fault: func() fault { return works },
	}
}

func (m *memory) fail(with func() fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = with
}

func always(f fault) func() fault { return func() fault { return f } }

func (m *memory) AddUsage(_ context.Context, b storage.UsageBatch) (*storage.UsageRefused, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := fmt.Sprint(b.Node, b.Number)
	if b.SentAt.IsZero() {
		m.changed = append(m.changed, name)
	}
	b.SentAt = time.Time{}
	if before, ok := m.sent[name]; ok && !cmp.Equal(before, b) {
		m.changed = append(m.changed, name)
	}
	m.sent[name] = b
	how := m.fault()
	if how == away {
		return nil, errAway
	}
	var refused *storage.UsageRefused
	if b.Number > m.numbers[b.Node] {
		m.numbers[b.Node] = b.Number
		for _, u := range b.Usage {
			if u.Model == poison {
				refused = &storage.UsageRefused{Usage: []storage.Usage{u}, Reason: storage.ErrText}
				continue
			}
			n := u.UsageCounts
			u.UsageCounts = storage.UsageCounts{}
			m.usage[u] = plus(m.usage[u], n)
		}
		for _, s := range b.Spends {
			cost, target := s.Cost, s.Target
			s.Cost, s.Target = 0, storage.BudgetTarget{}
			for _, known := range m.budgets {
				if known.ID == s.BudgetID && known.OrganizationID == s.OrganizationID && known.Target() == target {
					m.spends[s] += cost
				}
			}
		}
	}
	if how == lostItsWord {
		return nil, errAway
	}
	return refused, nil
}

// poison is a model name that a memory cannot keep.
const poison = "poison"

func plus(a, b storage.UsageCounts) storage.UsageCounts {
	return storage.UsageCounts{
		Requests: a.Requests + b.Requests, InputTokens: a.InputTokens + b.InputTokens, OutputTokens: a.OutputTokens + b.OutputTokens,
		CachedTokens: a.CachedTokens + b.CachedTokens, Cost: a.Cost + b.Cost,
	}
}

func (m *memory) Budgets(_ context.Context, organization string) (out []storage.Budget, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	if m.fault() == away {
		return nil, errAway
	}
	for _, b := range m.budgets {
		if b.OrganizationID == organization {
			out = append(out, b)
		}
	}
	return out, nil
}

func (m *memory) BudgetSpends(ctx context.Context, organization string, since time.Time) (out []storage.BudgetSpend, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spendReads++
	switch m.fault() {
	case away:
		return nil, errAway
	case hangs:
		m.mu.Unlock()
		<-ctx.Done()
		m.mu.Lock()
		return nil, ctx.Err()
	}
	for s, cost := range m.spends {
		if s.OrganizationID == organization && !s.Start.Before(since) {
			s.Cost = cost
			out = append(out, s)
		}
	}
	return out, nil
}

// put makes or changes a budget, as the API does.
func (m *memory) put(b storage.Budget) {
	m.mu.Lock()
	found := false
	for i, was := range m.budgets {
		if was.ID == b.ID {
			if was.Scope != b.Scope || was.Period != b.Period {
				for s := range m.spends {
					if s.BudgetID == b.ID {
						delete(m.spends, s)
					}
				}
			}
			m.budgets[i], found = b, true
		}
	}
	if !found {
		m.budgets = append(m.budgets, b)
	}
	m.mu.Unlock()
	m.epochs.Bump(b.OrganizationID)
}

// total returns all usage, and all spends of budgets.
func (m *memory) total() (n storage.UsageCounts) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, counts := range m.usage {
		n = plus(n, counts)
	}
	return n
}

func (m *memory) spent(budget string) (n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for s, cost := range m.spends {
		if s.BudgetID == budget {
			n += cost
		}
	}
	return n
}

// desk is a Meter with such a store.
type desk struct {
	*Meter
	t     testing.TB
	store *memory
	clock *clock

	toldMu sync.Mutex
	told   []Alert
}

func newDesk(t testing.TB, store *memory) *desk {
	t.Helper()
	d := &desk{t: t, store: store, clock: &clock{t: noon}}
	m, err := New(Options{Store: store, Epochs: store.epochs, Now: d.clock.now, Alert: func(a Alert) {
		d.toldMu.Lock()
		defer d.toldMu.Unlock()
		d.told = append(d.told, a)
	}})
	if err != nil {
		t.Fatal(err)
	}
	d.Meter = m
	t.Cleanup(m.Close)
	return d
}

// known returns the known spending of acme from a budget; -1: its ledger was not read yet.
func (d *desk) known(budget string) (n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.ledgers[acme]
	if l == nil {
		return -1
	}
	for of, c := range l.counters {
		if of.budget == budget {
			n += c.spent
		}
	}
	return n
}

// alerted returns the number of alerts.
func (d *desk) alerted() int {
	d.tell()
	d.toldMu.Lock()
	defer d.toldMu.Unlock()
	return len(d.told)
}

func (d *desk) flush() {
	d.t.Helper()
	if err := d.Flush(context.Background()); err != nil {
		d.t.Fatal(err)
	}
}

// even makes prices for the model m: one billionth for a token of input, and ten for one of output.
var even = func() *Prices {
	p, err := Shipped().With([]byte(`{"currency": "EUR", "models": [{"kind": "openai", "model": "m", "input": "0.001", "cached_input": 0, "output": "0.01"}]}`))
	if err != nil {
		panic(err)
	}
	return p
}()

// call returns alice's call to m, with an expected cost of so many billionths.
func call(cost int64) Call {
	return Call{
		Organization: acme, Kind: "openai", Input: cost,
		Subject: limit.Subject{UserID: "alice", APIKeyID: "key", AgentID: "agent", ProviderID: "p", ProviderName: "OpenAI", Model: "m", Alias: "fast"},
	}
}

// reserve lets a call through that must pass.
func (d *desk) reserve(c Call) *Hold {
	d.t.Helper()
	h, refused, err := d.Reserve(context.Background(), c, even)
	if err != nil || refused != nil {
		d.t.Fatalf("refused: %+v, %v", refused, err)
	}
	return h
}

// asReserved settles a call at its reserved tokens.
func asReserved(h *Hold) bool { return h.Settle(Tokens{Input: h.call.Input, Output: h.call.Output}) }

// refuse makes a call that must be refused.
func (d *desk) refuse(c Call) *Refusal {
	d.t.Helper()
	h, refused, err := d.Reserve(context.Background(), c, even)
	if err != nil || refused == nil || h != nil {
		d.t.Fatalf("not refused: %v, %v", h, err)
	}
	return refused
}

// use makes a call that costs so many billionths.
func (d *desk) use(cost int64) {
	d.t.Helper()
	if !d.reserve(call(cost)).Settle(Tokens{Input: cost}) {
		d.t.Error("the first to settle was not the first")
	}
}

// budget returns a hard stop of acme.
func budget(id string, scope storage.Scope, period storage.BudgetPeriod, amount int64) storage.Budget {
	return storage.Budget{
		ID: id, OrganizationID: acme, Name: id, Scope: scope, Period: period, Amount: amount, AlertPercent: 80, HardStop: true, Enabled: true,
	}
}

var wholeOrganization = storage.Scope{Type: storage.ScopeOrganization}
