// Package paths lists the addresses that several handlers of the gateway know.
package paths

import (
	"strings"

	"github.com/durward-gateway/durward/internal/credential/connection"
)

// These addresses are used by several handlers.
const (
	Health           = "/healthz"
	Ready            = "/readyz"
	OpenAPI          = "/openapi.json" // the description of the API
	Docs             = "/docs"         // the same as a page
	Callback         = connection.CallbackPath
	Held             = "/api/oauth/held" // the end of a connection that waited for its user to log in
	Undo             = "/api/oauth/undo"
	ClientMetadata   = "/api/oauth/client-metadata.json"
	WellKnownPrefix  = "/.well-known/"
	ResourceMetadata = "/.well-known/oauth-protected-resource"
	ServerMetadata   = "/.well-known/oauth-authorization-server"
	OpenIDMetadata   = "/.well-known/openid-configuration"
	MCPPrefix        = "/mcp/"
	SSEPrefix        = "/sse/"
	API              = "/api"                 // the API lies below
	ModelsPrefix     = "/api/llm-gateway/v1/" // the LLM runtime
	SCIM             = "/scim/v2"             // provisioning lies below
)

// These are the addresses of pages for browsers, which durward_session serves.
const (
	Front         = "/"
	Login         = "/login"
	LoginCallback = "/login/callback"
	Logout        = "/logout"
	Approvals     = "/approvals"
	Clients       = "/clients"  // the clients that act for the user
	Connect       = "/connect"  // the list of the user's servers
	ConnectPrefix = "/connect/" // followed by a server's slug: the page for connecting an account
)

// These are the addresses of the console, which durward_console serves.
const (
	Console       = "/console"
	ConsolePrefix = "/console/"
	ConsoleToken  = "/console/token"
)

// These are the addresses of the authorization server, which durward_session serves.
const (
	Authorize = "/oauth/authorize" // the page on which a user agrees to a client
	Token     = "/oauth/token"     //nolint:gosec // an address
	Register  = "/oauth/register"
	Revoke    = "/oauth/revoke"
	Keys      = "/oauth/jwks"
)

// IsPublic reports whether a path is served without a token. The list is closed and compared exactly: no path becomes
// public by its spelling.
func IsPublic(path string) bool {
	switch path {
	case Health, Ready, OpenAPI, Docs, Callback, Held, Undo, ClientMetadata:
		return true
	}
	return false
}

// ProxiedName returns the server's name in a path such as /mcp/{name} or /sse/{name}.
func ProxiedName(path string) (prefix, name string, ok bool) {
	// Every handler calls this for every request.
	switch {
	case strings.HasPrefix(path, MCPPrefix):
		prefix = MCPPrefix
	case strings.HasPrefix(path, SSEPrefix):
		prefix = SSEPrefix
	default:
		return "", "", false
	}
	if name = path[len(prefix):]; strings.IndexByte(name, '/') >= 0 {
		return "", "", false
	}
	return prefix, name, true
}
