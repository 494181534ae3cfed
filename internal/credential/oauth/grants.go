package oauth

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/storage"
)

// These grants need no browser. A Target names the one for which it is.
const (
	// GrantClientCredentials gives a client a token for itself (RFC 6749 section 4.4).
	GrantClientCredentials = "client_credentials"
	// GrantAssertion gives a token for whom a signed statement is about (RFC 7523 section 2.1).
	GrantAssertion = "urn:ietf:params:oauth:grant-type:jwt-bearer"
)

// GrantOf returns the grant by which tokens for servers of an entry are got at their own authorization server; "" where users
// connect accounts in a browser, or that server is not asked.
func GrantOf(e *storage.DirectoryEntry) string {
	switch {
	case !e.RequiresAuth:
	case e.Provider == storage.ProviderClientCredentials:
		return GrantClientCredentials
	case e.OwnServer():
		return GrantAssertion
	}
	return ""
}

// ClientCredentialsRequest describes a request for a token of the client's own.
type ClientCredentialsRequest struct {
	Endpoint string // token endpoint
	Client   ClientAuth
	// Audience, Resource and Scope say what the token is for. Empty ones are not sent. audience is no standard here: Auth0
	// wants it.
	Audience, Resource, Scope string
}

// ClientCredentials gets a token for the client itself. ClassOf tells the meaning of an error. Only bearer tokens are
// accepted.
func (c *Client) ClientCredentials(ctx context.Context, r ClientCredentialsRequest) (Tokens, error) {
	form := url.Values{"grant_type": {GrantClientCredentials}}
	return c.granted(ctx, r.Endpoint, r.Client, targeted(form, r.Audience, r.Resource, r.Scope))
}

// AssertionRequest describes a request for a token in exchange for somebody's statement.
type AssertionRequest struct {
	Endpoint        string // token endpoint
	Client          ClientAuth
	Assertion       seal.Secret
	Resource, Scope string // empty ones are not sent
}

// RedeemAssertion gets a token for an assertion. ClassOf tells the meaning of an error. Only bearer tokens are accepted.
func (c *Client) RedeemAssertion(ctx context.Context, r AssertionRequest) (Tokens, error) {
	form := url.Values{"grant_type": {GrantAssertion}, "assertion": {r.Assertion.Reveal()}}
	return c.granted(ctx, r.Endpoint, r.Client, targeted(form, "", r.Resource, r.Scope), r.Assertion.Reveal())
}

// targeted adds the parameters that say what a token is for.
func targeted(form url.Values, audience, resource, scope string) url.Values {
	for name, value := range map[string]string{"audience": audience, "resource": resource, "scope": scope} {
		if value != "" {
			form.Set(name, value)
		}
	}
	return form
}

// granted sends a form and judges the answer as that to a token exchange: there is no reason for leniency here.
func (c *Client) granted(ctx context.Context, endpoint string, client ClientAuth, form url.Values, secrets ...string) (Tokens, error) {
	c = c.trusting(client.Roots)
	start := c.now()
	a, err := c.asked(ctx, c.http, endpoint, client, form)
	if err != nil {
		return Tokens{}, err
	}
	return judgeExchanged(a.status, a.body, start, append(secrets, a.proof.Reveal())...)
}

// ExchangeForAssertion exchanges the proof of a user for an identity assertion (ID-JAG,
// draft-ietf-oauth-identity-assertion-authz-grant section 4.3), which is good at the authorization server that the request
// names as its audience. One for anybody else is not returned: whoever is shown it could use it there.
func (c *Client) ExchangeForAssertion(ctx context.Context, r TokenExchangeRequest) (seal.Secret, error) {
	r.RequestedType = storage.TokenIdentityAssertion
	c = c.trusting(r.Client.Roots)
	a, err := c.asked(ctx, c.http, r.Endpoint, r.Client, r.form())
	if err != nil {
		return seal.Secret{}, err
	}
	v, err := grantedBy(a, r.Subject.Reveal(), a.proof.Reveal())
	if err != nil {
		return seal.Secret{}, err
	}
	issued, _ := text(v, "issued_token_type")
	raw, err := text(v, "access_token") // RFC 8693 section 2.2.1 calls every token so
	switch {
	case err != nil, !isToken(raw):
		return seal.Secret{}, &UnusableError{Cause: fmt.Errorf("%w: access_token", ErrMalformed)}
	case issued != tokenTypePrefix+storage.TokenIdentityAssertion:
		return seal.Secret{}, &UnusableError{Cause: fmt.Errorf("%w: issued_token_type is not that of an identity assertion", ErrMalformed)}
	}
	if err := checkAssertion(raw, r.Audience, r.Resource); err != nil {
		return seal.Secret{}, &UnusableError{Cause: err}
	}
	return seal.NewSecret(raw), nil
}

// grantedBy returns the members of an answer that is no refusal.
func grantedBy(a answer, secrets ...string) (strictjson.Value, error) {
	if busy(a.status) {
		return strictjson.Value{}, fmt.Errorf("token endpoint: %w: status %d", ErrUnavailable, a.status)
	}
	v, err := parseObject(a.body)
	success := a.status >= 200 && a.status < 300
	switch {
	case !success && err != nil:
		return strictjson.Value{}, &ProtocolError{Endpoint: "token", Status: a.status}
	case err != nil:
		return strictjson.Value{}, &UnusableError{Cause: err}
	case !success || saysNo(v):
		return strictjson.Value{}, errorObject("token", a.status, v, secrets...)
	}
	return v, nil
}

// checkAssertion refuses an assertion that opens something else than the authorization server to which it goes. Its
// signature is that server's concern.
func checkAssertion(raw, audience, resource string) error {
	a, err := ReadAssertion(seal.NewSecret(raw))
	switch {
	case err != nil:
		return err
	case !strings.EqualFold(a.Type, "oauth-id-jag+jwt"):
		return fmt.Errorf("%w: typ is not that of an identity assertion", ErrMalformed)
	case len(a.Audience) != 1 || !sameIssuer(a.Audience[0], audience):
		return fmt.Errorf("%w: the assertion is for another authorization server", ErrMismatch)
	case resource != "" && a.resources != nil && (len(a.resources) != 1 || a.resources[0] != resource):
		return fmt.Errorf("%w: the assertion is for another resource", ErrMismatch)
	}
	return nil
}
