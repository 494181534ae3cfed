package storage

import (
	"encoding/json"
	"time"
)

// ServerStatus is a server's lifecycle.
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
	// LastSeenAt is when the server last answered, a minute too early at the most; zero: never. LastError says what was wrong
	// with it since, in words for administrators; "": nothing. Only NoteServer changes them.
	LastSeenAt time.Time
	LastError  string
	// Modern reports whether the server has been seen to speak 2026-07-28. Only NoteModern changes it.
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
	UserID             string // whose connection status is shown
	ID, Slug           string
	Search             string // case-insensitive substring of name or slug, taken literally
	Status             []ServerStatus
	ConnectionStatuses []ConnectionStatus
	Now                time.Time // decides which connection attempts are still under way
	Page               PageRequest
}

// OAuthClient is the OAuth client with which durward stands before a server's authorization server, and what was
// discovered about it. There is at most one per server; it is keyed by issuer in the sense that a client is never used
// with an issuer other than its own.
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
	Origin         string // of the server's URL at which Issuer was learned; "": not known
	Scopes         []string
	// IssuerInResponse: the server promises `iss` in authorization responses (RFC 9207).
	IssuerInResponse bool
	// SecretExpiresAt is when the provider forgets the secret of a registered client; the zero time when it does not.
	SecretExpiresAt time.Time
	// RefreshResourceOff: the provider takes a refresh without `resource` only.
	RefreshResourceOff bool
	// Refused: the provider does not accept the client, or has forgotten it. Tokens that were issued to it are good until they run out.
	Refused   bool
	CreatedAt time.Time
}

// OAuthClientKind is how an OAuth client came to be.
type OAuthClientKind string

// Kinds of OAuth clients.
const (
	ClientConfigured OAuthClientKind = "configured"        // client_id and client_secret of the server record
	ClientMetadata   OAuthClientKind = "metadata_document" // our client-id metadata document
	ClientRegistered OAuthClientKind = "registered"        // RFC 7591
)
