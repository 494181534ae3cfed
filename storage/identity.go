package storage

import (
	"encoding/json"
	"time"
)

// Organization is a tenant. It belongs to the issuer that first named it.
type Organization struct {
	ID        string
	Issuer    string
	Slug      string // "" until a token named one
	CreatedAt time.Time
}

// OrganizationClaim holds the statements of a verified token about its organization: an id, a slug, or both.
type OrganizationClaim struct {
	Issuer string
	ID     string // uuid, or ""
	Slug   string // lower-cased, or ""
	// DerivedID is uuid5(issuer, slug), the id of an organization that is named by slug only.
	DerivedID string
	// Shared says that the operator lets this issuer name organizations of other issuers with this id.
	Shared bool
}

// UserKind distinguishes people from machines.
type UserKind string

// Kinds of users.
const (
	UserPerson  UserKind = "person"
	UserMachine UserKind = "machine" // a client_credentials token: there is nobody to ask
)

// User is a caller as one organization knows them.
type User struct {
	ID             string
	OrganizationID string
	Issuer         string
	Subject        string
	Kind           UserKind
	Name           string
	Email          string
	CreatedAt      time.Time
	SeenAt         time.Time
	// RevokedAt is the time up to which issued tokens are refused; zero when there was no revocation.
	RevokedAt time.Time
	// LoggedOutAt is the time up to which begun browser sessions are over; zero when there was no logout.
	LoggedOutAt time.Time
	// Facts holds the statements of the user's tokens. FactsAt is the issue time of the newest of them; zero when no
	// token gave one. API keys of the user act with these facts.
	Facts   UserFacts
	FactsAt time.Time
}

// UserFilter selects users of an organization.
type UserFilter struct {
	OrganizationID string
	// Search narrows the users to those in whose name, email or subject it occurs, taken literally. The letters A to Z are
	// compared without case. "" does not narrow.
	Search string
	// After is the id of a user behind whose place the list begins; "" for its beginning.
	After string
	// Limit is the largest number of users.
	Limit int
}

// UserFacts holds the statements of tokens about a user, except for their identity.
type UserFacts struct {
	Roles    Fact `json:"roles,omitzero"`
	Groups   Fact `json:"groups,omitzero"`
	Teams    Fact `json:"teams,omitzero"`
	Projects Fact `json:"projects,omitzero"`
}

// Fact holds one list, sorted, from the last token that contained it. At is that token's issue time; zero when no
// token ever contained it.
type Fact struct {
	Names []string  `json:"names,omitempty"`
	At    time.Time `json:"at"`
}

// UserClaim holds the statements of a verified token about its user.
type UserClaim struct {
	OrganizationID string
	Issuer         string
	Subject        string
	// ID is the subject when it is a uuid, else "". DerivedID is uuid5(issuer, subject), used when ID is empty or
	// already belongs to another issuer's user.
	ID, DerivedID string
	Kind          UserKind
	Name, Email   string
	// Roles and the other lists are stored when the token was issued, at IssuedAt, after the newest one before. A nil
	// list is not in the token, and stays as it was. A token without an issue time changes none of them: IssuedAt is
	// then zero.
	Roles, Groups, Teams, Projects []string
	IssuedAt                       time.Time
}

// DataKey is a data-encryption key, wrapped by the master key that MasterKeyID names.
type DataKey struct {
	Version     int // from 1, ascending
	MasterKeyID string
	Wrapped     []byte
	CreatedAt   time.Time
}

// ProvisionedMost holds the greatest numbers of an organization's groups, and of members of one.
type ProvisionedMost struct{ Groups, Members int }

// ProvisionedUser is a user as an organization's identity provider describes them ahead of any token (SCIM). ProvisionedMatch
// says which users of the gateway they are.
type ProvisionedUser struct {
	ID             string // uuid v7: its order is that of creation
	OrganizationID string
	// UserName is unique in an organization. The letters A to Z are compared without case.
	UserName string
	// ExternalID is the provider's own id; "" when it has none. It is compared exactly, and may not be unique.
	ExternalID string
	// Email is the address by which the user is found; "" for none. The letters A to Z are compared without case.
	Email string
	// Active reports whether the user may come in.
	Active bool
	// Attributes holds everything else that the provider wrote, a JSON object.
	Attributes json.RawMessage
	CreatedAt  time.Time
	UpdatedAt  time.Time
	// Groups lists the groups of which the user is a member, by name. It is read only.
	Groups []ProvisionedRef
}

// ProvisionedGroup is a group of users as an organization's identity provider describes it.
type ProvisionedGroup struct {
	ID             string // uuid v7: its order is that of creation
	OrganizationID string
	// Name is the name by which policies know the group. It is unique in an organization, where the letters A to Z are
	// compared without case.
	Name       string
	ExternalID string // as that of users
	CreatedAt  time.Time
	UpdatedAt  time.Time
	// Members lists the members by id, as far as they were asked for. It is read only.
	Members []ProvisionedRef
}

// ProvisionedRef names a user or a group.
type ProvisionedRef struct{ ID, Name string }

// ProvisionedMatch says which fact about a user of the gateway names the provisioned user.
type ProvisionedMatch string

// Matches of users with provisioned users.
const (
	// MatchUserName compares the user name with the subject of the user's tokens, then with their e-mail address.
	MatchUserName ProvisionedMatch = "user_name"
	// MatchSubject compares the user name with the subject only, and MatchEmail with the e-mail address only.
	MatchSubject ProvisionedMatch = "subject"
	MatchEmail   ProvisionedMatch = "email"
	// MatchExternalID compares the external id with the subject, exactly.
	MatchExternalID ProvisionedMatch = "external_id"
)

// ProvisionedFilter selects provisioned users or groups. Texts that are not "" and flags that are not nil all have to match.
type ProvisionedFilter struct {
	OrganizationID string
	ID             string
	Name           string // the user name, or the group's name
	ExternalID     string
	Email          string // of users only
	Member         string // of groups only: the id of a member
	Active         *bool  // of users only
	// Skip is the number of matching ones to leave out, and Limit the greatest number to list; 0 only counts.
	Skip, Limit int
	// Members fills the members of groups, of no more groups than have as many members together, but of one at least, and so
	// the groups of users; 0 fills none.
	Members int
}

// ProvisionedChange changes a group. Edit may be nil. Members is replaced when Replace says so; otherwise those of Add are
// added and those of Remove are removed.
type ProvisionedChange struct {
	Edit        func(*ProvisionedGroup) error
	Replace     bool
	Add, Remove []string
	// Most is the greatest number of members that the group may have then.
	Most int
}

// ProvisionedStanding holds the statements of an organization's identity provider about a user of the gateway.
type ProvisionedStanding struct {
	// Known reports whether the user is provisioned, or was.
	Known bool
	// Active reports whether a known user may come in.
	Active bool
	// Groups lists the names of the groups of a known user, sorted.
	Groups []string
	// Ambiguous reports that several provisioned users match, which have no groups together.
	Ambiguous bool
}
