package token

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const jagHeader = `{"alg":"ES256","kid":"ec","typ":"oauth-id-jag+jwt"}`

func testAssertions(t *testing.T) *AssertionVerifier {
	t.Helper()
	v, err := NewAssertionVerifier(Options{Issuer: testIssuer}, testAudience, testKeys(t), func() time.Time { return testNow })
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// jagClaims returns the payload of a good assertion, changed.
func jagClaims(changes ...string) string {
	return claims(append([]string{
		"exp", unix(5 * time.Minute), "jti", `"id-1"`, "client_id", `"editor"`, "resource", `"https://gateway.example.com/mcp/notes"`,
	}, changes...)...)
}

func verifyAssertion(t *testing.T, raw string) (*Assertion, error) {
	t.Helper()
	u, err := Parse(raw)
	if err != nil {
		return nil, err
	}
	return testAssertions(t).Verify(t.Context(), u)
}

func TestAssertion(t *testing.T) {
	notes := []string{"https://gateway.example.com/mcp/notes"}
	for name, c := range map[string]struct {
		raw       string
		resources []string
	}{
		"as it should be":     {es(t, jagHeader, jagClaims()), notes},
		"the whole type":      {es(t, `{"alg":"ES256","kid":"ec","typ":"application/oauth-id-jag+jwt"}`, jagClaims()), notes},
		"aud is a list of it": {es(t, jagHeader, jagClaims("aud", `["`+testAudience+`"]`)), notes},
		"a list of resources": {es(t, jagHeader, jagClaims("resource", `["a","b"]`)), []string{"a", "b"}},
		"no resource":         {es(t, jagHeader, jagClaims("resource", "")), nil},
		"a clock behind":      {es(t, jagHeader, jagClaims("iat", unix(-30*time.Second))), notes},
		"ended a moment ago":  {es(t, jagHeader, jagClaims("iat", unix(-5*time.Minute), "exp", unix(-29*time.Second))), notes},
		"an act and scopes":   {es(t, jagHeader, jagClaims("scope", `"a b"`, "act", `{"sub":"agent"}`)), notes},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := verifyAssertion(t, c.raw)
			if err != nil {
				t.Fatal(Reason(err))
			}
			if got.ID != "id-1" || got.Client != "editor" || got.Subject != "user-1" || !slices.Equal(got.Resources, c.resources) ||
				!got.GoodUntil.Equal(got.ExpiresAt.Add(DefaultLeeway)) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestAssertionRefused sends assertions that are none, and other JWTs of the same issuer (attack rows J04, J10 to J17).
func TestAssertionRefused(t *testing.T) {
	for name, raw := range map[string]string{
		"J11 JWT":                       es(t, `{"alg":"ES256","kid":"ec","typ":"JWT"}`, jagClaims()),
		"J11 an access token":           es(t, `{"alg":"ES256","kid":"ec","typ":"at+jwt"}`, jagClaims()),
		"J11 no type":                   es(t, esHeader, jagClaims()),
		"J11 a longer type":             es(t, `{"alg":"ES256","kid":"ec","typ":"x-oauth-id-jag+jwt"}`, jagClaims()),
		"J17 another audience":          es(t, jagHeader, jagClaims("aud", `"https://other.example.com"`)),
		"J17 a server of the gateway":   es(t, jagHeader, jagClaims("aud", `"https://gateway.example.com/mcp/notes"`)),
		"J17 a slash more":              es(t, jagHeader, jagClaims("aud", `"`+testAudience+`/"`)),
		"J17 two audiences":             es(t, jagHeader, jagClaims("aud", `["`+testAudience+`","https://other.example.com"]`)),
		"J17 the same twice":            es(t, jagHeader, jagClaims("aud", `["`+testAudience+`","`+testAudience+`"]`)),
		"J17 none":                      es(t, jagHeader, jagClaims("aud", "")),
		"J13 expired":                   es(t, jagHeader, jagClaims("iat", unix(-5*time.Minute), "exp", unix(-30*time.Second))),
		"J13 no exp":                    es(t, jagHeader, jagClaims("exp", "")),
		"J14 no iat":                    es(t, jagHeader, jagClaims("iat", "")),
		"J14 from the future":           es(t, jagHeader, jagClaims("iat", unix(31*time.Second))),
		"J15 too long":                  es(t, jagHeader, jagClaims("exp", unix(331*time.Second))),
		"J15 too far away without iat":  es(t, jagHeader, jagClaims("iat", "", "exp", unix(time.Hour))),
		"J16 another issuer":            es(t, jagHeader, jagClaims("iss", `"https://other.example.com"`)),
		"no jti":                        es(t, jagHeader, jagClaims("jti", "")),
		"an empty jti":                  es(t, jagHeader, jagClaims("jti", `""`)),
		"jti is a number":               es(t, jagHeader, jagClaims("jti", "1")),
		"no client_id":                  es(t, jagHeader, jagClaims("client_id", "")),
		"client_id is a list":           es(t, jagHeader, jagClaims("client_id", `["editor"]`)),
		"only azp":                      es(t, jagHeader, jagClaims("client_id", "", "azp", `"editor"`)),
		"no sub":                        es(t, jagHeader, jagClaims("sub", "")),
		"bound to a key":                es(t, jagHeader, jagClaims("cnf", `{"jkt":"x"}`)),
		"narrowed by details":           es(t, jagHeader, jagClaims("authorization_details", `[]`)),
		"resource is a number":          es(t, jagHeader, jagClaims("resource", "1")),
		"resource is null":              es(t, jagHeader, jagClaims("resource", "null")),
		"no resources":                  es(t, jagHeader, jagClaims("resource", "[]")),
		"a number among the resources":  es(t, jagHeader, jagClaims("resource", `["a",1]`)),
		"J10 crit":                      es(t, `{"alg":"ES256","kid":"ec","typ":"oauth-id-jag+jwt","crit":["b64"],"b64":false}`, jagClaims()),
		"J04 none":                      sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, `{"alg":"none","typ":"oauth-id-jag+jwt"}`, jagClaims()),
		"J05 HS256 with the audience":   sign(t, jwt.SigningMethodHS256, []byte(testAudience), `{"alg":"HS256","kid":"ec","typ":"oauth-id-jag+jwt"}`, jagClaims()),
		"J06 signed by somebody else":   sign(t, jwt.SigningMethodRS256, otherRSAKey(), `{"alg":"RS256","kid":"rsa","typ":"oauth-id-jag+jwt"}`, jagClaims()),
		"J12 exp in another case":       es(t, jagHeader, jagClaims("exp", "", "Exp", unix(time.Minute))),
		"an ID token for the gateway":   es(t, `{"alg":"ES256","kid":"ec","typ":"JWT"}`, jagClaims("nonce", `"n"`)),
		"J31 a JWE":                     "a.b.c.d.e",
		"nothing":                       "",
		"client_id with a line feed":    es(t, jagHeader, jagClaims("client_id", `"edi\ntor"`)),
		"J16 issuer with a slash":       es(t, jagHeader, jagClaims("iss", `"`+testIssuer+`/"`)),
		"J08 a key of its own":          es(t, `{"alg":"ES256","kid":"other","typ":"oauth-id-jag+jwt","jwk":{"kty":"EC"}}`, jagClaims()),
		"J15 a lifetime of ten minutes": es(t, jagHeader, jagClaims("exp", unix(10*time.Minute))),
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := verifyAssertion(t, raw); !errors.Is(err, ErrInvalid) || got != nil {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
	if _, err := NewAssertionVerifier(Options{Issuer: testIssuer}, "", testKeys(t), nil); err == nil {
		t.Error("assertions for nobody")
	}
}

// TestAssertionElsewhere shows an assertion where other tokens of its issuer are taken.
func TestAssertionElsewhere(t *testing.T) {
	raw := es(t, jagHeader, jagClaims("nonce", `"n-1"`))
	if got, err := testVerifier(t, nil).Verify(t.Context(), raw, ""); !errors.Is(err, ErrInvalid) || got != nil {
		t.Errorf("as an access token: %v, %v", got, err)
	}
	if got, err := testIDVerifier(t).Verify(t.Context(), es(t, jagHeader, jagClaims("aud", `"console"`, "nonce", `"n-1"`)), "n-1"); !errors.Is(err, ErrInvalid) || got != nil {
		t.Errorf("as an ID token: %v, %v", got, err)
	}
}
