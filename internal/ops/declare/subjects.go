package declare

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/storage"
)

// mostAlike is the largest number of users in whose names, addresses and subjects one text is looked for.
const mostAlike = 1_000

// readSubjects finds the names of the users and API keys for which there are rate limits and budgets. Files make neither.
func (s *state) readSubjects(ctx context.Context, store storage.Store) error {
	s.subjects = make(map[storage.Scope]string)
	var scopes []storage.Scope
	for _, l := range s.limits {
		scopes = append(scopes, l.Scope)
	}
	for _, b := range s.budgets {
		scopes = append(scopes, b.Scope)
	}
	for _, scope := range scopes {
		if _, known := s.subjects[scope]; known || scope.ID == "" {
			continue
		}
		var name string
		var err error
		switch scope.Type {
		case storage.ScopeUser:
			name, err = s.userName(ctx, store, scope.ID)
		case storage.ScopeAPIKey:
			name, err = s.keyName(ctx, store, scope.ID)
		default:
			continue
		}
		if err != nil {
			return fmt.Errorf("reading the subjects of rate limits and budgets: %w", err)
		}
		s.subjects[storage.Scope{Type: scope.Type, ID: scope.ID}] = name
	}
	return nil
}

// userName returns a user's e-mail address, or the id when others have the address too; "" when there is no such user.
func (s *state) userName(ctx context.Context, store storage.Store, id string) (string, error) {
	u, err := store.User(ctx, s.organization, id)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return "", nil
	case err != nil || u.Email == "":
		return id, err
	}
	ids, err := s.usersOf(ctx, store, u.Email)
	if len(ids) == 1 {
		return u.Email, err
	}
	return id, err
}

// usersOf lists the ids of the users with an e-mail address.
func (s *state) usersOf(ctx context.Context, store storage.Store, email string) (ids []string, err error) {
	alike, err := store.Users(ctx, storage.UserFilter{OrganizationID: s.organization, Search: email, Limit: mostAlike})
	for _, u := range alike {
		if u.Email == email {
			ids = append(ids, u.ID)
		}
	}
	return ids, err
}

// keyName returns the name of an API key, or the id when others have the name too; "" when it is gone or revoked.
func (s *state) keyName(ctx context.Context, store storage.Store, id string) (string, error) {
	keys, err := s.liveKeys(ctx, store)
	for _, k := range keys {
		if k.ID != id {
			continue
		}
		if slices.ContainsFunc(keys, func(other storage.APIKey) bool { return other.ID != id && other.Name == k.Name }) {
			return id, err
		}
		return k.Name, err
	}
	return "", err
}

// liveKeys lists the API keys that are not revoked. They are read once.
func (s *state) liveKeys(ctx context.Context, store storage.Store) ([]storage.APIKey, error) {
	if s.keys == nil {
		all, err := store.APIKeys(ctx, s.organization)
		if err != nil {
			return nil, err
		}
		s.keys = slices.DeleteFunc(all, func(k storage.APIKey) bool { return !k.RevokedAt.IsZero() })
	}
	return s.keys, nil
}

// subject returns the name of what a scope's id names; "" when it names nothing, or nothing that is there.
func (n *names) subject(s storage.Scope) string {
	switch s.Type {
	case storage.ScopeAgent:
		return n.agentOf[s.ID]
	case storage.ScopeMCPServer:
		return n.serverOf[s.ID]
	case storage.ScopeLLMProvider:
		return n.providerOf[s.ID]
	}
	return n.subjects[storage.Scope{Type: s.Type, ID: s.ID}]
}

// resolveSubjects puts ids in the place of the names of what rate limits and budgets are for.
func (p *planner) resolveSubjects(ctx context.Context, d *document) error {
	for _, list := range []string{limitsMember, budgetsMember} {
		for i, n := range d.each(list) {
			path := fmt.Sprintf("%s[%d]", list, i)
			if id := keyOf(n, "scope_id"); id != nil {
				p.wrong(d, id, path+".scope_id", "objects are named here, with subject: no member has an id")
				id.Value = "subject"
			}
			key, value := keyOf(n, "subject"), member(n, "subject")
			if key == nil {
				continue
			}
			key.Value = "scope_id"
			if value.Tag != "!!str" {
				continue
			}
			id, err := p.subjectID(ctx, d, value, path+".subject", storage.ScopeType(textOf(n, "scope_type")))
			if err != nil {
				return err
			}
			value.Value = id
		}
	}
	return nil
}

// subjectID returns the id of a scope's subject.
func (p *planner) subjectID(ctx context.Context, d *document, n *yaml.Node, path string, kind storage.ScopeType) (string, error) {
	what, ids := "", []string(nil)
	switch kind {
	case storage.ScopeAgent:
		return p.agentID(d, n, path, p.agentIDs()), nil
	case storage.ScopeLLMProvider:
		return p.providerID(d, n, path), nil
	case storage.ScopeMCPServer:
		what = "server"
		for id, name := range p.names.serverOf {
			if name == n.Value {
				ids = append(ids, id)
			}
		}
	case storage.ScopeUser:
		what = "user"
		found, err := p.usersOf(ctx, p.Store, n.Value)
		if err != nil {
			return "", err
		}
		ids = found
		if id, ok := validate.UUID(n.Value); ok {
			switch _, err := p.Store.User(ctx, p.organization, id); {
			case err == nil:
				ids = []string{id}
			case !errors.Is(err, storage.ErrNotFound):
				return "", err
			}
		}
	case storage.ScopeAPIKey:
		what = "API key"
		keys, err := p.liveKeys(ctx, p.Store)
		if err != nil {
			return "", err
		}
		for _, k := range keys {
			if k.Name == n.Value || k.ID == strings.ToLower(n.Value) {
				ids = append(ids, k.ID)
			}
		}
	default:
		return nobody, nil // its reader reports that this scope has none
	}
	switch len(ids) {
	case 1:
		if kind == storage.ScopeMCPServer {
			p.uses(KindServer, ids[0])
		}
		return ids[0], nil
	case 0:
		p.wrong(d, n, path, fmt.Sprintf("there is no %s of the name %q", what, n.Value))
	default:
		p.wrong(d, n, path, fmt.Sprintf("there are %d of the name %q: write the id of the %s that is meant", len(ids), n.Value, what))
	}
	return nobody, nil
}

// keyOf returns the name of a member of a mapping, nil when there is none.
func keyOf(n *yaml.Node, name string) *yaml.Node {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == name {
			return n.Content[i]
		}
	}
	return nil
}
