package token

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func rs(t *testing.T, payload string) string {
	return sign(t, jwt.SigningMethodRS256, rsaTestKey(), rsHeader, payload)
}

func es(t *testing.T, header, payload string) string {
	return sign(t, jwt.SigningMethodES256, ecTestKey(), header, payload)
}

func TestVerifyGood(t *testing.T) {
	resource := "https://gateway.example.com/mcp/demo"
	for name, c := range map[string]struct {
		raw     string
		options func(*Options)
	}{
		"RS256":                                {raw: rs(t, claims())},
		"ES256":                                {raw: es(t, esHeader, claims())},
		"EdDSA":                                {raw: sign(t, jwt.SigningMethodEdDSA, edTestKey(), `{"alg":"EdDSA","kid":"ed"}`, claims())},
		"no kid, one key fits":                 {raw: sign(t, jwt.SigningMethodEdDSA, edTestKey(), `{"alg":"EdDSA"}`, claims())},
		"one kid, two keys, told apart by alg": {raw: es(t, `{"alg":"ES256","kid":"both"}`, claims())},
		"PS256 where the key allows it":        {raw: sign(t, jwt.SigningMethodPS256, otherRSAKey(), `{"alg":"PS256","kid":"both"}`, claims())},
		"no iat":                               {raw: rs(t, claims("iat", ""))},
		"nbf now":                              {raw: rs(t, claims("nbf", unix(0)))},
		"J11 typ JWT":                          {raw: es(t, `{"alg":"ES256","kid":"ec","typ":"JWT"}`, claims())},
		"J11 typ at+jwt":                       {raw: es(t, `{"alg":"ES256","kid":"ec","typ":"at+jwt"}`, claims()), options: requireTyp},
		"J11 typ application/at+jwt":           {raw: es(t, `{"alg":"ES256","kid":"ec","typ":"application/at+jwt"}`, claims()), options: requireTyp},
		"J11 typ AT+JWT":                       {raw: es(t, `{"alg":"ES256","kid":"ec","typ":"AT+JWT"}`, claims()), options: requireTyp},
		"J11 Keycloak's own typ":               {raw: rs(t, claims("typ", `"Bearer"`))},
		"J12 other spellings beside the right ones are not read": {raw: rs(t, claims("SUB", `"admin"`, "Exp", "1", "ISS", `"x"`))},
		"J13 expired by leeway-1 s":                              {raw: rs(t, claims("exp", unix(-29*time.Second), "iat", unix(-time.Hour)))},
		"W24 fractions":                                          {raw: rs(t, claims("exp", unix(time.Minute)+".5", "iat", unix(-time.Minute)+".123456", "nbf", unix(-time.Minute)+".0", "auth_time", unix(-time.Hour)+".25"))},
		"W24 exponents":                                          {raw: rs(t, claims("exp", "1.70000005e9", "iat", "17E+8", "nbf", "17000000000e-1"))},
		"J13 expired by leeway less a fraction":                  {raw: rs(t, claims("exp", unix(-30*time.Second)+".000000001", "iat", unix(-time.Hour)))},
		"J14 iat ahead within leeway":                            {raw: rs(t, claims("iat", unix(30*time.Second)))},
		"J14 as old as allowed": {
			raw:     rs(t, claims("iat", unix(-5*time.Minute-30*time.Second))),
			options: func(o *Options) { o.MaxTokenAge = 5 * time.Minute },
		},
		"J15 no iat, and as far ahead as allowed": {raw: rs(t, claims("iat", "", "exp", unix(24*time.Hour+30*time.Second)))},
		"J11 Cognito's own token_use":             {raw: rs(t, claims("token_use", `"access"`))},
		"J15 lifetime of exactly 24 h":            {raw: rs(t, claims("exp", unix(24*time.Hour)))},
		"J15 ten years where it is off":           {raw: rs(t, claims("exp", unix(10*365*24*time.Hour))), options: func(o *Options) { o.MaxLifetime = -1 }},
		"J17 ours among others":                   {raw: rs(t, claims("aud", `["https://other.example.com","`+testAudience+`"]`))},
		"J17 ours alone with aud_single": {
			raw:     rs(t, claims("aud", `["`+testAudience+`"]`)),
			options: func(o *Options) { o.AudSingle = true },
		},
		"the resource of the request": {raw: rs(t, claims("aud", `"`+resource+`"`))},
		"any audience, another's":     {raw: rs(t, claims("aud", `"x"`)), options: anyAudience},
		"any audience, none":          {raw: rs(t, claims("aud", "")), options: anyAudience},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := testVerifier(t, c.options).Verify(t.Context(), c.raw, resource)
			if err != nil {
				t.Fatal(Reason(err))
			}
			if got.Issuer != testIssuer || got.Subject != "user-1" || got.ExpiresAt.IsZero() {
				t.Errorf("claims %+v", got)
			}
		})
	}
}

func requireTyp(o *Options)  { o.RequireTyp = true }
func anyAudience(o *Options) { o.Audiences, o.AnyAudience = nil, true }

