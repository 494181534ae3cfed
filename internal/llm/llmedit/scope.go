package llmedit

import (
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
		value: o.Text("scope_value", validate.Text{Flags: validate.Nullable, Min: 1, Max: MaxName}),
	}
}

// Apply changes a scope of an organization. A scope of the organization itself may name the organization's id; that
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
