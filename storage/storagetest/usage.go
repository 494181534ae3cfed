package storagetest

import (
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// hour is the beginning of the hour of start.
var hour = start.Truncate(time.Hour)

// used returns the usage of one request.
func used(organization string, at time.Time, user, key, agent, alias, model string) storage.Usage {
	return storage.Usage{OrganizationID: organization, Hour: at, UserID: user, APIKeyID: key, AgentID: agent, Alias: alias, Model: model,
		UsageCounts: counts(1)}
}

func counts(n int64) storage.UsageCounts {
	return storage.UsageCounts{Requests: n, InputTokens: 10 * n, OutputTokens: 100 * n, CachedTokens: 2 * n, Cost: 5 * n}
}

func testUsage(t *testing.T, b *bundle) {
	ctx := t.Context()
	add := func(number int64, usage ...storage.Usage) {
		t.Helper()
		b.addUsage(t, storage.UsageBatch{Node: "node", Number: number, Usage: usage})
	}
	sums := func(f storage.UsageFilter, by ...storage.UsageDimension) []storage.Usage {
		t.Helper()
		f.OrganizationID = b.orgA
		all, err := b.Usage(ctx, f, by)
		noError(t, err)
		return all
	}
	equal(t, sums(storage.UsageFilter{}), nil)
	// These are two batches, with their common part in one row; the time within the hour does not matter.
	add(1, used(b.orgA, start, "u1", "k1", "", "fast", "m1"), used(b.orgA, start.Add(time.Minute), "u1", "k1", "", "fast", "m1"),
		used(b.orgB, start, "u1", "k1", "", "fast", "m1"))
	add(2, used(b.orgA, hour, "u1", "k1", "", "fast", "m1"), used(b.orgA, hour.Add(time.Hour), "u1", "k2", "a1", "fast", "m2"),
		used(b.orgA, hour.Add(24*time.Hour), "u2", "", "a1", "good", "m2"))

	sum := func(n int64, at time.Time, user, key, agent, alias, model string) storage.Usage {
		u := used(b.orgA, at, user, key, agent, alias, model)
		u.UsageCounts = counts(n)
		return u
	}
	none := time.Time{}
	day := hour.Truncate(24 * time.Hour)
	for name, c := range map[string]struct {
		f    storage.UsageFilter
		by   []storage.UsageDimension
		want []storage.Usage
	}{
		"all": {want: []storage.Usage{sum(5, none, "", "", "", "", "")}},
		"by everything": {by: []storage.UsageDimension{storage.UsageByHour, storage.UsageByUser, storage.UsageByAPIKey, storage.UsageByAgent, storage.UsageByAlias, storage.UsageByModel},
			want: []storage.Usage{sum(3, hour, "u1", "k1", "", "fast", "m1"), sum(1, hour.Add(time.Hour), "u1", "k2", "a1", "fast", "m2"),
				sum(1, hour.Add(24*time.Hour), "u2", "", "a1", "good", "m2")}},
		"by day":   {by: []storage.UsageDimension{storage.UsageByDay}, want: []storage.Usage{sum(4, day, "", "", "", "", ""), sum(1, day.Add(24*time.Hour), "", "", "", "", "")}},
		"by hour":  {by: []storage.UsageDimension{storage.UsageByHour}, f: storage.UsageFilter{To: hour.Add(time.Hour)}, want: []storage.Usage{sum(3, hour, "", "", "", "", "")}},
		"by user":  {by: []storage.UsageDimension{storage.UsageByUser}, want: []storage.Usage{sum(4, none, "u1", "", "", "", ""), sum(1, none, "u2", "", "", "", "")}},
		"by key":   {by: []storage.UsageDimension{storage.UsageByAPIKey}, want: []storage.Usage{sum(1, none, "", "", "", "", ""), sum(3, none, "", "k1", "", "", ""), sum(1, none, "", "k2", "", "", "")}},
		"by agent": {by: []storage.UsageDimension{storage.UsageByAgent}, want: []storage.Usage{sum(3, none, "", "", "", "", ""), sum(2, none, "", "", "a1", "", "")}},
		"by alias": {by: []storage.UsageDimension{storage.UsageByAlias}, want: []storage.Usage{sum(4, none, "", "", "", "fast", ""), sum(1, none, "", "", "", "good", "")}},
		"by model": {by: []storage.UsageDimension{storage.UsageByModel}, want: []storage.Usage{sum(3, none, "", "", "", "", "m1"), sum(2, none, "", "", "", "", "m2")}},
		"by two, twice": {by: []storage.UsageDimension{storage.UsageByModel, storage.UsageByUser, storage.UsageByModel},
			want: []storage.Usage{sum(3, none, "u1", "", "", "", "m1"), sum(1, none, "u1", "", "", "", "m2"), sum(1, none, "u2", "", "", "", "m2")}},
		"from":              {f: storage.UsageFilter{From: hour.Add(time.Hour)}, want: []storage.Usage{sum(2, none, "", "", "", "", "")}},
		"from, cut":         {f: storage.UsageFilter{From: hour.Add(1)}, want: []storage.Usage{sum(5, none, "", "", "", "", "")}},
		"from, in the hour": {f: storage.UsageFilter{From: hour.Add(time.Microsecond)}, want: []storage.Usage{sum(2, none, "", "", "", "", "")}},
		"to":                {f: storage.UsageFilter{To: hour.Add(time.Hour)}, want: []storage.Usage{sum(3, none, "", "", "", "", "")}},
		"nothing":           {f: storage.UsageFilter{From: hour.Add(time.Hour), To: hour}},
		"user":              {f: storage.UsageFilter{UserID: "u2"}, want: []storage.Usage{sum(1, none, "", "", "", "", "")}},
		"key":               {f: storage.UsageFilter{APIKeyID: "k1"}, want: []storage.Usage{sum(3, none, "", "", "", "", "")}},
		"agent":             {f: storage.UsageFilter{AgentID: "a1"}, want: []storage.Usage{sum(2, none, "", "", "", "", "")}},
		"alias":             {f: storage.UsageFilter{Alias: "good"}, want: []storage.Usage{sum(1, none, "", "", "", "", "")}},
		"model":             {f: storage.UsageFilter{Model: "m1", Alias: "good"}},
	} {
		t.Run(name, func(t *testing.T) { equal(t, sums(c.f, c.by...), c.want) })
	}
	for _, by := range [][]storage.UsageDimension{{"server"}, {""}, {storage.UsageByHour, storage.UsageByDay}} {
		if _, err := b.Usage(ctx, storage.UsageFilter{OrganizationID: b.orgA}, by); err == nil {
			t.Errorf("summed by %q", by)
		}
	}

	// Batches count exactly once: a batch whose number was there, or is lower, is ignored; every node has its own
	// numbers.
	before := sums(storage.UsageFilter{})
	add(2, used(b.orgA, start, "", "", "", "", ""))
	add(1, used(b.orgA, start, "", "", "", "", ""))
	equal(t, sums(storage.UsageFilter{}), before)
	b.addUsage(t, storage.UsageBatch{Node: "other", Number: 1, Usage: []storage.Usage{used(b.orgA, start, "", "", "", "", "")}})
	equal(t, sums(storage.UsageFilter{})[0].UsageCounts, counts(6))
	add(math.MaxInt64, used(b.orgA, start, "", "", "", "", ""))
	equal(t, sums(storage.UsageFilter{})[0].UsageCounts, counts(7))
}

// addUsage adds a batch and checks that nothing of it is refused.
func (b *bundle) addUsage(t *testing.T, batch storage.UsageBatch) {
	t.Helper()
	refused, err := b.AddUsage(t.Context(), batch)
	noError(t, err)
	if refused != nil {
		t.Fatalf("refused: %+v", refused)
	}
}

// testUsageNodes sends a batch again, and lets a node begin long after another one has sent its last.
func testUsageNodes(t *testing.T, b *bundle) {
	add := func(node string, number int64, at time.Time) {
		t.Helper()
		b.addUsage(t, storage.UsageBatch{Node: node, Number: number, SentAt: at, Usage: []storage.Usage{used(b.orgA, hour, "", "", "", "", "m")}})
	}
	want := func(n int64) {
		t.Helper()
		sums, err := b.Usage(t.Context(), storage.UsageFilter{OrganizationID: b.orgA}, nil)
		noError(t, err)
		equal(t, sums[0].Requests, n)
	}
	add("a", 1, start)
	add("b", 1, start)
	add("b", 2, start.Add(time.Hour))
	want(3)
	end := start.Add(storage.ForgetNodeAfter)
	add("c", 1, end)
	add("a", 1, end) // the node is still known
	want(4)
	add("c", 2, end.Add(time.Minute)) // no node begins
	add("a", 1, end.Add(time.Minute))
	want(5)
	add("d", 1, end.Add(time.Minute))
	add("b", 2, end.Add(time.Minute)) // the node sent again later
	want(6)
	add("a", 1, end.Add(time.Minute)) // the node was deleted
	want(7)
}

// testUsageRefused checks that values that cannot be stored are left out and named, and nothing else of their batch:
// least of all another organization's.
func testUsageRefused(t *testing.T, b *bundle) {
	ctx := t.Context()
	budget := b.budget(t, b.orgA, storage.Scope{Type: storage.ScopeOrganization})
	good := used(b.orgA, start, "u", "k", "a", "x", "m")
	spend := storage.BudgetSpend{OrganizationID: b.orgA, BudgetID: budget.ID, Start: hour, Cost: 1}
	number := int64(0)
	for i, spoil := range []func(*storage.Usage, *storage.BudgetSpend){
		func(u *storage.Usage, _ *storage.BudgetSpend) { u.Requests = -1 },
		func(u *storage.Usage, _ *storage.BudgetSpend) { u.InputTokens = -1 },
		func(u *storage.Usage, _ *storage.BudgetSpend) { u.OutputTokens = math.MinInt64 },
		func(u *storage.Usage, _ *storage.BudgetSpend) { u.CachedTokens = -1 },
		func(u *storage.Usage, _ *storage.BudgetSpend) { u.Cost = -1 },
		func(_ *storage.Usage, s *storage.BudgetSpend) { s.Cost = -1 },
		func(u *storage.Usage, _ *storage.BudgetSpend) { u.Model = "m\x00" },
		func(_ *storage.Usage, s *storage.BudgetSpend) { s.Subject = "\xff" },
	} {
		badUsage, badSpend := good, spend
		spoil(&badUsage, &badSpend)
		number++
		refused, err := b.AddUsage(ctx, storage.UsageBatch{Node: "node", Number: number,
			Usage:  []storage.Usage{good, badUsage, used(b.orgB, start, "u", "k", "a", "x", "m")},
			Spends: []storage.BudgetSpend{badSpend, spend}})
		noError(t, err)
		switch {
		case refused == nil && (mayRefuse(badUsage.Model) || mayRefuse(badSpend.Subject)): // this store keeps such text
		case refused == nil:
			t.Errorf("%d: nothing was refused", i)
		case !storage.Unstorable(refused.Reason):
			t.Errorf("%d: refused for %v", i, refused.Reason)
		case badUsage != good:
			equal(t, refused.Usage, []storage.Usage{badUsage})
			equal(t, refused.Spends, nil)
		default:
			equal(t, refused.Usage, nil)
			equal(t, refused.Spends, []storage.BudgetSpend{badSpend})
		}
		// Its number is taken.
		_, err = b.AddUsage(ctx, storage.UsageBatch{Node: "node", Number: number, Usage: []storage.Usage{good}})
		noError(t, err)
		all, err := b.Usage(ctx, storage.UsageFilter{OrganizationID: b.orgB}, nil)
		noError(t, err)
		equal(t, all[0].UsageCounts, counts(number))
	}
	all, err := b.Usage(ctx, storage.UsageFilter{OrganizationID: b.orgA, Model: "m"}, nil)
	noError(t, err)
	equal(t, all[0].UsageCounts, counts(number+2)) // two had their spend spoilt, not their usage
	spends, err := b.BudgetSpends(ctx, b.orgA, time.Time{})
	noError(t, err)
	i := slices.IndexFunc(spends, func(s storage.BudgetSpend) bool { return s.Subject == "" })
	equal(t, spends[i].Cost, 2*number-2)
}

// testUsageOverflow checks that sums stay at the largest number: in a row, over rows, and of a budget.
func testUsageOverflow(t *testing.T, b *bundle) {
	ctx := t.Context()
	budget := b.budget(t, b.orgA, storage.Scope{Type: storage.ScopeOrganization})
	most := used(b.orgA, start, "u", "k", "a", "x", "m")
	most.UsageCounts = storage.UsageCounts{Requests: math.MaxInt64, InputTokens: math.MaxInt64, OutputTokens: math.MaxInt64, CachedTokens: math.MaxInt64, Cost: math.MaxInt64}
	another := most
	another.Model = "m2"
	spend := storage.BudgetSpend{OrganizationID: b.orgA, BudgetID: budget.ID, Start: hour, Cost: math.MaxInt64}
	for number := range int64(3) {
		b.addUsage(t, storage.UsageBatch{Node: "node", Number: number + 1, Usage: []storage.Usage{most, another, most}, Spends: []storage.BudgetSpend{spend, spend}})
	}
	for _, by := range [][]storage.UsageDimension{nil, {storage.UsageByModel}} {
		all, err := b.Usage(ctx, storage.UsageFilter{OrganizationID: b.orgA}, by)
		noError(t, err)
		for _, u := range all {
			equal(t, u.UsageCounts, most.UsageCounts)
		}
	}
	spends, err := b.BudgetSpends(ctx, b.orgA, time.Time{})
	noError(t, err)
	equal(t, spends, []storage.BudgetSpend{spend})
	// Below the largest number every unit counts.
	for i, n := range []int64{1<<62 - 1, 1<<62 - 6} {
		u := used(b.orgB, start.Add(time.Duration(i)*time.Hour), "u", "k", "a", "x", "m")
		u.Cost = n
		b.addUsage(t, storage.UsageBatch{Node: "node", Number: 10 + int64(i), Usage: []storage.Usage{u}})
	}
	all, err := b.Usage(ctx, storage.UsageFilter{OrganizationID: b.orgB}, nil)
	noError(t, err)
	equal(t, all[0].Cost, math.MaxInt64-6)
}

// testUsageRace adds from several nodes at once, each batch twice: no count is lost and none is there twice.
func testUsageRace(t *testing.T, b *bundle) {
	ctx := t.Context()
	budget := b.budget(t, b.orgA, storage.Scope{Type: storage.ScopeOrganization})
	var all sync.WaitGroup
	for _, node := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
		all.Go(func() {
			for number := range int64(8) {
				var twice sync.WaitGroup
				for range 2 {
					twice.Go(func() {
						if _, err := b.AddUsage(ctx, storage.UsageBatch{Node: node, Number: number, Usage: []storage.Usage{
							used(b.orgA, start, "shared", "", "", "", ""), used(b.orgA, start, node, "", "", "", ""),
						}, Spends: []storage.BudgetSpend{{OrganizationID: b.orgA, BudgetID: budget.ID, Start: hour, Cost: 3}}}); err != nil {
							t.Error(err)
						}
					})
				}
				twice.Wait()
			}
		})
	}
	all.Wait()
	sums, err := b.Usage(ctx, storage.UsageFilter{OrganizationID: b.orgA}, []storage.UsageDimension{storage.UsageByUser})
	noError(t, err)
	equal(t, len(sums), 9)
	for _, u := range sums {
		want := counts(8)
		if u.UserID == "shared" {
			want = counts(64)
		}
		equal(t, u.UsageCounts, want)
	}
	spends, err := b.BudgetSpends(ctx, b.orgA, hour)
	noError(t, err)
	equal(t, spends, []storage.BudgetSpend{{OrganizationID: b.orgA, BudgetID: budget.ID, Start: hour, Cost: 3 * 64}})
}

