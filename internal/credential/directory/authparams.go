package directory

import (
	"fmt"
	"net/http"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/durward-gateway/durward/storage"
)

// Places of a credential.
const (
	InHeader = "header"
	InQuery  = "query"
)

// AuthParamsError describes an error in the place of a credential.
type AuthParamsError struct {
	Member string // of storage.AuthParams, as in JSON
	Reason string
}

func (e *AuthParamsError) Error() string { return "auth_params." + e.Member + ": " + e.Reason }

// CheckAuthParams returns an *AuthParamsError when a credential must not go to the place p. Empty members take their
// defaults and are accepted.
func CheckAuthParams(p storage.AuthParams) error {
	switch p.In {
	case "", InHeader:
		if p.Name != "" && !httpguts.ValidHeaderFieldName(p.Name) {
			return &AuthParamsError{"name", fmt.Sprintf("%q is not a header name", p.Name)}
		}
		if forbiddenHeader(p.Name) {
			return &AuthParamsError{"name", "a credential cannot go into this header"}
		}
	case InQuery:
		if p.Name == "" || len(p.Name) > maxWord || !isVisible(p.Name, false) {
			return &AuthParamsError{"name", "not a usable parameter name"}
		}
	default:
		return &AuthParamsError{"in", "a credential goes into header or query"}
	}
	if len(p.Name) > maxWord {
		return &AuthParamsError{"name", "not a usable name"}
	}
	if len(p.Prefix) > maxWord || !isVisible(p.Prefix, true) {
		return &AuthParamsError{"prefix", "not a usable prefix"}
	}
	return nil
}

// forbiddenHeaders lists headers that frame the request or name its parties. A credential under one of these names
// would change the meaning or the destination of the request rather than its sender.
var forbiddenHeaders = map[string]bool{
	"host": true, "cookie": true, "set-cookie": true, "connection": true, "keep-alive": true, "te": true, "trailer": true,
	"transfer-encoding": true, "upgrade": true, "expect": true, "accept": true, "origin": true, "forwarded": true,
	"last-event-id": true, "user-agent": true, "via": true,
}

func forbiddenHeader(name string) bool {
	name = strings.ToLower(name)
	for _, prefix := range []string{"content-", "mcp-", "proxy-", "x-forwarded-", "sec-", "accept-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return forbiddenHeaders[name]
}

// PlaceCredential fills in the place of a provider's credential. The prefix belongs to the default header: an entry
// that names its own header also gives its own prefix. A scheme such as "Bearer" is followed by a blank.
func PlaceCredential(provider storage.Provider, p storage.AuthParams) storage.AuthParams {
	if provider == storage.ProviderNone {
		return p
	}
	if p.In == "" {
		p.In = InHeader
	}
	if p.In == InQuery {
		return p
	}
	name, prefix := "Authorization", ""
	switch provider {
	case storage.ProviderOAuth2, storage.ProviderBearerToken, storage.ProviderTokenExchange, storage.ProviderClientCredentials, storage.ProviderWorkloadIdentity:
		prefix = "Bearer"
	case storage.ProviderBasicAuth:
		prefix = "Basic"
	case storage.ProviderAPIKey:
		name = "X-API-Key"
	}
	if p.Name == "" {
		p.Name = name
	}
	if p.Prefix == "" && http.CanonicalHeaderKey(p.Name) == "Authorization" {
		p.Prefix = prefix
	}
	return p
}

// isVisible reports whether s has only visible ASCII characters, and blanks where they are allowed.
func isVisible(s string, blanks bool) bool {
	for i := range len(s) {
		if c := s[i]; c > '~' || c < ' ' || (c == ' ' && !blanks) {
			return false
		}
	}
	return true
}
