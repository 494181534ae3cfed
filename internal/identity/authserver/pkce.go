package authserver

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
)

// IsChallenge reports whether s can be the SHA-256 of a verifier: 43 characters of base64url (RFC 7636 section 4.2).
func IsChallenge(s string) bool {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return err == nil && len(b) == sha256.Size
}

// Proves reports whether verifier, 43 to 128 characters, is the one behind the challenge.
func Proves(verifier, challenge string) bool {
	if len(verifier) < 43 || len(verifier) > 128 {
		return false
	}
	sum := sha256.Sum256([]byte(verifier))
	return subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(challenge)) == 1
}
