package metering

import (
	"testing"

	"github.com/durward-gateway/durward/storage"
)

// TestSpendings checks that a subject is told what is spent and reserved of the budgets that decide about its calls, and
// nothing of others'.
func TestSpendings(t *testing.T) {
	store := newMemory()
	d := newDesk(t, store)
	c := call(10)
	store.put(budget("each", storage.Scope{Type: storage.ScopeUser}, storage.BudgetDay, 100))
	store.put(budget("all", storage.Scope{Type: storage.ScopeOrganization}, storage.BudgetMonth, 1000))
	store.put(budget("another's", storage.Scope{Type: storage.ScopeUser, ID: "somebody"}, storage.BudgetDay, 1))
	asReserved(d.reserve(c))
	running := d.reserve(c)
	defer running.Release()
	other := call(7)
	other.Subject.UserID = "somebody else"
	asReserved(d.reserve(other))
	found, err := d.Spendings(t.Context(), c.Organization, c.Subject)
	if err != nil || len(found) != 2 {
		t.Fatalf("%+v, %v", found, err)
	}
	for _, s := range found {
		want := map[string]int64{"each": 10, "all": 17}[s.Budget.ID]
		if s.Spent != want || s.Reserved != 10 || s.Apart != (s.Budget.ID == "each") || !s.Start.Equal(s.Budget.Period.Start(d.now())) {
			t.Errorf("%+v, want %d spent", s, want)
		}
	}
	if none, err := d.Spendings(t.Context(), "another", c.Subject); err != nil || len(none) != 0 {
		t.Errorf("%+v, %v", none, err)
	}
}