// newBudget returns an enabled budget with every member set, not stored.
func newBudget(organization, name string, scope storage.Scope, period storage.BudgetPeriod) storage.Budget {
	return storage.Budget{ID: newID(), OrganizationID: organization, Name: name, Scope: scope, Period: period, Amount: 1 << 50, AlertPercent: 80,
		HardStop: true, Enabled: true, CreatedAt: start, UpdatedAt: start.Add(time.Second)}
}

// budget stores a budget of a day.
func (b *bundle) budget(t *testing.T, organization string, scope storage.Scope) storage.Budget {
	t.Helper()
	v := newBudget(organization, "Budget", scope, storage.BudgetDay)
	noError(t, b.CreateBudget(t.Context(), v))
	return v
}

func testBudgets(t *testing.T, b *bundle) {
	ctx := t.Context()
	var all []storage.Budget
	for _, scope := range allScopes {
		for _, period := range []storage.BudgetPeriod{storage.BudgetDay, storage.BudgetMonth} {
			for _, s := range []storage.Scope{{Type: scope}, {Type: scope, ID: b.userA1}, {Type: scope, Value: b.userA1}} {
				v := newBudget(b.orgA, "Budget", s, period)
				noError(t, b.CreateBudget(ctx, v))
				all = append(all, v)
				v.ID = newID()
				wantConflict(t, b.CreateBudget(ctx, v), "scope")
				v.OrganizationID = b.orgB
				noError(t, b.CreateBudget(ctx, v))
			}
		}
	}
	got, err := b.Budgets(ctx, b.orgA)
	noError(t, err)
	equal(t, got, all)
	wantError(t, b.CreateBudget(ctx, newBudget(b.unknown, "Budget", storage.Scope{}, storage.BudgetDay)), storage.ErrNotFound)

	want := all[0]
	update := func(edit func(*storage.Budget)) (storage.Budget, error) {
		return b.UpdateBudget(ctx, b.orgA, want.ID, func(v *storage.Budget) error { edit(v); return nil })
	}
	_, err = update(func(v *storage.Budget) { v.Period = storage.BudgetMonth })
	wantConflict(t, err, "scope")
	refusal := errors.New("refused")
	_, err = b.UpdateBudget(ctx, b.orgA, want.ID, func(v *storage.Budget) error { v.Amount = 1; return refusal })
	wantError(t, err, refusal)
	want.Name, want.Amount, want.AlertPercent, want.HardStop, want.Enabled = "a", 0, 0, false, false
	want.Scope, want.Period, want.UpdatedAt = storage.Scope{Type: storage.ScopeRole, Value: "free"}, storage.BudgetMonth, start.Add(time.Hour)
	edited, err := update(func(v *storage.Budget) {
		*v = want
		v.ID, v.OrganizationID, v.CreatedAt = newID(), b.orgB, start.Add(time.Hour)
	})
	noError(t, err)
	equal(t, edited, want)
	read, err := b.Budget(ctx, b.orgA, want.ID)
	noError(t, err)
	equal(t, read, want)
	got, err = b.Budgets(ctx, b.orgA)
	noError(t, err)
	equal(t, got[0], want)
	noError(t, b.DeleteBudget(ctx, b.orgA, want.ID))
	wantError(t, b.DeleteBudget(ctx, b.orgA, want.ID), storage.ErrNotFound)
}

