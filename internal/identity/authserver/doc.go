// Package authserver reads and writes the messages of an OAuth 2.1 authorization server: authorization requests, forms of
// the token endpoint, registrations, metadata documents of clients, and errors. It stores nothing, and decides nothing
// about users: see draft-ietf-oauth-v2-1, RFC 7591, RFC 7636, RFC 8252, RFC 8414, RFC 8707, RFC 9207 and
// draft-ietf-oauth-client-id-metadata-document.
package authserver

// These are bounds of what clients may send.
const (
	// MaxBody is the largest body of a request, in bytes.
	MaxBody = 64 << 10
	// MaxQuery is the longest query of an authorization request, in bytes.
	MaxQuery = 16 << 10
	// MaxDocument is the largest metadata document of a client, in bytes (its draft, section 6.6).
	MaxDocument = 5 << 10

	maxText          = 2_048    // of one parameter
	maxAssertion     = 16 << 10 // of a parameter that holds a JWT: that of internal/identity/token
	maxTargets       = 8
	maxScopes        = 32
	maxRedirects     = 10
	maxRedirectTexts = 4_096 // of all redirect URIs together
	maxName          = 100   // characters
)

// These are the grant types, and the ways in which a client authenticates at the token endpoint.
const (
	GrantCode    = "authorization_code"
	GrantRefresh = "refresh_token"
	GrantMachine = "client_credentials"
	// GrantAssertion is that of RFC 7523. Of its assertions only those of ProfileIDJAG are known here.
	GrantAssertion = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	// ProfileIDJAG names the profile of draft-ietf-oauth-identity-assertion-authz-grant in metadata.
	ProfileIDJAG = "urn:ietf:params:oauth:grant-profile:id-jag"

	AuthNone  = "none"
	AuthBasic = "client_secret_basic"
	AuthPost  = "client_secret_post"
	AuthKey   = "private_key_jwt"
)

// AuthMethods lists the ways in which a client authenticates that registers itself.
func AuthMethods() []string { return []string{AuthNone, AuthBasic, AuthPost} }
