package token

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/strictjson"
)

func keySet(t *testing.T, keys ...any) strictjson.Value {
	t.Helper()
	return parsedSet(t, jwks(keys...))
}

func parsedSet(t *testing.T, text []byte) strictjson.Value {
	t.Helper()
	v, err := strictjson.Parse(text, strictjson.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestClientKeys(t *testing.T) {
	rsaKey, ecKey, edKey := rsaJWK(&rsaTestKey().PublicKey), ecJWK(&ecTestKey().PublicKey), edJWK(edTestKey().Public())
	given := keySet(t, with(rsaKey, "kid", "r", "alg", "PS256", "x5c", []string{"MII"}, "use", "sig"), with(ecKey, "kid", "e"), edKey, ecJWK(&ec384TestKey().PublicKey))
	c, err := ReadClientKeys(given)
	if err != nil {
		t.Fatal(err)
	}
	text, err := c.Document()
	if err != nil {
		t.Fatal(err)
	}
	var kept struct{ Keys []map[string]any }
	if err := json.Unmarshal([]byte(text), &kept); err != nil {
		t.Fatal(err)
	}
	if len(kept.Keys) != 4 || strings.Contains(text, "x5c") || kept.Keys[0]["alg"] != "PS256" || kept.Keys[1]["kid"] != "e" || kept.Keys[2]["kid"] != nil {
		t.Errorf("kept %s", text)
	}
	again, err := ReadClientKeys(parsedSet(t, []byte(text)))
	if err != nil {
		t.Fatal(err)
	}
	first, err := c.Thumbprints()
	if err != nil {
		t.Fatal(err)
	}
	second, err := again.Thumbprints()
	if diff := cmp.Diff(first, second); err != nil || diff != "" || len(first) != 4 {
		t.Errorf("%v %s", err, diff)
	}
	if key, err := again.Key(t.Context(), "e", "ES256"); err != nil || !ecTestKey().PublicKey.Equal(key.(*ecdsa.PublicKey)) {
		t.Errorf("%v %v", key, err)
	}
	if key, err := again.Key(t.Context(), "r", "RS256"); !errors.Is(err, ErrInvalid) {
		t.Errorf("a key for PS256 alone serves RS256: %v %v", key, err)
	}
}

// TestThumbprint computes the examples of RFC 7638 section 3.1 and RFC 8037 appendix A.3.
func TestThumbprint(t *testing.T) {
	for want, key := range map[string]map[string]any{
		"NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs": {"kty": "RSA", "e": "AQAB", "kid": "2011-04-29", "alg": "RS256",
			"n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"},
		"kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k": {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},
	} {
		c, err := ReadClientKeys(keySet(t, key))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.Thumbprints(); err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%v %v, want %s", got, err, want)
		}
	}
}

func TestClientKeysRefused(t *testing.T) {
	good := with(ecJWK(&ecTestKey().PublicKey), "kid", "e")
	other := ecJWK(&ec384TestKey().PublicKey)
	weak := must(rsa.GenerateKey(rand.Reader, 1024))
	p521 := must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader))
	hidden := "c2VjcmV0LXByaXZhdGUta2V5"
	for name, set := range map[string][]byte{
		"no set":             []byte(`{}`),
		"an array":           []byte(`[]`),
		"keys is an object":  []byte(`{"keys":{}}`),
		"none":               jwks(),
		"six":                jwks(good, good, good, good, good, good),
		"too large":          jwks(with(good, "x5c", strings.Repeat("A", maxClientKeys))),
		"no object":          jwks(1),
		"private EC":         jwks(with(good, "d", hidden)),
		"private RSA":        jwks(with(rsaJWK(&rsaTestKey().PublicKey), "p", hidden)),
		"the other half":     jwks(with(rsaJWK(&rsaTestKey().PublicKey), "qi", hidden)),
		"J05 symmetric":      jwks(map[string]any{"kty": "oct", "k": hidden}),
		"J05 hidden":         jwks(with(good, "k", hidden)),
		"J07 weak RSA":       jwks(rsaJWK(&weak.PublicKey)),
		"unknown curve":      jwks(with(good, "crv", "secp256k1")),
		"an unused curve":    jwks(ecJWK(&p521.PublicKey)),
		"another algorithm":  jwks(with(rsaJWK(&rsaTestKey().PublicKey), "alg", "RS512")),
		"J05 HS256":          jwks(with(good, "alg", "HS256")),
		"for encryption":     jwks(with(good, "use", "enc")),
		"J07 small order":    jwks(map[string]any{"kty": "OKP", "crv": "Ed25519", "x": strings.Repeat("A", 43)}),
		"twice":              jwks(good, with(good, "kid", "f")),
		"two of one kid":     jwks(good, with(other, "kid", "e")),
		"one good, one bad":  jwks(good, with(other, "y", "AAAA")),
		"kid is a number":    jwks(with(good, "kid", 7)),
		"J07 not on a curve": jwks(with(good, "x", strings.Repeat("A", 43))),
	} {
		t.Run(name, func(t *testing.T) {
			c, err := ReadClientKeys(parsedSet(t, set))
			if err == nil || c != nil {
				t.Fatalf("%v, %v", c, err)
			}
			if strings.Contains(err.Error(), hidden) {
				t.Errorf("the error shows the key: %v", err)
			}
		})
	}
}