func testBudgetSpends(t *testing.T, b *bundle) {
	ctx := t.Context()
	budget, other := b.budget(t, b.orgA, storage.Scope{Type: storage.ScopeUser}), b.budget(t, b.orgB, storage.Scope{Type: storage.ScopeUser})
	spend := func(budget storage.Budget, subject string, at time.Time, cost int64) storage.BudgetSpend {
		return storage.BudgetSpend{OrganizationID: budget.OrganizationID, BudgetID: budget.ID, Subject: subject, Start: budget.Period.Start(at), Cost: cost}
	}
	number := int64(0)
	add := func(spends ...storage.BudgetSpend) {
		t.Helper()
		number++
		b.addUsage(t, storage.UsageBatch{Node: "node", Number: number, Spends: spends})
	}
	list := func(organization string, since time.Time) []storage.BudgetSpend {
		t.Helper()
		all, err := b.BudgetSpends(ctx, organization, since)
		noError(t, err)
		return all
	}
	tomorrow := start.Add(24 * time.Hour)
	add(spend(budget, "u2", start, 1), spend(budget, "u1", start, 2), spend(budget, "u1", tomorrow, 4), spend(other, "", start, 8))
	// Spends of a budget that does not exist, or is another organization's, are dropped; the rest of the batch
	// counts.
	foreign, unknown := spend(budget, "u1", start, 1000), spend(budget, "u1", start, 1000)
	foreign.OrganizationID, unknown.BudgetID = b.orgB, b.unknown
	add(foreign, unknown, spend(budget, "u1", start, 10))
	equal(t, list(b.orgA, time.Time{}), []storage.BudgetSpend{spend(budget, "u1", start, 12), spend(budget, "u2", start, 1), spend(budget, "u1", tomorrow, 4)})
	equal(t, list(b.orgA, budget.Period.Start(tomorrow)), []storage.BudgetSpend{spend(budget, "u1", tomorrow, 4)})
	equal(t, list(b.orgB, time.Time{}), []storage.BudgetSpend{spend(other, "", start, 8)})

	_, err := b.UpdateBudget(ctx, b.orgA, budget.ID, func(v *storage.Budget) error { v.Amount, v.Name, v.Enabled = 1, "new", false; return nil })
	noError(t, err)
	equal(t, len(list(b.orgA, time.Time{})), 3)
	for _, edit := range []func(*storage.Budget){
		func(v *storage.Budget) { v.Period = storage.BudgetMonth },
		func(v *storage.Budget) { v.Scope = storage.Scope{Type: storage.ScopeUser, ID: b.userA1} },
	} {
		_, err := b.UpdateBudget(ctx, b.orgA, budget.ID, func(v *storage.Budget) error { edit(v); return nil })
		noError(t, err)
		equal(t, len(list(b.orgA, time.Time{})), 0)
		add(spend(budget, "", start, 1))
		// A spend of the budget's former target comes late.
		late := spend(budget, "", start, 1000)
		late.Target = budget.Target()
		changed, err := b.Budget(ctx, b.orgA, budget.ID)
		noError(t, err)
		own := spend(budget, "", start, 1)
		own.Target = changed.Target()
		add(late, own)
		equal(t, list(b.orgA, time.Time{}), []storage.BudgetSpend{spend(budget, "", start, 2)})
	}
	noError(t, b.DeleteBudget(ctx, b.orgA, budget.ID))
	equal(t, len(list(b.orgA, time.Time{})), 0)
	equal(t, len(list(b.orgB, time.Time{})), 1)
}

func testBudgetPeriods(t *testing.T, _ *bundle) {
	for at, want := range map[string][2]string{
		"2026-02-28T23:59:59.999999Z": {"2026-02-28T00:00:00Z", "2026-02-01T00:00:00Z"},
		"2026-03-01T00:30:00+01:00":   {"2026-02-28T00:00:00Z", "2026-02-01T00:00:00Z"}, // UTC decides
		"2026-12-31T23:00:00-02:00":   {"2027-01-01T00:00:00Z", "2027-01-01T00:00:00Z"},
	} {
		moment, err := time.Parse(time.RFC3339, at)
		noError(t, err)
		for i, period := range []storage.BudgetPeriod{storage.BudgetDay, storage.BudgetMonth} {
			equal(t, period.Start(moment).Format(time.RFC3339), want[i])
		}
	}
}
