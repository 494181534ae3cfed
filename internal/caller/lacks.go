package caller

import "github.com/durward-gateway/durward/internal/token"

// Lack says what Map looks for in claims in vain.
type Lack int

// Values of Lack.
const (
	LacksNothing Lack = iota
	// LacksDetail: something that Map does without, such as an address or roles.
	LacksDetail
	// LacksIdentity: Map refuses them, because no claim names the user or the organization.
	LacksIdentity
)

// Lacks says what is missing in claims. Claims that are there and that Map refuses are not missing.
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