func TestVerifyClaims(t *testing.T) {
	got, err := testVerifier(t, nil).Verify(t.Context(), rs(t, claims("jti", `"j"`, "aud", `["a","`+testAudience+`"]`)), "")
	if err != nil {
		t.Fatal(Reason(err))
	}
	if got.Object.Len() != 6 || got.keyID != "rsa" || got.algorithm != "RS256" || got.key != &rsaTestKey().PublicKey {
		t.Errorf("claims %+v", got)
	}
	want := &Claims{
		Vouched: Vouched{Issuer: testIssuer, ExpiresAt: testNow.Add(15 * time.Minute).UTC(), IssuedAt: testNow.UTC()}, Subject: "user-1",
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Vouched{}), cmpopts.IgnoreFields(Claims{}, "Object")); diff != "" {
		t.Error(diff)
	}
}

// TestVerifyHeader checks attacks by the JOSE header. Every payload is good.
func TestVerifyHeader(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // J08: must see no connection
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ours := "http://" + listener.Addr().String()
	attacker := must(json.Marshal(with(rsaJWK(&otherRSAKey().PublicKey), "kid", "rsa")))
	evil := func(extra string) string {
		return sign(t, jwt.SigningMethodRS256, otherRSAKey(), `{"alg":"RS256","kid":"rsa",`+extra+`}`, claims())
	}
	good := func(header string) string { return es(t, header, claims()) }
	cases := map[string]string{
		"J06 ES256 token against an RSA key of the kid": good(`{"alg":"ES256","kid":"rsa"}`),
		"J06 PS256 where the key is for RS256":          sign(t, jwt.SigningMethodPS256, rsaTestKey(), `{"alg":"PS256","kid":"rsa"}`, claims()),
		"J06 RS512 is not in the list":                  sign(t, jwt.SigningMethodRS512, otherRSAKey(), `{"alg":"RS512","kid":"both"}`, claims()),
		"J06 ES384 against a P-256 key":                 sign(t, jwt.SigningMethodES384, ec384TestKey(), `{"alg":"ES384","kid":"ec"}`, claims()),
		"J08 jwk with the attacker's key":               evil(`"jwk":` + string(attacker)),
		"J08 jku to a listener":                         evil(`"jku":"` + ours + `/jwks"`),
		"J08 x5u to a listener":                         evil(`"x5u":"` + ours + `/chain"`),
		"J08 x5c with a chain":                          evil(`"x5c":["MIIB"]`),
		"J09 path as kid":                               good(`{"alg":"ES256","kid":"../../etc/passwd"}`),
		"J09 SQL as kid":                                good(`{"alg":"ES256","kid":"' OR 1=1--"}`),
		"J09 kid of 64 KiB":                             good(`{"alg":"ES256","kid":"` + strings.Repeat("k", 64<<10) + `"}`),
		"J09 kid of 257 bytes":                          good(`{"alg":"ES256","kid":"` + strings.Repeat("k", 257) + `"}`),
		"J09 NUL in kid":                                good(`{"alg":"ES256","kid":"ec\u0000"}`),
		"J09 number as kid":                             good(`{"alg":"ES256","kid":1}`),
		"J09 object as kid":                             good(`{"alg":"ES256","kid":{}}`),
		"J09 array as kid":                              good(`{"alg":"ES256","kid":["ec"]}`),
		"J09 null as kid":                               good(`{"alg":"ES256","kid":null}`),
		"J09 empty kid":                                 good(`{"alg":"ES256","kid":""}`),
		"J09 no kid and two RSA keys":                   rsNoKid(t),
		"J10 crit with an extension":                    good(`{"alg":"ES256","kid":"ec","crit":["exp2"],"exp2":1}`),
		"J10 empty crit":                                good(`{"alg":"ES256","kid":"ec","crit":[]}`),
		"J10 crit alg":                                  good(`{"alg":"ES256","kid":"ec","crit":["alg"]}`),
		"J10 crit b64":                                  good(`{"alg":"ES256","kid":"ec","crit":["b64"],"b64":false}`),
		"J10 b64 alone":                                 good(`{"alg":"ES256","kid":"ec","b64":false}`),
		"J12 ALG instead of alg":                        good(`{"ALG":"ES256","kid":"ec"}`),
		"J12 alg twice":                                 good(`{"alg":"ES256","alg":"ES256","kid":"ec"}`),
		"J12 header with trailing data":                 good(`{"alg":"ES256","kid":"ec"} x`),
		"J11 number as typ":                             good(`{"alg":"ES256","kid":"ec","typ":1}`),
		"J11 empty typ":                                 good(`{"alg":"ES256","kid":"ec","typ":""}`),
	}
	for _, typ := range []string{"logout+jwt", "secevent+jwt", "dpop+jwt", "application/logout+jwt", "DPOP+JWT",
		"oauth-id-jag+jwt", "client-authentication+jwt", "token-introspection+jwt", "at+jwt ", "application/application/at+jwt"} {
		cases["J11 typ "+typ] = good(`{"alg":"ES256","kid":"ec","typ":"` + typ + `"}`)
	}
	for _, alg := range []string{`"none"`, `"None"`, `"nOnE"`, `"NONE"`, `null`, `["RS256"]`, `"rs256"`, `"RS256 "`, `""`, `1`, `{}`} {
		cases["J04 alg "+alg] = sign(t, jwt.SigningMethodRS256, rsaTestKey(), `{"kid":"rsa","alg":`+alg+`}`, claims())
	}
	cases["J04 no alg"] = sign(t, jwt.SigningMethodRS256, rsaTestKey(), `{"kid":"rsa"}`, claims())
	cases["J04 none without a signature"] = b64([]byte(`{"alg":"none"}`)) + "." + b64([]byte(claims())) + "."
	cases["J04 RS256 without a signature"] = b64([]byte(rsHeader)) + "." + b64([]byte(claims())) + "."
	der := must(x509.MarshalPKIXPublicKey(&rsaTestKey().PublicKey))
	for name, secret := range map[string][]byte{
		"PEM":     pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}),
		"DER":     der,
		"JWK":     must(json.Marshal(rsaJWK(&rsaTestKey().PublicKey))),
		"modulus": rsaTestKey().N.Bytes(),
	} {
		cases["J05 HS256 with the public key as secret: "+name] = sign(t, jwt.SigningMethodHS256, secret, `{"alg":"HS256","kid":"rsa"}`, claims())
	}
	v := testVerifier(t, nil)
	for name, raw := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := v.Verify(t.Context(), raw, "")
			wantInvalid(t, c, err)
		})
	}
	listener.(*net.TCPListener).SetDeadline(time.Now())
	if conn, err := listener.Accept(); err == nil {
		conn.Close()
		t.Error("J08 somebody fetched from the listener")
	}
}

