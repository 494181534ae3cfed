package storage

import (
	"encoding/json"
	"time"
)

// Protocol is the protocol of a third party.
type Protocol string

// Protocols of directory entries.
const (
	ProtocolMCP Protocol = "mcp"
	ProtocolSSE Protocol = "sse"
)

// Provider is a third party's way of authentication.
type Provider string

// Kinds of authentication of directory entries.
const (
	ProviderOAuth2      Provider = "oauth2"
	ProviderAPIKey      Provider = "api_key"
	ProviderBearerToken Provider = "bearer_token"
	ProviderBasicAuth   Provider = "basic_auth"
	// ProviderTokenExchange has no connections: the identity provider gives a token for each user (RFC 8693).
	ProviderTokenExchange Provider = "token_exchange"
	// ProviderClientCredentials has no connections: the gateway gets a token for itself, as a client that the organization
	// has at the third party (RFC 6749 section 4.4).
	ProviderClientCredentials Provider = "client_credentials"
	// ProviderWorkloadIdentity has no connections: the platform on which the gateway runs says who it is, and the third party
	// gives a token for that (RFC 7523 section 2.1).
	ProviderWorkloadIdentity Provider = "workload_identity"
	ProviderNone             Provider = "none"
)

// Providers lists the kinds.
func Providers() []string {
	return []string{
		string(ProviderOAuth2), string(ProviderAPIKey), string(ProviderBearerToken), string(ProviderBasicAuth), string(ProviderTokenExchange),
		string(ProviderClientCredentials), string(ProviderWorkloadIdentity), string(ProviderNone),
	}
}

// Obtained reports whether the gateway gets the tokens without any step of the users, who connect no account.
func (p Provider) Obtained() bool { return p == ProviderTokenExchange || p.ForItself() }

// ForItself reports whether all callers use a token that the gateway gets for itself, which says nothing of them.
func (p Provider) ForItself() bool {
	return p == ProviderClientCredentials || p == ProviderWorkloadIdentity
}

// Source is the origin of a directory entry. Only custom entries can be changed through the API.
type Source string

// Sources of directory entries.
const (
	SourceCatalogue Source = "catalogue" // ships with durward
	SourceConfig    Source = "config"    // the operator's configuration
	SourceCustom    Source = "custom"    // made through the API by an organization
)

// AuthParams names the place of a static credential in a request. Empty members take the provider's default.
type AuthParams struct {
	In     string `json:"in,omitempty"` // header | query
	Name   string `json:"name,omitempty"`
	Prefix string `json:"prefix,omitempty"`
}

// OAuthEndpoints holds the known facts about an authorization server (RFC 8414) and the resource (RFC 8707). Empty
// members are discovered from the upstream.
type OAuthEndpoints struct {
	Issuer                string `json:"issuer,omitempty"`
	AuthorizationEndpoint string `json:"authorization_endpoint,omitempty"`
	TokenEndpoint         string `json:"token_endpoint,omitempty"`
	RegistrationEndpoint  string `json:"registration_endpoint,omitempty"`
	RevocationEndpoint    string `json:"revocation_endpoint,omitempty"`
	Resource              string `json:"resource,omitempty"`
}

// EntryOptions describes a third party's deviations from the standards. Empty members take their default.
type EntryOptions struct {
	ResourceOff         bool              `json:"resource_off,omitempty"`               // no `resource` is sent (RFC 8707)
	AuthMethod          string            `json:"token_endpoint_auth_method,omitempty"` // "": as discovered, the other one after a refusal
	AuthorizationParams map[string]string `json:"authorization_params,omitempty"`       // of the authorization request, in addition to our own
	IndependentTokens   bool              `json:"independent_tokens,omitempty"`         // a grant's tokens may be revoked while a newer grant continues
	RefreshScope        bool              `json:"refresh_scope,omitempty"`              // a refresh asks for the scopes of the login again
	TrustedCA           string            `json:"trusted_ca,omitempty"`                 // certificates in PEM, in addition to the system's
	Audience            string            `json:"audience,omitempty"`                   // of exchanged tokens (RFC 8693 section 2.1)
	RequestedTokenType  string            `json:"requested_token_type,omitempty"`       // of a token exchange; "": access_token
	SubjectTokenType    string            `json:"subject_token_type,omitempty"`         // of a token exchange; "": that of the proof which the caller has
	AssertionFile       string            `json:"assertion_file,omitempty"`             // with the platform's statement about the gateway
}

// TokenIdentityAssertion is the RequestedTokenType by which the token exchange is only the first of two steps: the identity
// provider gives an identity assertion (ID-JAG), and the third party's own authorization server a token for that.
const TokenIdentityAssertion = "id-jag" // #nosec G101 -- a name

// Asserts reports whether the identity provider vouches for users at the third party's own authorization server.
func (e *DirectoryEntry) Asserts() bool {
	return e.Provider == ProviderTokenExchange && e.Options.RequestedTokenType == TokenIdentityAssertion
}

// OwnServer reports whether a token comes of the third party's own authorization server without a user's browser: the client
// that the server record has is one there.
func (e *DirectoryEntry) OwnServer() bool { return e.Provider.ForItself() || e.Asserts() }

// DirectoryEntry is a template from which servers are made.
type DirectoryEntry struct {
	ID             string
	OrganizationID string // "": every organization sees it
	Name           string
	Description    string
	Icon           string
	Slug           string
	URL            string
	Protocol       Protocol
	Source         Source
	Provider       Provider
	AuthParams     AuthParams
	Scopes         []string
	OAuth          OAuthEndpoints
	Public         bool // an OAuth client without a secret suffices
	RequiresAuth   bool
	Categories     []string
	EventsURL      string // target of /sse/{name}
	Options        EntryOptions
	Meta           json.RawMessage
	CreatedAt      time.Time
	UpdatedAt      time.Time
}

// DirectoryFilter narrows a list of directory entries to those that OrganizationID sees.
type DirectoryFilter struct {
	OrganizationID string
	Search         string // case-insensitive substring of name, slug or description; "" is all
	Page           PageRequest
}
