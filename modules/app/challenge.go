package app

import (
	"net/http"
	"strings"

	"github.com/durward-gateway/durward/internal/api/slug"
	"github.com/durward-gateway/durward/internal/gateway"
)

// Challenge answers 401 with the header that tells a client how to log in. sent reports whether the request carried a
// token; the token was then wrong.
func Challenge(w http.ResponseWriter, r *http.Request, core *Core, sent bool) {
	message := "A bearer token is needed"
	if sent {
		message = "The token is not valid here; log in again"
	}
	ChallengeHeader(w, r, core, sent)
	gateway.WriteError(w, gateway.Unauthorized, message)
}

// ChallengeHeader sets the header of a 401 (RFC 6750 section 3, RFC 9728 section 5.1).
func ChallengeHeader(w http.ResponseWriter, r *http.Request, core *Core, sent bool) {
	var parameters []string
	if sent {
		parameters = append(parameters, `error="invalid_token"`)
	}
	if prefix, name, ok := ProxiedName(r.URL.Path); ok && prefix == MCPPrefix && slug.Valid(name) {
		parameters = append(parameters, `resource_metadata="`+core.PublicURL+ResourceMetadata+MCPPrefix+name+`"`)
	}
	if scopes := core.Scopes(); len(scopes) > 0 {
		parameters = append(parameters, `scope="`+strings.Join(scopes, " ")+`"`)
	}
	w.Header().Set("WWW-Authenticate", strings.TrimSuffix("Bearer "+strings.Join(parameters, ", "), " "))
}
