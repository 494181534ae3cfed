package caller

import "github.com/durward-gateway/durward/internal/identity/token"

// Lack says which facts Map does not find in claims.
type Lack int

// Values of Lack.
const (
	LacksNothing Lack = iota
	// LacksDetail says that a fact is missing that Map does not need, such as an address or roles.
	LacksDetail
	// LacksIdentity says that Map refuses the claims, because none names the user or the organization.
	LacksIdentity
)

// Lacks returns the missing facts of claims. A claim that is present and that Map refuses is not missing.
func (m *Mapping) Lacks(c *token.Claims) Lack {
	present := func(lists ...[]string) bool {
		for _, paths := range lists {
			if _, _, ok := first(c, paths); ok {
				return true
			}
		}
		return false
	}
	named := m.Organization != "" ||
		present(or(m.Paths.Organization, defaults.Organization), or(m.Paths.OrganizationSlug, defaults.OrganizationSlug))
	if !named || !present(or(m.Paths.User, defaults.User)) {
		return LacksIdentity
	}
	for _, paths := range [][]string{
		or(m.Paths.Roles, defaults.Roles), or(m.Paths.Groups, defaults.Groups), or(m.Paths.Name, defaults.Name), or(m.Paths.Email, defaults.Email),
	} {
		if !present(paths) {
			return LacksDetail
		}
	}
	return LacksNothing
}
