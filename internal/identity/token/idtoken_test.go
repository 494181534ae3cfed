package token

import (
	"errors"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

func testIDVerifier(t *testing.T) *IDVerifier {
	t.Helper()
	v, err := NewIDVerifier(Options{Issuer: testIssuer}, "console", testVerifier(t, nil).keys, func() time.Time { return testNow })
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// idClaims returns the payload of a good ID token, changed.
func idClaims(changes ...string) string {
	return claims(append([]string{"aud", `"console"`, "nonce", `"n-1"`}, changes...)...)
}

func TestIDToken(t *testing.T) {
	for name, raw := range map[string]string{
		"RS256":                   rs(t, idClaims()),
		"typ JWT":                 es(t, `{"alg":"ES256","kid":"ec","typ":"JWT"}`, idClaims("azp", `"console"`)),
		"Keycloak":                rs(t, idClaims("typ", `"ID"`, "azp", `"console"`, "at_hash", `"x"`)),
		"typ JWT as a claim":      rs(t, idClaims("typ", `"JWT"`)),
		"Cognito":                 rs(t, idClaims("token_use", `"id"`)),
		"for several, and azp":    rs(t, idClaims("aud", `["console","api"]`, "azp", `"console"`)),
		"that lives for ten days": rs(t, idClaims("exp", unix(240*time.Hour))),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := testIDVerifier(t).Verify(t.Context(), raw, "n-1")
			if err != nil {
				t.Fatal(Reason(err))
			}
			if got.Subject != "user-1" {
				t.Errorf("claims %+v", got)
			}
		})
	}
}

func TestIDTokenRefused(t *testing.T) {
	for name, raw := range map[string]string{
		"an access token by typ":         es(t, `{"alg":"ES256","kid":"ec","typ":"at+jwt"}`, idClaims()),
		"a logout token by typ":          es(t, `{"alg":"ES256","kid":"ec","typ":"logout+jwt"}`, idClaims()),
		"a logout token by events":       rs(t, idClaims("events", `{}`)),
		"an access token of Cognito's":   rs(t, idClaims("token_use", `"access"`)),
		"an access token of Keycloak's":  rs(t, idClaims("typ", `"Bearer"`)),
		"for the gateway, not the login": rs(t, claims("nonce", `"n-1"`)),
		"for another client":             rs(t, idClaims("aud", `"other"`)),
		"azp of another client":          rs(t, idClaims("azp", `"other"`)),
		"azp that is no string":          rs(t, idClaims("azp", `["console"]`)),
		"for several, without azp":       rs(t, idClaims("aud", `["console","api"]`)),
		"no nonce":                       rs(t, idClaims("nonce", "")),
		"another nonce":                  rs(t, idClaims("nonce", `"n-2"`)),
		"a nonce that is no string":      rs(t, idClaims("nonce", `1`)),
		"no iat":                         rs(t, idClaims("iat", "")),
		"expired":                        rs(t, idClaims("exp", unix(-time.Minute))),
		"another issuer":                 rs(t, idClaims("iss", `"https://other.example.com"`)),
		"A09 unsigned":                   sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, `{"alg":"none"}`, idClaims()),
		"A09 signed with the client id":  sign(t, jwt.SigningMethodHS256, []byte("console"), `{"alg":"HS256","kid":"rsa"}`, idClaims()),
		"A09 signed by somebody else":    sign(t, jwt.SigningMethodRS256, otherRSAKey(), rsHeader, idClaims()),
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := testIDVerifier(t).Verify(t.Context(), raw, "n-1"); !errors.Is(err, ErrInvalid) || got != nil {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
	// A login that has lost its nonce accepts nothing.
	if _, err := testIDVerifier(t).Verify(t.Context(), rs(t, idClaims("nonce", `""`)), ""); !errors.Is(err, ErrInvalid) {
		t.Errorf("an empty nonce: %v", err)
	}
	if _, err := NewIDVerifier(Options{Issuer: testIssuer}, "", testVerifier(t, nil).keys, nil); err == nil {
		t.Error("a client without an id")
	}
}
