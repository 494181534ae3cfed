package declare

import (
	"cmp"
	"context"
	"fmt"
	"slices"
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
}

func readState(ctx context.Context, store storage.Store, organization string, now time.Time) (*state, error) {
	s := &state{organization: organization, entries: make(map[string]storage.DirectoryEntry)}
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
	return s, nil
}

// names maps ids to the names that stand for them in files. An agent whose name another one has too is named by the id of
// its client.
type names struct{ serverOf, agentOf map[string]string }

func (s *state) names() *names {
	n := &names{make(map[string]string), make(map[string]string)}
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
// policies are left out.
func Export(ctx context.Context, store storage.Store, organization, name string, now time.Time) ([]byte, error) {
	s, err := readState(ctx, store, organization, now)
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
	return writeYAML(whole)
}
