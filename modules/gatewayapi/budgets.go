package gatewayapi

import (
	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/llm/llmedit"
	"github.com/durward-gateway/durward/internal/ops/declare"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

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
	Amount         llmedit.Amount       `json:"amount"`
	AlertPercent   int                  `json:"alert_percent"`
	HardStop       bool                 `json:"hard_stop"`
	Enabled        bool                 `json:"enabled"`
	CreatedAt      routes.Instant       `json:"created_at"`
	UpdatedAt      routes.Instant       `json:"updated_at"`
	PeriodStart    routes.Instant       `json:"period_start"`
	Spent          llmedit.Amount       `json:"spent"`
	Subjects       *int                 `json:"subjects"`                  // number of subjects that spent something; null for pools
	ManagedByFile  bool                 `json:"managed_by_file,omitempty"` // an applied file declares it
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
			ManagedByFile: q.ManagedByFile(declare.KindBudget, b.ID),
			ID:            b.ID, OrganizationID: b.OrganizationID, Name: b.Name, ScopeType: b.Scope.Type, ScopeID: routes.Optional(b.Scope.ID),
			ScopeValue: routes.Optional(b.Scope.Value), Period: b.Period, Amount: llmedit.Amount(b.Amount), AlertPercent: b.AlertPercent,
			HardStop: b.HardStop, Enabled: b.Enabled, CreatedAt: routes.Instant(b.CreatedAt), UpdatedAt: routes.Instant(b.UpdatedAt),
			PeriodStart: routes.Instant(start),
		}
		subjects := 0
		for _, s := range spends {
			if s.BudgetID == b.ID && s.Start.Equal(start) {
				v.Spent = max(v.Spent, llmedit.Amount(s.Cost))
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
	new:     llmedit.NewBudget,
	read:    func(o *validate.Object, create bool) edit[storage.Budget] { return llmedit.ReadBudget(o, create) },
	view:    (*request).viewBudget,
	fields:  func(b *storage.Budget) scopedFields { return scopedFields{&b.ID, &b.UpdatedAt, b.Scope} },

	get: storage.Store.Budget, create: storage.Store.CreateBudget, update: storage.Store.UpdateBudget, remove: storage.Store.DeleteBudget,
}
