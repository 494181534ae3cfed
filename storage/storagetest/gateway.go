package storagetest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/storage"
)

// gateway holds everything about the LLM gateway that an organization's administrators can see.
type gateway struct {
	Keys    []storage.APIKey
	Limits  []storage.RateLimit
	Models  storage.ModelSet
	Usage   []storage.Usage
	Budgets []storage.Budget
	Spends  []storage.BudgetSpend
}

func (b *bundle) gateway(t *testing.T, organization string) (all gateway) {
	t.Helper()
	ctx := t.Context()
	var err error
	all.Keys, err = b.APIKeys(ctx, organization)
	noError(t, err)
	all.Limits, err = b.RateLimits(ctx, organization)
	noError(t, err)
	all.Models, err = b.ModelSet(ctx, organization)
	noError(t, err)
	all.Usage, err = b.Usage(ctx, storage.UsageFilter{OrganizationID: organization}, []storage.UsageDimension{storage.UsageByHour,
		storage.UsageByUser, storage.UsageByAPIKey, storage.UsageByAgent, storage.UsageByAlias, storage.UsageByModel})
	noError(t, err)
	all.Budgets, err = b.Budgets(ctx, organization)
	noError(t, err)
	all.Spends, err = b.BudgetSpends(ctx, organization, time.Time{})
	noError(t, err)
	return all
}

// governed holds one record of each kind.
type governed struct {
	key      storage.APIKey
	limit    storage.RateLimit
	provider storage.LLMProvider
	mapping  storage.ModelMapping
	smart    storage.SmartModel
	budget   storage.Budget
}

func (b *bundle) governed(t *testing.T, organization, user string) (g governed) {
	t.Helper()
	g.key = b.apiKey(t, organization, user)
	g.limit = newRateLimit(organization, "Limit", storage.Scope{Type: storage.ScopeOrganization}, storage.TrafficAll)
	noError(t, b.CreateRateLimit(t.Context(), g.limit))
	g.provider = b.provider(t, organization, "Provider")
	g.mapping = b.mapping(t, organization, "alias", g.provider.ID)
	g.smart = b.smart(t, organization, "smart", "alias", "alias")
	g.budget = b.budget(t, organization, storage.Scope{Type: storage.ScopeOrganization})
	b.addUsage(t, storage.UsageBatch{Node: organization, Number: 1,
		Usage:  []storage.Usage{used(organization, start, user, g.key.ID, "", "alias", "large")},
		Spends: []storage.BudgetSpend{{OrganizationID: organization, BudgetID: g.budget.ID, Start: hour, Cost: 1}}})
	return g
}

// gatewayWrite is a call of a writing method for the records with these ids.
type gatewayWrite struct {
	method string
	call   func(ctx context.Context, organization string, g governed) error
}

// gatewayWrites returns all writing methods that take an id, in an order in which each can succeed.
func (b *bundle) gatewayWrites() []gatewayWrite {
	at := start.Add(time.Hour)
	return []gatewayWrite{
		{"UpdateAPIKey", func(ctx context.Context, organization string, g governed) error {
			_, err := b.UpdateAPIKey(ctx, organization, g.key.ID, func(k *storage.APIKey) error { k.Disabled = true; return nil })
			return err
		}},
		{"RotateAPIKey", func(ctx context.Context, organization string, g governed) error {
			rotated := sha256.Sum256([]byte(g.key.ID + " rotated"))
			_, err := b.UpdateAPIKey(ctx, organization, g.key.ID, func(k *storage.APIKey) error { k.HMAC = rotated[:]; return nil })
			return err
		}},
		{"RevokeAPIKey", func(ctx context.Context, organization string, g governed) error {
			_, err := b.RevokeAPIKey(ctx, organization, g.key.ID, at)
			return err
		}},
		{"UpdateRateLimit", func(ctx context.Context, organization string, g governed) error {
			_, err := b.UpdateRateLimit(ctx, organization, g.limit.ID, func(l *storage.RateLimit) error { l.Enabled = false; return nil })
			return err
		}},
		{"DeleteRateLimit", func(ctx context.Context, organization string, g governed) error {
			return b.DeleteRateLimit(ctx, organization, g.limit.ID)
		}},
		{"UpdateSmartModel", func(ctx context.Context, organization string, g governed) error {
			_, err := b.UpdateSmartModel(ctx, configured, organization, g.smart.ID, func(m *storage.SmartModel) error { m.Enabled = false; return nil })
			return err
		}},
		{"DeleteSmartModel", func(ctx context.Context, organization string, g governed) error {
			return b.DeleteSmartModel(ctx, organization, g.smart.ID)
		}},
		{"UpdateModelMapping", func(ctx context.Context, organization string, g governed) error {
			_, err := b.UpdateModelMapping(ctx, configured, organization, g.mapping.ID, func(m *storage.ModelMapping) error { m.Description = "new"; return nil })
			return err
		}},
		{"DeleteModelMapping", func(ctx context.Context, organization string, g governed) error {
			return b.DeleteModelMapping(ctx, organization, g.mapping.ID)
		}},
		{"UpdateLLMProvider", func(ctx context.Context, organization string, g governed) error {
			_, err := b.UpdateLLMProvider(ctx, configured, organization, g.provider.ID, func(p *storage.LLMProvider) error { p.BaseURL = "new"; return nil })
			return err
		}},
		{"DeleteLLMProvider", func(ctx context.Context, organization string, g governed) error {
			return b.DeleteLLMProvider(ctx, organization, g.provider.ID)
		}},
		{"UpdateBudget", func(ctx context.Context, organization string, g governed) error {
			_, err := b.UpdateBudget(ctx, organization, g.budget.ID, func(v *storage.Budget) error { v.Amount = 1; return nil })
			return err
		}},
		{"DeleteBudget", func(ctx context.Context, organization string, g governed) error {
			return b.DeleteBudget(ctx, organization, g.budget.ID)
		}},
	}
}

