package broker

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/durward-gateway/durward/storage"
)

// Where a credential goes when the directory entry does not say.
const (
	inHeader = "header"
	inQuery  = "query"
)

// forbiddenHeaders frame the request or name its parties: a credential under one of these names would change what the
// request means, or where it goes.
var forbiddenHeaders = map[string]bool{
	"host": true, "cookie": true, "set-cookie": true, "connection": true, "keep-alive": true, "te": true, "trailer": true,
	"transfer-encoding": true, "upgrade": true, "expect": true, "accept": true, "origin": true, "forwarded": true,
	"last-event-id": true, "user-agent": true, "via": true,
}

// CheckAuthParams reports what is wrong with where an entry wants its credential, or nil.
func CheckAuthParams(p storage.AuthParams) error {
	switch p.In {
	case "", inHeader:
		if p.Name == "" {
			break
		}
		name := strings.ToLower(p.Name)
		if !isToken(p.Name) {
			return fmt.Errorf("%q is not a header name", p.Name)
		}
		for _, prefix := range []string{"content-", "mcp-", "proxy-", "x-forwarded-", "sec-", "accept-"} {
			if strings.HasPrefix(name, prefix) {
				return fmt.Errorf("a credential cannot go in header %s", p.Name)
			}
		}
		if forbiddenHeaders[name] {
			return fmt.Errorf("a credential cannot go in header %s", p.Name)
		}
	case inQuery:
		if p.Name == "" {
			return fmt.Errorf("a credential in the query needs a name")
		}
	default:
		return fmt.Errorf("a credential goes in header or query, not in %q", p.In)
	}
	if !visible(p.Prefix, true) || !visible(p.Name, false) {
		return fmt.Errorf("auth_params have characters that are not visible ASCII")
	}
	return nil
}

// placed fills in the defaults of the provider.
func placed(kind storage.Provider, p storage.AuthParams) storage.AuthParams {
	if p.In == "" {
		p.In = inHeader
	}
	if p.In == inQuery {
		return p
	}
	name, prefix := "Authorization", ""
	switch kind {
	case storage.ProviderOAuth2, storage.ProviderBearerToken:
		prefix = "Bearer"
	case storage.ProviderBasicAuth:
		prefix = "Basic"
	case storage.ProviderAPIKey:
		name = "X-API-Key"
	}
	// The prefix belongs to the default name: an entry that names a header of its own says what goes before.
	if p.Name == "" || (http.CanonicalHeaderKey(p.Name) == "Authorization" && kind != storage.ProviderAPIKey) {
		if p.Name == "" {
			p.Name = name
		}
		if p.Prefix == "" {
			p.Prefix = prefix
		}
	}
	return p
}

// isToken reports whether s is a token of RFC 9110 section 5.6.2.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9')
		if !letter && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// visible reports whether s has only visible ASCII characters, and blanks where they are allowed.
func visible(s string, blanks bool) bool {
	for i := range len(s) {
		if c := s[i]; c > '~' || c < ' ' || (c == ' ' && !blanks) {
			return false
		}
	}
	return true
}
