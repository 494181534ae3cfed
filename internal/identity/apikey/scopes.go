package apikey

import (
	"errors"
	"regexp"
	"slices"
	"strings"
)

// Scopes of keys.
const (
	ScopeLLM    = "llm"    // every alias of the organization, unless the key also has model: scopes
	ScopeMCP    = "mcp"    // the proxies, as the user of the key
	ScopeSCIM   = "scim"   // provisioning of users and groups, and nothing else
	modelPrefix = "model:" // one alias
)

// aliasText matches aliases of models: they are written into headers, client paths and scopes.
var aliasText = regexp.MustCompile(AliasPattern)

// AliasPattern is the form of an alias of a model.
const AliasPattern = `^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}$`

// ErrScope says that a scope does not exist.
var ErrScope = errors.New("must be llm, mcp, scim, or model: and an alias")

// ErrScopeAlone says that a key for provisioning has other scopes too.
var ErrScopeAlone = errors.New("scim stands alone")

// Scopes holds the permissions of a key. The zero value allows nothing.
type Scopes struct {
	MCP    bool
	SCIM   bool
	all    bool     // every alias
	models []string // these aliases, when all is false
}

// ParseScopes reads the scopes of a key. An unknown scope gives ErrScope, and one beside scim ErrScopeAlone. Both give no scopes
// at all, so that a key never means more than was understood, also for a caller that ignores the error.
func ParseScopes(scopes []string) (Scopes, error) {
	var s Scopes
	for _, scope := range scopes {
		alias, model := strings.CutPrefix(scope, modelPrefix)
		switch {
		case scope == ScopeLLM:
			s.all = true
		case scope == ScopeMCP:
			s.MCP = true
		case scope == ScopeSCIM:
			s.SCIM = true
		case model && aliasText.MatchString(alias):
			s.models = append(s.models, alias)
		default:
			return Scopes{}, ErrScope
		}
	}
	if s.SCIM && (s.MCP || s.all || s.models != nil) {
		return Scopes{}, ErrScopeAlone
	}
	s.all = s.all && s.models == nil
	return s, nil
}

// LLM reports whether the key may use any model at all.
func (s Scopes) LLM() bool { return s.all || len(s.models) > 0 }

// Model reports whether the key may use an alias, compared exactly.
func (s Scopes) Model(alias string) bool { return s.all || slices.Contains(s.models, alias) }
