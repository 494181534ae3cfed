package demodata

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/internal/identity/apikey"
	"github.com/durward-gateway/durward/internal/mcp/toolpin"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// madeServer is a server with its judge.
type madeServer struct {
	storage.Server
	set *engine.Set
}

// madeKey is a key with its id, and the user for whom it stands.
type madeKey struct {
	key
	id   string
	user user
}

// makePeople lets the gateway know everybody, as their first token does.
func (f *filler) makePeople(ctx context.Context) error {
	for _, p := range people {
		u := user{p, f.id("user", p.email)}
		if p.real {
			u.id = f.UserID(p.email)
		}
		_, err := f.store.ResolveUser(ctx, storage.UserClaim{
			OrganizationID: f.Organization, Issuer: f.Issuer, Subject: u.id, ID: u.id, DerivedID: u.id, Kind: storage.UserPerson, Name: p.name, Email: p.email,
			Roles: p.roles, Groups: p.groups, IssuedAt: f.clock,
		}, f.clock)
		if err != nil {
			return fmt.Errorf("making the user %s: %w", p.email, err)
		}
		f.users[p.email] = u
		if err := f.login(ctx, p.email); err != nil {
			return err
		}
	}
	return nil
}

func (f *filler) makeAgents(ctx context.Context) error {
	for _, a := range agents {
		id := f.id("agent", a.id)
		made := storage.Agent{ID: id, OrganizationID: f.Organization, CreatedAt: f.clock, UpdatedAt: f.clock, Application: storage.Application{
			ID: f.id("application", a.id), OrganizationID: f.Organization, Issuer: f.Issuer, ExternalID: a.id, Name: a.name, Description: a.description + note,
			Public: true, DCR: a.registeredItself, CreatedAt: f.clock, UpdatedAt: f.clock,
		}}
		if err := f.write(ctx, "agent.create", id, a.name, func(ctx context.Context) error { return f.store.CreateAgent(ctx, made) }); err != nil {
			return err
		}
		f.agents[a.id] = id
	}
	return nil
}

func (f *filler) makeServers(ctx context.Context) error {
	for _, s := range servers {
		entry := directory.Record{
			Name: s.name, Slug: s.slug, Description: s.description + note, URL: f.URL, Provider: s.provider, Public: true, Categories: []string{"demo"},
		}.Entry(storage.SourceCustom)
		entry.ID, entry.OrganizationID, entry.CreatedAt, entry.UpdatedAt = f.id("entry", s.slug), f.Organization, f.clock, f.clock
		if err := f.write(ctx, "directory_entry.create", entry.ID, s.name, func(ctx context.Context) error { return f.store.CreateDirectoryEntry(ctx, entry) }); err != nil {
			return err
		}
		made := storage.Server{
			ID: f.id("server", s.slug), OrganizationID: f.Organization, Name: s.name, Slug: s.slug, DirectoryID: entry.ID, Status: storage.ServerActive,
			CreatedBy: f.users[people[0].email].id, CreatedAt: f.clock, UpdatedAt: f.clock,
		}
		if err := f.write(ctx, "server.create", made.ID, s.name, func(ctx context.Context) error { return f.store.CreateServer(ctx, made) }); err != nil {
			return err
		}
		made.Entry = entry
		f.servers[s.slug] = &madeServer{Server: made}
		if err := f.observe(ctx, made, s.tools...); err != nil {
			return err
		}
	}
	return f.knowDemo(ctx)
}

