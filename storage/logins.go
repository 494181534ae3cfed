package storage

import (
	"errors"
	"time"
)

// ErrReplayed says that a code or a refresh token was used before: two parties hold it, and the login was ended.
var ErrReplayed = errors.New("used before")

// These are bounds of logins.
const (
	// MaxLogins is the largest number of logins of a user.
	MaxLogins = 200
	// MaxWaitingLogins is the largest number of logins that wait for their user to agree. Another site can make a browser
	// begin such logins, and they must not push out those that clients use.
	MaxWaitingLogins = 20
	// MaxAssertedLogins is the largest number of logins of a user that came of assertions. They are counted apart: a client
	// that asks without its user must not push out those that the user began.
	MaxAssertedLogins = 200
	// MaxConsents is the largest number of consents of a user.
	MaxConsents = 500
	// RenewalLimit is the time that a node has to ask an identity provider for new facts about a login.
	RenewalLimit = 30 * time.Second
	// MaxUnusedClients is the largest number of registered clients with which nobody has logged in.
	MaxUnusedClients = 10_000
	// MaxClientTexts is the longest that the redirect URIs of a registered client, in JSON, and its name are together, in
	// bytes. Three such clients fit into a page of SQLite, so that MaxUnusedClients of them take less than 20 MB.
	MaxClientTexts = 1_024
	// UnusedClientLifetime is the time that somebody has to log in with a registered client.
	UnusedClientLifetime = 24 * time.Hour
	// IdleClientLifetime is the time for which a registered client is kept after its last login.
	IdleClientLifetime = 180 * 24 * time.Hour
)

// Login is a user's login with an OAuth client, from the answer of the identity provider until the login ends. Access
// tokens name it in their claim sid.
type Login struct {
	ID             string
	OrganizationID string
	UserID         string
	// ClientID is the OAuth client's id, and ClientName its name at the time of the login. Both are empty until the user
	// has agreed to the client.
	ClientID, ClientName string
	// Resource is the audience of the login's access tokens (RFC 8707).
	Resource string
	// Issuer is the identity provider at which the user logged in, and Audience the gateway's client there.
	Issuer, Audience string
	// Subject is the user's `sub` at Issuer.
	Subject   string
	CreatedAt time.Time
	// UsedAt is the time at which the client last got tokens.
	UsedAt time.Time
	// ExpiresAt is the time at which the login ends when its client gets no tokens before, and EndsAt the time at which it
	// ends even so.
	ExpiresAt, EndsAt time.Time
	// RedirectURI and Challenge are those of the authorization request: the code is good for these alone (RFC 7636). A login
	// that came of an assertion has neither.
	RedirectURI, Challenge string
	// RedeemedAt is the time at which the code was exchanged for tokens; zero before, when ExpiresAt is
	// the code's.
	RedeemedAt time.Time
	// Generation is the number of the newest refresh token. It was made at RotatedAt.
	Generation int
	RotatedAt  time.Time
	// Facts holds the roles and groups that the identity provider named last, at FactsAt.
	Facts   LoginFacts
	FactsAt time.Time
	// SealedRefresh is the refresh token that the identity provider gave; nil when it gave none.
	SealedRefresh []byte
	// SealedIDToken is the ID token that the identity provider gave last, and IDTokenExpiresAt its end; nil and zero when
	// it gave none.
	SealedIDToken    []byte
	IDTokenExpiresAt time.Time
}

// Asserted reports whether the identity provider asserted the user to the client, without a code (RFC 7523).
func (l *Login) Asserted() bool { return l.ClientID != "" && l.Challenge == "" }

// LoginFacts holds the names that an identity provider gave for a user. A list is empty when it named none.
type LoginFacts struct {
	Roles    []string `json:"roles,omitempty"`
	Groups   []string `json:"groups,omitempty"`
	Teams    []string `json:"teams,omitempty"`
	Projects []string `json:"projects,omitempty"`
	// RolesUnknown and GroupsUnknown report that the identity provider said nothing about the list, and may know names for it.
	RolesUnknown  bool `json:"roles_unknown,omitempty"`
	GroupsUnknown bool `json:"groups_unknown,omitempty"`
	// Claims is a JSON object with all claims that conditions of policies may see; "" when there are none.
	Claims string `json:"claims,omitempty"`
}

// LoginFilter selects logins of an organization.
type LoginFilter struct {
	OrganizationID string
	UserID         string // "" for those of all users
	// Now leaves out the logins that have ended by then.
	Now  time.Time
	Page PageRequest
}

// Consent says that a user lets a client act for them at a resource, from which pages of the client return.
type Consent struct {
	OrganizationID string
	UserID         string
	ClientID       string
	Resource       string
	// RedirectOrigin is the scheme, host and port of the client's redirect URI; loopback addresses have no port.
	RedirectOrigin string
	// ClientName is the name that the user saw.
	ClientName string
	CreatedAt  time.Time
}

// RegisteredClient is an OAuth client that registered itself (RFC 7591). It belongs to no organization: it is known
// before anybody has logged in with it.
type RegisteredClient struct {
	ID   string
	Name string
	// AuthMethod is the client's token_endpoint_auth_method.
	AuthMethod string
	// SecretHash is the SHA-256 of the client's secret; nil for a public client.
	SecretHash   []byte
	RedirectURIs []string
	GrantTypes   []string
	CreatedAt    time.Time
	// LoggedInAt is the time of the last login with it; zero when nobody logged in.
	LoggedInAt time.Time
}

// SigningKey is a key that signs access tokens.
type SigningKey struct {
	ID     string // the kid of its tokens
	Sealed []byte
	// CreatedAt is the time from which the key is published.
	CreatedAt time.Time
	// ExpiresAt is the time at which the last token has ended that the key can have signed.
	ExpiresAt time.Time
}
