package records

import (
	"context"
	"slices"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	budgetColumns = `id, organization_id, created_at, name, name_key, scope_type, scope_id, scope_value, period, amount, alert_percent,
		hard_stop, enabled, updated_at`
	budgetSelect = `SELECT id, organization_id, created_at, name, scope_type, scope_id, scope_value, period, amount, alert_percent,
		hard_stop, enabled, updated_at FROM budgets`
	budgetSQL       = budgetSelect + ` WHERE organization_id = $1 AND id = $2`
	budgetsSQL      = budgetSelect + ` WHERE organization_id = $1 ORDER BY name_key, id`
	insertBudgetSQL = `INSERT INTO budgets (` + budgetColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`
	updateBudgetSQL = `UPDATE budgets SET name = $4, name_key = $5, scope_type = $6, scope_id = $7, scope_value = $8, period = $9, amount = $10,
		alert_percent = $11, hard_stop = $12, enabled = $13, updated_at = $14
		WHERE organization_id = $2 AND id = $1 AND created_at = $3`
	deleteBudgetSQL = `DELETE FROM budgets WHERE organization_id = $1 AND id = $2`

	budgetSpendsSQL = `SELECT organization_id, budget_id, start, subject, cost FROM budget_spends WHERE organization_id = $1 AND start >= $2
		ORDER BY budget_id, start, subject`
	forgetSpendsSQL = `DELETE FROM budget_spends WHERE organization_id = $1 AND budget_id = $2`
)

func scanBudget(r Row) (b storage.Budget, err error) {
	err = r.Scan(&b.ID, &b.OrganizationID, timeColumn{&b.CreatedAt}, &b.Name, &b.Scope.Type, &b.Scope.ID, &b.Scope.Value, &b.Period, &b.Amount,
		&b.AlertPercent, flagColumn{&b.HardStop}, flagColumn{&b.Enabled}, timeColumn{&b.UpdatedAt})
	return b, err
}

// budgetArgs returns comparable values in the order of budgetColumns.
func budgetArgs(b storage.Budget) []any {
	return []any{b.ID, b.OrganizationID, b.CreatedAt.UnixMicro(), b.Name, nameKey(b.Name), b.Scope.Type, b.Scope.ID, b.Scope.Value, b.Period,
		b.Amount, b.AlertPercent, boolean(b.HardStop), boolean(b.Enabled), b.UpdatedAt.UnixMicro()}
}

func scanBudgetSpend(r Row) (b storage.BudgetSpend, err error) {
	err = r.Scan(&b.OrganizationID, &b.BudgetID, timeColumn{&b.Start}, &b.Subject, &b.Cost)
	return b, err
}

// CreateBudget implements storage.Budgets.
func (s usageStore) CreateBudget(ctx context.Context, b storage.Budget) error {
	return s.write(ctx, b.OrganizationID, func(ctx context.Context, tx Tx) error {
		if _, err := tx.Exec(ctx, insertBudgetSQL, budgetArgs(b)...); err != nil {
			return err
		}
		_, err := tx.Change(ctx, b.OrganizationID)
		return err
	})
}

// Budgets implements storage.Budgets.
func (s usageStore) Budgets(ctx context.Context, organization string) (budgets []storage.Budget, err error) {
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		budgets, err = Many(ctx, q, scanBudget, budgetsSQL, organization)
		return err
	})
	return budgets, err
}

// Budget implements storage.Budgets.
func (s usageStore) Budget(ctx context.Context, organization, id string) (b storage.Budget, err error) {
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		b, err = One(ctx, q, scanBudget, budgetSQL, organization, id)
		return err
	})
	return b, err
}

// UpdateBudget implements storage.Budgets.
func (s usageStore) UpdateBudget(ctx context.Context, organization, id string, edit func(*storage.Budget) error) (b storage.Budget, err error) {
	err = s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		former, err := One(ctx, tx, scanBudget, budgetSQL, organization, id)
		if err != nil {
			return err
		}
		b = former
		if err := tx.Edit(func() error { return edit(&b) }); err != nil {
			return err
		}
		b.ID, b.OrganizationID, b.CreatedAt, b.UpdatedAt = former.ID, former.OrganizationID, former.CreatedAt, micros(b.UpdatedAt)
		if slices.Equal(budgetArgs(former), budgetArgs(b)) {
			return nil
		}
		if err := execOne(ctx, tx, updateBudgetSQL, budgetArgs(b)...); err != nil {
			return err
		}
		if b.Scope != former.Scope || b.Period != former.Period {
			if _, err := tx.Exec(ctx, forgetSpendsSQL, organization, id); err != nil {
				return err
			}
		}
		_, err = tx.Change(ctx, organization)
		return err
	})
	if err != nil {
		return storage.Budget{}, err
	}
	return b, nil
}

// DeleteBudget implements storage.Budgets. The spent amounts go with it, by their foreign key.
func (s usageStore) DeleteBudget(ctx context.Context, organization, id string) error {
	return s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		if err := execOne(ctx, tx, deleteBudgetSQL, organization, id); err != nil {
			return err
		}
		_, err := tx.Change(ctx, organization)
		return err
	})
}

// BudgetSpends implements storage.Budgets.
func (s usageStore) BudgetSpends(ctx context.Context, organization string, since time.Time) (spends []storage.BudgetSpend, err error) {
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		spends, err = Many(ctx, q, scanBudgetSpend, budgetSpendsSQL, organization, since.UnixMicro())
		return err
	})
	return spends, err
}
