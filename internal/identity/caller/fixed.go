package caller

import (
	"fmt"
	"slices"

	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/storage"
)

// FixedOrganization reads the organization of a configuration, and returns it in the form that Mapping.Organization
// needs. ok is false when it is neither an id nor a slug.
func FixedOrganization(text string) (organization string, ok bool) {
	if id, ok := readUUID(text); ok {
		return id, true
	}
	slug := readSlug(text)
	return slug, slug != ""
}

// fixedOrganization returns the configured organization, unless the token names another one. It reads every claim that
// could name an organization by the paths in force, not only the first that is present: a token that contradicts itself
// is refused.
//
//   - A claim that is absent, null or empty names none.
//   - A text that cannot be a slug ("Acme Inc."), where only slugs stand, is a display name. It names another organization
//     unless a claim beside it names the configured one.
//   - An id names the configured organization only when it is the configured id, or the one that the configured slug stands for:
//     tenants often choose slugs and display names, but not ids.
func (m *Mapping) fixedOrganization(c *token.Claims, issuer string) (storage.OrganizationClaim, error) {
	claim := storage.OrganizationClaim{Issuer: issuer}
	if id, ok := readUUID(m.Organization); ok {
		claim.ID = id
	} else {
		claim.Slug, claim.DerivedID = m.Organization, OrganizationID(issuer, m.Organization)
	}
	own := claim.ID + claim.DerivedID // one of the two is empty
	named, unclear := false, ""
	for _, path := range or(m.Paths.Organization, defaults.Organization) {
		v, ok := c.Lookup(path)
		if !ok || empty(v) {
			continue
		}
		id, slug, ok := organizationValue(v)
		if !ok || id != "" && id != own || id == "" && slug != claim.Slug {
			return storage.OrganizationClaim{}, other(path)
		}
		named = true
	}
	for _, path := range or(m.Paths.OrganizationSlug, defaults.OrganizationSlug) {
		v, ok := c.Lookup(path)
		if !ok || empty(v) {
			continue
		}
		name, _ := single(v)
		slug := readSlug(name)
		switch {
		case slug == "":
			unclear = path
		case claim.Slug == "": // only the store knows the slug of an organization that is configured by its id
			unclear = path
		case slug != claim.Slug:
			return storage.OrganizationClaim{}, other(path)
		default:
			named = true
		}
	}
	if unclear != "" && !named {
		return storage.OrganizationClaim{}, other(unclear)
	}
	claim.Shared = slices.Contains(m.SharedOrganizations, own)
	return claim, nil
}

func other(path string) error { return fmt.Errorf("%w: the claim %q", ErrOtherOrganization, path) }

// empty reports whether a claim is present without content.
func empty(v strictjson.Value) bool {
	switch v.Kind() {
	case strictjson.Null:
		return true
	case strictjson.String:
		return v.Str() == ""
	case strictjson.Array, strictjson.Object:
		return v.Len() == 0
	}
	return false
}

// OrganizationNames returns the names that claims hold by the paths in force, one for each claim with exactly one name.
func (m *Mapping) OrganizationNames(c *token.Claims) (names []string) {
	for _, paths := range [][]string{or(m.Paths.Organization, defaults.Organization), or(m.Paths.OrganizationSlug, defaults.OrganizationSlug)} {
		for _, path := range paths {
			v, ok := c.Lookup(path)
			if !ok {
				continue
			}
			if name, ok := single(v); ok && name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}
