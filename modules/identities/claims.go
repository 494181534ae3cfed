package identities

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/durward-gateway/durward/internal/identity/caller"
)

// claimTargets returns the paths that each name of the word `claim` sets.
func claimTargets(p *caller.Paths) map[string]*[]string {
	return map[string]*[]string{
		"org": &p.Organization, "org_slug": &p.OrganizationSlug, "user": &p.User, "roles": &p.Roles, "groups": &p.Groups,
		"teams": &p.Teams, "projects": &p.Projects, "agent": &p.Agent, "name": &p.Name, "email": &p.Email,
	}
}

func claimNames() []string {
	return slices.Sorted(maps.Keys(claimTargets(new(caller.Paths))))
}

// checkScopes refuses a text that cannot stand in a list of scopes (RFC 6749 section 3.3), which would end up in a
// header.
func checkScopes(scopes []string) error {
	for _, scope := range scopes {
		if scope == "" || strings.ContainsFunc(scope, func(c rune) bool { return c <= ' ' || c > '~' || c == '"' || c == '\\' }) {
			return fmt.Errorf("scopes: %q is not a scope: use visible ASCII characters, without quotes and backslashes", scope)
		}
	}
	return nil
}

func claimPaths(claims map[string][]string) (caller.Paths, error) {
	var paths caller.Paths
	targets := claimTargets(&paths)
	for name, list := range claims {
		target, ok := targets[name]
		if !ok {
			return paths, fmt.Errorf("unrecognized claim %q; known are %v", name, claimNames())
		}
		*target = list
	}
	return paths, nil
}
