package records

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	// Writes nothing when the batch was added before.
	takeUsageBatchSQL = `INSERT INTO usage_batches (node, number) VALUES ($1, $2)
		ON CONFLICT (node) DO UPDATE SET number = excluded.number WHERE usage_batches.number < excluded.number`
	addUsageSQL = `INSERT INTO usage_hours (organization_id, hour, user_id, api_key_id, agent_id, model_alias, model, requests, input_tokens,
			output_tokens, cached_tokens, cost)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
		ON CONFLICT (organization_id, hour, user_id, api_key_id, agent_id, model_alias, model) DO UPDATE SET
			requests = usage_hours.requests + excluded.requests, input_tokens = usage_hours.input_tokens + excluded.input_tokens,
			output_tokens = usage_hours.output_tokens + excluded.output_tokens, cached_tokens = usage_hours.cached_tokens + excluded.cached_tokens,
			cost = usage_hours.cost + excluded.cost`

	// $9 is the length of a period in microseconds, or 0; $10 to $14 say what else is grouped by.
	sumUsageSQL = `SELECT $1, CASE WHEN CAST($9 AS BIGINT) = 0 THEN -62135596800000000 ELSE hour - hour % $9 END, CASE WHEN $10 = 1 THEN user_id ELSE '' END,
			CASE WHEN $11 = 1 THEN api_key_id ELSE '' END, CASE WHEN $12 = 1 THEN agent_id ELSE '' END, CASE WHEN $13 = 1 THEN model_alias ELSE '' END,
			CASE WHEN $14 = 1 THEN model ELSE '' END, CAST(sum(requests) AS BIGINT), CAST(sum(input_tokens) AS BIGINT),
			CAST(sum(output_tokens) AS BIGINT), CAST(sum(cached_tokens) AS BIGINT), CAST(sum(cost) AS BIGINT)
		FROM usage_hours WHERE organization_id = $1 AND hour >= $2 AND hour < $3 AND ($4 = '' OR user_id = $4) AND ($5 = '' OR api_key_id = $5)
			AND ($6 = '' OR agent_id = $6) AND ($7 = '' OR model_alias = $7) AND ($8 = '' OR model = $8)
		GROUP BY 2, 3, 4, 5, 6, 7 ORDER BY 2, 3, 4, 5, 6, 7`
)

func (t *texts) usage(d Dialect) {
	// A budget that is being deleted must not get a spend.
	t.addSpend = `INSERT INTO budget_spends (organization_id, budget_id, start, subject, cost)
		SELECT organization_id, id, $3, $4, $5 FROM budgets WHERE organization_id = $1 AND id = $2` + d.ForKeyShare + `
		ON CONFLICT (organization_id, budget_id, start, subject) DO UPDATE SET cost = budget_spends.cost + excluded.cost`
}

func scanUsage(r Row) (u storage.Usage, err error) {
	err = r.Scan(&u.OrganizationID, timeColumn{&u.Hour}, &u.UserID, &u.APIKeyID, &u.AgentID, &u.Alias, &u.Model, &u.Requests, &u.InputTokens,
		&u.OutputTokens, &u.CachedTokens, &u.Cost)
	return u, err
}

// AddUsage implements storage.Usages.
func (s *Store) AddUsage(ctx context.Context, batch storage.UsageBatch) error {
	usage, spends := make([][]any, len(batch.Usage)), make([][]any, len(batch.Spends))
	for i, u := range batch.Usage {
		if min(u.Requests, u.InputTokens, u.OutputTokens, u.CachedTokens, u.Cost) < 0 {
			return errors.New("adding usage: a count is negative")
		}
		usage[i] = []any{u.OrganizationID, u.Hour.UTC().Truncate(time.Hour).UnixMicro(), u.UserID, u.APIKeyID, u.AgentID, u.Alias, u.Model,
			u.Requests, u.InputTokens, u.OutputTokens, u.CachedTokens, u.Cost}
	}
	for i, b := range batch.Spends {
		if b.Cost < 0 {
			return errors.New("adding usage: a cost is negative")
		}
		spends[i] = []any{b.OrganizationID, b.BudgetID, b.Start.UnixMicro(), b.Subject, b.Cost}
	}
	return s.writeAcross(ctx, NoLock, func(ctx context.Context, tx Tx) error {
		err := execOne(ctx, tx, takeUsageBatchSQL, batch.Node, batch.Number)
		if errors.Is(err, storage.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := tx.ExecEach(ctx, addUsageSQL, usage); err != nil {
			return err
		}
		return tx.ExecEach(ctx, s.texts.addSpend, spends)
	})
}

// Usage implements storage.Usages.
func (s *Store) Usage(ctx context.Context, f storage.UsageFilter, by []storage.UsageDimension) (sums []storage.Usage, err error) {
	var period time.Duration
	var others [5]int64
	for _, dimension := range by {
		switch dimension {
		case storage.UsageByHour:
			period = time.Hour
		case storage.UsageByDay:
			period = 24 * time.Hour
		default:
			i := slices.Index(usageDimensions[:], dimension)
			if i < 0 {
				return nil, fmt.Errorf("summing usage: unknown dimension %q", dimension)
			}
			others[i] = 1
		}
	}
	if slices.Contains(by, storage.UsageByHour) && slices.Contains(by, storage.UsageByDay) {
		return nil, errors.New("summing usage: by hour and by day exclude each other")
	}
	from, to := int64(math.MinInt64), int64(math.MaxInt64)
	if !f.From.IsZero() {
		from = f.From.UnixMicro()
	}
	if !f.To.IsZero() {
		to = f.To.UnixMicro()
	}
	err = s.read(ctx, f.OrganizationID, func(ctx context.Context, q Querier) (err error) {
		sums, err = Many(ctx, q, scanUsage, sumUsageSQL, f.OrganizationID, from, to, f.UserID, f.APIKeyID, f.AgentID, f.Alias, f.Model,
			period.Microseconds(), others[0], others[1], others[2], others[3], others[4])
		return err
	})
	return sums, err
}

// usageDimensions are those that sumUsageSQL has flags for, in their order.
var usageDimensions = [5]storage.UsageDimension{storage.UsageByUser, storage.UsageByAPIKey, storage.UsageByAgent, storage.UsageByAlias, storage.UsageByModel}
