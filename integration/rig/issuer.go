package rig

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// Issuer is an identity provider without a login: its tokens contain the claims that tests set.
type Issuer struct {
	server *httptest.Server
	key    *ecdsa.PrivateKey
	serial atomic.Int64
}

// NewIssuer starts an issuer that ends with the test.
func NewIssuer(t testing.TB) *Issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := key.PublicKey.Bytes() // 0x04, X, Y
	if err != nil {
		t.Fatal(err)
	}
	i := &Issuer{key: key}
	answer := func(what func() any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(what())
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", answer(func() any {
		return map[string]any{
			"issuer": i.URL(), "jwks_uri": i.URL() + "/jwks", "authorization_endpoint": i.URL() + "/authorize", "token_endpoint": i.URL() + "/token",
			"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
			"id_token_signing_alg_values_supported": []string{"ES256"},
		}
	}))
	mux.HandleFunc("GET /jwks", answer(func() any {
		return map[string]any{"keys": []any{map[string]any{
			"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": "k", "x": base64url(point[1:33]), "y": base64url(point[33:]),
		}}}
	}))
	i.server = httptest.NewUnstartedServer(mux) // the handlers ask it for its address
	i.server.Start()
	t.Cleanup(i.server.Close)
	return i
}

// URL returns the issuer's name.
func (i *Issuer) URL() string { return i.server.URL }

// Token signs claims for an audience, completed with those that every token has; the token is valid for an hour.
func (i *Issuer) Token(t testing.TB, audience string, claims map[string]any) string {
	t.Helper()
	now := time.Now()
	whole := map[string]any{
		"iss": i.URL(), "aud": audience, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		"jti": fmt.Sprint("token-", i.serial.Add(1)), "client_id": "test-client", "azp": "test-client",
	}
	maps.Copy(whole, claims)
	input := encode(t, map[string]any{"alg": "ES256", "typ": "at+jwt", "kid": "k"}) + "." + encode(t, whole)
	digest := sha256.Sum256([]byte(input))
	r, s, err := ecdsa.Sign(rand.Reader, i.key, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	return input + "." + base64url(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
}

func encode(t testing.TB, value any) string {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return base64url(encoded)
}

func base64url(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
