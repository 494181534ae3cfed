package connection

import (
	"context"
	"errors"

	"github.com/durward-gateway/durward/internal/credential/oauth"
)

// Protocol is the OAuth client protocol, as *oauth.Client implements it.
type Protocol interface {
	Discover(ctx context.Context, t oauth.Target) (oauth.Discovery, error)
	ObtainClient(ctx context.Context, d oauth.Discovery, app oauth.Application) (oauth.Registration, error)
	AuthorizationURL(r oauth.AuthorizationRequest) (string, error)
	Exchange(ctx context.Context, r oauth.ExchangeRequest) (oauth.Tokens, error)
	Refresh(ctx context.Context, r oauth.RefreshRequest) (oauth.Tokens, error)
	TryClient(ctx context.Context, endpoint string, client oauth.ClientAuth, redirectURI string) error
	Revoke(ctx context.Context, r oauth.RevokeRequest) error
}

var _ Protocol = (*oauth.Client)(nil)

func providerDown(err error) bool { return errors.Is(err, oauth.ErrUnavailable) }
