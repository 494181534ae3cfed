package caller

import (
	"encoding/binary"
	"strings"

	"github.com/durward-gateway/durward/internal/token"
)

// AppendFacts appends all that Map goes by under this mapping: the issuer, and the claims that it reads with their texts,
// each with its length. Tokens with the same facts speak of the same identity, whatever else is in them, such as when they
// end; that the same identity has the same facts is not promised.
func (m *Mapping) AppendFacts(out []byte, c *token.Claims) []byte {
	out = append(binary.BigEndian.AppendUint32(out, uint32(len(c.Issuer))), c.Issuer...)
	for name, value := range c.Object.EachMember() {
		if !m.Paths.reads(string(name)) {
			continue
		}
		text := value.Raw()
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(name))), name...)
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(text))), text...)
	}
	return out
}

// reads reports whether Map may look at the top-level claim of that name, by a path or by itself. A path can begin with
// every part of it that ends before a dot, see token.Claims.Lookup.
func (p *Paths) reads(name string) bool {
	switch name {
	// What the defaults begin with.
	case "org_id", "organization_id", "organization", "organization_slug", "org_slug", "organization_name", "user", "sub",
		"roles", "realm_access", "groups", "teams", "projects", "azp", "client_id", "cid", "name", "preferred_username", "email":
		return true
	// The defaults with dots, as names of their own.
	case "user.organization_slug", "user.organization_name", "realm_access.roles":
		return true
	case "gty", "grant_type", "idtyp": // of machines
		return true
	}
	for _, paths := range p.lists() {
		for _, path := range paths {
			if rest, ok := strings.CutPrefix(path, name); ok && (rest == "" || rest[0] == '.') {
				return true
			}
		}
	}
	return false
}

// lists are all paths.
func (p *Paths) lists() [10][]string {
	return [...][]string{p.Organization, p.OrganizationSlug, p.User, p.Roles, p.Groups, p.Teams, p.Projects, p.Agent, p.Name, p.Email}
}
