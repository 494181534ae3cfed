package token

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"testing"

	jwt "github.com/golang-jwt/jwt/v5"
)

// TestAlgorithms verifies a signature of each supported algorithm, and refuses what is near to it.
func TestAlgorithms(t *testing.T) {
	ec521 := must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader))
	for name, key := range map[string]crypto.Signer{
		"RS256": rsaTestKey(), "RS384": rsaTestKey(), "RS512": rsaTestKey(), "PS256": rsaTestKey(), "PS384": rsaTestKey(), "PS512": rsaTestKey(),
		"ES256": ecTestKey(), "ES384": ec384TestKey(), "ES512": ec521, "EdDSA": edTestKey(),
	} {
		t.Run(name, func(t *testing.T) {
			a, ok := algorithmNamed(name)
			if !ok || !a.fits(key.Public()) {
				t.Fatal("the algorithm is not there, or its key does not fit")
			}
			good := must(jwt.GetSigningMethod(name).Sign("header.payload", key))
			changed := bytes.Clone(good)
			changed[len(changed)-1] ^= 1
			for what, s := range map[string]struct {
				signed    string
				signature []byte
			}{
				"good": {"header.payload", good}, "another text": {"header.payloae", good}, "changed": {"header.payload", changed},
				"short": {"header.payload", good[1:]}, "long": {"header.payload", append(bytes.Clone(good), 0)}, "empty": {"header.payload", nil},
				"J07 zeros": {"header.payload", make([]byte, len(good))},
			} {
				if err := a.method.Verify(s.signed, s.signature, key.Public()); (err == nil) != (what == "good") {
					t.Errorf("%s: %v", what, err)
				}
			}
		})
	}
}
