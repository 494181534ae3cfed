package token

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/asn1"
	"math/big"
	"testing"

	jwt "github.com/golang-jwt/jwt/v5"
)

// TestECSignatures compares the verification with golang-jwt's.
func TestECSignatures(t *testing.T) {
	for name, c := range map[string]struct {
		curve  elliptic.Curve
		method *jwt.SigningMethodECDSA
	}{
		"ES256": {elliptic.P256(), jwt.SigningMethodES256},
		"ES384": {elliptic.P384(), jwt.SigningMethodES384},
		"ES512": {elliptic.P521(), jwt.SigningMethodES512},
	} {
		t.Run(name, func(t *testing.T) {
			own, _ := algorithmNamed(name)
			key := must(ecdsa.GenerateKey(c.curve, rand.Reader))
			good := must(c.method.Sign("header.payload", key))
			changed := bytes.Clone(good)
			changed[len(changed)-1]++
			for what, s := range map[string]struct {
				signed    string
				signature []byte
			}{
				"good": {"header.payload", good}, "another text": {"header.payloae", good}, "changed": {"header.payload", changed},
				"short": {"header.payload", good[1:]}, "long": {"header.payload", append(bytes.Clone(good), 0)},
				"J07 zeros": {"header.payload", make([]byte, len(good))},
			} {
				want := c.method.Verify(s.signed, s.signature, &key.PublicKey)
				if got := own.method.Verify(s.signed, s.signature, &key.PublicKey); (got == nil) != (want == nil) || (got == nil) != (what == "good") {
					t.Errorf("%s: %v, golang-jwt says %v", what, got, want)
				}
			}
		})
	}
}

// FuzzECDSA checks that every pair of numbers is written as encoding/asn1 writes it.
func FuzzECDSA(f *testing.F) {
	f.Add([]byte{}, []byte{0})
	f.Add([]byte{0, 0, 0x80}, []byte{0, 0x7f, 0})
	f.Add(bytes.Repeat([]byte{0xff}, 66), bytes.Repeat([]byte{1}, 66))
	f.Add(bytes.Repeat([]byte{1}, 66), bytes.Repeat([]byte{1}, 57)) // 127 bytes, the longest that a short length can say
	f.Add(bytes.Repeat([]byte{1}, 66), bytes.Repeat([]byte{1}, 58))
	f.Fuzz(func(t *testing.T, r, s []byte) {
		r, s = r[:min(len(r), 66)], s[:min(len(s), 66)]
		want, err := asn1.Marshal(struct{ R, S *big.Int }{new(big.Int).SetBytes(r), new(big.Int).SetBytes(s)})
		if err != nil {
			t.Fatal(err)
		}
		if got := appendECDSA(nil, r, s); !bytes.Equal(got, want) {
			t.Errorf("%x and %x: %x instead of %x", r, s, got, want)
		}
	})
}
