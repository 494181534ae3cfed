package declare

import (
	"context"
	"fmt"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/llm/llmedit"
	"github.com/durward-gateway/durward/storage"
)

// These are the kinds of changes of rate limits and budgets.
const (
	KindLimit  = "rate_limit"
	KindBudget = "budget"
)

// limitKey identifies a rate limit: an organization has one for each. Names are free to change, and may be the same.
type limitKey struct {
	scope   storage.Scope
	traffic storage.TrafficType
}

// scopesDeclared holds what rate limits and budgets of the files are for.
type scopesDeclared struct {
	limits  map[limitKey]bool
	budgets map[storage.BudgetTarget]bool
}

func (p *planner) planLimits(d *document, whole *validate.Object) {
	read, _ := objects(d, whole, limitsMember)
	for _, o := range read {
		if o == nil {
			continue
		}
		v := llmedit.NewLimit(p.organization, p.now)
		noted(o, llmedit.ReadLimit(o, true).Apply(&v).Err())
		o.Only()
		key := limitKey{v.Scope, v.Traffic}
		if p.scopes.limits[key] {
			o.Report(validate.ValueError, fmt.Sprintf("a rate limit for the same scope and %s traffic is declared already", v.Traffic), "scope_type")
			continue
		}
		p.scopes.limits[key] = true
		p.planLimit(o, v)
	}
}

func (p *planner) planLimit(o *validate.Object, v storage.RateLimit) {
	for _, present := range p.limits {
		if (limitKey{present.Scope, present.Traffic}) != (limitKey{v.Scope, v.Traffic}) {
			continue
		}
		v.ID = present.ID
		p.manages(KindLimit, v.ID)
		fields, err := differences(p.names.formOfLimit(present), p.names.formOfLimit(v))
		if len(fields) == 0 && err == nil {
			return
		}
		p.add(o, err, Change{Action: Update, Kind: KindLimit, Name: v.Name, Fields: fields, id: v.ID, do: func(ctx context.Context) error {
			_, err := p.Store.UpdateRateLimit(ctx, p.organization, v.ID, func(is *storage.RateLimit) error {
				*is = v
				return nil
			})
			return err
		}})
		return
	}
	v.ID = newID()
	p.manages(KindLimit, v.ID)
	fields, err := differences(struct{}{}, p.names.formOfLimit(v))
	p.add(o, err, Change{Action: Create, Kind: KindLimit, Name: v.Name, Fields: fields, id: v.ID, do: func(ctx context.Context) error {
		return p.Store.CreateRateLimit(ctx, v)
	}})
}

func (p *planner) planBudgets(d *document, whole *validate.Object) {
	read, _ := objects(d, whole, budgetsMember)
	for _, o := range read {
		if o == nil {
			continue
		}
		v := llmedit.NewBudget(p.organization, p.now)
		noted(o, llmedit.ReadBudget(o, true).Apply(&v).Err())
		o.Only()
		if p.scopes.budgets[v.Target()] {
			o.Report(validate.ValueError, fmt.Sprintf("a budget for the same scope and %s is declared already", v.Period), "scope_type")
			continue
		}
		p.scopes.budgets[v.Target()] = true
		p.planBudget(o, v)
	}
}

func (p *planner) planBudget(o *validate.Object, v storage.Budget) {
	for _, present := range p.budgets {
		if present.Target() != v.Target() {
			continue
		}
		v.ID = present.ID
		p.manages(KindBudget, v.ID)
		fields, err := differences(p.names.formOfBudget(present), p.names.formOfBudget(v))
		if len(fields) == 0 && err == nil {
			return
		}
		p.add(o, err, Change{Action: Update, Kind: KindBudget, Name: v.Name, Fields: fields, id: v.ID, do: func(ctx context.Context) error {
			_, err := p.Store.UpdateBudget(ctx, p.organization, v.ID, func(is *storage.Budget) error {
				*is = v
				return nil
			})
			return err
		}})
		return
	}
	v.ID = newID()
	p.manages(KindBudget, v.ID)
	fields, err := differences(struct{}{}, p.names.formOfBudget(v))
	p.add(o, err, Change{Action: Create, Kind: KindBudget, Name: v.Name, Fields: fields, id: v.ID, do: func(ctx context.Context) error {
		return p.Store.CreateBudget(ctx, v)
	}})
}
