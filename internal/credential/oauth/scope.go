package oauth

import (
	"fmt"
	"slices"
	"strings"
)

// maxScope caps the scopes of one request, in bytes.
const maxScope = 8 << 10

// offlineAccess is the scope that asks for a refresh token, where the server demands it (OpenID Connect Core section
// 11).
const offlineAccess = "offline_access"

// checkScopes refuses scopes outside the grammar of RFC 6749 section 3.3.
func checkScopes(scopes []string) error {
	total := 0
	for _, s := range scopes {
		if s == "" {
			return fmt.Errorf("%w: an empty scope", ErrMalformed)
		}
		for i := range len(s) {
			if c := s[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '\\' {
				return fmt.Errorf("%w: a scope with forbidden characters", ErrMalformed)
			}
		}
		total += len(s) + 1
	}
	if total > maxScope {
		return fmt.Errorf("%w: too many scopes", ErrMalformed)
	}
	return nil
}

// Union returns the scopes of several lists, each once, in the order in which they come. It returns ErrMalformed for
// scopes outside the grammar of RFC 6749 section 3.3, and for more than fit into a request.
func Union(lists ...[]string) ([]string, error) {
	var union []string
	for _, scope := range slices.Concat(lists...) {
		if !slices.Contains(union, scope) {
			union = append(union, scope)
		}
	}
	return union, checkScopes(union)
}

// chooseScopes chooses the scopes to ask for: those that the operator configured, word for word; else those that the
// resource demanded; else those that it lists; else none, which is the server's default. offline_access is added to
// discovered scopes when the authorization server lists it, but never to an empty list: alone it would ask for less
// than the default.
func chooseScopes(configured []string, challenge string, listed, supported []string) ([]string, error) {
	if len(configured) > 0 {
		return configured, checkScopes(configured)
	}
	scopes := strings.Fields(challenge)
	if len(scopes) == 0 {
		scopes = slices.Clone(listed)
	}
	if len(scopes) > 0 && slices.Contains(supported, offlineAccess) && !slices.Contains(scopes, offlineAccess) {
		scopes = append(scopes, offlineAccess)
	}
	return scopes, checkScopes(scopes)
}