// testGatewayIsolation calls every method that takes an id as organization B with ids of organization A.
func testGatewayIsolation(t *testing.T, b *bundle) {
	ctx := t.Context()
	mine := b.governed(t, b.orgA, b.userA1)
	before := b.gateway(t, b.orgA)
	equal(t, b.gateway(t, b.orgB), gateway{})
	told := 0
	defer b.OnChange(func(string) { told++ })()
	var nothing governed
	nothing.key.ID, nothing.limit.ID, nothing.provider.ID, nothing.mapping.ID, nothing.smart.ID, nothing.budget.ID = b.unknown, b.unknown, b.unknown, b.unknown, b.unknown, b.unknown

	calls := append(b.gatewayWrites(),
		gatewayWrite{"RevokeUserAPIKey", func(ctx context.Context, organization string, g governed) error {
			_, err := b.RevokeUserAPIKey(ctx, organization, b.userA1, g.key.ID, start)
			return err
		}},
		gatewayWrite{"APIKey", func(ctx context.Context, organization string, g governed) error {
			_, err := b.APIKey(ctx, organization, g.key.ID)
			return err
		}},
		gatewayWrite{"RateLimit", func(ctx context.Context, organization string, g governed) error {
			_, err := b.RateLimit(ctx, organization, g.limit.ID)
			return err
		}},
		gatewayWrite{"LLMProvider", func(ctx context.Context, organization string, g governed) error {
			_, err := b.LLMProvider(ctx, organization, g.provider.ID)
			return err
		}},
		gatewayWrite{"ModelMapping", func(ctx context.Context, organization string, g governed) error {
			_, err := b.ModelMapping(ctx, organization, g.mapping.ID)
			return err
		}},
		gatewayWrite{"SmartModel", func(ctx context.Context, organization string, g governed) error {
			_, err := b.SmartModel(ctx, organization, g.smart.ID)
			return err
		}},
		gatewayWrite{"Budget", func(ctx context.Context, organization string, g governed) error {
			_, err := b.Budget(ctx, organization, g.budget.ID)
			return err
		}},
	)
	for _, c := range calls {
		t.Run(c.method, func(t *testing.T) {
			foreign, unknown := c.call(ctx, b.orgB, mine), c.call(ctx, b.orgB, nothing)
			wantError(t, foreign, storage.ErrNotFound)
			wantError(t, unknown, storage.ErrNotFound)
			equal(t, foreign.Error(), unknown.Error())
		})
	}
	own, err := b.UserAPIKeys(ctx, b.orgB, b.userA1)
	noError(t, err)
	equal(t, len(own), 0)

	// Ids are not free because another organization holds them; names and aliases are.
	thief := b.governed(t, b.orgB, b.userB1)
	told = 0
	thief.key.ID, thief.key.HMAC = mine.key.ID, newAPIKey("", "").HMAC
	wantConflict(t, b.CreateAPIKey(ctx, thief.key), "id")
	thief.limit.ID, thief.limit.Scope.Value = mine.limit.ID, "other"
	wantConflict(t, b.CreateRateLimit(ctx, thief.limit), "id")
	provider := newProvider(b.orgB, "other")
	provider.ID = mine.provider.ID
	wantConflict(t, b.CreateLLMProvider(ctx, configured, provider), "id")
	mapping := newMapping(b.orgB, "other", thief.provider.ID)
	mapping.ID = mine.mapping.ID
	wantConflict(t, b.CreateModelMapping(ctx, configured, mapping), "id")
	smart := newSmart(b.orgB, "other", "alias", "alias")
	smart.ID = mine.smart.ID
	wantConflict(t, b.CreateSmartModel(ctx, configured, smart), "id")
	thief.budget.ID, thief.budget.Scope.Value = mine.budget.ID, "other"
	wantConflict(t, b.CreateBudget(ctx, thief.budget), "id")

	equal(t, told, 0)
	equal(t, b.gateway(t, b.orgA), before)
}

