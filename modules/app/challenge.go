package app

import (
	"net/http"

	"github.com/durward-gateway/durward/internal/slug"
)

// Challenge answers 401 with what a client needs to log in (RFC 6750 section 3, RFC 9728 section 5.1). sent says that the
// request carried a token, which is then what was wrong.
func Challenge(w http.ResponseWriter, r *http.Request, core *Core, sent bool) {
	value, separator, message := "Bearer", " ", "A bearer token is needed"
	if sent {
		value, separator, message = `Bearer error="invalid_token"`, ", ", "The token is not valid here; log in again"
	}
	if prefix, name, ok := ProxiedName(r.URL.Path); ok && prefix == MCPPrefix && slug.Valid(name) {
		value += separator + `resource_metadata="` + core.PublicURL + ResourceMetadata + MCPPrefix + name + `"`
	}
	w.Header().Set("WWW-Authenticate", value)
	WriteError(w, Unauthorized, message)
}
