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
	// largest is the largest number of a column. A sum above it stays there: SQLite would make a REAL of it and
	// PostgreSQL an error, and no amount is negative.
	largest = `9223372036854775807`

	// This writes nothing when the batch was added before.
	takeUsageBatchSQL = `INSERT INTO usage_batches (node, number, added_at) VALUES ($1, $2, $3)
		ON CONFLICT (node) DO UPDATE SET number = excluded.number, added_at = excluded.added_at WHERE usage_batches.number < excluded.number`
	forgetNodesSQL = `DELETE FROM usage_batches WHERE added_at < $1`
	addUsageSQL    = `INSERT INTO usage_hours (organization_id, hour, user_id, api_key_id, agent_id, model_alias, model, requests, input_tokens,
			output_tokens, cached_tokens, cost)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
		ON CONFLICT (organization_id, hour, user_id, api_key_id, agent_id, model_alias, model) DO UPDATE SET
			requests = CASE WHEN usage_hours.requests > ` + largest + ` - excluded.requests THEN ` + largest + ` ELSE usage_hours.requests + excluded.requests END,
			input_tokens = CASE WHEN usage_hours.input_tokens > ` + largest + ` - excluded.input_tokens THEN ` + largest + ` ELSE usage_hours.input_tokens + excluded.input_tokens END,
			output_tokens = CASE WHEN usage_hours.output_tokens > ` + largest + ` - excluded.output_tokens THEN ` + largest + ` ELSE usage_hours.output_tokens + excluded.output_tokens END,
			cached_tokens = CASE WHEN usage_hours.cached_tokens > ` + largest + ` - excluded.cached_tokens THEN ` + largest + ` ELSE usage_hours.cached_tokens + excluded.cached_tokens END,
			cost = CASE WHEN usage_hours.cost > ` + largest + ` - excluded.cost THEN ` + largest + ` ELSE usage_hours.cost + excluded.cost END`

	// $9 is the length of a period in microseconds, or 0; $10 to $14 say what else is grouped by. Each sum comes in
	// two parts, neither of which overflows for any possible number of rows.
	sumUsageSQL = `SELECT $1, CASE WHEN CAST($9 AS BIGINT) = 0 THEN -62135596800000000 ELSE hour - hour % $9 END, CASE WHEN $10 = 1 THEN user_id ELSE '' END,
			CASE WHEN $11 = 1 THEN api_key_id ELSE '' END, CASE WHEN $12 = 1 THEN agent_id ELSE '' END, CASE WHEN $13 = 1 THEN model_alias ELSE '' END,
			CASE WHEN $14 = 1 THEN model ELSE '' END,
			CAST(sum(requests / 4294967296) AS BIGINT), CAST(sum(requests % 4294967296) AS BIGINT),
			CAST(sum(input_tokens / 4294967296) AS BIGINT), CAST(sum(input_tokens % 4294967296) AS BIGINT),
			CAST(sum(output_tokens / 4294967296) AS BIGINT), CAST(sum(output_tokens % 4294967296) AS BIGINT),
			CAST(sum(cached_tokens / 4294967296) AS BIGINT), CAST(sum(cached_tokens % 4294967296) AS BIGINT),
			CAST(sum(cost / 4294967296) AS BIGINT), CAST(sum(cost % 4294967296) AS BIGINT)
		FROM usage_hours WHERE organization_id = $1 AND hour >= $2 AND hour < $3 AND ($4 = '' OR user_id = $4) AND ($5 = '' OR api_key_id = $5)
			AND ($6 = '' OR agent_id = $6) AND ($7 = '' OR model_alias = $7) AND ($8 = '' OR model = $8)
		GROUP BY 2, 3, 4, 5, 6, 7 ORDER BY 2, 3, 4, 5, 6, 7`
)

func (t *texts) usage(d Dialect) {
	// A budget that is being deleted must not get a spend, and neither must one that bounds something else by now.
	t.addSpend = `INSERT INTO budget_spends (organization_id, budget_id, start, subject, cost)
		SELECT organization_id, id, $3, $4, $5 FROM budgets WHERE organization_id = $1 AND id = $2
			AND ($6 = '' OR period = $6 AND scope_type = $7 AND scope_id = $8 AND scope_value = $9)` + d.ForKeyShare + `
		ON CONFLICT (organization_id, budget_id, start, subject) DO UPDATE SET
			cost = CASE WHEN budget_spends.cost > ` + largest + ` - excluded.cost THEN ` + largest + ` ELSE budget_spends.cost + excluded.cost END`
}

