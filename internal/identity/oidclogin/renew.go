package oidclogin

import (
	"context"
	"errors"
	"fmt"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/seal"
)

// ErrEnded says that the provider refuses to go on with a login: the account or the grant is gone, or is another user's now.
var ErrEnded = errors.New("the identity provider ended the login")

// Renewal is a provider's answer to the refresh of a login.
type Renewal struct {
	// Claims describes the user now; nil when the answer says nothing of the user.
	Claims *token.Claims
	// Partial reports that userinfo alone gave the claims. It may lack some that ID tokens have.
	Partial bool
	// Refresh is the next refresh token; empty when the former one stays good.
	Refresh seal.Secret
	// IDToken is the verified ID token, which ends with Claims; empty when the answer has none.
	IDToken seal.Secret
}

// Renew redeems a refresh token of the user with that subject, and returns what the provider says of the user now. Where
// its answer has no ID token (OpenID Connect Core section 12.2), userinfo is asked. Errors are ErrEnded, and ErrProvider
// when the provider cannot be asked, or refuses the gateway as a client; token.ErrInvalid when the ID token is invalid.
// Renewal.Refresh is set also with an error, when the provider has replaced the token.
func (p *Provider) Renew(ctx context.Context, subject string, refresh seal.Secret) (Renewal, error) {
	d, err := p.metadata(ctx)
	if err != nil {
		return Renewal{}, err
	}
	client, err := p.OAuth.ObtainClient(ctx, d, oauth.Application{ConfiguredID: p.Client, ConfiguredSecret: p.Secret, RedirectURI: p.RedirectURI})
	if err != nil {
		return Renewal{}, fmt.Errorf("%w: %w", ErrProvider, err)
	}
	auth := oauth.ClientAuth{ID: client.ClientID, Secret: client.Secret, Method: client.AuthMethod}
	tokens, err := p.inEitherPlace(auth, func(auth oauth.ClientAuth) (oauth.Tokens, error) {
		return p.OAuth.Refresh(ctx, oauth.RefreshRequest{Endpoint: d.Endpoints.TokenEndpoint, Client: auth, Token: refresh})
	})
	if err != nil {
		renewal := Renewal{Refresh: oauth.HandedOut(err)}
		if oauth.ClassOf(err) == oauth.Refused && !oauth.ClientRefused(err) && renewal.Refresh.Empty() {
			return renewal, fmt.Errorf("%w: %w", ErrEnded, err)
		}
		return renewal, fmt.Errorf("%w: %w", ErrProvider, err)
	}
	renewal := Renewal{Refresh: tokens.Refresh, Partial: tokens.IDToken.Empty()}
	if renewal.Claims, err = p.claimsNow(ctx, subject, d, tokens); err == nil {
		renewal.IDToken = tokens.IDToken
	}
	return renewal, err
}

// claimsNow returns the claims in the answer to a refresh, completed by userinfo; nil when there are none.
func (p *Provider) claimsNow(ctx context.Context, subject string, d oauth.Discovery, tokens oauth.Tokens) (*token.Claims, error) {
	if !tokens.IDToken.Empty() {
		claims, err := p.Options.Verifier.VerifyRenewed(ctx, tokens.IDToken.Reveal(), subject)
		switch {
		case errors.Is(err, token.ErrOtherUser):
			return nil, fmt.Errorf("%w: the ID token is another user's", ErrEnded)
		case err != nil:
			return nil, err
		}
		return p.complete(ctx, claims, d, tokens.Access)
	}
	if d.UserinfoEndpoint == "" {
		return nil, nil //nolint:nilnil // the provider says nothing, which is no error
	}
	said, err := p.OAuth.Userinfo(ctx, d.UserinfoEndpoint, tokens.Access)
	if err != nil {
		return nil, fmt.Errorf("%w: userinfo: %w", ErrProvider, err)
	}
	if sub, _ := said.Get("sub"); !sub.Is(subject) { // OpenID Connect Core section 5.3.2
		return nil, fmt.Errorf("%w: userinfo is another user's", ErrEnded)
	}
	claims := &token.Claims{Subject: subject, Object: said}
	claims.Issuer = p.Issuer
	return claims, nil
}
