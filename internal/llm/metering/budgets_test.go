package metering

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// TestScopes covers attack T10 for money: it checks which budgets a call counts in.
func TestScopes(t *testing.T) {
	const s, other = "the one", "another"
	for _, c := range []struct {
		scope storage.Scope
		set   func(*Call, string)
		each  bool // may count each subject apart
	}{
		{storage.Scope{Type: storage.ScopeUser, ID: s}, func(c *Call, v string) { c.Subject.UserID = v }, true},
		{storage.Scope{Type: storage.ScopeUser, Value: s}, func(c *Call, v string) { c.Subject.UserSub = v }, false},
		{storage.Scope{Type: storage.ScopeUser, Value: s}, func(c *Call, v string) { c.Subject.UserEmail = v }, false},
		{storage.Scope{Type: storage.ScopeRole, Value: s}, func(c *Call, v string) { c.Subject.Roles = []string{"x", v} }, false},
		{storage.Scope{Type: storage.ScopeGroup, Value: s}, func(c *Call, v string) { c.Subject.Groups = []string{v, v} }, false},
		{storage.Scope{Type: storage.ScopeTeam, Value: s}, func(c *Call, v string) { c.Subject.Teams = []string{v} }, false},
		{storage.Scope{Type: storage.ScopeProject, Value: s}, func(c *Call, v string) { c.Subject.Projects = []string{v} }, false},
		{storage.Scope{Type: storage.ScopeAgent, ID: s}, func(c *Call, v string) { c.Subject.AgentID = v }, true},
		{storage.Scope{Type: storage.ScopeAPIKey, ID: s}, func(c *Call, v string) { c.Subject.APIKeyID = v }, true},
		{storage.Scope{Type: storage.ScopeLLMProvider, ID: s}, func(c *Call, v string) { c.Subject.ProviderID = v }, true},
		{storage.Scope{Type: storage.ScopeLLMProvider, Value: s}, func(c *Call, v string) { c.Subject.ProviderName = v }, false},
		{storage.Scope{Type: storage.ScopeModelAlias, Value: s}, func(c *Call, v string) { c.Subject.Alias = v }, true},
	} {
		t.Run(string(c.scope.Type)+c.scope.ID, func(t *testing.T) {
			store := newMemory()
			store.put(budget("named", c.scope, storage.BudgetDay, 100))
			d := newDesk(t, store)
			mine, theirs := call(60), call(60)
			c.set(&mine, s)
			c.set(&theirs, other)
			asReserved(d.reserve(theirs))
			asReserved(d.reserve(mine))
			asReserved(d.reserve(theirs))
			d.refuse(mine)
			asReserved(d.reserve(theirs))
			if !c.each {
				return
			}
			apart := c.scope
			apart.ID, apart.Value = "", ""
			store.put(budget("named", apart, storage.BudgetDay, 100)) // another scope: earlier spends are forgotten
			asReserved(d.reserve(mine))
			r := d.refuse(mine)
			if r.Subject != s || r.Spent != 60 || r.Budget.ID != "named" {
				t.Errorf("%+v", r)
			}
			asReserved(d.reserve(theirs))
			d.refuse(theirs)
		})
	}
	t.Run("org, model, mcp_server", func(t *testing.T) {
		store := newMemory()
		store.put(budget("org", wholeOrganization, storage.BudgetDay, 100))
		store.put(budget("server", storage.Scope{Type: storage.ScopeMCPServer}, storage.BudgetDay, 0)) // of no call to a model
		store.put(budget("model", storage.Scope{Type: storage.ScopeModel}, storage.BudgetDay, 50))
		elsewhere := budget("elsewhere", wholeOrganization, storage.BudgetDay, 0)
		elsewhere.OrganizationID = "globex"
		store.put(elsewhere)
		off := budget("off", wholeOrganization, storage.BudgetDay, 0)
		off.Enabled = false
		store.put(off)
		soft := budget("soft", wholeOrganization, storage.BudgetMonth, 0)
		soft.HardStop = false
		store.put(soft)
		d := newDesk(t, store)
		c := call(50)
		asReserved(d.reserve(c))
		if r := d.refuse(c); r.Budget.ID != "model" {
			t.Errorf("%+v", r)
		}
		d.flush()
		if store.spent("soft") != 50 || store.spent("org") != 50 || store.spent("server") != 0 || store.spent("off") != 0 {
			t.Errorf("%v", store.spends)
		}
	})
}

