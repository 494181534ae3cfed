package oauthflow

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/seal"
)

// ClientAuth is how a client shows who it is.
type ClientAuth struct {
	ID     string
	Secret seal.Secret
	Method string // AuthNone, AuthBasic or AuthPost
	// Roots are the certificate authorities to trust; nil: the system's.
	Roots *x509.CertPool
}

// Otherwise is the client with its secret in the other place: in the header, or in the body. ok is false without a secret.
func (a ClientAuth) Otherwise() (other ClientAuth, ok bool) {
	switch {
	case a.Secret.Empty():
		return a, false
	case a.Method == AuthBasic:
		a.Method = AuthPost
	case a.Method == AuthPost:
		a.Method = AuthBasic
	default:
		return a, false
	}
	return a, true
}

// Tokens is a token response (RFC 6749 section 5.1).
type Tokens struct {
	Access  seal.Secret
	Refresh seal.Secret // empty: none was given; on a refresh the former one stays good
	// ExpiresAt is reckoned from before the request was sent. Zero: not said, or said in a way that means nothing
	// (0, negative); such a token is used until it is refused.
	ExpiresAt time.Time
	Scope     string // "" when it is what was asked for
	// IDToken is as the server sent it: nobody has verified it. Empty when there was none.
	IDToken seal.Secret
}

// ExchangeRequest redeems an authorization code.
type ExchangeRequest struct {
	Endpoint    string // token endpoint
	Client      ClientAuth
	Code        seal.Secret
	RedirectURI string
	Verifier    seal.Secret
	Resource    string
}

// Exchange redeems a code. ClassOf tells what an error means. A code must not be redeemed twice: only after a refusal that is
// about something else than the code (the client, a parameter) is a second try worth it.
func (c *Client) Exchange(ctx context.Context, r ExchangeRequest) (Tokens, error) {
	code, verifier := r.Code.Reveal(), r.Verifier.Reveal()
	form := url.Values{
		"grant_type":    {"authorization_code"},
		"code":          {code},
		"redirect_uri":  {r.RedirectURI},
		"code_verifier": {verifier},
	}
	c = c.trusting(r.Client.Roots)
	return c.token(ctx, c.http, r.Endpoint, r.Client, form, r.Resource, code, verifier)
}

// RefreshRequest asks for a new access token.
type RefreshRequest struct {
	Endpoint string // token endpoint
	Client   ClientAuth
	Token    seal.Secret
	Resource string
	Scope    string // blank-separated; "": none is sent, and the server gives what it gave before (RFC 6749 section 6)
}

// Refresh redeems a refresh token. ClassOf tells what an error means: after Refused the token must not be sent again, after
// Later the server may or may not have used it up. HandedOut is the refresh token of an answer that is unusable otherwise.
func (c *Client) Refresh(ctx context.Context, r RefreshRequest) (Tokens, error) {
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {r.Token.Reveal()}}
	if r.Scope != "" {
		form.Set("scope", r.Scope)
	}
	c = c.trusting(r.Client.Roots)
	return c.token(ctx, c.slow, r.Endpoint, r.Client, form, r.Resource, r.Token.Reveal())
}

// TryClient asks whether the server still accepts a client, without anybody's code or token: it redeems a code that nobody was
// given. Servers look at the client first (RFC 6749 section 5.2): ClientRefused(err) is a no, every other refusal a yes. Nobody has
// answered when err is of the class Later.
func (c *Client) TryClient(ctx context.Context, endpoint string, client ClientAuth, redirectURI string) error {
	_, err := c.Exchange(ctx, ExchangeRequest{Endpoint: endpoint, Client: client, Code: seal.NewSecret(random()), RedirectURI: redirectURI, Verifier: seal.NewSecret(random())})
	return err
}

func (c *Client) token(ctx context.Context, by *http.Client, endpoint string, client ClientAuth, form url.Values, resource string, secrets ...string) (Tokens, error) {
	if resource != "" {
		form.Set("resource", resource)
	}
	start := c.now()
	a, err := c.post(ctx, by, endpoint, client, form)
	switch {
	case errors.Is(err, ErrMalformed): // a redirect, or more than anybody should send
		return Tokens{}, &UnusableError{Cause: err}
	case err != nil:
		return Tokens{}, fmt.Errorf("token endpoint: %w", err)
	}
	return judgeTokens(a.status, a.body, start, append(secrets, client.Secret.Reveal())...)
}

// post sends a form with the client's credentials.
func (c *Client) post(ctx context.Context, by *http.Client, endpoint string, client ClientAuth, form url.Values) (answer, error) {
	switch client.Method {
	case AuthNone:
		form.Set("client_id", client.ID)
	case AuthPost:
		form.Set("client_id", client.ID)
		form.Set("client_secret", client.Secret.Reveal())
	case AuthBasic:
	default:
		return answer{}, fmt.Errorf("%w: client authentication method", ErrUnsupported)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return answer{}, fmt.Errorf("%w: address of the endpoint", ErrMalformed)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if client.Method == AuthBasic {
		// RFC 6749 section 2.3.1: both are form-encoded first.
		req.SetBasicAuth(url.QueryEscape(client.ID), url.QueryEscape(client.Secret.Reveal()))
	}
	return send(by, req)
}
