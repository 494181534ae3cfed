package declare

import (
	"context"
	"slices"

	"github.com/durward-gateway/durward/storage"
)

// Ended counts what ends together with an object.
type Ended struct {
	Connections int `json:"connections"` // of users to a server
	Keys        int `json:"keys"`        // of an agent: API keys and credentials
}

// mostCounted is the largest number of connections that are read at once.
const mostCounted = 1_000

// manages notes that the files declare an object.
func (p *planner) manages(kind, id string) {
	p.managed[storage.DeclaredObject{Kind: kind, ID: id}] = true
}

// isManaged reports whether something of the files declares an object already. Two names of one object would leave one of
// both without an object.
func (p *planner) isManaged(kind, id string) bool {
	return p.managed[storage.DeclaredObject{Kind: kind, ID: id}]
}

// uses notes that the files refer to an object, which does not end then.
func (p *planner) uses(kind, id string) {
	p.used[storage.DeclaredObject{Kind: kind, ID: id}] = true
}

// usesAliases notes that the files refer to aliases for models.
func (p *planner) usesAliases(aliases ...string) {
	for _, m := range p.models.Mappings {
		if slices.Contains(aliases, m.Alias) {
			p.uses(KindMapping, m.ID)
		}
	}
}

// marks returns which marks are to be made and which to be removed: those of objects that are gone, or will be.
func (p *planner) marks() (add, remove []storage.DeclaredObject) {
	marked, ended := make(map[storage.DeclaredObject]bool), make(map[storage.DeclaredObject]bool)
	for _, c := range p.changes {
		if c.Action == Delete {
			ended[storage.DeclaredObject{Kind: c.Kind, ID: c.id}] = true
		}
	}
	for _, d := range p.declared {
		marked[d] = true
		if _, there := p.nameOf(d); ended[d] || !there {
			remove = append(remove, d)
		}
	}
	for d := range p.managed {
		if !marked[d] {
			add = append(add, d)
		}
	}
	return add, remove
}

// takenOver counts the objects among new marks that were there before.
func (p *planner) takenOver(add []storage.DeclaredObject) (n int) {
	made := make(map[string]bool)
	for _, c := range p.changes {
		if c.Action == Create {
			made[c.id] = true
		}
	}
	for _, d := range add {
		if _, there := p.nameOf(d); there && !made[d.ID] {
			n++
		}
	}
	return n
}

// nameOf returns the name of an object that is there.
func (s *state) nameOf(d storage.DeclaredObject) (name string, there bool) {
	return s.present(d.Kind)[d.ID], s.present(d.Kind)[d.ID] != ""
}

// present maps the ids of the objects of a kind to their names.
func (s *state) present(kind string) map[string]string {
	if of, known := s.byKind[kind]; known {
		return of
	}
	of := make(map[string]string)
	switch kind {
	case KindEntry:
		for _, v := range s.entries {
			if v.Source == storage.SourceCustom {
				of[v.ID] = v.Slug
			}
		}
	case KindServer:
		named(of, s.servers, func(v storage.Server) (string, string) { return v.ID, v.Name })
	case KindAgent:
		named(of, s.agents, func(v storage.Agent) (string, string) { return v.ID, v.Application.Name })
	case KindPolicy:
		named(of, s.policies, func(v storage.Policy) (string, string) { return v.ID, v.Name })
	case KindProvider:
		named(of, s.models.Providers, func(v storage.LLMProvider) (string, string) { return v.ID, v.Name })
	case KindMapping:
		named(of, s.models.Mappings, func(v storage.ModelMapping) (string, string) { return v.ID, v.Alias })
	case KindSmart:
		named(of, s.models.Smart, func(v storage.SmartModel) (string, string) { return v.ID, v.Alias })
	case KindLimit:
		named(of, s.limits, func(v storage.RateLimit) (string, string) { return v.ID, v.Name })
	case KindBudget:
		named(of, s.budgets, func(v storage.Budget) (string, string) { return v.ID, v.Name })
	}
	s.byKind[kind] = of
	return of
}

func named[T any](of map[string]string, all []T, name func(T) (id, name string)) {
	for _, v := range all {
		id, text := name(v)
		of[id] = text
	}
}

// planEnds plans the end of what former files declared and these do not.
func (p *planner) planEnds(ctx context.Context, g *group) error {
	ending := make(map[storage.DeclaredObject]bool)
	for _, d := range p.declared {
		if _, there := p.nameOf(d); there && !p.managed[d] && !p.used[d] {
			ending[d] = true
		}
	}
	for _, s := range p.servers {
		if !ending[storage.DeclaredObject{Kind: KindServer, ID: s.ID}] {
			delete(ending, storage.DeclaredObject{Kind: KindEntry, ID: s.DirectoryID})
		}
	}
	if len(ending) > 0 && len(p.managed) == 0 && g.named == "" {
		d := g.documents[0]
		p.wrong(d, d.root, "", "these files declare nothing, so that all that files manage would end: to end it, write which organization is meant, organization: NAME")
		return nil
	}
	for _, d := range p.declared {
		if !ending[d] {
			continue
		}
		name, _ := p.nameOf(d)
		c := Change{Action: Delete, Kind: d.Kind, Name: name, id: d.ID, do: p.end(d, ending)}
		if err := p.countEnds(ctx, d, &c); err != nil {
			return err
		}
		p.changes = append(p.changes, c)
	}
	return nil
}

