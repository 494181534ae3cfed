package oauth

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

// ClientAuth holds the credentials of a client.
type ClientAuth struct {
	ID     string
	Secret seal.Secret
	Key    *SigningKey // for AuthPrivateKey, in place of a secret
	Method string      // AuthNone, AuthBasic, AuthPost or AuthPrivateKey
	// Audience is that of the assertions which Key signs: the issuer. A server that learned them can use them nowhere else.
	Audience string
	// Roots holds the certificate authorities to trust; nil means the system's.
	Roots *x509.CertPool
}

// Otherwise returns the client with its secret in the other place: in the header, or in the body. ok is false without
// a secret.
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

// InEitherPlace sends a request to a token endpoint. When the client is refused it sends the request once more with the client's
// secret in the other place: metadata lists both places where each client may use only one. Hydra's clients use the header,
// unless configured otherwise. works is told of the method that proved the client then.
func InEitherPlace(client ClientAuth, send func(ClientAuth) (Tokens, error), works func(method string)) (Tokens, error) {
	tokens, err := send(client)
	other, ok := client.Otherwise()
	if !ok || !ClientRefused(err) {
		return tokens, err
	}
	again, errAgain := send(other)
	switch {
	case ProvesClient(errAgain):
		works(other.Method)
		return again, errAgain
	case ClassOf(errAgain) == Later: // there was no answer: nothing is known yet
		return again, errAgain
	}
	return tokens, err // the provider's answer says where it looks for the secret
}

// Tokens holds a token response (RFC 6749 section 5.1).
type Tokens struct {
	Access  seal.Secret
	Refresh seal.Secret // empty: none was given; after a refresh the former one stays valid
	// ExpiresAt is counted from before the request was sent. It is zero when the server gives no lifetime or a
	// meaningless one (0, negative); such a token is used until it is refused.
	ExpiresAt time.Time
	Scope     string // "" when it equals the requested scope
	// IDToken is the ID token as the server sent it, unverified. It is empty when there was none.
	IDToken seal.Secret
}

// ExchangeRequest describes the exchange of an authorization code.
type ExchangeRequest struct {
	Endpoint    string // token endpoint
	Client      ClientAuth
	Code        seal.Secret
	RedirectURI string
	Verifier    seal.Secret
	Resource    string
}

// Exchange redeems a code. ClassOf tells the meaning of an error. A code must not be redeemed twice. A second try
// makes sense only after a refusal that concerns something other than the code (the client, a parameter).
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

// RefreshRequest describes a request for a new access token.
type RefreshRequest struct {
	Endpoint string // token endpoint
	Client   ClientAuth
	Token    seal.Secret
	Resource string
	Scope    string // blank-separated; "": none is sent, and the server gives what it gave before (RFC 6749 section 6)
}

// Refresh redeems a refresh token. ClassOf tells the meaning of an error. After Refused the token must not be sent
// again; after Later the server may or may not have used it up. HandedOut returns the refresh token of an answer that
// is otherwise unusable.
func (c *Client) Refresh(ctx context.Context, r RefreshRequest) (Tokens, error) {
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {r.Token.Reveal()}}
	if r.Scope != "" {
		form.Set("scope", r.Scope)
	}
	c = c.trusting(r.Client.Roots)
	return c.token(ctx, c.slow, r.Endpoint, r.Client, form, r.Resource, r.Token.Reveal())
}

// TryClient asks whether the server still accepts a client, without a user's code or token: it redeems an invented
// code. Servers check the client first (RFC 6749 section 5.2). ClientRefused(err) means no; every other refusal means
// yes. When err is of the class Later, there was no answer.
func (c *Client) TryClient(ctx context.Context, endpoint string, client ClientAuth, redirectURI string) error {
	_, err := c.Exchange(ctx, ExchangeRequest{Endpoint: endpoint, Client: client, Code: seal.NewSecret(random()), RedirectURI: redirectURI, Verifier: seal.NewSecret(random())})
	return err
}

func (c *Client) token(ctx context.Context, by *http.Client, endpoint string, client ClientAuth, form url.Values, resource string, secrets ...string) (Tokens, error) {
	if resource != "" {
		form.Set("resource", resource)
	}
	start := c.now()
	a, err := c.asked(ctx, by, endpoint, client, form)
	if err != nil {
		return Tokens{}, err
	}
	return judgeTokens(a.status, a.body, start, append(secrets, a.proof.Reveal())...)
}

// asked returns the answer of a token endpoint to a form.
func (c *Client) asked(ctx context.Context, by *http.Client, endpoint string, client ClientAuth, form url.Values) (answer, error) {
	a, err := c.post(ctx, by, endpoint, client, form)
	switch {
	case errors.Is(err, ErrMalformed): // a redirect, or an oversized answer
		return answer{}, &UnusableError{Cause: err}
	case err != nil:
		return answer{}, fmt.Errorf("token endpoint: %w", err)
	}
	return a, nil
}

// post sends a form with the client's credentials.
func (c *Client) post(ctx context.Context, by *http.Client, endpoint string, client ClientAuth, form url.Values) (answer, error) {
	proof := client.Secret
	switch client.Method {
	case AuthNone:
		form.Set("client_id", client.ID)
	case AuthPost:
		form.Set("client_id", client.ID)
		form.Set("client_secret", client.Secret.Reveal())
	case AuthPrivateKey:
		var err error
		if proof, err = client.assertion(c.now()); err != nil {
			return answer{}, err
		}
		form.Set("client_id", client.ID)
		form.Set("client_assertion_type", clientAssertionType)
		form.Set("client_assertion", proof.Reveal())
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
	a, err := send(by, req)
	a.proof = proof
	return a, err
}
