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

// Connection is one user's stored credential for one server. Origin, Resource and Issuer are those of the upstream when
// the credential was stored: it is never sent anywhere else.
type Connection struct {
	ConnectionKey
	ID               string
	Status           ConnectionStatus // connected or error
	Kind             Provider
	SealedCredential []byte // nil: nothing is stored (status error)
	ClientID         string // the OAuth client that the tokens were issued to
	Scope            string
	WantedScope      string // what the upstream asked for beside Scope, blank-separated: the next connect asks for both. A blank: it named none
	Origin           string
	Resource         string
	Issuer           string
	ExpiresAt        time.Time // zero: does not expire, or not known
	Reason           string    // why status is error, for people
	Version          int64     // changes with every write
	CreatedAt        time.Time
	UpdatedAt        time.Time
}

// MaxAttempts is how many attempts of one connection can be under way: whoever begins another one loses the oldest.
const MaxAttempts = 20

// Attempt is a connection attempt under way: a row of its own, so that it never disturbs what is stored.
type Attempt struct {
	ConnectionKey
	StateHash    []byte // SHA-256 of the state parameter; the state itself is stored nowhere
	ConnectionID string // the id that the connection will have
	Issuer       string
	Sealed       []byte // PKCE verifier, redirect_uri, return_url, and what was asked for
	CreatedAt    time.Time
	ExpiresAt    time.Time
}
