package oauth

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net/url"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/internal/seal/sealtest"
	"github.com/durward-gateway/durward/storage"
)

func inPEM(t *testing.T, kind string, key any) string {
	t.Helper()
	var der []byte
	var err error
	switch k := key.(type) {
	case *ecdsa.PrivateKey:
		der, err = x509.MarshalPKCS8PrivateKey(k)
		if kind == "EC PRIVATE KEY" {
			der, err = x509.MarshalECPrivateKey(k)
		}
	case *rsa.PrivateKey:
		der, err = x509.MarshalPKCS8PrivateKey(k)
		if kind == "RSA PRIVATE KEY" {
			der = x509.MarshalPKCS1PrivateKey(k)
		}
	case *ecdsa.PublicKey:
		der, err = x509.MarshalPKIXPublicKey(k)
	default:
		der, err = x509.MarshalPKCS8PrivateKey(key)
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func newEC(t *testing.T, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newRSA(t *testing.T, bits int) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// jwkOf writes a private key as a JWK, with other members in place of some.
func jwkOf(t *testing.T, key any, changes map[string]any) string {
	t.Helper()
	text := base64.RawURLEncoding.EncodeToString
	members := map[string]any{}
	switch k := key.(type) {
	case *ecdsa.PrivateKey:
		point, err := k.PublicKey.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		d, err := k.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		half := (len(point)-1)/2 + 1
		members = map[string]any{"kty": "EC", "crv": k.Curve.Params().Name, "x": text(point[1:half]), "y": text(point[half:]), "d": text(d)}
	case *rsa.PrivateKey:
		members = map[string]any{
			"kty": "RSA", "n": text(k.N.Bytes()), "e": text(big.NewInt(int64(k.E)).Bytes()), "d": text(k.D.Bytes()), "p": text(k.Primes[0].Bytes()), "q": text(k.Primes[1].Bytes()),
		}
	case ed25519.PrivateKey:
		public, _ := k.Public().(ed25519.PublicKey)
		members = map[string]any{"kty": "OKP", "crv": "Ed25519", "x": text(public), "d": text(k.Seed())}
	}
	for name, value := range changes {
		members[name] = value
		if value == nil {
			delete(members, name)
		}
	}
	raw, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestSigningKey checks that clients prove who they are with every kind of key, that a stored key comes back, and that what is
// signed is good for one server only.
func TestSigningKey(t *testing.T) {
	p256, p384, p521, big := newEC(t, elliptic.P256()), newEC(t, elliptic.P384()), newEC(t, elliptic.P521()), newRSA(t, 2048)
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text           string
		public         any
		algorithm, kid string
	}{
		"PKCS #8":             {inPEM(t, "PRIVATE KEY", p256), &p256.PublicKey, "ES256", ""},
		"SEC 1":               {"\n" + inPEM(t, "EC PRIVATE KEY", p384) + "\n", &p384.PublicKey, "ES384", ""},
		"P-521":               {inPEM(t, "PRIVATE KEY", p521), &p521.PublicKey, "ES512", ""},
		"PKCS #1":             {inPEM(t, "RSA PRIVATE KEY", big), &big.PublicKey, "RS256", ""},
		"Ed25519":             {inPEM(t, "PRIVATE KEY", edwards), edwards.Public(), "EdDSA", ""},
		"a JWK":               {jwkOf(t, p256, map[string]any{"kid": "k1", "use": "sig"}), &p256.PublicKey, "ES256", "k1"},
		"a JWK of RSA":        {jwkOf(t, big, map[string]any{"alg": "PS256", "kid": "k2"}), &big.PublicKey, "PS256", "k2"},
		"a JWK of Edwards":    {jwkOf(t, edwards, nil), edwards.Public(), "EdDSA", ""},
		"a JWK with its name": {jwkOf(t, p521, map[string]any{"alg": "ES512"}), &p521.PublicKey, "ES512", ""},
	} {
		key, err := ReadSigningKey(seal.NewSecret(c.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		stored, err := key.Encode()
		if err != nil || !strings.Contains(stored.Reveal(), "\n") {
			t.Fatalf("%s: %v", name, err)
		}
		client := ClientAuth{ID: "id", Method: AuthPrivateKey, Audience: "https://as.example"}
		if err := client.SetCredential(stored); err != nil || client.Key == nil || !client.Secret.Empty() {
			t.Fatalf("%s: %v, a secret %v", name, err, !client.Secret.Empty())
		}
		f := newFake(t, map[string]reply{"POST /token": ok(goodToken)})
		var ids []any
		for range 2 {
			if _, err := newClient().ClientCredentials(t.Context(), ClientCredentialsRequest{Endpoint: f.URL + "/token", Client: client}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			form := f.last(t).form
			claims := checkClientAssertion(t, name, form, c.public, c.algorithm, c.kid)
			ids = append(ids, claims["jti"])
		}
		if ids[0] == ids[1] || ids[0] == "" {
			t.Errorf("%s: an assertion is sent twice", name)
		}
	}
}

func checkClientAssertion(t *testing.T, name string, form url.Values, public any, algorithm, kid string) jwt.MapClaims {
	t.Helper()
	if form.Get("client_assertion_type") != clientAssertionType || form.Get("client_id") != "id" || form.Has("client_secret") {
		t.Errorf("%s: %v", name, form)
	}
	claims := jwt.MapClaims{}
	token, err := jwt.NewParser(jwt.WithValidMethods([]string{algorithm}), jwt.WithoutClaimsValidation()).ParseWithClaims(form.Get("client_assertion"), claims, func(*jwt.Token) (any, error) { return public, nil })
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if got, _ := token.Header["kid"].(string); got != kid {
		t.Errorf("%s: the kid is %q", name, got)
	}
	if claims["iss"] != "id" || claims["sub"] != "id" || claims["aud"] != "https://as.example" || claims["iat"] != float64(start.Unix()) || claims["exp"] != float64(start.Add(assertionLifetime).Unix()) {
		t.Errorf("%s: %v", name, claims)
	}
	return claims
}

// TestSigningKeyRefused checks the keys that are refused when an administrator enters them, and that no error shows one.
func TestSigningKeyRefused(t *testing.T) {
	p256, other, weak := newEC(t, elliptic.P256()), newEC(t, elliptic.P256()), newRSA(t, 1024)
	x := base64.RawURLEncoding.EncodeToString
	point, _ := other.PublicKey.Bytes()
	for name, text := range map[string]string{
		"nothing":                 "",
		"a secret":                "CANARY",
		"a public key":            inPEM(t, "PUBLIC KEY", &p256.PublicKey),
		"two keys":                inPEM(t, "PRIVATE KEY", p256) + inPEM(t, "PRIVATE KEY", other),
		"something else":          string(pem.EncodeToMemory(&pem.Block{Type: "OPENSSH PRIVATE KEY", Bytes: []byte("CANARY")})),
		"encrypted":               string(pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("CANARY")})),
		"damaged":                 string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("CANARY")})),
		"a short RSA key":         inPEM(t, "PRIVATE KEY", weak),
		"too much":                "{" + strings.Repeat(" ", MaxSigningKey) + "}",
		"a public JWK":            jwkOf(t, p256, map[string]any{"d": nil}),
		"another's public half":   jwkOf(t, p256, map[string]any{"x": x(point[1:33]), "y": x(point[33:])}),
		"a curve that is not":     jwkOf(t, p256, map[string]any{"crv": "P-224"}),
		"another curve":           jwkOf(t, p256, map[string]any{"crv": "P-384"}),
		"a symmetric key":         `{"kty":"oct","k":"CANARY","d":"CANARY"}`,
		"an algorithm of another": jwkOf(t, p256, map[string]any{"alg": "RS256"}),
		"no algorithm":            jwkOf(t, p256, map[string]any{"alg": "none"}),
		"a kid with a line break": jwkOf(t, p256, map[string]any{"kid": "a\nb"}),
		"a member twice":          strings.Replace(jwkOf(t, p256, nil), "{", `{"kty":"EC",`, 1),
		"a set":                   `{"keys":[` + jwkOf(t, p256, nil) + `]}`,
		"an RSA key without p":    `{"kty":"RSA","n":"AQAB","e":"AQAB","d":"AQAB"}`,
		"an RSA key that is none": `{"kty":"RSA","n":"AQAB","e":"AQAB","d":"AQAB","p":"AQAB","q":"AQAB"}`,
		"a short Edwards key":     `{"kty":"OKP","crv":"Ed25519","x":"AQAB","d":"AQAB"}`,
	} {
		key, err := ReadSigningKey(seal.NewSecret(text))
		if err == nil || key != nil || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSigningKeyNotSent checks that a key is never sent as a secret, whatever method is chosen for it later.
func TestSigningKeyNotSent(t *testing.T) {
	key, err := ReadSigningKey(seal.NewSecret(inPEM(t, "PRIVATE KEY", newEC(t, elliptic.P256()))))
	if err != nil {
		t.Fatal(err)
	}
	stored, err := key.Encode()
	if err != nil {
		t.Fatal(err)
	}
	sealtest.Silent(t, SigningKey{pkcs8: seal.NewSecret(sealtest.Canary)}, ClientAuth{Key: &SigningKey{pkcs8: seal.NewSecret(sealtest.Canary)}})
	for _, methods := range [][]string{{AuthPost}, {AuthBasic}, {AuthNone}} {
		_, err := newClient().ObtainClient(t.Context(), Discovery{AuthMethods: methods}, Application{ConfiguredID: "id", ConfiguredKey: key})
		if !errors.Is(err, ErrUnsupported) {
			t.Errorf("%v: %v", methods, err)
		}
	}
	for _, methods := range [][]string{nil, {AuthBasic, AuthPrivateKey}} {
		got, err := newClient().ObtainClient(t.Context(), Discovery{AuthMethods: methods}, Application{ConfiguredID: "id", ConfiguredKey: key})
		if err != nil || got.AuthMethod != AuthPrivateKey || got.Kind != storage.ClientConfigured {
			t.Errorf("%v: %+v %v", methods, got, err)
		}
	}
	f := newFake(t, map[string]reply{"POST /token": ok(goodToken)})
	for _, method := range []string{AuthPost, AuthBasic, AuthNone, AuthPrivateKey} {
		client := ClientAuth{ID: "id", Method: method}
		if err := client.SetCredential(stored); err != nil {
			t.Fatal(err)
		}
		_, _ = newClient().ClientCredentials(t.Context(), ClientCredentialsRequest{Endpoint: f.URL + "/token", Client: client}) // without an audience nothing is signed
	}
	for _, s := range f.seen {
		if strings.Contains(s.body+s.header.Get("Authorization"), "pkcs8") || strings.Contains(s.body, "assertion") {
			t.Errorf("sent: %s", s.body)
		}
	}
	for _, damaged := range []string{keyMark, keyMark + "{}x", keyMark + `{"pkcs8":"?"}`} {
		var client ClientAuth
		if err := client.SetCredential(seal.NewSecret(damaged)); err == nil || !client.Secret.Empty() {
			t.Errorf("%q: %v", damaged, err)
		}
	}
	client := ClientAuth{ID: "id", Method: AuthPrivateKey, Audience: "a", Key: &SigningKey{algorithm: "ES256", pkcs8: seal.NewSecret("damaged")}}
	if _, err := newClient().ClientCredentials(t.Context(), ClientCredentialsRequest{Endpoint: f.URL + "/token", Client: client}); err == nil {
		t.Error("a damaged key signs")
	}
}

func FuzzReadSigningKey(f *testing.F) {
	f.Add(`{"kty":"EC","crv":"P-256","x":"AA","y":"AA","d":"AA"}`)
	f.Add(`{"kty":"RSA","n":"AQAB","e":"AQAB","d":"AQAB","p":"AQAB","q":"AQAB"}`)
	f.Add("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
	f.Fuzz(func(t *testing.T, text string) {
		key, err := ReadSigningKey(seal.NewSecret(text))
		if (key == nil) == (err == nil) {
			t.Fatalf("%v %v", key, err)
		}
		if key == nil {
			return
		}
		stored, err := key.Encode()
		if err != nil {
			t.Fatal(err)
		}
		client := ClientAuth{ID: "id", Audience: "a"}
		if err := client.SetCredential(stored); err != nil {
			t.Fatal(err)
		}
		if _, err := client.assertion(start); err != nil {
			t.Fatalf("an accepted key does not sign: %v", err)
		}
	})
}
