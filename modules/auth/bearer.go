package auth

import (
	"net/http"
	"strings"

	"github.com/durward-gateway/durward/modules/app"
)

// bearer returns the token of a request, and whether the client tried to send one: without a try the challenge names no
// error (RFC 6750 section 3.1). A request with several Authorization headers or an odd number of blanks has sent no token
// that counts (section 2.1). Tokens in the query or in a form are never looked at: they end up in logs.
func bearer(h http.Header) (token string, sent bool) {
	values := h.Values("Authorization")
	for _, value := range values {
		scheme, rest, found := strings.Cut(value, " ")
		if found && strings.EqualFold(scheme, "Bearer") {
			token, sent = rest, true
		}
	}
	if len(values) != 1 || strings.ContainsAny(token, " \t,") {
		token = ""
	}
	return token, sent
}

// challenge answers 401 with what a client needs to log in (RFC 6750 section 3, RFC 9728 section 5.1).
func challenge(w http.ResponseWriter, r *http.Request, core *app.Core, sent bool) {
	value := "Bearer"
	separator := " "
	if sent {
		value += separator + `error="invalid_token"`
		separator = ", "
	}
	if prefix, name, ok := app.ProxiedName(r.URL.Path); ok && prefix == app.MCPPrefix && validName(name) {
		value += separator + `resource_metadata="` + core.PublicURL + app.ResourceMetadata + app.MCPPrefix + name + `"`
	}
	w.Header().Set("WWW-Authenticate", value)
	message := "A bearer token is needed"
	if sent {
		message = "The token is not valid here"
	}
	app.WriteError(w, app.Unauthorized, message)
}