const (
	testClient   = "0190a1b2-0000-7000-8000-00000000000a"
	testEndpoint = testAudience + "/oauth/token"
)

func assertionClaims(changes ...string) string {
	return claims(append([]string{"iss", `"` + testClient + `"`, "sub", `"` + testClient + `"`, "jti", `"a"`, "exp", unix(time.Minute)}, changes...)...)
}

func TestClientAssertion(t *testing.T) {
	keys, err := ReadClientKeys(keySet(t, with(rsaJWK(&rsaTestKey().PublicKey), "kid", "rsa"), with(ecJWK(&ecTestKey().PublicKey), "kid", "ec"), edJWK(edTestKey().Public())))
	if err != nil {
		t.Fatal(err)
	}
	c, err := NewClientAssertions(testClient, []string{testAudience, testEndpoint}, keys, func() time.Time { return testNow })
	if err != nil {
		t.Fatal(err)
	}
	verify := func(t *testing.T, raw string) (ClientAssertion, error) {
		u, err := Parse(raw)
		if err != nil {
			return ClientAssertion{}, err
		}
		return c.Verify(t.Context(), u)
	}
	ecHeader := `{"alg":"ES256","kid":"ec"}`
	for name, raw := range map[string]string{
		"RS256":                 rs(t, assertionClaims()),
		"ES256":                 es(t, ecHeader, assertionClaims()),
		"EdDSA, no kid":         sign(t, jwt.SigningMethodEdDSA, edTestKey(), `{"alg":"EdDSA"}`, assertionClaims()),
		"for the endpoint":      es(t, ecHeader, assertionClaims("aud", `"`+testEndpoint+`"`)),
		"an array of one":       es(t, ecHeader, assertionClaims("aud", `["`+testEndpoint+`"]`)),
		"typ":                   es(t, `{"alg":"ES256","kid":"ec","typ":"client-authentication+jwt"}`, assertionClaims()),
		"as long as may be":     es(t, ecHeader, assertionClaims("exp", unix(AssertionLifetime))),
		"no iat, within leeway": es(t, ecHeader, assertionClaims("iat", "", "exp", unix(AssertionLifetime+DefaultLeeway))),
		"just over":             es(t, ecHeader, assertionClaims("iat", "", "exp", unix(-DefaultLeeway+time.Second))),
	} {
		t.Run(name, func(t *testing.T) {
			got, err := verify(t, raw)
			if err != nil || got.ID != "a" || !got.GoodUntil.After(testNow) {
				t.Errorf("%+v, %s", got, Reason(err))
			}
		})
	}
	for name, raw := range map[string]string{
		"another audience":           es(t, ecHeader, assertionClaims("aud", `"https://other.example.com"`)),
		"two audiences":              es(t, ecHeader, assertionClaims("aud", `["`+testAudience+`","`+testEndpoint+`"]`)),
		"no audience":                es(t, ecHeader, assertionClaims("aud", "")),
		"with a slash":               es(t, ecHeader, assertionClaims("aud", `"`+testAudience+`/"`)),
		"expired":                    es(t, ecHeader, assertionClaims("exp", unix(-time.Minute))),
		"no exp":                     es(t, ecHeader, assertionClaims("exp", "")),
		"too long":                   es(t, ecHeader, assertionClaims("exp", unix(AssertionLifetime+DefaultLeeway+time.Second))),
		"too long, no iat":           es(t, ecHeader, assertionClaims("iat", "", "exp", unix(AssertionLifetime+2*DefaultLeeway+time.Second))),
		"not yet":                    es(t, ecHeader, assertionClaims("nbf", unix(time.Minute))),
		"no jti":                     es(t, ecHeader, assertionClaims("jti", "")),
		"an empty jti":               es(t, ecHeader, assertionClaims("jti", `""`)),
		"a jti that is a number":     es(t, ecHeader, assertionClaims("jti", `1`)),
		"a long jti":                 es(t, ecHeader, assertionClaims("jti", `"`+strings.Repeat("a", 256)+`"`)),
		"about somebody else":        es(t, ecHeader, assertionClaims("sub", `"other"`)),
		"no subject":                 es(t, ecHeader, assertionClaims("sub", "")),
		"of another client":          es(t, ecHeader, assertionClaims("iss", `"other"`, "sub", `"other"`)),
		"an access token":            es(t, `{"alg":"ES256","kid":"ec","typ":"at+jwt"}`, assertionClaims()),
		"J04 unsigned":               sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, `{"alg":"none"}`, assertionClaims()),
		"J05 signed with the key":    sign(t, jwt.SigningMethodHS256, rsaTestKey().N.Bytes(), `{"alg":"HS256","kid":"rsa"}`, assertionClaims()),
		"J06 another algorithm":      sign(t, jwt.SigningMethodRS512, rsaTestKey(), `{"alg":"RS512","kid":"rsa"}`, assertionClaims()),
		"J06 the key of another alg": sign(t, jwt.SigningMethodES256, ecTestKey(), `{"alg":"ES256","kid":"rsa"}`, assertionClaims()),
		"signed by somebody else":    sign(t, jwt.SigningMethodRS256, otherRSAKey(), rsHeader, assertionClaims()),
		"J08 brings its key":         sign(t, jwt.SigningMethodRS256, otherRSAKey(), `{"alg":"RS256","kid":"rsa","jwk":`+string(must(json.Marshal(rsaJWK(&otherRSAKey().PublicKey))))+`}`, assertionClaims()),
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := verify(t, raw); !errors.Is(err, ErrInvalid) || got != (ClientAssertion{}) {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// FuzzClientKeys checks that whatever set is accepted is read back the same, and has no private part.
func FuzzClientKeys(f *testing.F) {
	f.Add(jwks(with(ecJWK(&ecTestKey().PublicKey), "kid", "e"), edJWK(edTestKey().Public())))
	f.Add(jwks(with(rsaJWK(&rsaTestKey().PublicKey), "alg", "PS256")))
	f.Add([]byte(`{"keys":[{"kty":"oct","k":"AAAA"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		set, err := strictjson.Parse(text, strictjson.Limits{})
		if err != nil {
			return
		}
		c, err := ReadClientKeys(set)
		if err != nil {
			return
		}
		kept, err := c.Document()
		if err != nil {
			t.Fatal(err)
		}
		again, err := ReadClientKeys(parsedSet(t, []byte(kept)))
		if err != nil {
			t.Fatalf("%s is not read back: %v", kept, err)
		}
		if next, err := again.Document(); err != nil || next != kept {
			t.Errorf("%s became %s, %v", kept, next, err)
		}
	})
}
