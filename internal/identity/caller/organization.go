package caller

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/storage"
)

// maxSlug bounds a slug in bytes: it is part of addresses and a key of the store.
const maxSlug = 255

var slugPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// organization reads the organization that the token is for. No organization, several, or a value of another shape
// gives ErrForbidden (J21).
func (m *Mapping) organization(c *token.Claims, issuer string) (storage.OrganizationClaim, error) {
	if m.Organization != "" {
		return m.fixedOrganization(c, issuer)
	}
	claim := storage.OrganizationClaim{Issuer: issuer}
	v, path, named := first(c, or(m.Paths.Organization, defaults.Organization))
	if named {
		id, slug, ok := organizationValue(v)
		if !ok {
			return storage.OrganizationClaim{}, forbidden(path)
		}
		claim.ID, claim.Slug = id, slug
	}
	if claim.Slug == "" {
		v, path, ok := first(c, or(m.Paths.OrganizationSlug, defaults.OrganizationSlug))
		switch {
		case !ok && !named:
			return storage.OrganizationClaim{}, fmt.Errorf("%w: no claim for it is present", ErrForbidden)
		case ok:
			name, _ := single(v)
			claim.Slug = readSlug(name)
			// A display name ("Acme Inc.") beside an id is not an error: it is no slug, so it is not stored.
			if claim.Slug == "" && claim.ID == "" {
				return storage.OrganizationClaim{}, forbidden(path)
			}
		}
	}
	if claim.Slug != "" {
		claim.DerivedID = OrganizationID(issuer, claim.Slug)
	}
	id := claim.ID
	if id == "" {
		id = claim.DerivedID
	}
	claim.Shared = slices.Contains(m.SharedOrganizations, id)
	return claim, nil
}

func forbidden(path string) error {
	return fmt.Errorf("%w: the claim %q is not one uuid or slug", ErrForbidden, path)
}

// organizationValue reads a claim that holds an id or a slug.
func organizationValue(v strictjson.Value) (id, slug string, ok bool) {
	name, ok := single(v)
	if !ok {
		return "", "", false
	}
	if id, ok = readUUID(name); ok {
		return id, "", true
	}
	if slug = readSlug(name); slug == "" {
		return "", "", false
	}
	if v.Kind() != strictjson.Object {
		return "", slug, true
	}
	// Keycloak writes {"acme": {"id": "..."}} when it is configured to add the organization's id.
	inner, present := v.Members()[0].Value.Get("id")
	if !present {
		return "", slug, true
	}
	id, ok = readUUID(inner.Str())
	return id, slug, ok
}

// single returns the only name in a string, an array of one string, or an object with one key.
func single(v strictjson.Value) (string, bool) {
	switch v.Kind() {
	case strictjson.String:
		return v.Str(), true
	case strictjson.Array:
		if v.Len() == 1 && v.Elems()[0].Kind() == strictjson.String {
			return v.Elems()[0].Str(), true
		}
	case strictjson.Object:
		if v.Len() == 1 {
			return v.Members()[0].Name, true
		}
	}
	return "", false
}

// readSlug returns s in lower case when that is a slug, else "". A uuid in any spelling is not a slug: where a tenant
// may choose its slug, one that looks like another tenant's id must not be taken for that id.
func readSlug(s string) string {
	lower := strings.ToLower(s)
	if len(s) > maxSlug || len(lower) != len(s) { // the Kelvin sign becomes a "k": another tenant's slug
		return ""
	}
	if _, err := uuid.Parse(lower); err == nil || !slugPattern.MatchString(lower) {
		return ""
	}
	return lower
}

// readUUID returns s in canonical form when it is a uuid with four hyphens, in upper or lower case. The nil uuid names
// nothing.
func readUUID(s string) (string, bool) {
	if len(s) != 36 { // uuid.Parse also accepts braces, urn:uuid: and bare digits
		return "", false
	}
	id, err := uuid.Parse(s)
	if err != nil || id == uuid.Nil {
		return "", false
	}
	return id.String(), true
}

// isCanonicalUUID reports whether s is a uuid in the spelling of this project. Subjects are compared exactly, so a
// subject in upper case differs from the same in lower case; using both as one user id would merge two users (J19).
func isCanonicalUUID(s string) bool {
	id, ok := readUUID(s)
	return ok && id == s
}
