package caddytest

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Issuer is an OpenID Connect issuer on loopback that publishes one key.
type Issuer struct {
	// URL is its `iss`.
	URL string
	// Fetches counts requests for its keys.
	Fetches atomic.Int64

	mu   sync.Mutex
	kid  string
	key  ed25519.PrivateKey
	down bool
	// idToken is the answer of the token endpoint, and asked holds the requests to it.
	idToken string
	asked   []*http.Request
	// refusal replaces the tokens in the answer of the token endpoint; nil: it gives tokens.
	refusal Object
	// userinfo holds the answer of that endpoint; nil: there is none.
	userinfo Object
}

// NewIssuer starts an issuer; it ends with the test.
func NewIssuer(t testing.TB) *Issuer {
	t.Helper()
	i := new(Issuer)
	i.Rotate(t, "first")
	server := httptest.NewServer(http.HandlerFunc(i.serve))
	t.Cleanup(server.Close)
	i.URL = server.URL
	return i
}

// Rotate replaces the issuer's only key.
func (i *Issuer) Rotate(t testing.TB, kid string) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.kid, i.key = kid, key
}

// Login makes the issuer's token endpoint give an ID token with these claims for every request, and forgets earlier
// requests.
func (i *Issuer) Login(audience string, more Object) {
	all := Object{"azp": audience}
	maps.Copy(all, more)
	signed := i.sign("JWT", audience, all)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.idToken, i.asked = signed, nil
}

// SetUserinfo gives the issuer a userinfo endpoint that answers these claims.
func (i *Issuer) SetUserinfo(claims Object) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.userinfo = claims
}

// Refuse lets the token endpoint answer 400 and this in place of tokens; nil ends that.
func (i *Issuer) Refuse(answer Object) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.refusal = answer
}

// Asked returns the requests for tokens since Login, with their forms.
func (i *Issuer) Asked() []*http.Request {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked
}

// SetDown lets the issuer answer 500 to everything, or stop doing so.
func (i *Issuer) SetDown(down bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.down = down
}

func (i *Issuer) serve(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	kid, public, down, userinfo := i.kid, i.key.Public().(ed25519.PublicKey), i.down, i.userinfo
	i.mu.Unlock()
	if down {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		document := Object{
			"issuer": i.URL, "jwks_uri": i.URL + "/keys", "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
		}
		if userinfo != nil {
			document["userinfo_endpoint"] = i.URL + "/userinfo"
		}
		_ = json.NewEncoder(w).Encode(document)
	case "/userinfo":
		if userinfo == nil || r.Header.Get("Authorization") != "Bearer not-a-jwt" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_ = json.NewEncoder(w).Encode(userinfo)
	case "/token":
		_ = r.ParseForm()
		i.mu.Lock()
		defer i.mu.Unlock()
		i.asked = append(i.asked, r)
		if i.refusal != nil {
			w.WriteHeader(http.StatusBadRequest)
			_ = json.NewEncoder(w).Encode(i.refusal)
			return
		}
		_ = json.NewEncoder(w).Encode(Object{"access_token": "not-a-jwt", "token_type": "Bearer", "id_token": i.idToken})
	case "/keys":
		i.Fetches.Add(1)
		_ = json.NewEncoder(w).Encode(Object{"keys": []any{
			Object{"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": kid, "x": encode(public)},
		}})
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// Token signs a token for an audience. more replaces claims; a nil value drops one.
func (i *Issuer) Token(audience string, more Object) string { return i.sign("at+jwt", audience, more) }

func (i *Issuer) sign(typ, audience string, more Object) string {
	now := time.Now()
	claims := Object{
		"iss": i.URL, "sub": "0192f0c1-5bd2-7000-8000-00000000a11c", "aud": audience, "org_id": "0192f0c1-5bd2-7000-8000-0000000000aa",
		"iat": now.Unix(), "exp": now.Add(10 * time.Minute).Unix(), "azp": "agent", "email": "alice@example.test", "name": "Alice",
	}
	maps.Copy(claims, more)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	i.mu.Lock()
	kid, key := i.kid, i.key
	i.mu.Unlock()
	header, _ := json.Marshal(Object{"alg": "EdDSA", "typ": typ, "kid": kid})
	payload, _ := json.Marshal(claims)
	signed := encode(header) + "." + encode(payload)
	return signed + "." + encode(ed25519.Sign(key, []byte(signed)))
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
