package auth

import (
	"net/http"
	"strings"

	"github.com/durward-gateway/durward/internal/api/slug"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/paths"
)

// resourceMetadata is a protected resource metadata document (RFC 9728 section 2).
type resourceMetadata struct {
	Resource               string   `json:"resource"`
	AuthorizationServers   []string `json:"authorization_servers"`
	ScopesSupported        []string `json:"scopes_supported,omitempty"`
	BearerMethodsSupported []string `json:"bearer_methods_supported"`
	ResourceName           string   `json:"resource_name"`
}

func isWellKnown(path string) bool { return strings.HasPrefix(path, paths.WellKnownPrefix) }

// serveWellKnown answers everything below /.well-known/. The document is the same for every well-formed name, whether a
// server of that name exists or not, and is made without a look-up: it does not tell which servers exist.
func serveWellKnown(w http.ResponseWriter, r *http.Request, core *app.Core) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	if preflight(w, r, "MCP-Protocol-Version") {
		return
	}
	name, ok := strings.CutPrefix(r.URL.Path, paths.ResourceMetadata+paths.MCPPrefix)
	if !ok || !slug.Valid(name) {
		gateway.WriteNotFound(w)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		gateway.WriteMethodNotAllowed(w, "GET, HEAD, OPTIONS")
		return
	}
	gateway.WriteJSON(w, http.StatusOK, resourceMetadata{
		Resource:               core.PublicURL + paths.MCPPrefix + name,
		AuthorizationServers:   core.AuthorizationServers(),
		ScopesSupported:        core.ClientScopes(),
		BearerMethodsSupported: []string{"header"},
		ResourceName:           name,
	})
}