// whole returns a sum that came in two parts: the number of multiples of 1<<32 in its numbers, and the remainder.
func whole(high, low int64) int64 {
	const part = 1 << 32
	if high += low / part; high > math.MaxInt64/part {
		return math.MaxInt64
	}
	return high*part + low%part
}

func scanUsage(r Row) (u storage.Usage, err error) {
	var high, low [5]int64
	err = r.Scan(&u.OrganizationID, timeColumn{&u.Hour}, &u.UserID, &u.APIKeyID, &u.AgentID, &u.Alias, &u.Model,
		&high[0], &low[0], &high[1], &low[1], &high[2], &low[2], &high[3], &low[3], &high[4], &low[4])
	for i, to := range [...]*int64{&u.Requests, &u.InputTokens, &u.OutputTokens, &u.CachedTokens, &u.Cost} {
		*to = whole(high[i], low[i])
	}
	return u, err
}

// AddUsage implements storage.Usages.
func (s usageStore) AddUsage(ctx context.Context, batch storage.UsageBatch) (refused *storage.UsageRefused, err error) {
	var r storage.UsageRefused
	err = s.writeAcross(ctx, NoLock, func(ctx context.Context, tx Tx) error {
		r = storage.UsageRefused{}
		err := execOne(ctx, tx, takeUsageBatchSQL, batch.Node, batch.Number, batch.SentAt.UnixMicro())
		if errors.Is(err, storage.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if batch.Number == 1 { // a node begins
			if _, err := tx.Exec(ctx, forgetNodesSQL, batch.SentAt.Add(-storage.ForgetNodeAfter).UnixMicro()); err != nil {
				return err
			}
		}
		if r.Usage, err = addEach(ctx, tx, addUsageSQL, batch.Usage, usageArgs, &r.Reason); err != nil {
			return err
		}
		r.Spends, err = addEach(ctx, tx, s.texts.addSpend, batch.Spends, spendArgs, &r.Reason)
		return err
	})
	if err != nil || r.Reason == nil {
		return nil, err
	}
	return &r, nil
}

func usageArgs(u *storage.Usage) ([]any, error) {
	if min(u.Requests, u.InputTokens, u.OutputTokens, u.CachedTokens, u.Cost) < 0 {
		return nil, fmt.Errorf("%w: a count is negative", storage.ErrValue)
	}
	return []any{u.OrganizationID, u.Hour.UTC().Truncate(time.Hour).UnixMicro(), u.UserID, u.APIKeyID, u.AgentID, u.Alias, u.Model,
		u.Requests, u.InputTokens, u.OutputTokens, u.CachedTokens, u.Cost}, nil
}

func spendArgs(b *storage.BudgetSpend) ([]any, error) {
	if b.Cost < 0 {
		return nil, fmt.Errorf("%w: a cost is negative", storage.ErrValue)
	}
	of := b.Target
	return []any{b.OrganizationID, b.BudgetID, b.Start.UnixMicro(), b.Subject, b.Cost, of.Period, of.Scope.Type, of.Scope.ID, of.Scope.Value}, nil
}

// addEach runs a statement with each of the rows, and returns those that cannot be stored: one bad row does not
// exclude the others. reason is set to the reason for the first of them, unless it is already set.
func addEach[T any](ctx context.Context, tx Tx, query string, rows []T, args func(*T) ([]any, error), reason *error) (refused []T, err error) {
	if len(rows) == 0 {
		return nil, nil
	}
	err = tx.Part(ctx, func() error {
		all := make([][]any, len(rows))
		for i := range rows {
			if all[i], err = args(&rows[i]); err != nil {
				return err
			}
		}
		return tx.ExecEach(ctx, query, all)
	})
	if !storage.Unstorable(err) {
		return nil, err
	}
	if len(rows) == 1 {
		if *reason == nil {
			*reason = err
		}
		return rows, nil
	}
	middle := len(rows) / 2
	refused, err = addEach(ctx, tx, query, rows[:middle], args, reason)
	if err != nil {
		return nil, err
	}
	others, err := addEach(ctx, tx, query, rows[middle:], args, reason)
	return slices.Concat(refused, others), err
}

// Usage implements storage.Usages.
func (s usageStore) Usage(ctx context.Context, f storage.UsageFilter, by []storage.UsageDimension) (sums []storage.Usage, err error) {
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

// usageDimensions lists the dimensions for which sumUsageSQL has flags, in their order.
var usageDimensions = [5]storage.UsageDimension{storage.UsageByUser, storage.UsageByAPIKey, storage.UsageByAgent, storage.UsageByAlias, storage.UsageByModel}