// rsNoKid is signed by a key of the issuer, but two RSA keys fit PS256... and RS256 as well: neither is guessed.
func rsNoKid(t *testing.T) string {
	return sign(t, jwt.SigningMethodRS256, rsaTestKey(), `{"alg":"RS256"}`, claims())
}

// TestVerifyPayload checks attacks by claims. Every signature is good.
func TestVerifyPayload(t *testing.T) {
	aud := func(text string) string { return claims("aud", text) }
	q := func(s string) string { return `"` + s + `"` }
	cases := map[string]string{
		"J12 SUB instead of sub":   claims("sub", "", "SUB", `"user-1"`),
		"J12 Exp instead of exp":   claims("exp", "", "Exp", unix(time.Minute)),
		"J12 sub twice":            strings.Replace(claims(), "{", `{"sub":"admin",`, 1),
		"J12 sub twice by escapes": strings.Replace(claims(), "{", `{"s\u0075b":"admin",`, 1),
		"J12 trailing data":        claims() + claims(),
		"J12 byte order mark":      "\ufeff" + claims(),
		"J12 bad UTF-8":            claims("name", "\"\xff\""),
		"J12 array payload":        "[" + claims() + "]",
		"J12 empty payload":        "",

		"J13 expired by leeway+1 s":           claims("exp", unix(-31*time.Second), "iat", unix(-time.Hour)),
		"J13 expired by leeway":               claims("exp", unix(-30*time.Second), "iat", unix(-time.Hour)),
		"J13 exp 0":                           claims("exp", "0", "iat", ""),
		"J13 exp -0":                          claims("exp", "-0", "iat", ""),
		"J13 exp -1":                          claims("exp", "-1", "iat", ""),
		"J13 exp 1e300":                       claims("exp", "1e300"),
		"J13 exp 1e99999999999999":            claims("exp", "1e99999999999999"),
		"J13 exp 1e-300":                      claims("exp", "1e-300", "iat", ""),
		"J13 exp of 65 characters":            claims("exp", unix(time.Minute)+"."+strings.Repeat("0", 54)),
		"J13 over by a fraction":              claims("exp", unix(-31*time.Second)+".999999999", "iat", ""),
		"J13 over, with exponent":             claims("exp", "1.6e9", "iat", ""),
		"J14 iat ahead by a fraction":         claims("iat", unix(30*time.Second)+".000000001"),
		"J14 nbf ahead by a fraction":         claims("nbf", unix(30*time.Second)+".5"),
		"J15 lifetime of 24 h and a fraction": claims("exp", unix(24*time.Hour)+".5"),
		"J13 exp as a string":                 claims("exp", `"9999999999"`),
		"J13 exp null":                        claims("exp", "null"),
		"J13 exp missing":                     claims("exp", ""),
		"J13 exp 1.5":                         claims("exp", "1.5"),
		"J13 exp [n]":                         claims("exp", "["+unix(time.Minute)+"]"),
		"J13 exp true":                        claims("exp", "true"),
		"J13 exp NaN":                         claims("exp", "NaN"),
		"J13 exp of 13 digits":                claims("exp", "1700000000000"),
		"J13 exp beyond int64":                claims("exp", "99999999999999999999", "iat", ""),

		"J14 nbf ahead":            claims("nbf", unix(31*time.Second)),
		"J14 nbf as a string":      claims("nbf", `"1"`),
		"J14 iat ahead":            claims("iat", unix(31*time.Second)),
		"J14 iat after exp":        claims("iat", unix(20*time.Second), "exp", unix(10*time.Second)),
		"J14 iat null":             claims("iat", "null"),
		"J15 lifetime of 10 years": claims("exp", unix(10*365*24*time.Hour)),
		"J15 lifetime of 24 h 1 s": claims("exp", unix(24*time.Hour+time.Second)),
		"J15 10 years without iat": claims("exp", unix(10*365*24*time.Hour), "iat", ""),

		"J16 trailing slash":   claims("iss", q(testIssuer+"/")),
		"J16 upper-case host":  claims("iss", q("https://IDP.example.com")),
		"J16 longer host":      claims("iss", q("https://idp.example.com.evil.tld")),
		"J16 user information": claims("iss", q("https://idp.example.com@evil")),
		"J16 missing":          claims("iss", ""),
		"J16 array":            claims("iss", `["`+testIssuer+`"]`),
		"J16 null":             claims("iss", "null"),

		"J17 another service":      aud(`"https://other.example.com"`),
		"J17 missing":              aud(""),
		"J17 []":                   aud("[]"),
		"J17 [null]":               aud("[null]"),
		"J17 ours and null":        aud(`["` + testAudience + `",null]`),
		"J17 *":                    aud(`"*"`),
		"J17 [*]":                  aud(`["*"]`),
		"J17 prefix":               aud(q(testAudience[:len(testAudience)-1])),
		"J17 trailing slash":       aud(q(testAudience + "/")),
		"J17 other case":           aud(q("https://GATEWAY.example.com")),
		"J17 empty":                aud(`""`),
		"J17 object":               aud(`{"` + testAudience + `":true}`),
		"J17 joined":               aud(q(testAudience + " https://other.example.com")),
		"J17 nested":               aud(`[["` + testAudience + `"]]`),
		"J17 another's MCP server": aud(q(testAudience + "/mcp/other")),

		"J19 empty sub":         claims("sub", `""`),
		"J19 no sub":            claims("sub", ""),
		"J19 sub of 1 MiB":      claims("sub", q(strings.Repeat("s", 1<<20))),
		"J19 sub of 256 bytes":  claims("sub", q(strings.Repeat("s", 256))),
		"J19 NUL in sub":        claims("sub", `"admin\u0000"`),
		"J19 DEL in sub":        claims("sub", `"a\u007f"`),
		"J19 line feed in sub":  claims("sub", `"a\nb"`),
		"J19 number as sub":     claims("sub", "1"),
		"J19 jti of 1 KiB":      claims("jti", q(strings.Repeat("j", 1<<10))),
		"J19 number as jti":     claims("jti", "1"),
		"J23 depth":             claims("x", strings.Repeat("[", 4000)+strings.Repeat("]", 4000)),
		"J23 depth within size": claims("x", strings.Repeat("[", 40)+strings.Repeat("]", 40)),

		"J11 at_hash of an ID token":    claims("at_hash", `"x"`),
		"J11 token_use id":              claims("token_use", `"id"`),
		"J11 claim typ ID":              claims("typ", `"ID"`),
		"J11 claim typ Refresh":         claims("typ", `"Refresh"`),
		"J11 events of a logout token":  claims("events", `{"http://schemas.openid.net/event/backchannel-logout":{}}`),
		"J11 claim typ is not a string": claims("typ", `["Bearer"]`),
	}
	v := testVerifier(t, nil)
	for name, payload := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := v.Verify(t.Context(), rs(t, payload), testAudience+"/mcp/demo")
			wantInvalid(t, c, err)
		})
	}
}

