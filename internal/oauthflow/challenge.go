package oauthflow

import (
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// maxChallenge caps one WWW-Authenticate field, in bytes: the work of parsing it grows faster than its length.
const maxChallenge = 8 << 10

// Challenge is what a protected resource demands in WWW-Authenticate (RFC 6750 section 3, RFC 9728 section 5.1). All of
// it is a stranger's text.
type Challenge struct {
	ResourceMetadata string // URL of the RFC 9728 document
	Scope            string // blank-separated
	Error            string // invalid_token, insufficient_scope, ...
}

// BearerChallenge reads the first Bearer challenge of a header, preferring one that names resource metadata. It reports
// false when there is none that can be read.
func BearerChallenge(h http.Header) (Challenge, bool) {
	var first *Challenge
	for _, line := range h.Values("WWW-Authenticate") {
		if len(line) > maxChallenge {
			continue
		}
		// Line by line: one that cannot be read must not hide the others.
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
