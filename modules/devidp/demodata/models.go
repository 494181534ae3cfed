package demodata

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/record"
	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/llm/metering"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/storage"
)

// openBooks opens books of models that keep the filler's time.
func (f *filler) openBooks(now func() time.Time) (err error) {
	f.meter, err = metering.New(metering.Options{Store: f.store, Epochs: new(cache.Epochs), Now: now})
	return err
}

// typical holds the numbers of tokens that a call to an alias typically reads and writes.
type typical struct {
	model         string
	input, output int64
}

var aliases = map[string]typical{
	"small": {"demo-small", 900, 180}, "medium": {"demo-medium", 3_000, 700}, "large": {"demo-large", 5_000, 1_100}, "embed": {"demo-embed", 2_500, 0},
	weekly: {weeklyModel, 9_000, 1_500},
}

// ask lets the owner of a key ask a model, and writes it into the books and the audit log.
func (f *filler) ask(ctx context.Context, k madeKey) error {
	if len(k.aliases) == 0 {
		return nil
	}
	alias := k.aliases[f.random.IntN(len(k.aliases))]
	what := aliases[alias]
	account, provider := f.account(alias)
	used := metering.Tokens{Input: f.tokens(what.input), Output: f.tokens(what.output)}
	used.Cached = used.Input * f.random.Int64N(5) / 10
	groups := k.user.groups
	if k.group != "" {
		groups = []string{k.group}
	}
	held, refused, err := f.meter.Reserve(ctx, metering.Call{
		Organization: f.Organization, Kind: strings.TrimPrefix(provider, "demo-"), Input: used.Input, Output: used.Output,
		Subject: limit.Subject{
			UserID: k.user.id, UserEmail: k.email, Roles: k.user.roles, Groups: groups, APIKeyID: k.id, ProviderID: account, ProviderName: provider, Model: what.model, Alias: alias,
		},
	}, f.Prices)
	if err != nil {
		return fmt.Errorf("reserving the cost of a call: %w", err)
	}
	e := storage.AuditEntry{
		ID: format.NewID(f.clock), At: f.clock, Kind: storage.AuditCall, Event: "model.call", UserID: k.user.id, Method: "llm", Tool: alias, Decision: "allow",
		ArgumentsDigest: f.hex(32), TraceID: f.hex(16),
	}
	record.Add(&e, "api_key_id", k.id)
	record.Add(&e, mark, true)
	if refused != nil {
		e.Outcome = "limited"
		return f.trail.Append(f.Organization, &e)
	}
	held.Settle(used)
	for name, value := range map[string]string{"model_alias": alias, "provider_id": account, "provider": provider, "model": what.model} {
		record.Add(&e, name, value)
	}
	if err := f.trail.Append(f.Organization, &e); err != nil {
		return err
	}
	took := f.took(900 * time.Millisecond)
	end := f.clock.Add(took)
	f.trail.Later(f.Organization, &storage.AuditEntry{
		ID: format.NewID(end), At: end, Kind: storage.AuditCall, Event: "outcome", Call: e.ID, Outcome: "ok", UpstreamStatus: http.StatusOK, Duration: took,
		Detail: map[string]any{"input_tokens": used.Input, "output_tokens": used.Output},
	})
	return nil
}

// account chooses one of the configured accounts that serve an alias. Only accounts of the kind openai have embeddings.
func (f *filler) account(alias string) (id, name string) {
	ids := slices.Sorted(maps.Keys(f.Configured.Providers))
	slices.SortFunc(ids, func(a, b string) int { return strings.Compare(f.Configured.Providers[b], f.Configured.Providers[a]) })
	if alias != "embed" && f.random.IntN(5) == 0 {
		id = ids[len(ids)-1]
	} else {
		id = ids[0]
	}
	return id, f.Configured.Providers[id]
}

// tokens returns a believable number of tokens.
func (f *filler) tokens(typical int64) int64 {
	return int64(float64(typical) * (0.3 + f.random.ExpFloat64()))
}
