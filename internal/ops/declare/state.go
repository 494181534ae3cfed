package declare

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/storage"
)

// state holds the present objects of an organization.
type state struct {
	organization string
	servers      []storage.Server
	agents       []storage.Agent
	policies     []storage.Policy // that are not archived
	entries      map[string]storage.DirectoryEntry
	models       storage.ModelSet
	configured   storage.ConfiguredModels
	limits       []storage.RateLimit
	budgets      []storage.Budget
	subjects     map[storage.Scope]string // names of users and API keys
	keys         []storage.APIKey
	declared     []storage.DeclaredObject
	byKind       map[string]map[string]string // names by ids
}

func readState(ctx context.Context, store storage.Store, configured storage.ConfiguredModels, organization string, now time.Time) (*state, error) {
	s := &state{organization: organization, configured: configured, byKind: make(map[string]map[string]string), entries: make(map[string]storage.DirectoryEntry)}
	servers, err := store.Servers(ctx, storage.ServerFilter{OrganizationID: organization, Now: now})
	if err != nil {
		return nil, fmt.Errorf("reading servers: %w", err)
	}
	for _, v := range servers.Items {
		s.servers = append(s.servers, v.Server)
	}
	agents, err := store.Agents(ctx, storage.AgentFilter{OrganizationID: organization})
	if err != nil {
		return nil, fmt.Errorf("reading agents: %w", err)
	}
	s.agents = agents.Items
	policies, err := store.Policies(ctx, storage.PolicyFilter{OrganizationID: organization, Status: []storage.PolicyStatus{
		storage.PolicyDraft, storage.PolicyActive, storage.PolicyInactive,
	}})
	if err != nil {
		return nil, fmt.Errorf("reading policies: %w", err)
	}
	for _, p := range policies.Items {
		s.policies = append(s.policies, p.Policy)
	}
	entries, err := store.DirectoryEntries(ctx, storage.DirectoryFilter{OrganizationID: organization})
	if err != nil {
		return nil, fmt.Errorf("reading the directory: %w", err)
	}
	for _, e := range entries.Items {
		s.entries[e.Slug] = e
	}
	if s.declared, err = store.Declared(ctx, organization); err != nil {
		return nil, fmt.Errorf("reading what files declare: %w", err)
	}
	return s, s.readModels(ctx, store)
}

// readModels reads what belongs to the LLM gateway.
func (s *state) readModels(ctx context.Context, store storage.Store) (err error) {
	if s.models, err = store.ModelSet(ctx, s.organization); err != nil {
		return fmt.Errorf("reading models: %w", err)
	}
	if s.limits, err = store.RateLimits(ctx, s.organization); err != nil {
		return fmt.Errorf("reading rate limits: %w", err)
	}
	if s.budgets, err = store.Budgets(ctx, s.organization); err != nil {
		return fmt.Errorf("reading budgets: %w", err)
	}
	return s.readSubjects(ctx, store)
}

// names maps ids to the names that stand for them in files. An agent whose name another one has too is named by the id of
// its client.
type names struct {
	serverOf, agentOf, providerOf map[string]string
	subjects                      map[storage.Scope]string
}

func (s *state) names() *names {
	n := &names{make(map[string]string), make(map[string]string), make(map[string]string), s.subjects}
	for id, name := range s.configured.Providers {
		n.providerOf[id] = name
	}
	for _, v := range s.models.Providers {
		for id, name := range s.configured.Providers {
			if strings.EqualFold(name, v.Name) {
				n.providerOf[id] = id // the configuration took the name later
			}
		}
		n.providerOf[v.ID] = v.Name
	}
	for _, v := range s.servers {
		n.serverOf[v.ID] = v.Name
	}
	called := make(map[string]int)
	for _, a := range s.agents {
		called[a.Application.Name]++
		if a.Application.ExternalID != a.Application.Name {
			called[a.Application.ExternalID]++
		}
	}
	for _, a := range s.agents {
		n.agentOf[a.ID] = a.Application.Name
		if called[a.Application.Name] > 1 {
			n.agentOf[a.ID] = a.Application.ExternalID
		}
	}
	return n
}

// Export writes all objects of an organization as YAML. Secrets are references, whose values it does not know. Archived
// policies are left out, and rate limits and budgets for what is gone.
func Export(ctx context.Context, store storage.Store, configured storage.ConfiguredModels, organization, name string, now time.Time) ([]byte, error) {
	s, err := readState(ctx, store, configured, organization, now)
	if err != nil {
		return nil, err
	}
	whole, n := wholeForm{Organization: name}, s.names()
	for _, e := range s.entries {
		if e.Source == storage.SourceCustom {
			whole.Directory = append(whole.Directory, formOfEntry(e))
		}
	}
	for _, v := range s.servers {
		whole.Servers = append(whole.Servers, formOfServer(v))
	}
	for _, a := range s.agents {
		whole.Agents = append(whole.Agents, formOfAgent(a))
	}
	for _, p := range s.policies {
		whole.Policies = append(whole.Policies, n.formOfPolicy(p))
	}
	// Ids, by which the store orders objects of one name, differ between stores.
	slices.SortFunc(whole.Directory, func(a, b directory.Record) int { return cmp.Compare(a.Slug, b.Slug) })
	slices.SortFunc(whole.Servers, func(a, b serverForm) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(whole.Agents, func(a, b agentForm) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Issuer, b.Issuer), cmp.Compare(a.ExternalID, b.ExternalID))
	})
	slices.SortFunc(whole.Policies, func(a, b policyForm) int { return cmp.Compare(a.Name, b.Name) })
	s.exportModels(&whole, n)
	return writeYAML(whole)
}

// exportModels writes what belongs to the LLM gateway.
func (s *state) exportModels(whole *wholeForm, n *names) {
	for _, v := range s.models.Providers {
		whole.Providers = append(whole.Providers, formOfProvider(v))
	}
	slices.SortFunc(whole.Providers, func(a, b providerForm) int { return cmp.Compare(a.Name, b.Name) })
	taken, hasSecret := make(map[string]bool), make(map[string]bool)
	for _, v := range s.models.Providers {
		hasSecret[v.Name] = v.SealedSecret != nil
	}
	for i, f := range whole.Providers {
		if hasSecret[f.Name] {
			whole.Providers[i].Secret = keyReference(f.Name, taken)
		}
	}
	for _, v := range s.models.Mappings {
		whole.Mappings = append(whole.Mappings, n.formOfMapping(v))
	}
	for _, v := range s.models.Smart {
		whole.Smart = append(whole.Smart, formOfSmart(v))
	}
	for _, v := range s.limits {
		if f := n.formOfLimit(v); v.Scope.ID == "" || f.Subject != "" {
			whole.Limits = append(whole.Limits, f)
		}
	}
	for _, v := range s.budgets {
		if f := n.formOfBudget(v); v.Scope.ID == "" || f.Subject != "" {
			whole.Budgets = append(whole.Budgets, f)
		}
	}
	slices.SortFunc(whole.Mappings, func(a, b mappingForm) int { return cmp.Compare(a.Alias, b.Alias) })
	slices.SortFunc(whole.Smart, func(a, b smartForm) int { return cmp.Compare(a.Alias, b.Alias) })
	slices.SortFunc(whole.Limits, func(a, b limitForm) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), a.compare(b.scopeForm), cmp.Compare(a.Traffic, b.Traffic))
	})
	slices.SortFunc(whole.Budgets, func(a, b budgetForm) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), a.compare(b.scopeForm), cmp.Compare(a.Period, b.Period))
	})
}

func (a scopeForm) compare(b scopeForm) int {
	return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Value, b.Value))
}