func TestPeriodsRollOver(t *testing.T) {
	store := newMemory()
	store.put(budget("day", wholeOrganization, storage.BudgetDay, 100))
	store.put(budget("month", wholeOrganization, storage.BudgetMonth, 250))
	d := newDesk(t, store)
	at := func(day, hour, minute int) time.Time {
		return time.Date(2026, 3, day, hour, minute, 59, 999_000_000, time.UTC)
	}
	d.clock.set(at(30, 23, 59))
	d.use(100)
	r := d.refuse(call(1))
	if r.Budget.ID != "day" || r.Seconds() != 1 || r.Message() != "The budget of this day is spent. Retry-After says in how many seconds the next one begins." {
		t.Errorf("%+v", r)
	}
	h := make(http.Header)
	if r.SetHeader(h); h.Get("Retry-After") != "1" {
		t.Errorf("%v", h)
	}
	running := func() *Hold { d.clock.set(at(31, 0, 0)); return d.reserve(call(100)) }()
	d.clock.set(at(31, 23, 58))
	if r := d.refuse(call(1)); r.RetryAfter != whileRunning || r.Message() != "What is left of the budget of this day is set aside for requests that are running. Try again when they have ended." {
		t.Errorf("%+v: %s", r, r.Message())
	}
	d.clock.set(at(31, 23, 59).Add(time.Millisecond)) // the first of April
	d.use(100)
	running.Settle(Tokens{Input: 90}) // belongs to March
	d.flush()
	d.store.epochs.Bump(acme)
	if r := d.refuse(call(1)); r.Spent != 100 || r.Budget.ID != "day" || r.RetryAfter != 24*time.Hour {
		t.Errorf("%+v", r)
	}
	want := map[string]map[int64]int64{
		"day":   {storage.BudgetDay.Start(at(30, 1, 1)).Unix(): 100, storage.BudgetDay.Start(at(31, 1, 1)).Unix(): 90, at(31, 23, 59).Add(time.Millisecond).Unix(): 100},
		"month": {storage.BudgetMonth.Start(at(30, 1, 1)).Unix(): 190, at(31, 23, 59).Add(time.Millisecond).Unix(): 100},
	}
	for s, cost := range store.spends {
		if want[s.BudgetID][s.Start.Unix()] != cost {
			t.Errorf("%s from %s: %d", s.BudgetID, s.Start, cost)
		}
	}
	if len(store.spends) != 5 {
		t.Errorf("%v", store.spends)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.ledgers[acme].counters); n != 2 {
		t.Errorf("%d counters: those of periods that are over are kept", n)
	}
}

// TestMonthIsSpent checks that of two budgets without room, the refusal names the one that takes longer.
func TestMonthIsSpent(t *testing.T) {
	store := newMemory()
	store.put(budget("day", wholeOrganization, storage.BudgetDay, 100))
	store.put(budget("month", wholeOrganization, storage.BudgetMonth, 120))
	d := newDesk(t, store)
	d.use(100)
	d.clock.set(noon.AddDate(0, 0, 1))
	d.use(15)
	r := d.refuse(call(6))
	if r.Budget.ID != "month" || r.RetryAfter != time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC).Sub(d.clock.now()) ||
		r.Message() != "What is left of the budget of this month may not be enough for this request. Ask for fewer tokens." {
		t.Errorf("%+v: %s", r, r.Message())
	}
	d.use(5)
}

