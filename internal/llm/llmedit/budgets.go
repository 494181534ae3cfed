package llmedit

import (
	"time"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/storage"
)

const defaultAlertPercent = 80

// NewBudget returns a budget with the defaults.
func NewBudget(organization string, now time.Time) storage.Budget {
	return storage.Budget{OrganizationID: organization, AlertPercent: defaultAlertPercent, HardStop: true, Enabled: true, CreatedAt: now, UpdatedAt: now}
}

// BudgetEdit holds what was written about a budget.
type BudgetEdit struct {
	name, period      validate.Field[string]
	scope             scopeEdit
	amount, alert     validate.Field[int64]
	hardStop, enabled validate.Field[bool]
}

// ReadBudget reads a budget.
func ReadBudget(o *validate.Object, create bool) BudgetEdit {
	return BudgetEdit{
		name:     o.Name(required(create), MaxName),
		scope:    readScope(o, create),
		period:   o.Text("period", validate.Text{Flags: required(create), Enum: []string{string(storage.BudgetDay), string(storage.BudgetMonth)}}),
		amount:   amountField(o, "amount", required(create)),
		alert:    o.Int("alert_percent", validate.Integer{Max: 100}),
		hardStop: o.Bool("hard_stop", 0),
		enabled:  o.Bool("enabled", 0),
	}
}

// Apply changes a budget and returns the problems of the whole budget after the change.
func (e BudgetEdit) Apply(b *storage.Budget) validate.Problems {
	set(&b.Name, e.name)
	e.scope.apply(&b.Scope, b.OrganizationID)
	if e.period.Set() {
		b.Period = storage.BudgetPeriod(e.period.Value)
	}
	set(&b.Amount, e.amount)
	if e.alert.Set() {
		b.AlertPercent = int(e.alert.Value)
	}
	set(&b.HardStop, e.hardStop)
	set(&b.Enabled, e.enabled)
	found := checkScope(b.Scope)
	if b.Scope.Type == storage.ScopeMCPServer {
		found = append(found, validate.Problem{Loc: []any{"body", "scope_type"}, Msg: "Value error, calls of servers cost nothing here", Type: validate.ValueError})
	}
	return found
}
