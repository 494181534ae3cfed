package oauth

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/seal"
)

// grantTokenExchange is the grant type of RFC 8693 section 2.1.
const grantTokenExchange = "urn:ietf:params:oauth:grant-type:token-exchange" // #nosec G101 -- a name

// tokenTypePrefix begins the identifiers of token types (RFC 8693 section 3). The rest is a word such as access_token.
const tokenTypePrefix = "urn:ietf:params:oauth:token-type:" // #nosec G101 -- a name

// CodeInvalidTarget is the error code for an audience or a resource that the server does not give tokens for (RFC 8693
// section 2.2.2).
const CodeInvalidTarget = "invalid_target"

// TokenExchangeRequest describes a request for a token on behalf of a user.
type TokenExchangeRequest struct {
	Endpoint string // token endpoint
	Client   ClientAuth
	// Subject is the proof of the user.
	Subject seal.Secret
	// SubjectType and RequestedType are the words of RFC 8693 section 3 for token types: access_token, id_token, jwt.
	SubjectType, RequestedType string
	// Audience, Resource and Scope say what the token is for. Empty ones are not sent.
	Audience, Resource, Scope string
}

// ExchangeToken exchanges the proof of a user for an access token (RFC 8693). ClassOf tells the meaning of an error. Only
// bearer tokens are accepted. A refresh token in the answer is dropped: the next token comes of the next exchange, so
// that it never outlives its user.
func (c *Client) ExchangeToken(ctx context.Context, r TokenExchangeRequest) (Tokens, error) {
	return c.granted(ctx, r.Endpoint, r.Client, r.form(), r.Subject.Reveal())
}

func (r *TokenExchangeRequest) form() url.Values {
	return targeted(url.Values{
		"grant_type":           {grantTokenExchange},
		"subject_token":        {r.Subject.Reveal()},
		"subject_token_type":   {tokenTypePrefix + r.SubjectType},
		"requested_token_type": {tokenTypePrefix + r.RequestedType},
	}, r.Audience, r.Resource, r.Scope)
}

// judgeExchanged classifies the answer to a token exchange. It is stricter than judgeTokens, whose leniency is for providers
// that are older than OAuth: RFC 8693 section 2.2.1 requires JSON with access_token and token_type.
func judgeExchanged(status int, body []byte, start time.Time, secrets ...string) (Tokens, error) {
	t, err := judgeTokens(status, body, start, secrets...)
	if err != nil {
		return Tokens{}, err
	}
	v, err := parseObject(body)
	if err != nil {
		return Tokens{}, &UnusableError{Cause: err}
	}
	access, _ := text(v, "access_token")
	kind, _ := text(v, "token_type")
	issued, err := text(v, "issued_token_type")
	switch issued = strings.TrimPrefix(issued, tokenTypePrefix); {
	case err != nil:
		return Tokens{}, &UnusableError{Cause: err}
	case access != t.Access.Reveal():
		return Tokens{}, &UnusableError{Cause: fmt.Errorf("%w: access_token", ErrMalformed)}
	case !strings.EqualFold(kind, "Bearer"):
		return Tokens{}, &UnusableError{Cause: fmt.Errorf("%w: token_type is not Bearer", ErrMalformed)}
	case issued != "" && issued != "access_token" && issued != "jwt": // some servers leave it out
		return Tokens{}, &UnusableError{Cause: fmt.Errorf("%w: issued_token_type is not that of an access token", ErrMalformed)}
	}
	t.Refresh, t.IDToken = seal.Secret{}, seal.Secret{}
	return t, nil
}
