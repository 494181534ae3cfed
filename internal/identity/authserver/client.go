package authserver

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client is an OAuth client.
type Client struct {
	ID           string    `json:"id"`
	Name         string    `json:"name,omitempty"`
	SecretHash   string    `json:"secret_hash,omitempty"` // see HashSecret; "": public
	AuthMethod   string    `json:"auth_method"`
	RedirectURIs []string  `json:"redirect_uris,omitempty"`
	AnyLoopback  bool      `json:"any_loopback,omitempty"` // every http loopback address is a redirect URI of it
	GrantTypes   []string  `json:"grant_types"`
	Issued       time.Time `json:"issued"`
}

// Public reports whether the client has no secret.
func (c *Client) Public() bool { return c.SecretHash == "" }

// Random returns 256 random bits as 52 characters that are safe in URLs: a client's id or secret.
func Random() string { return strings.ToLower(rand.Text() + rand.Text()) }

// HashSecret returns the form in which a client's secret is kept: the SHA-256 in hexadecimal. Secrets are random, so that
// it needs no salt.
func HashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// Authenticate finds out which client makes a request to the token or revocation endpoint (RFC 6749 section 2.3). find
// looks up a client by its id; its error is ErrNoClient when there is none.
func Authenticate(w http.ResponseWriter, r *http.Request, form url.Values, find func(ctx context.Context, id string) (*Client, error)) (*Client, error) {
	id, given := form.Get("client_id"), form.Get("client_secret")
	if len(r.Header.Values("Authorization")) > 0 {
		// RFC 6749 section 5.2: a client that tried the header is told its scheme.
		w.Header().Set("WWW-Authenticate", `Basic realm="oauth"`)
		user, password, ok := r.BasicAuth()
		if !ok || len(r.Header.Values("Authorization")) > 1 {
			return nil, ErrNoClient
		}
		basicID, errID := url.QueryUnescape(user)
		basicSecret, errSecret := url.QueryUnescape(password)
		if errID != nil || errSecret != nil || form.Has("client_secret") || form.Has("client_id") && id != basicID {
			return nil, Invalid("invalid_request", "the client must authenticate in one way")
		}
		id, given = basicID, basicSecret
	}
	if id == "" || len(id) > maxText {
		return nil, ErrNoClient
	}
	c, err := find(r.Context(), id)
	if err != nil {
		return nil, err
	}
	if c.Public() {
		if given != "" {
			return nil, ErrNoClient
		}
	} else if subtle.ConstantTimeCompare([]byte(HashSecret(given)), []byte(c.SecretHash)) != 1 {
		return nil, ErrNoClient
	}
	w.Header().Del("WWW-Authenticate")
	return c, nil
}

// ErrNoClient reports that a client is not known, or that its credentials are wrong.
var ErrNoClient = &Error{Code: "invalid_client", Description: "unknown client, or its credentials are wrong", Status: http.StatusUnauthorized}
