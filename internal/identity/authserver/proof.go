package authserver

import (
	"crypto/subtle"
	"net/http"
	"net/url"

	"github.com/durward-gateway/durward/internal/seal"
)

// assertionType is the client_assertion_type of a JWT (RFC 7523 section 2.2).
const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// Proof holds what a client sends to prove who it is: a secret, an assertion, or nothing.
type Proof struct {
	ClientID          string // "" beside an assertion, which names the client too
	Secret, Assertion seal.Secret
}

// ReadProof reads how the client of a request to the token or revocation endpoint proves who it is. It must do so in one
// way (RFC 6749 section 2.3).
func ReadProof(w http.ResponseWriter, r *http.Request, form url.Values) (Proof, error) {
	p := Proof{
		ClientID: form.Get("client_id"), Secret: seal.NewSecret(form.Get("client_secret")), Assertion: seal.NewSecret(form.Get("client_assertion")),
	}
	several := Invalid("invalid_request", "the client must authenticate in one way")
	asserts := form.Has("client_assertion") || form.Has("client_assertion_type")
	if len(r.Header.Values("Authorization")) > 0 {
		// RFC 6749 section 5.2: a client that tried the header is told its scheme.
		w.Header().Set("WWW-Authenticate", `Basic realm="oauth"`)
		user, password, ok := r.BasicAuth()
		if !ok || len(r.Header.Values("Authorization")) > 1 {
			return Proof{}, ErrNoClient
		}
		id, errID := url.QueryUnescape(user)
		secret, errSecret := url.QueryUnescape(password)
		if errID != nil || errSecret != nil || asserts || form.Has("client_secret") || form.Has("client_id") && p.ClientID != id {
			return Proof{}, several
		}
		p.ClientID, p.Secret = id, seal.NewSecret(secret)
	}
	switch {
	case !asserts:
	case form.Has("client_secret"):
		return Proof{}, several
	case form.Get("client_assertion_type") != assertionType || p.Assertion.Empty():
		return Proof{}, &Error{Code: "invalid_client", Description: "client_assertion must be a JWT, with the client_assertion_type of one", Status: http.StatusUnauthorized}
	}
	return p, nil
}

// Proven takes back what ReadProof told a client whose proof might be wrong.
func Proven(w http.ResponseWriter) { w.Header().Del("WWW-Authenticate") }

// Knows reports whether the secret is the one of a hash (see HashSecret).
func (p *Proof) Knows(hash string) bool {
	return hash != "" && subtle.ConstantTimeCompare([]byte(HashSecret(p.Secret.Reveal())), []byte(hash)) == 1
}