// countEnds counts what ends with an object.
func (p *planner) countEnds(ctx context.Context, d storage.DeclaredObject, c *Change) error {
	ends := new(Ended)
	switch d.Kind {
	case KindServer:
		f := storage.ConnectionFilter{OrganizationID: p.organization, ServerID: d.ID, Limit: mostCounted}
		for {
			page, err := p.Store.ServerConnections(ctx, f)
			if err != nil {
				return err
			}
			if ends.Connections += len(page); len(page) < mostCounted {
				break
			}
			f.After = page[len(page)-1].UserID
		}
	case KindAgent:
		keys, err := p.liveKeys(ctx, p.Store)
		if err != nil {
			return err
		}
		credentials, err := p.Store.AgentCredentials(ctx, p.organization, d.ID)
		if err != nil {
			return err
		}
		ends.Keys = len(credentials)
		for _, k := range keys {
			if k.AgentID == d.ID {
				ends.Keys++
			}
		}
	default:
		return nil
	}
	c.Ends = ends
	return nil
}

// end returns what ends an object, as the API does it.
func (p *planner) end(d storage.DeclaredObject, ending map[storage.DeclaredObject]bool) func(ctx context.Context) error {
	store, organization := p.Store, p.organization
	remove := func(by func(ctx context.Context, organization, id string) error) func(ctx context.Context) error {
		return func(ctx context.Context) error { return by(ctx, organization, d.ID) }
	}
	switch d.Kind {
	case KindEntry:
		return func(ctx context.Context) error { return p.endEntry(ctx, d.ID) }
	case KindServer:
		return func(ctx context.Context) error { return p.endServer(ctx, d.ID, ending) }
	case KindAgent:
		return func(ctx context.Context) error { return store.DeleteAgent(ctx, organization, d.ID, p.By, p.now) }
	case KindPolicy:
		return func(ctx context.Context) error {
			_, err := store.UpdatePolicy(ctx, organization, d.ID, p.By, p.now, func(v *storage.Policy) error {
				v.Status = storage.PolicyArchived
				return nil
			})
			return err
		}
	case KindProvider:
		return remove(store.DeleteLLMProvider)
	case KindMapping:
		return func(ctx context.Context) error { return p.endMapping(ctx, d.ID, ending) }
	case KindSmart:
		return remove(store.DeleteSmartModel)
	case KindLimit:
		return remove(store.DeleteRateLimit)
	}
	return remove(store.DeleteBudget)
}

// endServer deletes a server. The store deletes its entry of the directory with it, which stays here unless it ends too.
func (p *planner) endServer(ctx context.Context, id string, ending map[storage.DeclaredObject]bool) error {
	deleted, err := p.Store.DeleteServer(ctx, p.organization, id, p.By, p.now)
	if err != nil {
		return err
	}
	p.ended = append(p.ended, deleted)
	entry := deleted.Server.Entry
	if entry.Source != storage.SourceCustom || ending[storage.DeclaredObject{Kind: KindEntry, ID: entry.ID}] {
		return nil
	}
	if there, err := p.hasEntry(ctx, entry.ID); there || err != nil {
		return err
	}
	return p.Store.CreateDirectoryEntry(ctx, entry)
}

// endEntry deletes an entry of the directory, unless the end of its last server did.
func (p *planner) endEntry(ctx context.Context, id string) error {
	if there, err := p.hasEntry(ctx, id); !there || err != nil {
		return err
	}
	return p.Store.DeleteDirectoryEntry(ctx, p.organization, id)
}

func (p *planner) hasEntry(ctx context.Context, id string) (bool, error) {
	entries, err := p.Store.DirectoryEntries(ctx, storage.DirectoryFilter{OrganizationID: p.organization})
	return slices.ContainsFunc(entries.Items, func(e storage.DirectoryEntry) bool { return e.ID == id }), err
}

// endMapping deletes an alias. Aliases that end may be each other's fallbacks: before the first one ends they lose them.
func (p *planner) endMapping(ctx context.Context, id string, ending map[storage.DeclaredObject]bool) error {
	for _, m := range p.models.Mappings {
		if p.loose || len(m.Fallbacks) == 0 || !ending[storage.DeclaredObject{Kind: KindMapping, ID: m.ID}] {
			continue
		}
		if _, err := p.Store.UpdateModelMapping(ctx, p.configured, p.organization, m.ID, func(v *storage.ModelMapping) error {
			v.Fallbacks = nil
			return nil
		}); err != nil {
			return err
		}
	}
	p.loose = true
	return p.Store.DeleteModelMapping(ctx, p.organization, id)
}
