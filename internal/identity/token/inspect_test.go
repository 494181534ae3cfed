package token

import (
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"
)

func TestHeaderFields(t *testing.T) {
	longest := strings.Repeat("k", maxKeyID)
	for header, want := range map[string]map[string]string{
		`{"alg":"RS256","kid":"rsa","typ":"at+jwt","jku":"https://evil.example"}`: {"alg": "RS256", "kid": "rsa", "typ": "at+jwt"},
		`{"alg":"none"}`:                       {"alg": "none"},
		`{"alg":"","kid":1,"typ":["x"]}`:       {},
		`{"alg":"x","kid":"` + longest + `"}`:  {"alg": "x", "kid": longest},
		`{"alg":"x","kid":"` + longest + `k"}`: {"alg": "x"},
		`{"alg":"x","alg":"y"}`:                {},
		`no object`:                            {},
	} {
		u, err := Parse(sign(t, jwt.SigningMethodRS256, rsaTestKey(), header, claims()))
		if err != nil {
			t.Fatal(Reason(err))
		}
		if diff := cmp.Diff(want, u.HeaderFields()); diff != "" {
			t.Errorf("%s: %s", header, diff)
		}
	}
}

func TestSigned(t *testing.T) {
	known := func() (any, error) { return &rsaTestKey().PublicKey, nil }
	for name, tc := range map[string]struct {
		raw  string
		keys keyFunc
		want bool
	}{
		"good":                               {rs(t, claims()), known, true},
		"signed is enough":                   {rs(t, claims("exp", "1", "iss", `"x"`)), known, true},
		"by somebody else":                   {sign(t, jwt.SigningMethodRS256, otherRSAKey(), rsHeader, claims()), known, false},
		"another text":                       {strings.Replace(rs(t, claims()), b64([]byte(rsHeader)), b64([]byte(rsHeader+" ")), 1), known, false},
		"no header":                          {sign(t, jwt.SigningMethodRS256, rsaTestKey(), `[]`, claims()), known, false},
		"J04 an algorithm that nobody knows": {sign(t, jwt.SigningMethodHS256, []byte("k"), `{"alg":"HS256"}`, claims()), known, false},
		"J06 one that is not accepted":       {sign(t, jwt.SigningMethodRS512, rsaTestKey(), `{"alg":"RS512"}`, claims()), known, false},
		"J06 a key of another type":          {es(t, esHeader, claims()), known, false},
		"an error beside the key":            {rs(t, claims()), func() (any, error) { return &rsaTestKey().PublicKey, invalid("withdrawn") }, false},
		"no key":                             {rs(t, claims()), func() (any, error) { return nil, nil }, false},
	} {
		v, err := NewVerifier(Options{Issuer: testIssuer, AnyAudience: true}, tc.keys, func() time.Time { return testNow })
		if err != nil {
			t.Fatal(err)
		}
		u, err := Parse(tc.raw)
		if err != nil {
			t.Fatalf("%s: %s", name, Reason(err))
		}
		if v.Signed(t.Context(), u) != tc.want {
			t.Errorf("%s: %v", name, !tc.want)
		}
	}
}

func TestLifetime(t *testing.T) {
	const longest = 10 * 365 * 24 * time.Hour
	for _, tc := range []struct {
		iat, exp string
		want     time.Duration
		ok       bool
	}{
		{unix(0), unix(time.Hour), time.Hour, true},
		{unix(0) + ".5", unix(time.Hour), time.Hour - time.Second/2, true},
		{unix(0), unix(0), 0, true},
		{unix(0), unix(longest), longest, true},
		{unix(0), unix(longest + time.Second), 0, false},
		{unix(time.Second), unix(0), 0, false},
		{"", unix(0), 0, false},
		{unix(0), "", 0, false},
		{`"0"`, unix(0), 0, false},
		{unix(0), `"1700000000"`, 0, false},
		{`null`, unix(0), 0, false},
	} {
		u, err := Parse(rs(t, claims("iat", tc.iat, "exp", tc.exp)))
		if err != nil {
			t.Fatal(Reason(err))
		}
		if got, ok := Lifetime(u.Payload()); got != tc.want || ok != tc.ok {
			t.Errorf("from %s to %s: %v, %v", tc.iat, tc.exp, got, ok)
		}
	}
}

func TestSupported(t *testing.T) {
	for name, want := range map[string]bool{"RS256": true, "ES512": true, "EdDSA": true, "HS256": false, "none": false, "": false, "rs256": false} {
		if Supported(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}