// TestNothingToSpend covers W45: no budget stops a call to a model that costs nothing or has no price; a call with a
// cost is stopped.
func TestNothingToSpend(t *testing.T) {
	store := newMemory()
	store.put(budget("none", wholeOrganization, storage.BudgetDay, 0))
	store.put(budget("spent", wholeOrganization, storage.BudgetMonth, 100))
	d := newDesk(t, store)
	prices, err := even.With([]byte(`{"currency": "EUR", "models": [{"kind": "openai", "model": "free", "input": 0, "output": "0.0"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{"without a price", "free"} {
		c := call(1_000_000)
		c.Subject.Model = model
		h, refused, err := d.Reserve(context.Background(), c, prices)
		if err != nil || refused != nil {
			t.Fatalf("%s: %+v %v", model, refused, err)
		}
		h.Settle(Tokens{Input: 1_000_000})
	}
	d.refuse(call(1))
	d.flush()
	if n := store.total(); n.Requests != 2 || n.Cost != 0 || store.spent("spent") != 0 {
		t.Errorf("%+v", n)
	}
}

// TestNothingPassesAHardStop covers attack T01 for money. It makes parallel calls with changing keys, some without
// known usage and some released. The spending may exceed the amount only by the error of the estimates.
func TestNothingPassesAHardStop(t *testing.T) {
	for _, over := range []int64{0, 7} {
		store := newMemory()
		const amount, estimate, workers = 10_000, 25, 8
		store.put(budget("b", storage.Scope{Type: storage.ScopeUser}, storage.BudgetMonth, amount))
		d := newDesk(t, store)
		var spent, passed, holds atomic.Int64
		var all sync.WaitGroup
		for w := range workers {
			all.Go(func() {
				r := rand.New(rand.NewPCG(uint64(w), 1))
				for i := 0; ; i++ {
					c := call(estimate)
					c.Subject.APIKeyID = string(rune('a' + i%26))
					h, refused, err := d.Reserve(context.Background(), c, even)
					switch {
					case err != nil:
						t.Error(err)
						return
					case h != nil && holds.Add(1) > 10*amount:
						t.Error("calls are let through without an end")
						return
					case refused != nil && refused.Spent > amount-estimate:
						return
					case refused != nil:
						continue
					}
					switch r.IntN(6) {
					case 0:
						h.Release()
					case 1:
						asReserved(h)
						spent.Add(estimate)
					default:
						used := r.Int64N(estimate + over + 1)
						if over > 0 {
							used = estimate + over
							passed.Add(over)
						}
						h.Settle(Tokens{Input: used})
						spent.Add(used)
					}
					if r.IntN(50) == 0 {
						_ = d.Flush(context.Background())
						store.epochs.Bump(acme)
					}
				}
			})
		}
		all.Wait()
		d.flush()
		if got := store.spent("b"); got != spent.Load() || got > amount+workers*over || got <= amount-estimate-over {
			t.Errorf("over %d: the store has %d, spent were %d of %d", over, got, spent.Load(), amount)
		}
		d.mu.Lock()
		for _, c := range d.ledgers[acme].counters {
			if c.reserved != 0 || c.holds != 0 || c.spent != spent.Load() {
				t.Errorf("%+v, spent %d", c, spent.Load())
			}
		}
		d.mu.Unlock()
	}
}

func TestAlerts(t *testing.T) {
	store := newMemory()
	b := budget("b", storage.Scope{Type: storage.ScopeUser}, storage.BudgetDay, 1000)
	b.HardStop = false
	store.put(b)
	d := newDesk(t, store)
	d.use(799)
	if d.alerted() != 0 {
		t.Error("too early")
	}
	d.use(1)
	d.use(500)
	d.flush()
	store.epochs.Bump(acme)
	d.use(1)
	if d.alerted() != 1 || d.told[0].Subject != "alice" || d.told[0].Spent != 800 || d.told[0].Budget.ID != "b" || d.told[0].Organization != acme ||
		!d.told[0].Start.Equal(storage.BudgetDay.Start(noon)) {
		t.Errorf("%+v", d.told)
	}
	b.Amount = 10_000
	store.put(b)
	d.use(1)
	b.Amount = 1500
	store.put(b) // it is reached again, by the change
	d.reserve(call(1)).Release()
	if d.alerted() != 2 {
		t.Errorf("%+v", d.told)
	}
	d.clock.set(noon.AddDate(0, 0, 1))
	d.use(1200)
	if d.alerted() != 3 {
		t.Errorf("%+v", d.told)
	}
	b.AlertPercent = 0
	store.put(b)
	d.use(5000)
	if d.alerted() != 3 || d.Stats().Alerts != 3 {
		t.Errorf("%+v", d.told)
	}
	// A node that starts sends no alert for earlier spending.
	b.AlertPercent = 80
	store.put(b)
	d.flush()
	again := newDesk(t, store)
	again.clock.set(d.clock.now())
	again.use(1)
	if again.alerted() != 0 {
		t.Errorf("%+v", again.told)
	}
}

// TestChangesAreInForce checks that a change of a budget applies to the next call.
func TestChangesAreInForce(t *testing.T) {
	store := newMemory()
	d := newDesk(t, store)
	d.use(500) // counted in no budget
	b := budget("b", wholeOrganization, storage.BudgetDay, 100)
	store.put(b)
	d.use(60)
	d.refuse(call(60))
	b.Amount = 120
	store.put(b)
	running := d.reserve(call(60))
	b.Scope = storage.Scope{Type: storage.ScopeUser, ID: "alice"}
	store.put(b)
	d.use(120) // spends of the earlier scope are forgotten
	asReserved(running)
	d.flush()
	if got := store.spent("b"); got != 120 {
		t.Errorf("spent %d: what was spent in another scope is counted", got)
	}
	d.refuse(call(1))
	b.Enabled = false
	store.put(b)
	d.use(1000)
	b.Enabled = true
	store.put(b)
	if r := d.refuse(call(1)); r.Spent != 120 {
		t.Errorf("%+v", r)
	}
	b.HardStop = false
	store.put(b)
	d.use(1000)
}

// TestLateSpends cuts a batch, or spends on a node that has not heard of the change, before a budget's scope changes.
// Spends in the earlier scope must not be added to those of the new one.
func TestLateSpends(t *testing.T) {
	store := newMemory()
	b := budget("b", wholeOrganization, storage.BudgetDay, 1000)
	store.put(b)
	d, unaware := newDesk(t, store), newDesk(t, store)
	d.use(100)
	unaware.use(200)
	store.fail(always(away))
	_ = d.Flush(context.Background()) // cut, and waiting
	b.Scope = storage.Scope{Type: storage.ScopeUser, ID: "alice"}
	store.put(b)
	store.fail(always(works))
	d.flush()
	unaware.flush()
	if got := store.spent("b"); got != 0 {
		t.Errorf("%d of another scope is spent", got)
	}
	d.use(1)
	d.flush()
	if got, total := store.spent("b"), store.total(); got != 1 || total.Cost != 301 {
		t.Errorf("spent %d, used %+v", got, total)
	}
}

// TestTwoNodes checks that spending on another node is known once it is in the store and was read again.
func TestTwoNodes(t *testing.T) {
	store := newMemory()
	store.put(budget("b", wholeOrganization, storage.BudgetDay, 100))
	one, two := newDesk(t, store), newDesk(t, store)
	one.use(10)
	two.use(10)
	one.use(50)
	two.reserve(call(90)).Release() // not known yet
	one.flush()
	two.use(1)
	two.clock.set(noon.Add(refreshEvery))
	two.reserve(call(1)).Release()
	if err := two.round(); err != nil {
		t.Fatal(err)
	}
	if r := two.refuse(call(90)); r.Spent != 71 {
		t.Errorf("%+v", r)
	}
	two.clock.set(noon.Add(time.Hour))
	if err := two.round(); err != nil {
		t.Fatal(err)
	}
	two.mu.Lock()
	n := len(two.ledgers)
	two.mu.Unlock()
	if n != 0 {
		t.Error("budgets that nobody asks for are kept")
	}
	if r := two.refuse(call(90)); r.Spent != 71 {
		t.Errorf("%+v", r)
	}
	if one.node == two.node {
		t.Error("two nodes of one name")
	}
}

// TestNoStore checks that a node that cannot read the spends lets no call through, and that one that has read them goes
// on.
func TestNoStore(t *testing.T) {
	store := newMemory()
	store.put(budget("b", wholeOrganization, storage.BudgetDay, 100))
	d := newDesk(t, store)
	store.fail(always(away))
	if h, refused, err := d.Reserve(t.Context(), call(1), even); h != nil || refused != nil || !errors.Is(err, errAway) {
		t.Errorf("%v, %v, %v", h, refused, err)
	}
	store.fail(always(works))
	d.use(40)
	store.fail(always(away))
	if err := d.Flush(t.Context()); err == nil {
		t.Error("flushed")
	}
	d.use(40)
	if r := d.refuse(call(30)); r.Spent != 80 {
		t.Errorf("%+v", r)
	}
	store.epochs.Bump(acme)
	if _, _, err := d.Reserve(t.Context(), call(1), even); !errors.Is(err, errAway) {
		t.Errorf("%v: its budgets may have changed", err)
	}
	store.fail(always(works))
	if r := d.refuse(call(30)); r.Spent != 80 {
		t.Errorf("%+v", r)
	}
}

// TestStoreHangs checks that no caller waits long for a store that does not answer, whatever the caller's own deadline.
func TestStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newMemory()
		store.put(budget("b", wholeOrganization, storage.BudgetDay, 100))
		d := newDesk(t, store)
		store.fail(always(hangs))
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if h, refused, err := d.Reserve(context.Background(), call(1), even); h != nil || refused != nil || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v, %v, %v", h, refused, err)
				}
			})
		}
		before := time.Now()
		all.Wait()
		if waited := time.Since(before); waited > 2*storeTimeout {
			t.Errorf("they waited for %s", waited)
		}
		store.fail(always(works))
		d.use(1)
		d.Close()
	})
}

// TestNamesOfSubjects checks that spending on a model with any name can be stored and is found again.
func TestNamesOfSubjects(t *testing.T) {
	store := newMemory()
	store.put(budget("b", storage.Scope{Type: storage.ScopeModelAlias}, storage.BudgetDay, 100))
	d := newDesk(t, store)
	c := call(60)
	c.Subject.Alias = "a\x00\xff"
	asReserved(d.reserve(c))
	d.flush()
	store.epochs.Bump(acme)
	if r := d.refuse(c); r.Spent != 60 {
		t.Errorf("%+v", r)
	}
	for s := range store.spends {
		if s.Subject != "a\uFFFD\uFFFD" {
			t.Errorf("%q", s.Subject)
		}
	}
}

func BenchmarkReserveAndSettle(b *testing.B) {
	run := func(b *testing.B, store *memory) {
		d := newDesk(b, store)
		b.ReportAllocs()
		b.RunParallel(func(p *testing.PB) {
			c := call(10)
			for p.Next() {
				h, _, err := d.Reserve(context.Background(), c, even)
				if err != nil {
					b.Error(err)
				}
				h.Settle(Tokens{Input: 1, Output: 1})
			}
		})
	}
	b.Run("no budgets", func(b *testing.B) { run(b, newMemory()) })
	b.Run("four budgets", func(b *testing.B) {
		store := newMemory()
		store.put(budget("org", wholeOrganization, storage.BudgetMonth, 1<<60))
		store.put(budget("day", wholeOrganization, storage.BudgetDay, 1<<60))
		store.put(budget("users", storage.Scope{Type: storage.ScopeUser}, storage.BudgetMonth, 1<<60))
		store.put(budget("alias", storage.Scope{Type: storage.ScopeModelAlias, Value: "fast"}, storage.BudgetMonth, 1<<60))
		run(b, store)
	})
}
