package caller

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/storage"
)

// ErrForbidden says that the token is good but gives its bearer no access here: 403. The errors that wrap it give the
// reason for the log; they name claims, never their values.
var ErrForbidden = errors.New("the token names no organization that can be used")

// ErrOtherOrganization is an ErrForbidden. It says that the token names another organization than the fixed one.
var ErrOtherOrganization = fmt.Errorf("%w: it names another one than the configured", ErrForbidden)

// maxText bounds name and email, which are displayed and not compared.
const maxText = 256

// Paths says where a token holds each fact. A path is in the form of token.Claims.Lookup: a top-level name, also a
// namespaced one ("https://example.com/org"), or steps separated by dots. An empty list means the default.
type Paths struct {
	// Organization lists the paths of the organization; the first path that is present decides. Its value is a uuid,
	// which is the organization's id, or a slug. It is a string, an array of one string, or an object with one key
	// (Keycloak). Default org_id, organization_id, organization.
	Organization []string
	// OrganizationSlug lists the paths of the slug, for use when Organization gave none; the first path that is present
	// decides. Its value is a slug, never an id. Default organization_slug, org_slug, organization_name,
	// user.organization_slug, user.organization_name.
	OrganizationSlug []string
	// User lists the paths of the subject; the first path that is present decides. Default sub.
	User []string
	// Roles, Groups, Teams and Projects list paths of arrays of strings; the union of all paths counts. See also
	// Mapping.Separator. Default roles and realm_access.roles; groups; teams; projects.
	Roles, Groups, Teams, Projects []string
	// Agent lists the paths of the OAuth client; the first path that is present decides. Default azp, client_id, cid.
	Agent []string
	// Name and Email list paths; the first path with a string decides. Default name, preferred_username; email.
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
	// Issuer is the name under which identities and organizations are stored; "" means the token's iss. The development
	// provider needs it: it is one issuer, whatever address it listens on.
	Issuer string
	// Organization is the id or slug of the only organization of the issuer's tokens, whether they name it or not; ""
	// means the one that they name. It must be a result of FixedOrganization.
	Organization string
	// Separator separates the names of roles, groups, teams and projects, for issuers that write several into one
	// string; "" means none. It must be a text that ListSeparator accepts.
	Separator string
	// SharedOrganizations lists the ids (canonical uuids) of organizations that this issuer may name although another
	// issuer named them first.
	SharedOrganizations []string
}

// Rules holds the rules for reading the claims of one issuer.
type Rules struct {
	Mapping
	// Roles names the roles that give powers.
	Roles RoleNames
}

// Identity identifies the caller by the facts of the token.
type Identity struct {
	Issuer       string // see Mapping.Issuer
	Subject      string // opaque, compared exactly
	Organization storage.OrganizationClaim
	// Roles, Groups, Teams and Projects are case-sensitive, without duplicates and empty strings, in the token's order.
	// In Groups one leading slash is removed.
	Roles, Groups, Teams, Projects []string
	// AgentExternalID is the OAuth client that got the token; "" when the token does not name it.
	AgentExternalID string
	Name, Email     string // "" when unknown
	// Machine reports whether the token has no person behind it (client_credentials), so that nobody can be asked.
	Machine bool
}

// Map reads the identity from verified claims. It uses exactly the facts that AppendFacts returns.
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

// UserClaim returns the data with which the store finds or makes the user within an organization.
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

// first returns the first path that is present. A null counts as present: an issuer that sends it says that there is no
// value, and a later claim must not replace that.
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
// which they differ does not come from an issuer that this code understands.
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

// withoutSlash removes one leading slash, which Keycloak writes before group paths.
func withoutSlash(s string) string {
	if len(s) > 0 && s[0] == '/' {
		return s[1:]
	}
	return s
}

// ListSeparator reports whether s can separate names in a string.
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
			out = []string{} // the claim is there, even if only to say that there are none
		}
		for _, name := range list {
			if name = edit(name); name != "" && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// names returns the strings of an array. A value that is not an array of only strings grants nothing: an object's keys
// are not names. A string is not a list of one, and is split only by a separator from the operator (J20). Strings of an
// array are never split.
func names(v strictjson.Value, separator string) []string {
	if v.Kind() == strictjson.String && separator != "" {
		parts := strings.Split(v.Str(), separator)
		for i, name := range parts {
			parts[i] = strings.Trim(name, " ") // "a, b": a rule that denies b must match it
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

// text returns the first string of paths that can be displayed; longer ones are ignored.
func text(c *token.Claims, paths []string) string {
	for _, path := range paths {
		if s, ok := c.Str(path); ok && s != "" && len(s) <= maxText {
			return s
		}
	}
	return ""
}