// TestVerifyOptions checks refusals that only the operator's options demand.
func TestVerifyOptions(t *testing.T) {
	for name, c := range map[string]struct {
		raw     string
		options func(*Options)
	}{
		"J11 JWT with require_typ":    {es(t, `{"alg":"ES256","kid":"ec","typ":"JWT"}`, claims()), requireTyp},
		"J11 no typ with require_typ": {es(t, esHeader, claims()), requireTyp},
		"J14 older than max_token_age": {rs(t, claims("iat", unix(-6*time.Minute))), func(o *Options) {
			o.MaxTokenAge = 5 * time.Minute
		}},
		"J14 no iat with max_token_age": {rs(t, claims("iat", "")), func(o *Options) { o.MaxTokenAge = time.Minute }},
		"J13 no leeway":                 {rs(t, claims("exp", unix(-time.Second), "iat", "")), func(o *Options) { o.Leeway = -1 }},
		"J17 [ours, evil] with aud_single": {rs(t, claims("aud", `["`+testAudience+`","https://evil.example.com"]`)), func(o *Options) {
			o.AudSingle = true
		}},
		"J17 empty aud, no resource":       {rs(t, claims("aud", `""`)), nil},
		"J17 bad aud with any":             {rs(t, claims("aud", `[1]`)), anyAudience},
		"J17 no aud with any, aud_single":  {rs(t, claims("aud", ``)), func(o *Options) { anyAudience(o); o.AudSingle = true }},
		"J06 RS256 where only ES256 is on": {rs(t, claims()), func(o *Options) { o.Algorithms = []string{"ES256"} }},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := testVerifier(t, c.options).Verify(t.Context(), c.raw, "")
			wantInvalid(t, got, err)
		})
	}
}

