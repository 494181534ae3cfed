package token

import (
	"crypto"
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// Claims holds the claims of a verified token. It must not be changed, because requests may share it.
type Claims struct {
	Vouched
	Subject string // 1 to 255 bytes without control characters; opaque, compared exactly
	// Object is the whole payload.
	Object strictjson.Value
}

// Vouched holds the facts that are needed as long as a verified token stays in use; see Verifier.Recheck.
type Vouched struct {
	Issuer    string
	ExpiresAt time.Time // UTC; never zero
	IssuedAt  time.Time // UTC; zero when absent

	// keyID and algorithm name the key that verified the claims.
	keyID, algorithm string
	key              crypto.PublicKey
}

// Lookup returns the claim at path. This is the top-level member of exactly that name, else the member that the
// path's dot-separated steps lead to, e.g. "realm_access.roles". A step may itself contain dots
// ("https://example.com/claims.org" is member org of "https://example.com/claims"); the longest name that leads on
// wins.
func (c *Claims) Lookup(path string) (strictjson.Value, bool) { return lookup(c.Object, path) }

func lookup(v strictjson.Value, path string) (strictjson.Value, bool) {
	if v.Kind() != strictjson.Object {
		return strictjson.Value{}, false
	}
	if found, ok := v.Get(path); ok {
		return found, true
	}
	for end := strings.LastIndexByte(path, '.'); end >= 0; end = strings.LastIndexByte(path[:end], '.') {
		member, ok := v.Get(path[:end])
		if !ok {
			continue
		}
		if found, ok := lookup(member, path[end+1:]); ok {
			return found, true
		}
	}
	return strictjson.Value{}, false
}

// Str returns the string at path. ok is false when there is none or it is not a string.
func (c *Claims) Str(path string) (string, bool) {
	v, _ := c.Lookup(path)
	if v.Kind() != strictjson.String {
		return "", false
	}
	return v.Str(), true
}

// Opaque reports whether s can be a subject or client id: 1 to 255 bytes without control characters. The value is
// never trimmed or case-folded (J19).
func Opaque(s string) bool { return opaque(s, maxClaim) }
