package storage

import "time"

// Organization is a tenant. It belongs to the issuer that first named it.
type Organization struct {
	ID        string
	Issuer    string
	Slug      string // "" until a token named one
	CreatedAt time.Time
}

// OrganizationClaim is what a verified token says about its organization: an id, a slug, or both.
type OrganizationClaim struct {
	Issuer string
	ID     string // uuid, or ""
	Slug   string // lower-cased, or ""
	// DerivedID is uuid5(issuer, slug), the id of an organization that is named by slug only.
	DerivedID string
	// Shared says that the operator lets this issuer name organizations of other issuers with this id.
	Shared bool
}

// UserKind tells people from machines.
type UserKind string

// Kinds of users.
const (
	UserPerson  UserKind = "person"
	UserMachine UserKind = "machine" // a client_credentials token: nobody can be asked
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
	// RevokedAt: tokens issued until then are refused; zero when nobody revoked them.
	RevokedAt time.Time
	// LoggedOutAt: browsers' sessions that were begun until then are over; zero when nobody logged out.
	LoggedOutAt time.Time
	// Facts are what tokens of the user said, and FactsAt is when the newest of them was issued; zero: none said when. API keys of
	// the user act by them.
	Facts   UserFacts
	FactsAt time.Time
}

// UserFacts are what tokens say of a user besides who they are.
type UserFacts struct {
	Roles    Fact `json:"roles,omitzero"`
	Groups   Fact `json:"groups,omitzero"`
	Teams    Fact `json:"teams,omitzero"`
	Projects Fact `json:"projects,omitzero"`
}

// Fact is one list, sorted, as the last token said that named it. At is when that was issued; zero: none ever has named it.
type Fact struct {
	Names []string  `json:"names,omitempty"`
	At    time.Time `json:"at"`
}

// UserClaim is what a verified token says about its user.
type UserClaim struct {
	OrganizationID string
	Issuer         string
	Subject        string
	// ID is the subject when that is a uuid, else "". DerivedID is uuid5(issuer, subject), used when ID is empty or
	// already belongs to another issuer's user.
	ID, DerivedID string
	Kind          UserKind
	Name, Email   string
	// Roles and the others are kept when the token was issued, at IssuedAt, after the newest one before. Nil is a list that the token
	// does not name: it stays as it was. A token that does not say when it was issued says none of them: IssuedAt is zero.
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