// observe pins tools, as a list of them does.
func (f *filler) observe(ctx context.Context, s storage.Server, tools ...tool) error {
	var seen []storage.ObservedTool
	for _, t := range tools {
		text, err := t.definition()
		if err != nil {
			return err
		}
		read, err := toolpin.Read(t.name, text)
		if err != nil {
			return err
		}
		seen = append(seen, storage.ObservedTool{Name: t.name, Hash: read.Hash, Definition: read.Definition})
	}
	changed, err := f.store.ObserveTools(ctx, f.Organization, s.ID, seen, f.clock)
	if err != nil {
		return fmt.Errorf("pinning the tools of %s: %w", s.Slug, err)
	}
	for _, pin := range changed {
		err := f.records.Event(ctx, f.Organization, storage.AuditEntry{
			Event: "tool.changed", ServerID: s.ID, Server: s.Slug, Tool: pin.Name, Detail: map[string]any{"pinned": pin.Hash, "now": pin.SeenHash, mark: true},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// knowDemo finds the server that development mode always has, unless somebody has deleted it.
func (f *filler) knowDemo(ctx context.Context) error {
	all, err := f.store.Servers(ctx, storage.ServerFilter{OrganizationID: f.Organization, Slug: demoSlug, Now: f.clock})
	if err != nil {
		return err
	}
	for i := range all.Items {
		f.servers[demoSlug] = &madeServer{Server: all.Items[i].Server}
	}
	return nil
}

// demoSlug is the name of that server.
const demoSlug = "demo"

// makePolicies stores the policies, and makes the judges of calls.
func (f *filler) makePolicies(ctx context.Context) error {
	for _, p := range policies {
		made := storage.Policy{
			ID: f.id("policy", p.name), OrganizationID: f.Organization, Name: p.name, Description: p.description + note, Tags: []string{mark}, Status: p.status,
			ServerID: f.servers[p.server].ID, ApplicationIDs: []string{}, Rules: p.rules, Shadow: p.shadow, CreatedAt: f.clock, UpdatedAt: f.clock,
			CreatedBy: f.users[people[0].email].id, UpdatedBy: f.users[people[0].email].id,
		}
		err := f.write(ctx, "policy.create", made.ID, p.name, func(ctx context.Context) error {
			_, err := f.store.CreatePolicy(ctx, made)
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, s := range f.servers {
		known, err := f.store.Policies(ctx, storage.PolicyFilter{OrganizationID: f.Organization, ServerIDs: []string{s.ID}})
		if err != nil {
			return err
		}
		var all []storage.Policy
		for _, view := range known.Items {
			all = append(all, view.Policy)
		}
		if s.set, err = engine.Compile(s.Slug, s.ID, all); err != nil {
			return err
		}
	}
	return nil
}

// makeKeys makes keys of which nobody has the secret.
func (f *filler) makeKeys(ctx context.Context) error {
	digester := apikey.NewDigester(f.Keyring)
	for _, k := range keys {
		secret := apikey.New()
		made := storage.APIKey{
			ID: f.id("key", k.name), OrganizationID: f.Organization, Name: k.name, Prefix: apikey.Prefix(secret), HMAC: digester.Digest(secret), Scopes: k.scopes,
			UserID: f.users[k.email].id, GroupName: k.group, MadeWith: "durward", CreatedBy: f.users[people[0].email].id, CreatedAt: f.clock,
		}
		if k.expires > 0 {
			made.ExpiresAt = f.Now.AddDate(0, 0, k.expires)
		}
		if err := f.write(ctx, "api_key.create", made.ID, k.name, func(ctx context.Context) error { return f.store.CreateAPIKey(ctx, made) }); err != nil {
			return err
		}
		if k.revoked {
			err := f.write(ctx, "api_key.delete", made.ID, k.name, func(ctx context.Context) error {
				_, err := f.store.RevokeAPIKey(ctx, f.Organization, made.ID, f.clock)
				return err
			})
			if err != nil {
				return err
			}
		}
		f.keys = append(f.keys, madeKey{k, made.ID, f.users[k.email]})
	}
	return nil
}

// units is the number of units of cost in one of the currency.
const units = 1_000_000_000

// makeBounds makes rate limits, budgets and an alias.
func (f *filler) makeBounds(ctx context.Context) error {
	number := func(n int64) *int64 { return &n }
	for _, l := range []storage.RateLimit{
		{Name: "Everybody together", Scope: storage.Scope{Type: storage.ScopeOrganization}, Traffic: storage.TrafficAll, RequestsPerMinute: number(6000)},
		{Name: "Each person", Scope: storage.Scope{Type: storage.ScopeUser}, Traffic: storage.TrafficAll, RequestsPerMinute: number(600)},
		{Name: "The large model", Scope: storage.Scope{Type: storage.ScopeModelAlias, Value: "large"}, Traffic: storage.TrafficLLM, TokensPerMinute: number(400_000)},
	} {
		l.ID, l.OrganizationID, l.Enabled, l.CreatedAt, l.UpdatedAt = f.id("limit", l.Name), f.Organization, true, f.clock, f.clock
		if err := f.write(ctx, "rate_limit.create", l.ID, l.Name, func(ctx context.Context) error { return f.store.CreateRateLimit(ctx, l) }); err != nil {
			return err
		}
	}
	for _, b := range []storage.Budget{
		{Name: "The company", Scope: storage.Scope{Type: storage.ScopeOrganization}, Period: storage.BudgetMonth, Amount: 80 * units, AlertPercent: 80},
		{Name: "Support", Scope: storage.Scope{Type: storage.ScopeGroup, Value: "support"}, Period: storage.BudgetDay, Amount: 2 * units, AlertPercent: 90, HardStop: true},
		{Name: "Each person", Scope: storage.Scope{Type: storage.ScopeUser}, Period: storage.BudgetMonth, Amount: 50 * units, AlertPercent: 80, HardStop: true},
	} {
		b.ID, b.OrganizationID, b.Enabled, b.CreatedAt, b.UpdatedAt = f.id("budget", b.Name), f.Organization, true, f.clock, f.clock
		if err := f.write(ctx, "budget.create", b.ID, b.Name, func(ctx context.Context) error { return f.store.CreateBudget(ctx, b) }); err != nil {
			return err
		}
	}
	var targets []storage.ModelTarget
	for _, id := range slices.Sorted(maps.Keys(f.Configured.Providers)) {
		targets = append(targets, storage.ModelTarget{ProviderID: id, Model: weeklyModel, Weight: 1})
	}
	alias := storage.ModelMapping{
		ID: f.id("alias", weekly), OrganizationID: f.Organization, Alias: weekly, Description: "For the weekly report, over all accounts." + note, Targets: targets,
		Fallbacks: []string{"small"}, CreatedAt: f.clock, UpdatedAt: f.clock,
	}
	return f.write(ctx, "model_mapping.create", alias.ID, weekly, func(ctx context.Context) error { return f.store.CreateModelMapping(ctx, f.Configured, alias) })
}

// These are the made alias and its model.
const (
	weekly      = "weekly"
	weeklyModel = "demo-medium"
)

// makeUrgent makes what somebody has to look at now: held calls, a changed tool, connections.
func (f *filler) makeUrgent(ctx context.Context) error {
	for _, p := range []string{"dan@example.test", "carol@example.test", "alice@example.test"} {
		_, err := f.Broker.Connect(ctx, connection.Who{OrganizationID: f.Organization, UserID: f.users[p].id}, f.servers["payments"].Server,
			connection.ConnectRequest{APIKey: seal.NewSecret("made-up")})
		if err != nil {
			return fmt.Errorf("connecting %s: %w", p, err)
		}
	}
	f.clock = f.Now.Add(-50 * time.Hour)
	if err := f.observe(ctx, f.servers["wiki"].Server, changedTool); err != nil {
		return err
	}
	deleting := habit{"alice@example.test", "coding-agent", demoSlug, "delete_issue", 1}
	for hours := range 5 { // decided calls are forgotten soon, and somebody has to see some
		f.clock = f.Now.Add(time.Duration(hours-7) * time.Hour)
		if err := f.call(ctx, deleting); err != nil {
			return err
		}
	}
	for i, h := range []habit{
		deleting,
		{"carol@example.test", "support-assistant", "helpdesk", "close_ticket", 1},
		{"dan@example.test", "desktop-app", "payments", "create_refund", 1},
	} {
		f.clock = f.Now.Add(time.Duration(3*i-10) * time.Minute)
		if err := f.hold(ctx, h); err != nil {
			return err
		}
	}
	f.clock = f.Now
	for _, k := range f.keys {
		if k.daily > 0 {
			if err := f.store.NoteAPIKey(ctx, f.Organization, k.id, f.Now.Add(-f.took(time.Hour))); err != nil {
				return err
			}
		}
	}
	return nil
}
