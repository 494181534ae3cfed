package broker

import (
	"context"
	"errors"

	"github.com/durward-gateway/durward/internal/oauthflow"
)

// Protocol is the OAuth client protocol, as *oauthflow.Client implements it.
type Protocol interface {
	Discover(ctx context.Context, t oauthflow.Target) (oauthflow.Discovery, error)
	ObtainClient(ctx context.Context, d oauthflow.Discovery, app oauthflow.Application) (oauthflow.Registration, error)
	AuthorizationURL(r oauthflow.AuthorizationRequest) (string, error)
	Exchange(ctx context.Context, r oauthflow.ExchangeRequest) (oauthflow.Tokens, error)
	Refresh(ctx context.Context, r oauthflow.RefreshRequest) (oauthflow.Tokens, error)
	TryClient(ctx context.Context, endpoint string, client oauthflow.ClientAuth, redirectURI string) error
	Revoke(ctx context.Context, r oauthflow.RevokeRequest) error
}

var _ Protocol = (*oauthflow.Client)(nil)

func providerDown(err error) bool { return errors.Is(err, oauthflow.ErrUnavailable) }
