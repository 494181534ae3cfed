package gatewayapi

import (
	"time"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

const defaultAlertPercent = 80

// budgetView is a budget with the amount spent in the current period; when each subject has its own budget, it is the
// amount of the one who spent most.
type budgetView struct {
	ID             string               `json:"id"`
	OrganizationID string               `json:"org_id"`
	Name           string               `json:"name"`
	ScopeType      storage.ScopeType    `json:"scope_type"`
	ScopeID        *string              `json:"scope_id"`
	ScopeValue     *string              `json:"scope_value"`
	Period         storage.BudgetPeriod `json:"period"`
	Amount         amount               `json:"amount"`
	AlertPercent   int                  `json:"alert_percent"`
	HardStop       bool                 `json:"hard_stop"`
	Enabled        bool                 `json:"enabled"`
	CreatedAt      routes.Instant       `json:"created_at"`
	UpdatedAt      routes.Instant       `json:"updated_at"`
	PeriodStart    routes.Instant       `json:"period_start"`
	Spent          amount               `json:"spent"`
	Subjects       *int                 `json:"subjects"` // number of subjects that spent something; null for pools
}

// viewBudgets returns the views of budgets with the spent amounts.
func (q *request) viewBudgets(budgets ...storage.Budget) ([]budgetView, error) {
	q.Core.Usage.Flush(q.Context())
	now := q.now()
	spends, err := q.Core.Store.BudgetSpends(q.Context(), q.Organization(), storage.BudgetMonth.Start(now))
	if err != nil {
		return nil, err
	}
	return views(budgets, func(b storage.Budget) budgetView {
		start := b.Period.Start(now)
		v := budgetView{
			ID: b.ID, OrganizationID: b.OrganizationID, Name: b.Name, ScopeType: b.Scope.Type, ScopeID: routes.Optional(b.Scope.ID),
			ScopeValue: routes.Optional(b.Scope.Value), Period: b.Period, Amount: amount(b.Amount), AlertPercent: b.AlertPercent,
			HardStop: b.HardStop, Enabled: b.Enabled, CreatedAt: routes.Instant(b.CreatedAt), UpdatedAt: routes.Instant(b.UpdatedAt),
			PeriodStart: routes.Instant(start),
		}
		subjects := 0
		for _, s := range spends {
			if s.BudgetID == b.ID && s.Start.Equal(start) {
				v.Spent = max(v.Spent, amount(s.Cost))
				subjects++
			}
		}
		if limit.Apart(b.Scope) {
			v.Subjects = &subjects
		}
		return v
	}), nil
}

func (q *request) viewBudget(b storage.Budget) (any, error) {
	shown, err := q.viewBudgets(b)
	if err != nil {
		return nil, err
	}
	return shown[0], nil
}

// budgetEdit holds the fields of a body about a budget.
type budgetEdit struct {
	name, period      validate.Field[string]
	scope             scopeEdit
	amount, alert     validate.Field[int64]
	hardStop, enabled validate.Field[bool]
}

func readBudget(o *validate.Object, create bool) budgetEdit {
	return budgetEdit{
		name:     o.Name(required(create), maxName),
		scope:    readScope(o, create),
		period:   o.Text("period", validate.Text{Flags: required(create), Enum: []string{string(storage.BudgetDay), string(storage.BudgetMonth)}}),
		amount:   amountField(o, "amount", required(create)),
		alert:    o.Int("alert_percent", validate.Integer{Max: 100}),
		hardStop: o.Bool("hard_stop", 0),
		enabled:  o.Bool("enabled", 0),
	}
}

// apply changes a budget and returns the problems of the whole budget after the change.
func (e budgetEdit) apply(b *storage.Budget) validate.Problems {
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

func listBudgets(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	budgets, err := q.Core.Store.Budgets(q.Context(), q.Organization())
	if err != nil {
		return nil, err
	}
	return q.viewBudgets(budgets...)
}

var budgets = scoped[storage.Budget]{
	unknown: errNoBudget,
	new: func(organization string, now time.Time) storage.Budget {
		return storage.Budget{OrganizationID: organization, AlertPercent: defaultAlertPercent, HardStop: true, Enabled: true, CreatedAt: now, UpdatedAt: now}
	},
	read:   func(o *validate.Object, create bool) edit[storage.Budget] { return readBudget(o, create) },
	view:   (*request).viewBudget,
	fields: func(b *storage.Budget) scopedFields { return scopedFields{&b.ID, &b.UpdatedAt, b.Scope} },

	get: storage.Store.Budget, create: storage.Store.CreateBudget, update: storage.Store.UpdateBudget, remove: storage.Store.DeleteBudget,
}