// testGatewayChanges checks that each write reports the organization, when it changed something.
func testGatewayChanges(t *testing.T, b *bundle) {
	ctx := t.Context()
	var told []string
	defer b.OnChange(func(organization string) { told = append(told, organization) })()
	check := func(what string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, told); diff != "" {
			t.Fatalf("%s (-want +got)\n%s", what, diff)
		}
		told = nil
	}
	g := b.governed(t, b.orgA, b.userA1)
	check("six creations, and usage", b.orgA, b.orgA, b.orgA, b.orgA, b.orgA, b.orgA)
	for _, c := range b.gatewayWrites() {
		noError(t, c.call(ctx, b.orgA, g))
		check(c.method, b.orgA)
		if err := c.call(ctx, b.orgA, g); (err != nil) != (c.method[:6] == "Delete") {
			t.Fatalf("%s again: %v", c.method, err)
		}
		check(c.method + " again")
	}
}

// testGatewayAudit checks that each write records the entries of WithAudit.
func testGatewayAudit(t *testing.T, b *bundle) {
	g := b.governed(t, b.orgA, b.userA1)
	own := b.apiKey(t, b.orgA, b.userA1)
	writes := append([]gatewayWrite{
		{"RevokeUserAPIKey", func(ctx context.Context, organization string, _ governed) error {
			_, err := b.RevokeUserAPIKey(ctx, organization, b.userA1, own.ID, start)
			return err
		}},
		{"CreateAPIKey", func(ctx context.Context, organization string, _ governed) error {
			return b.CreateAPIKey(ctx, newAPIKey(organization, ""))
		}},
		{"CreateRateLimit", func(ctx context.Context, organization string, _ governed) error {
			return b.CreateRateLimit(ctx, newRateLimit(organization, "new", storage.Scope{Type: storage.ScopeTeam, Value: "new"}, storage.TrafficAll))
		}},
		{"CreateLLMProvider", func(ctx context.Context, organization string, _ governed) error {
			return b.CreateLLMProvider(ctx, configured, newProvider(organization, "new"))
		}},
		{"CreateModelMapping", func(ctx context.Context, organization string, g governed) error {
			return b.CreateModelMapping(ctx, configured, newMapping(organization, "new", g.provider.ID))
		}},
		{"CreateSmartModel", func(ctx context.Context, organization string, _ governed) error {
			return b.CreateSmartModel(ctx, configured, newSmart(organization, "newer", "", "house"))
		}},
		{"CreateBudget", func(ctx context.Context, organization string, _ governed) error {
			return b.CreateBudget(ctx, newBudget(organization, "new", storage.Scope{Type: storage.ScopeTeam, Value: "new"}, storage.BudgetDay))
		}},
	}, b.gatewayWrites()...)
	var want []string
	for _, c := range writes {
		if c.method == "DeleteLLMProvider" {
			continue // the mapping made here uses it
		}
		ctx, _ := b.audited(t, b.orgA, c.method)
		if err := c.call(ctx, b.orgA, g); err != nil {
			t.Fatalf("%s: %v", c.method, err)
		}
		want = append(want, c.method)
		equal(t, b.chain(t, b.orgA), want)
		ctx, _ = b.audited(t, b.orgA, "again")
		_ = c.call(ctx, b.orgA, governed{key: g.key}) // refused, or nothing to do
		if c.method[:6] != "Create" {
			equal(t, b.chain(t, b.orgA), want)
		} else {
			want = b.chain(t, b.orgA)
		}
	}
}

