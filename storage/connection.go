package storage

import "time"

// ConnectionStatus is the state of one user's connection to one server.
type ConnectionStatus string

// States of a connection. See ServerFilter and Store.Servers for how they are derived.
const (
	ConnectionAvailable ConnectionStatus = "available"
	ConnectionPending   ConnectionStatus = "pending"
	ConnectionConnected ConnectionStatus = "connected"
	ConnectionError     ConnectionStatus = "error"
)

// ConnectionKey names a connection.
type ConnectionKey struct {
	OrganizationID string
	UserID         string
	ServerID       string
}

// Connection is one user's stored credential for one server. Origin, Resource and Issuer are those of the upstream
// when the credential was stored: it is never sent anywhere else.
type Connection struct {
	ConnectionKey
	ID               string
	Status           ConnectionStatus // connected or error
	Kind             Provider
	SealedCredential []byte // nil: nothing is stored (status error)
	ClientID         string // the OAuth client to which the tokens were issued
	Scope            string
	WantedScope      string // scopes that the upstream asked for in addition to Scope, blank-separated: the next connect asks for both. A blank: it named none
	Origin           string
	Resource         string
	Issuer           string
	ExpiresAt        time.Time // zero: does not expire, or unknown
	Reason           string    // the reason of the status error, for people
	Version          int64     // changes with every write
	CreatedAt        time.Time
	UpdatedAt        time.Time
}

// ConnectionFilter selects connections to a server.
type ConnectionFilter struct {
	OrganizationID string
	ServerID       string
	// After is the id of a user behind whose place the list begins; "" for its beginning.
	After string
	// Limit is the largest number of connections.
	Limit int
}

// UserConnection describes a connection and its user, without the credential.
type UserConnection struct {
	UserID    string
	UserName  string
	UserEmail string
	Status    ConnectionStatus // connected or error
	Kind      Provider
	Scope     string
	Reason    string // of the status error, for people
	CreatedAt time.Time
	UpdatedAt time.Time
}

// MaxAttempts bounds the attempts of one connection at a time: a further attempt replaces the oldest.
const MaxAttempts = 20

// Attempt is a running connection attempt. It has a row of its own, so that it never disturbs the stored connection.
type Attempt struct {
	ConnectionKey
	StateHash    []byte // SHA-256 of the state parameter; the state itself is stored nowhere
	ConnectionID string // the future id of the connection
	Issuer       string
	Sealed       []byte // PKCE verifier, redirect_uri, return_url, and the requested scopes
	CreatedAt    time.Time
	ExpiresAt    time.Time
}