// TestVerifyText checks raw tokens that are not three clean parts.
func TestVerifyText(t *testing.T) {
	good := rs(t, claims())
	parts := strings.Split(good, ".")
	cases := map[string]string{
		"J01 empty":                      "",
		"J04 one part":                   parts[0],
		"J04 two parts":                  parts[0] + "." + parts[1],
		"J04 four parts":                 good + ".",
		"J22 1 MiB of dots":              strings.Repeat(".", 1<<20),
		"J22 dots within size":           strings.Repeat(".", MaxSize),
		"J22 one byte too long":          good + strings.Repeat("A", MaxSize+1-len(good)),
		"J31 JWE with five parts":        b64([]byte(`{"alg":"PBES2-HS256+A128KW","enc":"A128GCM","p2c":2147483648,"zip":"DEF"}`)) + ".AA.AA.AA.AA",
		"J31 zip in a JWS":               es(t, `{"alg":"ES256","kid":"ec","zip":"DEF"}`, claims()),
		"padding":                        parts[0] + "=." + parts[1] + "." + parts[2],
		"line feed in the signature":     good[:len(good)-4] + "\n" + good[len(good)-4:],
		"carriage return in the middle":  parts[0] + "\r." + parts[1] + "." + parts[2],
		"blank in front":                 " " + good,
		"standard alphabet":              parts[0] + "." + parts[1] + "." + "+/" + parts[2][2:],
		"bits behind the end":            withTrailingBits(good),
		"line feed in front":             signText(t, "\n"+parts[0]+"."+parts[1]),
		"carriage return in front":       signText(t, "\r"+parts[0]+"."+parts[1]),
		"line feed that is signed":       signText(t, parts[0]+"."+parts[1]+"\n"),
		"carriage return that is signed": signText(t, parts[0]+"\r."+parts[1]),
		"signature of another payload":   parts[0] + "." + b64([]byte(claims("sub", `"admin"`))) + "." + parts[2],
		"JSON serialization":             `{"payload":"","signatures":[]}`,
		"J18 opaque token of a provider": "gho_16C7e42F292c6912E7710c838347Ae178B4a",
	}
	zero := strings.Split(es(t, esHeader, claims()), ".")
	cases["J07 ECDSA signature r=s=0"] = zero[0] + "." + zero[1] + "." + b64(make([]byte, 64))
	cases["J07 ECDSA signature r=s=n"] = zero[0] + "." + zero[1] + "." + b64(slices.Concat(ecTestKey().Params().N.Bytes(), ecTestKey().Params().N.Bytes()))
	cases["J07 ECDSA signature as DER"] = zero[0] + "." + zero[1] + "." + b64(must(ecTestKey().Sign(nil, make([]byte, 32), crypto.SHA256)))
	v := testVerifier(t, nil)
	for name, raw := range cases {
		t.Run(name, func(t *testing.T) {
			c, err := v.Verify(t.Context(), raw, "")
			wantInvalid(t, c, err)
			// Reading the issuer of a token that has one is fine; anything else is refused the same way.
			if u, err := Parse(raw); err == nil {
				if iss, err := u.Issuer(); err == nil && string(iss) != testIssuer {
					t.Errorf("issuer %q", iss)
				}
			}
		})
	}
}

// signText signs what need not be two clean parts.
func signText(t *testing.T, text string) string {
	t.Helper()
	return text + "." + b64(must(jwt.SigningMethodRS256.Sign(text, rsaTestKey())))
}

// TestVerifyLargest checks that a token of exactly 16 KiB is read, and one of a byte more is refused (J22).
func TestVerifyLargest(t *testing.T) {
	v := testVerifier(t, nil)
	for _, tc := range []struct {
		size int
		good bool
	}{{MaxSize, true}, {MaxSize + 1, false}} {
		raw := ofSize(t, tc.size)
		if _, err := v.Verify(t.Context(), raw, ""); (err == nil) != tc.good {
			t.Errorf("%d bytes: %s", len(raw), Reason(err))
		}
	}
}

// ofSize makes a good token of that many bytes. Blanks in the header move it over the lengths that base64 leaves out.
func ofSize(t *testing.T, size int) string {
	t.Helper()
	for blanks := range 3 {
		header := rsHeader + strings.Repeat(" ", blanks)
		rest := size - len(b64([]byte(header))) - 2 - len(b64(make([]byte, 256)))
		payload := claims("x", `""`)
		filler := strings.Repeat("x", max(rest*3/4-len(payload), 0))
		payload = strings.Replace(payload, `"x":""`, `"x":"`+filler+`"`, 1)
		if len(b64([]byte(payload))) == rest {
			return sign(t, jwt.SigningMethodRS256, rsaTestKey(), header, payload)
		}
	}
	t.Fatalf("no token has %d bytes", size)
	return ""
}

// TestIssuer checks that a token without a valid issuer chooses no verifier.
func TestIssuer(t *testing.T) {
	for text, want := range map[string]string{`"` + testIssuer + `"`: testIssuer, `"\u0061"`: "a", `""`: "", `1`: "", `["` + testIssuer + `"]`: "", "": ""} {
		u, err := Parse(rs(t, claims("iss", text)))
		if err != nil {
			t.Fatal(Reason(err))
		}
		if got, err := u.Issuer(); string(got) != want || (err == nil) != (want != "") || err != nil && !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}

// withTrailingBits changes the unused low bits of the signature's last character: the same bytes to a lax decoder.
func withTrailingBits(raw string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(alphabet, raw[len(raw)-1])
	return raw[:len(raw)-1] + string(alphabet[last|1])
}

func TestVerifyBigTokenIsCheap(t *testing.T) {
	v := testVerifier(t, nil)
	raw := strings.Repeat(".", 1<<20)
	const runs = 100
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		v.Verify(t.Context(), raw, "")
	}
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) / runs; got > 64<<10 {
		t.Errorf("J22 1 MiB of dots allocates %d bytes", got)
	}
}

