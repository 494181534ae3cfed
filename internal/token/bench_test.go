package token

import (
	"testing"

	jwt "github.com/golang-jwt/jwt/v5"
)

// BenchmarkFirstSight measures the cost of a token that was not seen before: choosing its issuer, and verifying it.
func BenchmarkFirstSight(b *testing.B) {
	v := testVerifier(b, nil)
	raw := sign(b, jwt.SigningMethodES256, ecTestKey(), esHeader,
		claims("email", `"alice@example.test"`, "org_id", `"0190a1b2-0000-7000-8000-000000000001"`, "roles", `["admin"]`))
	b.ReportAllocs()
	for b.Loop() {
		u, err := Parse(raw)
		if err != nil {
			b.Fatal(Reason(err))
		}
		if _, err := u.Issuer(); err != nil {
			b.Fatal(Reason(err))
		}
		if _, err := v.VerifyParsed(b.Context(), u, ""); err != nil {
			b.Fatal(Reason(err))
		}
	}
}

// BenchmarkSignature measures the arithmetic part of it: for the key with which an issuer signs, and for others.
func BenchmarkSignature(b *testing.B) {
	raw := sign(b, jwt.SigningMethodES256, ecTestKey(), esHeader, claims())
	p, err := parse(raw)
	if err != nil {
		b.Fatal(Reason(err))
	}
	usual := new(es256)
	for range usualLead {
		if err := usual.Verify(p.signed, p.signature, &ecTestKey().PublicKey); err != nil {
			b.Fatal(err)
		}
	}
	for name, method := range map[string]interface {
		Verify(signed string, signature []byte, key any) error
	}{"usual key": usual, "other keys": onP256} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := method.Verify(p.signed, p.signature, &ecTestKey().PublicKey); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkMultiples measures the cost of making multiples, once for a key.
func BenchmarkMultiples(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := newP256Multiples(&ecTestKey().PublicKey); err != nil {
			b.Fatal(err)
		}
	}
}
