package caller

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/internal/token"
	"github.com/durward-gateway/durward/storage"
)

// ErrForbidden says that the token is good but its bearer has no place here: 403. What wraps it tells the log why; it
// names claims, never their values.
var ErrForbidden = errors.New("the token names no organization that can be used")

// ErrOtherOrganization is an ErrForbidden: the token names another organization than the fixed one.
var ErrOtherOrganization = fmt.Errorf("%w: it names another one than the configured", ErrForbidden)

// maxText bounds name and email, which are shown and not compared.
const maxText = 256

// Paths say where in a token the facts are. A path is what token.Claims.Lookup takes: a top-level name, also a namespaced
// one ("https://example.com/org"), or dot-separated steps. An empty list means the default.
type Paths struct {
	// Organization: the first path that is present decides. Its value is a uuid, which is the organization's id, or a slug;
	// a string, an array of one string, or an object with one key (Keycloak).
	// Default org_id, organization_id, organization.
	Organization []string
	// OrganizationSlug: the first path that is present, asked when Organization gave no slug. Its value is a slug, never an
	// id. Default organization_slug, org_slug, organization_name, user.organization_slug, user.organization_name.
	OrganizationSlug []string
	// User: the first path that is present is the subject. Default sub.
	User []string
	// Roles, Groups, Teams, Projects: the union of all paths, which hold arrays of strings; see Mapping.Separator.
	// Default roles and realm_access.roles; groups; teams; projects.
	Roles, Groups, Teams, Projects []string
	// Agent: the first path that is present is the OAuth client. Default azp, client_id, cid.
	Agent []string
	// Name and Email: the first path that holds a string. Default name, preferred_username; email.
	Name, Email []string
}

var defaults = Paths{
	Organization: []string{"org_id", "organization_id", "organization"},
	OrganizationSlug: []string{"organization_slug", "org_slug", "organization_name",
		"user.organization_slug", "user.organization_name"},
	User:     []string{"sub"},
	Roles:    []string{"roles", "realm_access.roles"},
	Groups:   []string{"groups"},
	Teams:    []string{"teams"},
	Projects: []string{"projects"},
	Agent:    []string{"azp", "client_id", "cid"},
	Name:     []string{"name", "preferred_username"},
	Email:    []string{"email"},
}

func or(paths, standard []string) []string {
	if len(paths) > 0 {
		return paths
	}
	return standard
}

// Mapping says how the tokens of one issuer are read. The zero value is the default for every issuer.
type Mapping struct {
	Paths Paths
	// Issuer is the name under which identities and organizations are kept; "" means the token's iss. The development
	// provider needs it: it is one issuer, whatever address it listens on.
	Issuer string
	// Organization is the id or slug of the one organization that the issuer's tokens are for, whether they name it or not;
	// "" means the one that they name. It must be what FixedOrganization returns.
	Organization string
	// Separator, when there is one, stands between the names of roles, groups, teams and projects in issuers that write
	// several into one string. It must be what ListSeparator accepts.
	Separator string
	// SharedOrganizations are the ids (canonical uuids) of organizations that this issuer may name although another one
	// named them first.
	SharedOrganizations []string
}

// Identity is who calls, as the token says it.
type Identity struct {
	Issuer       string // see Mapping.Issuer
	Subject      string // opaque, compared exactly
	Organization storage.OrganizationClaim
	// Roles, Groups, Teams, Projects are case-sensitive, without duplicates and empty strings, in the token's order.
	// Groups are without one leading slash.
	Roles, Groups, Teams, Projects []string
	// AgentExternalID is the OAuth client that got the token; "" when the token does not say.
	AgentExternalID string
	Name, Email     string // "" when unknown
	// Machine says that nobody stands behind the token (client_credentials), so that nobody can be asked.
	Machine bool
}

// Map reads the identity from verified claims. It goes by what AppendFacts returns, and by nothing else of them.
func Map(c *token.Claims, m Mapping) (Identity, error) {
	i := Identity{Issuer: m.Issuer}
	if i.Issuer == "" {
		i.Issuer = c.Issuer
	}
	var err error
	if i.Subject, err = subject(c, or(m.Paths.User, defaults.User)); err != nil {
		return Identity{}, err
	}
	if i.AgentExternalID, err = agent(c, or(m.Paths.Agent, defaults.Agent)); err != nil {
		return Identity{}, err
	}
	if i.Organization, err = m.organization(c, i.Issuer); err != nil {
		return Identity{}, err
	}
	i.Roles = union(c, or(m.Paths.Roles, defaults.Roles), m.Separator, exact)
	i.Groups = union(c, or(m.Paths.Groups, defaults.Groups), m.Separator, withoutSlash)
	i.Teams = union(c, or(m.Paths.Teams, defaults.Teams), m.Separator, exact)
	i.Projects = union(c, or(m.Paths.Projects, defaults.Projects), m.Separator, exact)
	i.Name = text(c, or(m.Paths.Name, defaults.Name))
	i.Email = text(c, or(m.Paths.Email, defaults.Email))
	i.Machine = isMachine(c, i.Subject, i.AgentExternalID)
	return i, nil
}

