package token

import (
	"context"
	"time"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// The functions below tell an administrator why a token was refused. None of them grants access.

// Payload returns the token's claims.
func (u Unverified) Payload() strictjson.Value { return u.payload }

// HeaderFields returns alg, kid and typ of the token's header, as far as they are present and no longer than a kid
// may be.
func (u Unverified) HeaderFields() map[string]string {
	fields := make(map[string]string, 3)
	v, err := decodeObject(u.header, "header")
	if err != nil {
		return fields
	}
	for _, name := range [...]string{"alg", "kid", "typ"} {
		if m, _ := v.Get(name); len(m.View()) > 0 && len(m.View()) <= maxKeyID {
			fields[name] = m.Str()
		}
	}
	return fields
}

// Signed reports whether the signature is by a key of the issuer, with an accepted algorithm. It does not look at the
// claims: a signed token need not be acceptable.
func (v *Verifier) Signed(ctx context.Context, u Unverified) bool {
	h, err := readHeader(u.header)
	if err != nil {
		return false
	}
	alg, ok := v.algorithms[h.algorithm]
	if !ok {
		return false
	}
	key, err := v.keys.Key(ctx, h.keyID, h.algorithm)
	return err == nil && alg.fits(key) && alg.method.Verify(u.signed, u.signature, key) == nil
}

// Options returns the options of the verifier, with defaults filled in. They must not be changed.
func (v *Verifier) Options() Options { return v.options }

// Supported reports whether an algorithm can be accepted.
func Supported(algorithm string) bool {
	_, ok := algorithmNamed(algorithm)
	return ok
}

// Lifetime returns the time from issue to expiry that a payload claims.
func Lifetime(payload strictjson.Value) (lives time.Duration, ok bool) {
	exp, ends, err := numericDate(payload, "exp")
	if err != nil || !ends {
		return 0, false
	}
	iat, begins, err := numericDate(payload, "iat")
	if err != nil || !begins || exp.Before(iat) || exp.Sub(iat) > 10*365*24*time.Hour {
		return 0, false
	}
	return exp.Sub(iat), true
}
