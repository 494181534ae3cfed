package token

import (
	"testing"

	jwt "github.com/golang-jwt/jwt/v5"
)

// BenchmarkIssuer is what is done for every request before the cache of verified tokens is asked.
func BenchmarkIssuer(b *testing.B) {
	raw := sign(b, jwt.SigningMethodES256, ecTestKey(), esHeader,
		claims("email", `"alice@example.test"`, "org_id", `"0190a1b2-0000-7000-8000-000000000001"`, "roles", `["admin"]`))
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Issuer(raw); err != nil {
			b.Fatal(Reason(err))
		}
	}
}