// testGatewayHostileText stores every text in every member that takes text, and reads the same text back. A store may
// refuse a record; it must not store another text.
func testGatewayHostileText(t *testing.T, b *bundle) {
	ctx := t.Context()
	b.governed(t, b.orgB, b.userB1)
	bystander := b.gateway(t, b.orgB)
	for i, text := range hostileTexts {
		t.Run(fmt.Sprintf("%d %.30q", i, text), func(t *testing.T) {
			unique := fmt.Sprint(text, i)
			plain := utf8.ValidString(text)
			// refused reports whether a record is missing because its text is invalid.
			refused := func(err error) bool {
				t.Helper()
				if plain {
					noError(t, err)
				} else if err == nil {
					t.Error("text that is not UTF-8 was stored in a list")
				}
				return !plain
			}
			sum := sha256.Sum256([]byte(unique))
			k := newAPIKey(b.orgA, "")
			k.Name, k.Prefix, k.GroupName, k.CreatedBy, k.HMAC = text, text, text, text, sum[:]
			err := b.CreateAPIKey(ctx, k)
			if mayRefuse(text) && errors.Is(err, storage.ErrText) {
				return
			}
			noError(t, err)
			holder, err := b.APIKeyByHMAC(ctx, sum[:])
			noError(t, err)
			equal(t, holder.APIKey, k)
			k.ID, k.HMAC, k.Scopes = newID(), newAPIKey("", "").HMAC, []string{"model:" + text, text}
			if !refused(b.CreateAPIKey(ctx, k)) {
				got, err := b.APIKey(ctx, b.orgA, k.ID)
				noError(t, err)
				equal(t, got, k)
			}

			scope := storage.Scope{Type: storage.ScopeType(text), ID: text, Value: unique}
			l := newRateLimit(b.orgA, text, scope, storage.TrafficType(text))
			noError(t, b.CreateRateLimit(ctx, l))
			limit, err := b.RateLimit(ctx, b.orgA, l.ID)
			noError(t, err)
			equal(t, limit, l)
			v := newBudget(b.orgA, text, scope, storage.BudgetPeriod(text))
			noError(t, b.CreateBudget(ctx, v))
			budget, err := b.Budget(ctx, b.orgA, v.ID)
			noError(t, err)
			equal(t, budget, v)

			p := newProvider(b.orgA, unique+" provider")
			p.Kind, p.BaseURL, p.SealedSecret = text, text, []byte(text)
			noError(t, b.CreateLLMProvider(ctx, configured, p))
			provider, err := b.LLMProvider(ctx, b.orgA, p.ID)
			noError(t, err)
			equal(t, provider, p)
			m := newMapping(b.orgA, unique, p.ID)
			m.Description = text
			noError(t, b.CreateModelMapping(ctx, configured, m))
			mapping, err := b.ModelMapping(ctx, b.orgA, m.ID)
			noError(t, err)
			equal(t, mapping, m)
			m.ID, m.Alias, m.Fallbacks, m.Targets[0].Model = newID(), unique+" second", []string{unique}, text
			if !refused(b.CreateModelMapping(ctx, configured, m)) {
				mapping, err := b.ModelMapping(ctx, b.orgA, m.ID)
				noError(t, err)
				equal(t, mapping, m)
			}
			smart := newSmart(b.orgA, unique+" smart", unique, unique)
			smart.Description = text
			if !refused(b.CreateSmartModel(ctx, configured, smart)) {
				got, err := b.SmartModel(ctx, b.orgA, smart.ID)
				noError(t, err)
				equal(t, got, smart)
				wantConflict(t, b.DeleteModelMapping(ctx, b.orgA, mapping.ID), "in_use")
			}

			u := used(b.orgA, start, unique, text, text, text, text)
			spend := storage.BudgetSpend{OrganizationID: b.orgA, BudgetID: v.ID, Subject: text, Start: hour, Cost: 1}
			b.addUsage(t, storage.UsageBatch{Node: unique, Number: 1, Usage: []storage.Usage{u}, Spends: []storage.BudgetSpend{spend}})
			sums, err := b.Usage(ctx, storage.UsageFilter{OrganizationID: b.orgA, UserID: unique, APIKeyID: text, AgentID: text, Alias: text, Model: text},
				[]storage.UsageDimension{storage.UsageByHour, storage.UsageByUser, storage.UsageByAPIKey, storage.UsageByAgent, storage.UsageByAlias, storage.UsageByModel})
			noError(t, err)
			u.Hour = hour
			equal(t, sums, []storage.Usage{u})

			// As an id it finds nothing.
			ids := governed{}
			ids.key.ID, ids.limit.ID, ids.provider.ID, ids.mapping.ID, ids.smart.ID, ids.budget.ID = text, text, text, text, text, text
			for _, c := range b.gatewayWrites() {
				wantError(t, c.call(ctx, b.orgA, ids), storage.ErrNotFound)
			}
			equal(t, b.gateway(t, text), gateway{})
			_, err = b.APIKeyByHMAC(ctx, []byte(text))
			wantError(t, err, storage.ErrNotFound)
		})
	}
	equal(t, b.gateway(t, b.orgB), bystander)
	noError(t, b.Ping(ctx))
}