// UserClaim is what the store needs to find or make the user within an organization.
func (i *Identity) UserClaim(organizationID string) storage.UserClaim {
	u := storage.UserClaim{
		OrganizationID: organizationID,
		Issuer:         i.Issuer,
		Subject:        i.Subject,
		DerivedID:      UserID(i.Issuer, i.Subject),
		Kind:           storage.UserPerson,
		Name:           i.Name,
		Email:          i.Email,
	}
	if isCanonicalUUID(i.Subject) {
		u.ID = i.Subject
	}
	if i.Machine {
		u.Kind = storage.UserMachine
	}
	return u
}

// HasRole reports whether the token grants role, which is compared exactly.
func (i *Identity) HasRole(role string) bool { return slices.Contains(i.Roles, role) }

// first returns the first path that is present. A null is present: an issuer that sends it has something to say, and a
// later claim must not speak in its place.
func first(c *token.Claims, paths []string) (v strictjson.Value, path string, ok bool) {
	for _, path := range paths {
		if v, ok := c.Lookup(path); ok {
			return v, path, true
		}
	}
	return strictjson.Value{}, "", false
}

func subject(c *token.Claims, paths []string) (string, error) {
	v, path, ok := first(c, paths)
	if !ok || v.Kind() != strictjson.String || !token.Opaque(v.Str()) {
		return "", &token.Error{Kind: token.ErrInvalid, Reason: fmt.Sprintf("the subject %q is not a string of 1 to 255 bytes", path)}
	}
	return v.Str(), nil
}

// agent returns the OAuth client. azp and client_id, wherever the paths point, are two names for one thing: a token in
// which they differ was not made by an issuer that we understand.
func agent(c *token.Claims, paths []string) (string, error) {
	azp, okAZP := c.Lookup("azp")
	id, okID := c.Lookup("client_id")
	if okAZP && okID && (azp.Kind() != strictjson.String || id.Kind() != strictjson.String || azp.Str() != id.Str()) {
		return "", &token.Error{Kind: token.ErrInvalid, Reason: "azp and client_id differ"}
	}
	v, path, ok := first(c, paths)
	if !ok {
		return "", nil
	}
	if v.Kind() != strictjson.String || !token.Opaque(v.Str()) {
		return "", &token.Error{Kind: token.ErrInvalid, Reason: fmt.Sprintf("the client %q is not a string of 1 to 255 bytes", path)}
	}
	return v.Str(), nil
}

func exact(s string) string { return s }

// withoutSlash drops the slash with which Keycloak writes group paths, once.
func withoutSlash(s string) string {
	if len(s) > 0 && s[0] == '/' {
		return s[1:]
	}
	return s
}

// ListSeparator reports whether s can stand between names in a string.
func ListSeparator(s string) bool { return len(s) == 1 && strings.Contains(" ,;", s) }

// union returns the names of all paths.
func union(c *token.Claims, paths []string, separator string, edit func(string) string) []string {
	var out []string
	for _, path := range paths {
		v, ok := c.Lookup(path)
		if !ok {
			continue
		}
		list := names(v, separator)
		if out == nil && list != nil {
			out = []string{} // named, if only to say that there is none
		}
		for _, name := range list {
			if name = edit(name); name != "" && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// names returns the strings of an array. What is not an array of strings through and through grants nothing: an object's
// keys are not names, a string is not a list of one and is not split, unless the operator says by what (J20). Strings of an
// array are never split.
func names(v strictjson.Value, separator string) []string {
	if v.Kind() == strictjson.String && separator != "" {
		parts := strings.Split(v.Str(), separator)
		for i, name := range parts {
			parts[i] = strings.Trim(name, " ") // "a, b": a rule that denies b must find it
		}
		return parts
	}
	if v.Kind() != strictjson.Array {
		return nil
	}
	out := make([]string, 0, v.Len())
	for _, e := range v.Elems() {
		if e.Kind() != strictjson.String {
			return nil
		}
		out = append(out, e.Str())
	}
	return out
}

// text returns the first string of paths that can be shown; longer ones are taken for no name at all.
func text(c *token.Claims, paths []string) string {
	for _, path := range paths {
		if s, ok := c.Str(path); ok && s != "" && len(s) <= maxText {
			return s
		}
	}
	return ""
}
