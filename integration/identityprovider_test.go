package integration

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Organizations of the tests' users.
const (
	orgAcme  = "0190aaaa-0000-7000-8000-00000000ac3e"
	orgRival = "0190aaaa-0000-7000-8000-0000000017a1"
)

// claims holds the claims of a token; a nil value leaves the claim out.
type claims map[string]any

// Callers that most tests need.
var (
	admin = claims{"sub": "0190bbbb-0000-7000-8000-000000000001", "email": "admin@acme.test", "org_id": orgAcme, "roles": []string{"admin"}}
	alice = claims{"sub": "0190bbbb-0000-7000-8000-000000000002", "email": "alice@acme.test", "org_id": orgAcme, "groups": []string{"engineering"}}
	bob   = claims{"sub": "0190bbbb-0000-7000-8000-000000000003", "email": "bob@acme.test", "org_id": orgAcme, "groups": []string{"sales"}}
	eve   = claims{"sub": "0190bbbb-0000-7000-8000-000000000004", "email": "eve@rival.test", "org_id": orgRival, "roles": []string{"admin"}}
)

// with returns the claims with some of them changed.
func (c claims) with(changes claims) claims {
	merged := maps.Clone(c)
	maps.Copy(merged, changes)
	return merged
}

// identityProvider is an OpenID Connect provider without a login: it publishes its metadata and keys, and signs all
// given claims.
type identityProvider struct {
	t      testing.TB
	server *httptest.Server
	serial atomic.Int64

	mu      sync.Mutex
	signers map[string]crypto.Signer // by kid
	fetched int                      // how often the keys were asked for
	// exchange answers at the token endpoint; nil: nothing is there.
	exchange func(form url.Values) any
}

// Keys that every provider has.
const (
	kidES256 = "es256"
	kidRS256 = "rs256"
)

func newIdentityProvider(t testing.TB) *identityProvider {
	t.Helper()
	p := &identityProvider{t: t, signers: map[string]crypto.Signer{kidES256: newECKey(t), kidRS256: newRSAKey(t)}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", p.serveMetadata)
	mux.HandleFunc("GET /jwks", p.serveKeys)
	mux.HandleFunc("POST /token", p.serveTokens)
	p.server = httptest.NewUnstartedServer(mux) // a client may ask at once that asked another server on this port before
	p.server.Start()
	t.Cleanup(p.server.Close)
	return p
}

func newECKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sharedRSAKey is one key for all providers of the tests: making one takes long.
var sharedRSAKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func newRSAKey(t testing.TB) *rsa.PrivateKey {
	t.Helper()
	key, err := sharedRSAKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (p *identityProvider) issuer() string { return p.server.URL }

// keyFetches returns the number of fetches of the keys.
func (p *identityProvider) keyFetches() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fetched
}

func (p *identityProvider) serveMetadata(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{
		"issuer": p.issuer(), "jwks_uri": p.issuer() + "/jwks", "authorization_endpoint": p.issuer() + "/authorize",
		"token_endpoint": p.issuer() + "/token", "response_types_supported": []string{"code"},
		"subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"ES256", "RS256"},
		"code_challenge_methods_supported": []string{"S256"},
	})
}

func (p *identityProvider) serveTokens(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	exchange := p.exchange
	p.mu.Unlock()
	if exchange == nil || r.ParseForm() != nil {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": "invalid_request"})
		return
	}
	writeJSON(w, http.StatusOK, exchange(r.PostForm))
}

func (p *identityProvider) serveKeys(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fetched++
	keys := []any{}
	for kid, signer := range p.signers {
		keys = append(keys, publicJWK(kid, signer))
	}
	writeJSON(w, http.StatusOK, map[string]any{"keys": keys})
}

// publicJWK returns a public key in the form of RFC 7517.
func publicJWK(kid string, signer crypto.Signer) map[string]string {
	switch key := signer.Public().(type) {
	case *ecdsa.PublicKey:
		point, err := key.Bytes() // 0x04, X, Y
		if err != nil {
			panic(err)
		}
		return map[string]string{"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": kid, "x": base64url(point[1:33]), "y": base64url(point[33:])}
	case *rsa.PublicKey:
		return map[string]string{
			"kty": "RSA", "use": "sig", "alg": "RS256", "kid": kid,
			"n": base64url(key.N.Bytes()), "e": base64url(big.NewInt(int64(key.E)).Bytes()),
		}
	}
	panic(fmt.Sprintf("no JWK for %T", signer))
}

// token signs claims with ES256, completed with those that every token has. A nil value leaves a claim out.
func (g *gateway) token(c claims) string {
	g.t.Helper()
	return g.identity.sign(g.identity.complete(c, g.url), map[string]any{"alg": "ES256", "typ": "at+jwt", "kid": kidES256})
}

func (p *identityProvider) complete(c claims, audience string) claims {
	now := time.Now()
	whole := claims{
		"iss": p.issuer(), "aud": audience, "iat": now.Unix(), "exp": now.Add(15 * time.Minute).Unix(),
		"jti": fmt.Sprint("token-", p.serial.Add(1)), "client_id": "test-client", "azp": "test-client",
	}.with(c)
	maps.DeleteFunc(whole, func(_ string, value any) bool { return value == nil })
	return whole
}

// sign makes a JWT of any header and claims with the key that the header names.
func (p *identityProvider) sign(c claims, header map[string]any) string {
	p.t.Helper()
	p.mu.Lock()
	kid, _ := header["kid"].(string)
	signer := p.signers[kid]
	p.mu.Unlock()
	if signer == nil {
		p.t.Fatalf("the identity provider has no key %q", kid)
	}
	input := encodeJSON(p.t, header) + "." + encodeJSON(p.t, c)
	return input + "." + base64url(signature(p.t, signer, input))
}

// signature signs as RFC 7518 section 3 says: ES256 for P-256 keys, RS256 for RSA keys.
func signature(t testing.TB, signer crypto.Signer, input string) []byte {
	t.Helper()
	digest := sha256.Sum256([]byte(input))
	if key, ok := signer.(*ecdsa.PrivateKey); ok {
		r, s, err := ecdsa.Sign(rand.Reader, key, digest[:])
		if err != nil {
			t.Fatal(err)
		}
		return append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	}
	signed, err := signer.Sign(rand.Reader, digest[:], crypto.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func encodeJSON(t testing.TB, value any) string {
	t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return base64url(encoded)
}

func base64url(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}
