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
