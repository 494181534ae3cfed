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

// Issuer is an identity provider without a login page: its tokens contain the claims that tests set.
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
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		claims, err := base64.RawURLEncoding.DecodeString(r.PostFormValue("code"))
		if err != nil || len(claims) == 0 {
			http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
			return
		}
		answer(func() any {
			return map[string]any{"access_token": "opaque", "token_type": "Bearer", "id_token": i.sign(t, "JWT", claims)}
		})(w, r)
	})
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
	return i.sign(t, "at+jwt", marshal(t, whole))
}

// Code returns a code with which a client gets an ID token with these claims, for an hour. nonce is that of the
// authorization request.
func (i *Issuer) Code(t testing.TB, client, nonce string, claims map[string]any) string {
	t.Helper()
	now := time.Now()
	whole := map[string]any{"iss": i.URL(), "aud": client, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "nonce": nonce}
	maps.Copy(whole, claims)
	return base64url(marshal(t, whole))
}

// sign makes a JWT of a type.
func (i *Issuer) sign(t testing.TB, kind string, claims []byte) string {
	t.Helper()
	input := base64url(marshal(t, map[string]any{"alg": "ES256", "typ": kind, "kid": "k"})) + "." + base64url(claims)
	digest := sha256.Sum256([]byte(input))
	r, s, err := ecdsa.Sign(rand.Reader, i.key, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	return input + "." + base64url(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...))
}

func marshal(t testing.TB, value any) []byte {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func base64url(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
