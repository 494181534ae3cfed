package oauth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"

	"github.com/durward-gateway/durward/internal/seal"
)

// random returns 256 random bits in base64url, 43 characters.
func random() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// NewState makes a state parameter: 256 bits, 43 characters.
func NewState() string { return random() }

// NewNonce makes a nonce parameter (OpenID Connect Core section 3.1.2.1): 256 bits, 43 characters.
func NewNonce() string { return random() }

// PKCE holds a proof key (RFC 7636), method S256. The verifier is a secret until the code is redeemed.
type PKCE struct {
	Verifier  seal.Secret
	Challenge string
}

// NewPKCE makes a proof key. Verifier and challenge have 43 characters each.
func NewPKCE() PKCE {
	verifier := random()
	sum := sha256.Sum256([]byte(verifier))
	return PKCE{Verifier: seal.NewSecret(verifier), Challenge: base64.RawURLEncoding.EncodeToString(sum[:])}
}

// AuthorizationRequest holds the parameters with which a browser is sent to the authorization server. It holds no
// secret.
type AuthorizationRequest struct {
	Endpoint    string
	ClientID    string
	RedirectURI string
	Scopes      []string
	State       string
	Challenge   string            // of PKCE
	Resource    string            // RFC 8707
	Nonce       string            // of OpenID Connect, which binds the ID token to the request; "" where none is asked for
	Params      map[string]string // parameters of this provider, such as Google's access_type; none of the above
}

// AuthorizationURL writes r as a URL. The endpoint's own query is kept, except for parameters that are set here. The
// endpoint is checked once more because it goes to a browser (attack S06).
func (c *Client) AuthorizationURL(r AuthorizationRequest) (string, error) {
	u, err := url.Parse(r.Endpoint)
	if err == nil {
		err = c.guard.CheckURL(u)
	}
	if err != nil {
		return "", fmt.Errorf("authorization endpoint: %w: %w", ErrMalformed, err)
	}
	if r.ClientID == "" || r.RedirectURI == "" || r.State == "" || len(r.Challenge) != 43 {
		return "", fmt.Errorf("authorization request: client, redirect URI, state or challenge is missing")
	}
	q := u.Query()
	for name, value := range r.Params {
		q.Set(name, value)
	}
	q.Set("response_type", "code")
	q.Set("client_id", r.ClientID)
	q.Set("redirect_uri", r.RedirectURI)
	q.Set("state", r.State)
	q.Set("code_challenge", r.Challenge)
	q.Set("code_challenge_method", "S256")
	q.Del("scope")
	if len(r.Scopes) > 0 {
		q.Set("scope", strings.Join(r.Scopes, " "))
	}
	q.Del("resource")
	if r.Resource != "" {
		q.Set("resource", r.Resource)
	}
	q.Del("nonce")
	if r.Nonce != "" {
		q.Set("nonce", r.Nonce)
	}
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// Bounds of the parameters of a callback, in bytes.
const (
	maxState = 256
	maxCode  = 8 << 10
)

// Callback holds an authorization response (RFC 6749 section 4.1.2, RFC 9207).
type Callback struct {
	State  string
	Issuer string      // iss, "" when absent
	Code   seal.Secret // empty when Denied is set
	// Denied is the error that the response carries. It must not be shown before State and Issuer have been
	// validated.
	Denied *ProtocolError
}

// ParseCallback reads the query of a request to the redirect URI. It returns ErrMalformed when a parameter is
// repeated, when state is missing, when there is neither a code nor an error, or when there are both.
func ParseCallback(q url.Values) (Callback, error) {
	for _, name := range []string{"state", "iss", "code", "error", "error_description"} {
		if len(q[name]) > 1 {
			return Callback{}, fmt.Errorf("callback: %w: %s is repeated", ErrMalformed, name)
		}
	}
	cb := Callback{State: q.Get("state"), Issuer: q.Get("iss"), Code: seal.NewSecret(q.Get("code"))}
	code := q.Get("error")
	switch {
	case cb.State == "" || len(cb.State) > maxState:
		return Callback{}, fmt.Errorf("callback: %w: no state", ErrMalformed)
	case cb.Code.Empty() == (code == ""):
		return Callback{}, fmt.Errorf("callback: %w: neither code nor error, or both", ErrMalformed)
	case len(cb.Code.Reveal()) > maxCode:
		return Callback{}, fmt.Errorf("callback: %w: the code is too long", ErrMalformed)
	}
	if code != "" {
		if !isErrorCode(code) || repeats(code, cb.State) {
			return Callback{}, fmt.Errorf("callback: %w: the error code", ErrMalformed)
		}
		cb.Denied = &ProtocolError{Endpoint: "authorization", Code: code, Description: clean(q.Get("error_description"), cb.State)}
	}
	return cb, nil
}

// ValidateIssuer checks the iss parameter of an authorization response (RFC 9207 section 2.4). It must equal,
// character by character, the issuer that the attempt began with, and must be present when the server promised it.
// Where the issuer is not known (endpoints configured without one) there is nothing to compare with. The error is
// ErrMismatch (attack A04).
func ValidateIssuer(iss, expected string, promised bool) error {
	switch {
	case iss == "" && promised:
		return fmt.Errorf("callback: %w: iss is missing", ErrMismatch)
	case iss != "" && expected != "" && iss != expected:
		return fmt.Errorf("callback: %w: iss names another issuer", ErrMismatch)
	}
	return nil
}
