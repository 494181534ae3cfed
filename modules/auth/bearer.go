package auth

import (
	"net/http"
	"strings"
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
	if len(values) != 1 || odd(token) {
		token = ""
	}
	return token, sent
}

// odd: one look for each character is an order faster than one for all of them.
func odd(token string) bool {
	return strings.IndexByte(token, ' ') >= 0 || strings.IndexByte(token, '\t') >= 0 || strings.IndexByte(token, ',') >= 0
}
