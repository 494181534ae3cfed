package records

import (
	"context"
	"database/sql"
	"slices"

	"github.com/durward-gateway/durward/storage"
)

const (
	rateLimitColumns = `id, organization_id, created_at, name, name_key, scope_type, scope_id, scope_value, traffic_type, enabled,
		requests_per_minute, tokens_per_minute, updated_at`
	rateLimitSelect = `SELECT id, organization_id, created_at, name, scope_type, scope_id, scope_value, traffic_type, enabled,
		requests_per_minute, tokens_per_minute, updated_at FROM rate_limits`
	rateLimitSQL         = rateLimitSelect + ` WHERE organization_id = $1 AND id = $2`
	rateLimitOrder       = ` ORDER BY name_key, id`
	rateLimitsSQL        = rateLimitSelect + ` WHERE organization_id = $1` + rateLimitOrder
	enabledRateLimitsSQL = rateLimitSelect + ` WHERE organization_id = $1 AND enabled = 1` + rateLimitOrder
	insertRateLimitSQL   = `INSERT INTO rate_limits (` + rateLimitColumns + `) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`
	updateRateLimitSQL   = `UPDATE rate_limits SET name = $4, name_key = $5, scope_type = $6, scope_id = $7, scope_value = $8, traffic_type = $9,
		enabled = $10, requests_per_minute = $11, tokens_per_minute = $12, updated_at = $13
		WHERE organization_id = $2 AND id = $1 AND created_at = $3`
	deleteRateLimitSQL = `DELETE FROM rate_limits WHERE organization_id = $1 AND id = $2`
)

func scanRateLimit(r Row) (l storage.RateLimit, err error) {
	err = r.Scan(&l.ID, &l.OrganizationID, timeColumn{&l.CreatedAt}, &l.Name, &l.Scope.Type, &l.Scope.ID, &l.Scope.Value, &l.Traffic, flagColumn{&l.Enabled},
		&l.RequestsPerMinute, &l.TokensPerMinute, timeColumn{&l.UpdatedAt})
	return l, err
}

// rateLimitArgs returns comparable values in the order of rateLimitColumns.
func rateLimitArgs(l storage.RateLimit) []any {
	return []any{l.ID, l.OrganizationID, l.CreatedAt.UnixMicro(), l.Name, nameKey(l.Name), l.Scope.Type, l.Scope.ID, l.Scope.Value, l.Traffic,
		boolean(l.Enabled), optional(l.RequestsPerMinute), optional(l.TokensPerMinute), l.UpdatedAt.UnixMicro()}
}

// optional returns a number that may be null.
func optional(n *int64) sql.NullInt64 {
	if n == nil {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: *n, Valid: true}
}

func clone[T any](v *T) *T {
	if v == nil {
		return nil
	}
	copied := *v
	return &copied
}

// CreateRateLimit implements storage.RateLimits.
func (s rateLimitsStore) CreateRateLimit(ctx context.Context, l storage.RateLimit) error {
	return s.write(ctx, l.OrganizationID, func(ctx context.Context, tx Tx) error {
		if _, err := tx.Exec(ctx, insertRateLimitSQL, rateLimitArgs(l)...); err != nil {
			return err
		}
		_, err := tx.Change(ctx, l.OrganizationID)
		return err
	})
}

// RateLimits implements storage.RateLimits.
func (s rateLimitsStore) RateLimits(ctx context.Context, organization string) (limits []storage.RateLimit, err error) {
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		limits, err = Many(ctx, q, scanRateLimit, rateLimitsSQL, organization)
		return err
	})
	return limits, err
}

// EnabledRateLimits implements storage.RateLimits.
func (s rateLimitsStore) EnabledRateLimits(ctx context.Context, organization string) (limits []storage.RateLimit, err error) {
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		limits, err = Many(ctx, q, scanRateLimit, enabledRateLimitsSQL, organization)
		return err
	})
	return limits, err
}

// RateLimit implements storage.RateLimits.
func (s rateLimitsStore) RateLimit(ctx context.Context, organization, id string) (l storage.RateLimit, err error) {
	err = s.read(ctx, organization, func(ctx context.Context, q Querier) (err error) {
		l, err = One(ctx, q, scanRateLimit, rateLimitSQL, organization, id)
		return err
	})
	return l, err
}

// UpdateRateLimit implements storage.RateLimits.
func (s rateLimitsStore) UpdateRateLimit(ctx context.Context, organization, id string, edit func(*storage.RateLimit) error) (l storage.RateLimit, err error) {
	err = s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		former, err := One(ctx, tx, scanRateLimit, rateLimitSQL, organization, id)
		if err != nil {
			return err
		}
		l = former
		l.RequestsPerMinute, l.TokensPerMinute = clone(l.RequestsPerMinute), clone(l.TokensPerMinute)
		if err := tx.Edit(func() error { return edit(&l) }); err != nil {
			return err
		}
		l.ID, l.OrganizationID, l.CreatedAt, l.UpdatedAt = former.ID, former.OrganizationID, former.CreatedAt, micros(l.UpdatedAt)
		if slices.Equal(rateLimitArgs(former), rateLimitArgs(l)) {
			return nil
		}
		if err := execOne(ctx, tx, updateRateLimitSQL, rateLimitArgs(l)...); err != nil {
			return err
		}
		_, err = tx.Change(ctx, organization)
		return err
	})
	if err != nil {
		return storage.RateLimit{}, err
	}
	return l, nil
}

// DeleteRateLimit implements storage.RateLimits.
func (s rateLimitsStore) DeleteRateLimit(ctx context.Context, organization, id string) error {
	return s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		if err := execOne(ctx, tx, deleteRateLimitSQL, organization, id); err != nil {
			return err
		}
		_, err := tx.Change(ctx, organization)
		return err
	})
}