func TestVerifyOpaqueSubject(t *testing.T) {
	for _, sub := range []string{" user ", "Admin", "a@b@c", "\u202eadmin", strings.Repeat("é", 127), strings.Repeat("s", 255)} {
		t.Run("J19 "+sub, func(t *testing.T) {
			c, err := testVerifier(t, nil).Verify(t.Context(), rs(t, claims("sub", must(marshal(sub)))), "")
			if err != nil {
				t.Fatal(Reason(err))
			}
			if c.Subject != sub {
				t.Errorf("subject %q became %q", sub, c.Subject)
			}
		})
	}
}

func TestVerifyKeySourceErrors(t *testing.T) {
	cause := unavailable("fetching", errors.New("secret detail"))
	for name, c := range map[string]struct {
		answer keyFunc
		want   error
	}{
		"J32 unavailable":           {func() (any, error) { return nil, cause }, ErrUnavailable},
		"J32 no key and no error":   {func() (any, error) { return nil, nil }, ErrInvalid},
		"J05 a secret":              {func() (any, error) { return []byte("secret"), nil }, ErrInvalid},
		"J06 a key of another type": {func() (any, error) { return &ecTestKey().PublicKey, nil }, ErrInvalid},
		"J16 another issuer's key":  {func() (any, error) { return &otherRSAKey().PublicKey, nil }, ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := NewVerifier(Options{Issuer: testIssuer, AnyAudience: true}, c.answer, func() time.Time { return testNow })
			if err != nil {
				t.Fatal(err)
			}
			got, err := v.Verify(t.Context(), rs(t, claims()), "")
			if got != nil || !errors.Is(err, c.want) || err.Error() != c.want.Error() {
				t.Errorf("claims %v, error %v", got, err)
			}
		})
	}
}

func TestRefusedTokensAskForNoKey(t *testing.T) {
	v, err := NewVerifier(Options{Issuer: testIssuer, AnyAudience: true}, keyFunc(func() (any, error) {
		t.Error("J24 a key was sought")
		return nil, invalid("none")
	}), func() time.Time { return testNow })
	if err != nil {
		t.Fatal(err)
	}
	for _, payload := range []string{claims("iss", `"x"`), claims("exp", "1"), claims("sub", "")} {
		c, err := v.Verify(t.Context(), rs(t, payload), "")
		wantInvalid(t, c, err)
	}
}

func TestRecheck(t *testing.T) {
	p, c := newProvider(t), newClock()
	s := newTestKeySet(t, p, c, nil)
	v, err := NewVerifier(Options{Issuer: testIssuer, AnyAudience: true, MaxTokenAge: 2 * time.Hour}, s, c.Now)
	if err != nil {
		t.Fatal(err)
	}
	verify := func(payload string) *Claims {
		t.Helper()
		got, err := v.Verify(t.Context(), rs(t, payload), "")
		if err != nil {
			t.Fatal(Reason(err))
		}
		return got
	}
	short, long := verify(claims()), verify(claims("exp", unix(20*time.Hour)))
	if until := v.GoodUntil(&short.Vouched); !until.Equal(c.Now().Add(15*time.Minute + DefaultLeeway)) {
		t.Errorf("good until %v", until)
	}
	c.advance(15*time.Minute + DefaultLeeway - time.Second)
	for _, each := range []*Claims{short, long} { // the set is a new one by now, the key the same
		if err := v.Recheck(t.Context(), &each.Vouched); err != nil {
			t.Error(Reason(err))
		}
	}
	p.wantFetches(t, 2)
	ageless, err := NewVerifier(Options{Issuer: testIssuer, AnyAudience: true}, s, c.Now)
	if err != nil {
		t.Fatal(err)
	}
	if err := ageless.Recheck(t.Context(), &long.Vouched); err != nil {
		t.Errorf("no age is too great: %s", Reason(err))
	}
	c.advance(time.Second)
	if err := v.Recheck(t.Context(), &short.Vouched); !errors.Is(err, ErrInvalid) {
		t.Errorf("J30 expired: %v", err)
	}
	p.serve(jwks(with(rsaJWK(&otherRSAKey().PublicKey), "kid", "rsa")))
	c.advance(DefaultMaxAge)
	if err := v.Recheck(t.Context(), &long.Vouched); !errors.Is(err, ErrInvalid) {
		t.Errorf("J30 key replaced under its kid: %v", err)
	}
	p.serve(jwks())
	c.advance(DefaultMaxAge)
	if err := v.Recheck(t.Context(), &long.Vouched); !errors.Is(err, ErrInvalid) {
		t.Errorf("J30 key removed: %v", err)
	}
	p.fail()
	c.advance(DefaultMaxStale)
	if err := v.Recheck(t.Context(), &long.Vouched); !errors.Is(err, ErrUnavailable) {
		t.Errorf("J30 keys out of reach: %v", err)
	}
	p.serve(jwks(with(rsaJWK(&rsaTestKey().PublicKey), "kid", "rsa")))
	c.advance(DefaultMaxStale)
	if err := v.Recheck(t.Context(), &long.Vouched); !errors.Is(err, ErrInvalid) {
		t.Errorf("J14 grown too old: %v", err)
	}
}

