package oauth

import (
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// maxChallenge caps one WWW-Authenticate field, in bytes: the work of parsing it grows faster than its length.
const maxChallenge = 8 << 10

// Challenge holds the demands of a protected resource in WWW-Authenticate (RFC 6750 section 3, RFC 9728 section 5.1).
// All of its text is untrusted.
type Challenge struct {
	ResourceMetadata string // URL of the RFC 9728 document
	Scope            string // blank-separated
	Error            string // invalid_token, insufficient_scope, ...
}

// BearerChallenge reads the first Bearer challenge of a header. It prefers one that names resource metadata, and
// returns false when no challenge can be read.
func BearerChallenge(h http.Header) (Challenge, bool) {
	var first *Challenge
	for _, line := range h.Values("WWW-Authenticate") {
		if len(line) > maxChallenge {
			continue
		}
		// Fields are parsed one by one: an unreadable field must not hide the others.
		list, err := oauthex.ParseWWWAuthenticate([]string{line})
		if err != nil {
			continue
		}
		for _, one := range list {
			if one.Scheme != "bearer" {
				continue
			}
			c := Challenge{ResourceMetadata: one.Params["resource_metadata"], Scope: one.Params["scope"], Error: one.Params["error"]}
			if c.ResourceMetadata != "" {
				return c, true
			}
			if first == nil {
				first = &c
			}
		}
	}
	if first == nil {
		return Challenge{}, false
	}
	return *first, true
}
