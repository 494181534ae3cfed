package token

import (
	"context"
	"crypto"
	"errors"
	"fmt"
)

// StaticKey holds a public key that needs no fetching.
type StaticKey struct {
	ID string // the kid that names it; 1 to 256 bytes
	// Algorithm is the only algorithm that the key is for; "" means all that fit its type and curve.
	Algorithm string
	// Public is a *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey. It must not be changed any more.
	Public crypto.PublicKey
}

// StaticKeys is a KeySource of keys that are known from the start, such as those of an identity provider in the same
// process. It is safe for concurrent use.
type StaticKeys struct{ keys keyList }

// NewStaticKeys returns a source of keys. Other than in a fetched set, one bad key is an error.
func NewStaticKeys(keys ...StaticKey) (*StaticKeys, error) {
	s := &StaticKeys{}
	for _, k := range keys {
		if !opaque(k.ID, maxKeyID) {
			return nil, errors.New("a key's id is not a string of 1 to 256 bytes")
		}
		if err := checkKey(k.Public); err != nil {
			return nil, fmt.Errorf("key %q: %w", k.ID, err)
		}
		if a, ok := algorithmNamed(k.Algorithm); k.Algorithm != "" && (!ok || !a.fits(k.Public)) {
			return nil, fmt.Errorf("key %q: algorithm %q is not supported or not one for the key", k.ID, k.Algorithm)
		}
		s.keys = append(s.keys, jwk{k.ID, k.Algorithm, k.Public})
	}
	return s, nil
}

// Key implements KeySource.
func (s *StaticKeys) Key(_ context.Context, kid, alg string) (any, error) {
	return answer(s.keys.find(kid, alg))
}

// answer turns the result of find into the result of a KeySource.
func answer(key crypto.PublicKey, err error) (any, error) {
	switch {
	case err != nil:
		return nil, invalidBecause("finding the key", err)
	case key == nil:
		return nil, invalid("no key of that kid and algorithm")
	default:
		return key, nil
	}
}
