package token

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	testIssuer   = "https://idp.example.com"
	testAudience = "https://gateway.example.com"
)

// testNow is the first time of the tests' clock.
var testNow = time.Unix(1_700_000_000, 0)

// b64 is base64url without padding, as JOSE writes everything.
func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// Keys are made once: an RSA key takes a while.
var (
	rsaTestKey   = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	otherRSAKey  = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	ecTestKey    = sync.OnceValue(func() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) })
	ec384TestKey = sync.OnceValue(func() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)) })
	edTestKey    = sync.OnceValue(func() ed25519.PrivateKey {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		return must(private, err)
	})
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// sign makes a token of exactly these texts.
func sign(t testing.TB, method jwt.SigningMethod, key any, header, payload string) string {
	t.Helper()
	signed := b64([]byte(header)) + "." + b64([]byte(payload))
	signature, err := method.Sign(signed, key)
	if err != nil {
		t.Fatalf("signing: %v", err)
	}
	return signed + "." + b64(signature)
}

// claims returns the default payload's members as JSON texts, changed by pairs of name and text; an empty text removes.
func claims(changes ...string) string {
	members := map[string]string{
		"iss": `"` + testIssuer + `"`,
		"sub": `"user-1"`,
		"aud": `"` + testAudience + `"`,
		"iat": fmt.Sprint(testNow.Unix()),
		"exp": fmt.Sprint(testNow.Add(15 * time.Minute).Unix()),
	}
	for i := 0; i < len(changes); i += 2 {
		members[changes[i]] = changes[i+1]
	}
	var out []string
	for name, text := range members {
		if text != "" {
			out = append(out, must(marshal(name))+":"+text)
		}
	}
	return "{" + strings.Join(out, ",") + "}"
}

func marshal(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}

func unix(d time.Duration) string { return fmt.Sprint(testNow.Add(d).Unix()) }

const (
	rsHeader = `{"alg":"RS256","kid":"rsa"}`
	esHeader = `{"alg":"ES256","kid":"ec"}`
)

// testKeys returns the keys of testIssuer.
func testKeys(t testing.TB) KeySource {
	t.Helper()
	keys, err := NewStaticKeys(
		StaticKey{ID: "rsa", Algorithm: "RS256", Public: &rsaTestKey().PublicKey},
		StaticKey{ID: "ec", Public: &ecTestKey().PublicKey},
		StaticKey{ID: "ed", Public: edTestKey().Public()},
		StaticKey{ID: "both", Public: &ecTestKey().PublicKey},
		StaticKey{ID: "both", Public: &otherRSAKey().PublicKey},
	)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func testVerifier(t testing.TB, change func(*Options)) *Verifier {
	t.Helper()
	o := Options{Issuer: testIssuer, Audiences: []string{testAudience}}
	if change != nil {
		change(&o)
	}
	v, err := NewVerifier(o, testKeys(t), func() time.Time { return testNow })
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// wantInvalid fails unless err is a proper ErrInvalid that comes without claims and without a reason in its text.
func wantInvalid(t *testing.T, c *Claims, err error) {
	t.Helper()
	var typed *Error
	switch {
	case err == nil:
		t.Fatal("the token was accepted")
	case c != nil:
		t.Fatal("claims came with an error")
	case !errors.Is(err, ErrInvalid) || errors.Is(err, ErrUnavailable) || !errors.As(err, &typed):
		t.Fatalf("error %#v is not ErrInvalid", err)
	case err.Error() != ErrInvalid.Error():
		t.Fatalf("J33 text %q tells more than it may", err)
	case Reason(err) == err.Error() || Reason(err) == "":
		t.Fatal("no reason for the log")
	}
}

// keyFunc is a KeySource that answers with the result of a function.
type keyFunc func() (any, error)

func (f keyFunc) Key(context.Context, string, string) (any, error) { return f() }

// rsaJWK returns a public RSA key as JWK members.
func rsaJWK(k *rsa.PublicKey) map[string]any {
	return map[string]any{"kty": "RSA", "n": b64(k.N.Bytes()), "e": b64(big.NewInt(int64(k.E)).Bytes())}
}

func ecJWK(k *ecdsa.PublicKey) map[string]any {
	point := must(k.Bytes())
	size := (len(point) - 1) / 2
	return map[string]any{"kty": "EC", "crv": k.Params().Name, "x": b64(point[1 : 1+size]), "y": b64(point[1+size:])}
}

func edJWK(k crypto.PublicKey) map[string]any {
	return map[string]any{"kty": "OKP", "crv": "Ed25519", "x": b64(k.(ed25519.PublicKey))}
}

// with returns a JWK with pairs of name and value added.
func with(k map[string]any, pairs ...any) map[string]any {
	k = maps.Clone(k)
	for i := 0; i < len(pairs); i += 2 {
		k[pairs[i].(string)] = pairs[i+1]
	}
	return k
}

func jwks(keys ...any) []byte {
	if keys == nil {
		keys = []any{}
	}
	return must(json.Marshal(map[string]any{"keys": keys}))
}
