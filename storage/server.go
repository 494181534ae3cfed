package storage

import (
	"encoding/json"
	"time"
)

// ServerStatus is the state of a server in its lifecycle.
type ServerStatus string

// Lifecycle of a server.
const (
	ServerPending ServerStatus = "pending" // an administrator must supply an OAuth client
	ServerActive  ServerStatus = "active"
	ServerError   ServerStatus = "error" // the provider refuses our client, or its issuer has changed
)

// Server is an MCP server instance of an organization, made from a directory entry.
type Server struct {
	ID             string
	OrganizationID string
	Name           string
	Slug           string
	DirectoryID    string
	Status         ServerStatus
	ClientID       string // configured by an administrator; "" when none
	// SealedClientSecret is nil when none is configured.
	SealedClientSecret []byte
	Meta               json.RawMessage
	CreatedBy          string // user id
	CreatedAt          time.Time
	UpdatedAt          time.Time
	// LastSeenAt is the time of the server's last answer, at most a minute too early; zero means never. LastError
	// describes a problem with it since, for administrators; "" means none. Only NoteServer changes them.
	LastSeenAt time.Time
	LastError  string
	// Modern reports whether the server is known to speak 2026-07-28. Only NoteModern changes it.
	Modern bool
	// Entry is the directory entry, filled in by every read.
	Entry DirectoryEntry
}

// ServerView is a server as one user sees it.
type ServerView struct {
	Server
	ConnectionStatus ConnectionStatus
}

// ServerFilter narrows a list of servers. Empty members do not narrow.
type ServerFilter struct {
	OrganizationID     string
	UserID             string // the user whose connection status is shown
	ID, Slug           string
	Search             string // case-insensitive substring of name or slug, taken literally
	Status             []ServerStatus
	ConnectionStatuses []ConnectionStatus
	Now                time.Time // the time for deciding which connection attempts are still valid
	Page               PageRequest
}

// OAuthClient is durward's OAuth client at a server's authorization server, with the facts discovered about that
// server. There is at most one per server. It belongs to its issuer: a client is never used with another issuer than
// its own.
type OAuthClient struct {
	OrganizationID string
	ServerID       string
	Issuer         string
	ClientID       string
	SealedSecret   []byte
	AuthMethod     string // token_endpoint_auth_method: none | client_secret_basic | client_secret_post
	Kind           OAuthClientKind
	RedirectURI    string
	Endpoints      OAuthEndpoints
	Origin         string // of the server's URL at which Issuer was learned; "": unknown
	Scopes         []string
	// IssuerInResponse says that the server promises `iss` in authorization responses (RFC 9207).
	IssuerInResponse bool
	// SecretExpiresAt is the time at which the provider forgets the secret of a registered client; the zero time
	// means never.
	SecretExpiresAt time.Time
	// RefreshResourceOff says that the provider accepts a refresh only without `resource`.
	RefreshResourceOff bool
	// Refused says that the provider does not accept the client, or has forgotten it. Tokens that it got are valid
	// until they expire.
	Refused   bool
	CreatedAt time.Time
}

// OAuthClientKind is the origin of an OAuth client.
type OAuthClientKind string

// Kinds of OAuth clients.
const (
	ClientConfigured OAuthClientKind = "configured"        // client_id and client_secret of the server record
	ClientMetadata   OAuthClientKind = "metadata_document" // our client-id metadata document
	ClientRegistered OAuthClientKind = "registered"        // RFC 7591
)
