package gatewayapi

import (
	"errors"
	"slices"

	"github.com/durward-gateway/durward/internal/api/slug"
	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/storage"
)

// scopeRule tells how a type of scope names its subjects.
type scopeRule struct {
	id    bool // by scope_id
	value bool // by scope_value
	must  bool // it must name one
}

var scopeRules = map[storage.ScopeType]scopeRule{
	storage.ScopeOrganization: {},
	storage.ScopeTeam:         {value: true, must: true},
	storage.ScopeUser:         {id: true, value: true},
	storage.ScopeRole:         {value: true, must: true},
	storage.ScopeGroup:        {value: true, must: true},
	storage.ScopeAPIKey:       {id: true},
	storage.ScopeMCPServer:    {id: true, value: true},
	storage.ScopeAgent:        {id: true},
	storage.ScopeProject:      {value: true, must: true},
	storage.ScopeLLMProvider:  {id: true, value: true},
	storage.ScopeModel:        {value: true},
	storage.ScopeModelAlias:   {value: true},
}

var scopeTypes = []string{
	string(storage.ScopeOrganization), string(storage.ScopeTeam), string(storage.ScopeUser), string(storage.ScopeRole), string(storage.ScopeGroup),
	string(storage.ScopeAPIKey), string(storage.ScopeMCPServer), string(storage.ScopeAgent), string(storage.ScopeProject),
	string(storage.ScopeLLMProvider), string(storage.ScopeModel), string(storage.ScopeModelAlias),
}

// scopeEdit holds the fields of a body about a scope.
type scopeEdit struct{ kind, id, value validate.Field[string] }

func readScope(o *validate.Object, create bool) scopeEdit {
	return scopeEdit{
		kind:  o.Text("scope_type", validate.Text{Flags: required(create), Enum: scopeTypes}),
		id:    o.UUID("scope_id", validate.Nullable),
		value: o.Text("scope_value", validate.Text{Flags: validate.Nullable, Min: 1, Max: maxName}),
	}
}

// apply changes a scope of an organization. A scope of the organization itself may name the organization's id; that
// changes nothing.
func (e scopeEdit) apply(s *storage.Scope, organization string) {
	if e.kind.Set() {
		s.Type = storage.ScopeType(e.kind.Value)
	}
	replace(&s.ID, e.id)
	replace(&s.Value, e.value)
	if s.Type == storage.ScopeOrganization && s.ID == organization {
		s.ID = ""
	}
}

// checkScope returns the problems of a scope, without checking that its subject exists.
func checkScope(s storage.Scope) validate.Problems {
	rule, ok := scopeRules[s.Type]
	if !ok {
		return nil // its type is missing or wrong, which is reported already
	}
	var found validate.Problems
	wrong := func(field, msg string) {
		found = append(found, validate.Problem{Loc: []any{"body", field}, Msg: "Value error, " + msg, Type: validate.ValueError})
	}
	switch {
	case s.ID != "" && !rule.id:
		wrong("scope_id", "a scope of the type "+string(s.Type)+" has none")
	case s.Value != "" && !rule.value:
		wrong("scope_value", "a scope of the type "+string(s.Type)+" has none")
	case s.ID != "" && s.Value != "":
		wrong("scope_value", "give scope_id or scope_value, not both")
	case s.Value == "" && rule.must:
		wrong("scope_value", "a scope of the type "+string(s.Type)+" needs it")
	case s.Type == storage.ScopeMCPServer && s.Value != "" && !slug.Valid(s.Value):
		wrong("scope_value", "this is no slug of a server")
	}
	return found
}

// scopeExists notes a problem when a scope_id names no object of the organization.
func (q *request) scopeExists(o *validate.Object, s storage.Scope) {
	store, ctx, organization := q.Core.Store, q.Context(), q.Organization()
	look := map[storage.ScopeType]struct {
		what string
		find func() error
	}{
		storage.ScopeUser:        {"user", func() error { _, err := store.User(ctx, organization, s.ID); return err }},
		storage.ScopeAgent:       {"agent", func() error { _, err := store.Agent(ctx, organization, s.ID); return err }},
		storage.ScopeAPIKey:      {"API key", func() error { _, err := store.APIKey(ctx, organization, s.ID); return err }},
		storage.ScopeMCPServer:   {"server", func() error { _, err := store.Server(ctx, organization, s.ID); return err }},
		storage.ScopeLLMProvider: {"provider", func() error { return q.providerExists(s.ID) }},
	}[s.Type]
	if look.find != nil {
		q.exists(o, "scope_id", look.what, s.ID, look.find)
	}
}

// exists notes a problem when a field names no object of the organization; another organization's object is answered
// like an unknown one (attack O02).
func (q *request) exists(o *validate.Object, field, what, id string, find func() error) {
	if id == "" {
		return
	}
	switch err := find(); {
	case errors.Is(err, storage.ErrNotFound):
		o.Report(validate.ValueError, noSuch(what), field)
	default:
		q.Note(err)
	}
}

func noSuch(what string) string { return "Value error, there is no such " + what }

// notWrong leaves out problems of members for which a problem is reported already.
func notWrong(o *validate.Object, found validate.Problems) validate.Problems {
	return slices.DeleteFunc(found, func(p validate.Problem) bool { return o.Wrong(p.Loc[1:]...) })
}
