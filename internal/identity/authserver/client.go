package authserver

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
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
	GrantTypes   []string  `json:"grant_types"`
	Issued       time.Time `json:"issued"`
	// Agent is set for an agent that logs in without a person, and has proven that.
	Agent *Agent `json:"-"`
}

// Agent names the credential with which an agent proved who it is. The agent's id is the client's.
type Agent struct{ Organization, Credential string }

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
	p, err := ReadProof(w, r, form)
	if err != nil {
		return nil, err
	}
	c, err := p.Client(r.Context(), find)
	if err != nil {
		return nil, err
	}
	Proven(w)
	return c, nil
}

// Client returns the client of that id when the secret is its own.
func (p *Proof) Client(ctx context.Context, find func(ctx context.Context, id string) (*Client, error)) (*Client, error) {
	if p.ClientID == "" || len(p.ClientID) > maxText {
		return nil, ErrNoClient
	}
	c, err := find(ctx, p.ClientID)
	switch {
	case err != nil:
		return nil, err
	case !p.Assertion.Empty(), c.Public() && !p.Secret.Empty(), !c.Public() && !p.Knows(c.SecretHash):
		return nil, ErrNoClient
	}
	return c, nil
}

// ErrNoClient reports that a client is not known, or that its credentials are wrong.
var ErrNoClient = &Error{Code: "invalid_client", Description: "unknown client, or its credentials are wrong", Status: http.StatusUnauthorized}
