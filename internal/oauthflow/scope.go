package oauthflow

import (
	"fmt"
	"slices"
	"strings"
)

// maxScope caps the scopes of one request, in bytes.
const maxScope = 8 << 10

// offlineAccess asks for a refresh token where the server wants to be asked (OpenID Connect Core section 11).
const offlineAccess = "offline_access"

// checkScopes refuses scopes that RFC 6749 section 3.3 does not know.
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

// Union lists the scopes of several lists, each once, in the order in which they come. Scopes that RFC 6749 section 3.3 does
// not know, and more than fit into a request, are ErrMalformed.
func Union(lists ...[]string) ([]string, error) {
	var union []string
	for _, scope := range slices.Concat(lists...) {
		if !slices.Contains(union, scope) {
			union = append(union, scope)
		}
	}
	return union, checkScopes(union)
}

// chooseScopes decides what to ask for: what the operator configured, word for word; else what the resource demanded;
// else what it lists; else nothing, which is the server's default. offline_access joins discovered scopes when the
// authorization server lists it, never an empty list: alone it would ask for less than the default.
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
