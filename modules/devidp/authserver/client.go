package authserver

import (
	"context"
	"crypto/subtle"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/proxy/loopback"
)

// These are the grant types and the ways to authenticate at the token endpoint.
const (
	grantCode    = "authorization_code"
	grantRefresh = "refresh_token"
	grantMachine = "client_credentials"

	authNone  = "none"
	authBasic = "client_secret_basic"
	authPost  = "client_secret_post"
)

var authMethods = []string{authNone, authBasic, authPost}

// Client is an OAuth client.
type Client struct {
	ID           string    `json:"id"`
	Name         string    `json:"name,omitempty"`
	SecretHash   string    `json:"secret_hash,omitempty"` // hex SHA-256; empty: public
	AuthMethod   string    `json:"auth_method"`
	RedirectURIs []string  `json:"redirect_uris,omitempty"`
	AnyLoopback  bool      `json:"any_loopback,omitempty"` // every http loopback address is a redirect of it
	GrantTypes   []string  `json:"grant_types"`
	Issued       time.Time `json:"issued"`
}

// PublicClient returns a client without a secret that may redirect to any loopback address.
func PublicClient(id, name string) Client {
	return Client{ID: id, Name: name, AuthMethod: authNone, AnyLoopback: true, GrantTypes: []string{grantCode, grantRefresh}}
}

// ConfidentialClient returns a client with a secret that also acts for itself (client credentials).
func ConfidentialClient(id, name, clientSecret string) Client {
	return Client{
		ID: id, Name: name, AuthMethod: authBasic, SecretHash: hash(clientSecret), AnyLoopback: true,
		GrantTypes: []string{grantMachine, grantCode, grantRefresh},
	}
}

// public reports whether the client has no secret.
func (c *Client) public() bool { return c.SecretHash == "" }

// allows reports whether a code may be sent to redirect. The match is exact, except that a public client's loopback
// redirect may name another port: native applications get theirs when they start (RFC 8252 section 7.3).
func (c *Client) allows(redirect string) bool {
	u, ok := parseRedirect(redirect)
	if !ok {
		return false
	}
	if slices.Contains(c.RedirectURIs, redirect) {
		return true
	}
	if u.Scheme != "http" {
		return false
	}
	if c.AnyLoopback {
		return true
	}
	return c.public() && slices.ContainsFunc(c.RedirectURIs, func(registered string) bool {
		r, ok := parseRedirect(registered)
		return ok && r.Scheme == "http" && r.Hostname() == u.Hostname() && r.EscapedPath() == u.EscapedPath() && r.RawQuery == u.RawQuery
	})
}

// parseRedirect reads a redirect address: https anywhere, or http on this machine; no fragment, no user, and only
// characters that no two parsers read differently.
func parseRedirect(s string) (*url.URL, bool) {
	if s == "" || len(s) > maxText || strings.ContainsFunc(s, func(c rune) bool { return c <= 0x20 || c >= 0x7f || strings.ContainsRune("\\\"<>^`{|}#", c) }) {
		return nil, false
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil || u.Opaque != "" {
		return nil, false
	}
	return u, u.Scheme == "https" || u.Scheme == "http" && loopback.IsHost(u.Host)
}

// client finds a client: one that came with the server, one that registered, or one whose id is the address of its
// metadata document.
func (s *Server) client(ctx context.Context, id string) (*Client, bool) {
	if c, ok := s.static[id]; ok {
		return c, true
	}
	if c, ok := s.state.View().Clients[id]; ok {
		return c, true
	}
	if s.docs != nil && strings.Contains(id, "://") {
		c, err := s.docs.client(ctx, id)
		return c, err == nil
	}
	return nil, false
}

// authenticate finds out which client makes a request to the token or revocation endpoint (RFC 6749 section 2.3).
func (s *Server) authenticate(w http.ResponseWriter, r *http.Request, form url.Values) (*Client, error) {
	id, given := form.Get("client_id"), form.Get("client_secret")
	refused := &Error{Code: "invalid_client", Description: "unknown client, or its credentials are wrong", status: http.StatusUnauthorized}
	if len(r.Header.Values("Authorization")) > 0 {
		// RFC 6749 section 5.2: a client that tried the header is told its scheme.
		w.Header().Set("WWW-Authenticate", `Basic realm="oauth"`)
		user, password, ok := r.BasicAuth()
		if !ok || len(r.Header.Values("Authorization")) > 1 {
			return nil, refused
		}
		basicID, errID := url.QueryUnescape(user)
		basicSecret, errSecret := url.QueryUnescape(password)
		if errID != nil || errSecret != nil || form.Has("client_secret") || form.Has("client_id") && id != basicID {
			return nil, invalid("invalid_request", "the client must authenticate in one way")
		}
		id, given = basicID, basicSecret
	}
	if id == "" || len(id) > maxText {
		return nil, refused
	}
	c, ok := s.client(r.Context(), id)
	if !ok {
		return nil, refused
	}
	if c.public() {
		if given != "" {
			return nil, refused
		}
	} else if subtle.ConstantTimeCompare([]byte(hash(given)), []byte(c.SecretHash)) != 1 {
		return nil, refused
	}
	w.Header().Del("WWW-Authenticate")
	return c, nil
}