// TestRecheckAge checks that a token may be exactly as old as allowed, plus the leeway.
func TestRecheckAge(t *testing.T) {
	c := newClock()
	v, err := NewVerifier(Options{Issuer: testIssuer, AnyAudience: true, MaxTokenAge: time.Hour}, testKeys(t), c.Now)
	if err != nil {
		t.Fatal(err)
	}
	got, err := v.Verify(t.Context(), rs(t, claims("exp", unix(20*time.Hour))), "")
	if err != nil {
		t.Fatal(Reason(err))
	}
	c.advance(time.Hour + DefaultLeeway)
	if err := v.Recheck(t.Context(), &got.Vouched); err != nil {
		t.Error(Reason(err))
	}
	c.advance(time.Nanosecond)
	if err := v.Recheck(t.Context(), &got.Vouched); !IsOver(err) {
		t.Errorf("J14 too old: %v", err)
	}
}

// TestNewVerifierFillsIn checks that a verifier has its own copy of its options, with the defaults.
func TestNewVerifierFillsIn(t *testing.T) {
	audiences := []string{testAudience}
	v, err := NewVerifier(Options{Issuer: testIssuer, Audiences: audiences, MaxTokenAge: -1}, testKeys(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	audiences[0] = "https://evil.example.com"
	if o := v.Options(); o.Audiences[0] != testAudience || o.MaxTokenAge != 0 || o.Leeway != DefaultLeeway || o.MaxLifetime != DefaultMaxLifetime {
		t.Errorf("options %+v", o)
	}
	if _, err := v.Verify(t.Context(), rs(t, claims()), ""); !IsOver(err) { // by this machine's clock
		t.Errorf("a token of years ago: %v", err)
	}
}

func TestNewVerifierRefuses(t *testing.T) {
	for name, o := range map[string]Options{
		"no issuer":           {AnyAudience: true},
		"no audience":         {Issuer: testIssuer},
		"empty audience":      {Issuer: testIssuer, Audiences: []string{""}},
		"J05 HS256":           {Issuer: testIssuer, AnyAudience: true, Algorithms: []string{"HS256"}},
		"J04 none":            {Issuer: testIssuer, AnyAudience: true, Algorithms: []string{"none"}},
		"algorithm in a case": {Issuer: testIssuer, AnyAudience: true, Algorithms: []string{"rs256"}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := NewVerifier(o, testKeys(t), nil); err == nil {
				t.Error("accepted")
			}
		})
	}
	if _, err := NewVerifier(Options{Issuer: testIssuer, AnyAudience: true}, nil, nil); err == nil {
		t.Error("no keys: accepted")
	}
}

func TestLookup(t *testing.T) {
	p := must(parse(rs(t, claims(
		"realm_access", `{"roles":["a"]}`,
		"https://example.com/org", `"namespaced"`,
		"https://example.com/claims", `{"org":"inside","a.b":{"c":"deep"}}`,
		"x.y", `"flat"`, "x", `{"y":"nested","z":"only nested"}`,
	))))
	c := &Claims{Object: p.payload}
	for path, want := range map[string]string{
		"realm_access.roles":               `["a"]`,
		"https://example.com/org":          `"namespaced"`,
		"https://example.com/claims.org":   `"inside"`,
		"https://example.com/claims.a.b.c": `"deep"`,
		"x.y":                              `"flat"`,
		"x.z":                              `"only nested"`,
		"x.":                               "", ".x": "", "": "", ".": "", "sub.x": "", "realm_access.roles.0": "", "nothing": "",
	} {
		v, ok := c.Lookup(path)
		if got := string(v.Raw()); got != want || ok != (want != "") {
			t.Errorf("%q: got %q (%v), want %q", path, got, ok, want)
		}
	}
	nameless := &Claims{Object: must(parse(rs(t, claims("", `{"inside":1}`)))).payload}
	if v, ok := nameless.Lookup(".inside"); string(v.Raw()) != "1" || !ok {
		t.Errorf("below a member without a name: %q, %v", v.Raw(), ok)
	}
	if s, ok := c.Str("x.z"); s != "only nested" || !ok {
		t.Errorf("Str: %q, %v", s, ok)
	}
	if s, ok := c.Str("x"); s != "" || ok {
		t.Errorf("Str of an object: %q, %v", s, ok)
	}
}

func FuzzVerify(f *testing.F) {
	f.Add(sign(f, jwt.SigningMethodRS256, rsaTestKey(), rsHeader, claims()))
	f.Add(sign(f, jwt.SigningMethodES256, ecTestKey(), esHeader, claims("aud", "[null]")))
	f.Add(b64([]byte(`{"alg":"none"}`)) + "." + b64([]byte(claims())) + ".")
	f.Add("...")
	f.Add("")
	v := testVerifier(f, nil)
	f.Fuzz(func(t *testing.T, raw string) {
		c, err := v.Verify(context.Background(), raw, "")
		var typed *Error
		if (c == nil) == (err == nil) || err != nil && !errors.As(err, &typed) { // J32
			t.Fatalf("claims %v, error %v", c, err)
		}
		if u, err := Parse(raw); err == nil {
			_, _ = u.Issuer()
		}
	})
}

// FuzzVerifySigned reaches the code behind the signature's check.
func FuzzVerifySigned(f *testing.F) {
	f.Add(esHeader, claims())
	f.Add(`{"alg":"ES256","kid":"ec","crit":[]}`, claims("exp", "1e300"))
	f.Add(`{"alg":"ES256","kid":["ec"]}`, `{}`)
	v := testVerifier(f, nil)
	f.Fuzz(func(t *testing.T, header, payload string) {
		raw := sign(t, jwt.SigningMethodES256, ecTestKey(), header, payload)
		c, err := v.Verify(context.Background(), raw, "")
		switch {
		case (c == nil) == (err == nil):
			t.Fatalf("claims %v, error %v", c, err)
		case c != nil && (c.Issuer != testIssuer || !opaque(c.Subject, maxClaim) || c.ExpiresAt.Before(testNow.Add(-DefaultLeeway))):
			t.Fatalf("accepted %+v", c)
		}
	})
}

// TestRepeatedHeader checks that a remembered header is never used for another one, and comes only from good tokens.
func TestRepeatedHeader(t *testing.T) {
	v := testVerifier(t, nil)
	stranger := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	good := es(t, esHeader, claims())
	for range 2 {
		if _, err := v.Verify(t.Context(), good, ""); err != nil {
			t.Fatal(Reason(err))
		}
		remembered := v.known.Load()
		if remembered == nil || remembered.keyID != "ec" {
			t.Fatal("the header of a good token is not remembered")
		}
		for name, raw := range map[string]string{
			"another key":         sign(t, jwt.SigningMethodES256, stranger, esHeader, claims()),
			"another algorithm":   sign(t, jwt.SigningMethodES256, ecTestKey(), `{"alg":"ES384","kid":"ec"}`, claims()),
			"crit":                sign(t, jwt.SigningMethodES256, ecTestKey(), `{"alg":"ES256","kid":"ec","crit":[]}`, claims()),
			"no header":           "." + strings.SplitN(good, ".", 2)[1],
			"a header cut short":  good[4:],
			"a line break inside": good[:4] + "\n" + good[4:],
		} {
			if c, err := v.Verify(t.Context(), raw, ""); err == nil {
				t.Errorf("%s: accepted %+v", name, c)
			}
			if v.known.Load() != remembered {
				t.Errorf("%s: a header is remembered that came with no good token", name)
			}
		}
	}
	if _, err := v.Verify(t.Context(), rs(t, claims()), ""); err != nil {
		t.Errorf("another header: %s", Reason(err))
	}
}

func BenchmarkVerify(b *testing.B) {
	typical := claims("email", `"alice@example.test"`, "org_id", `"0190a1b2-0000-7000-8000-000000000001"`, "roles", `["admin"]`)
	for name, raw := range map[string]string{
		"RS256": sign(b, jwt.SigningMethodRS256, rsaTestKey(), rsHeader, typical),
		"ES256": sign(b, jwt.SigningMethodES256, ecTestKey(), esHeader, typical),
		"EdDSA": sign(b, jwt.SigningMethodEdDSA, edTestKey(), `{"alg":"EdDSA","kid":"ed"}`, typical),
	} {
		b.Run(name, func(b *testing.B) {
			v := testVerifier(b, nil)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := v.Verify(b.Context(), raw, ""); err != nil {
					b.Fatal(Reason(err))
				}
			}
		})
	}
	b.Run("recheck", func(b *testing.B) {
		v := testVerifier(b, nil)
		c, err := v.Verify(b.Context(), sign(b, jwt.SigningMethodES256, ecTestKey(), esHeader, typical), "")
		if err != nil {
			b.Fatal(Reason(err))
		}
		b.ReportAllocs()
		for b.Loop() {
			if err := v.Recheck(b.Context(), &c.Vouched); err != nil {
				b.Fatal(Reason(err))
			}
		}
	})
	b.Run("refused before the signature", func(b *testing.B) {
		v := testVerifier(b, nil)
		raw := sign(b, jwt.SigningMethodRS256, rsaTestKey(), rsHeader, claims("exp", "1", "iat", ""))
		b.ReportAllocs()
		for b.Loop() {
			v.Verify(b.Context(), raw, "")
		}
	})
}

// TestOver checks which refusals expired tokens cause, and which have another reason at any time.
func TestOver(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want bool
	}{
		{over("the token has expired"), true},
		{errors.Join(over("the token has expired"), ErrInvalid), true},
		{invalid("not three parts"), false},
		{ErrInvalid, false},
		{nil, false},
	} {
		if IsOver(tc.err) != tc.want || tc.want && !errors.Is(tc.err, ErrInvalid) {
			t.Errorf("%v: %v", tc.err, !tc.want)
		}
	}
}
