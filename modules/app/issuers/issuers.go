// Package issuers knows the issuers of tokens that a configuration accepts: the scopes that clients ask them for, the
// organizations that they are for, and the tokens that were refused.
package issuers

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/storage"
)

// Issuer is one issuer of tokens.
type Issuer interface {
	// IssuerID returns the exact `iss` of its tokens.
	IssuerID() string
	authn.Issuer
}

// Scoped is implemented by issuers whose clients have to ask for scopes.
type Scoped interface {
	// RequestedScopes returns the scopes that clients should ask for; each is a scope of RFC 6749 section 3.3.
	RequestedScopes() []string
}

// Issuers holds the issuers of a configuration.
type Issuers struct {
	names  []string // in the order of the configuration
	byName map[string]authn.Issuer
	scopes []string // of all issuers, each once
}

// Add adds an issuer to those of the configuration. It fails when the configuration has named it before.
func (s *Issuers) Add(issuer Issuer) error {
	name := issuer.IssuerID()
	if s.byName[name] != nil {
		return fmt.Errorf("identity %s is configured twice", name)
	}
	if s.byName == nil {
		s.byName = make(map[string]authn.Issuer)
	}
	s.names = append(s.names, name)
	s.byName[name] = issuer
	if scoped, ok := issuer.(Scoped); ok {
		for _, scope := range scoped.RequestedScopes() {
			if !slices.Contains(s.scopes, scope) {
				s.scopes = append(s.scopes, scope)
			}
		}
	}
	return nil
}

// Names lists the issuers in the order of the configuration, for metadata documents too.
func (s *Issuers) Names() []string { return s.names }

// Owner returns the issuer under which the store keeps what the tokens of an issuer name.
func (s *Issuers) Owner(name string) string {
	if known, ok := s.byName[name]; ok {
		return cmp.Or(known.Rules().Issuer, name)
	}
	return name
}

// ByName returns all issuers by their names.
func (s *Issuers) ByName() map[string]authn.Issuer { return s.byName }

// Scopes lists the scopes that clients should ask the issuers for, for metadata documents and challenges.
func (s *Issuers) Scopes() []string { return s.scopes }

// Of lists the issuers whose tokens can name an organization, in the order of the configuration.
func (s *Issuers) Of(o storage.Organization) []string {
	return slices.DeleteFunc(slices.Clone(s.names), func(name string) bool {
		mapping := s.byName[name].Rules().Mapping
		if slices.Contains(mapping.SharedOrganizations, o.ID) && (mapping.Organization == "" || s.fixedTo(name, o.ID)) {
			return false
		}
		return s.Owner(name) != o.Issuer || mapping.Organization != "" && !s.fixedTo(name, o.ID)
	})
}

// fixedTo reports whether an issuer is for that one organization.
func (s *Issuers) fixedTo(name, organization string) bool {
	fixed := s.byName[name].Rules().Mapping.Organization
	return fixed != "" && (fixed == organization || caller.OrganizationID(s.Owner(name), fixed) == organization)
}

// ServeOnly reports whether every issuer is for that organization and for no other.
func (s *Issuers) ServeOnly(organization string) bool {
	for _, name := range s.names {
		if !s.fixedTo(name, organization) {
			return false
		}
	}
	return len(s.names) > 0
}
