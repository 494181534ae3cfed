package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// issuer is an OpenID Connect issuer without a login: it publishes one ES256 key and signs all given claims.
type issuer struct {
	url    string
	key    *ecdsa.PrivateKey
	server *http.Server
	serial atomic.Int64
}

const organization = "0190aaaa-0000-7000-8000-00000000be7c"

// user returns the claims of the n-th user of the bench's organization; the first is its administrator.
func user(n int) map[string]any {
	claims := map[string]any{
		"sub": fmt.Sprintf("0190bbbb-0000-7000-8000-%012x", n+1), "email": fmt.Sprintf("user%d@bench.test", n),
		"org_id": organization, "groups": []string{"engineering"},
	}
	if n == 0 {
		claims["roles"] = []string{"admin"}
	}
	return claims
}

func startIssuer() (*issuer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	point, err := key.PublicKey.Bytes() // 0x04, X, Y
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	i := &issuer{url: "http://" + listener.Addr().String(), key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", answer(map[string]any{
		"issuer": i.url, "jwks_uri": i.url + "/jwks", "authorization_endpoint": i.url + "/authorize", "token_endpoint": i.url + "/token",
		"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		"id_token_signing_alg_values_supported": []string{"ES256"},
	}))
	mux.HandleFunc("GET /jwks", answer(map[string]any{"keys": []any{map[string]string{
		"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": "bench", "x": base64url(point[1:33]), "y": base64url(point[33:]),
	}}}))
	i.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = i.server.Serve(listener) }()
	return i, nil
}

func answer(document any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(document)
	}
}

func (i *issuer) close() { _ = i.server.Close() }

// token signs an access token for a user. Each is new: it has an id of its own.
func (i *issuer) token(claims map[string]any, audience string) (string, error) {
	now := time.Now()
	whole := map[string]any{
		"iss": i.url, "aud": audience, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "jti": fmt.Sprint("bench-", i.serial.Add(1)),
		"client_id": "bench", "azp": "bench",
	}
	for name, value := range claims {
		whole[name] = value
	}
	payload, err := json.Marshal(whole)
	if err != nil {
		return "", err
	}
	input := base64url([]byte(`{"alg":"ES256","typ":"at+jwt","kid":"bench"}`)) + "." + base64url(payload)
	digest := sha256.Sum256([]byte(input))
	r, s, err := ecdsa.Sign(rand.Reader, i.key, digest[:]) // RFC 7518 section 3.4: R and S, 32 bytes each
	if err != nil {
		return "", err
	}
	return input + "." + base64url(append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)), nil
}

func base64url(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
