package storage

import "time"

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
