package caller

import (
	"encoding/binary"
	"strings"

	"github.com/durward-gateway/durward/internal/identity/token"
)

// AppendFacts appends everything that Map reads under this mapping: the issuer, and the claims with their texts, each
// preceded by its length. Tokens with the same facts describe the same identity, whatever else they contain, such as
// their expiry. The reverse is not promised: the same identity may have different facts.
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

// reads reports whether Map may read the top-level claim of that name, through a path or directly. A path can begin
// with any part of itself that ends before a dot, see token.Claims.Lookup.
func (p *Paths) reads(name string) bool {
	switch name {
	// The default paths begin with these.
	case "org_id", "organization_id", "organization", "organization_slug", "org_slug", "organization_name", "user", "sub",
		"roles", "realm_access", "groups", "teams", "projects", "azp", "client_id", "cid", "name", "preferred_username", "email":
		return true
	// The default paths with dots can also be claim names.
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

// lists returns all paths.
func (p *Paths) lists() [10][]string {
	return [...][]string{p.Organization, p.OrganizationSlug, p.User, p.Roles, p.Groups, p.Teams, p.Projects, p.Agent, p.Name, p.Email}
}
