package oauthapi

import (
	"context"
	"errors"
	"net/url"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/identity/authserver"
	"github.com/durward-gateway/durward/internal/identity/logins"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/modules/app/paths"
)

// assert exchanges an identity assertion for an access token. A refusal is logged with its cause, and recorded: the identity
// provider may have been told to let the client in, and its administrator asks here why it is not.
func (c *call) assert(ctx context.Context, client *authserver.Client, form url.Values) (*logins.Tokens, error) {
	tokens, err := c.server.Assert(ctx, client, form)
	if _, refused := errors.AsType[*authserver.Error](err); refused {
		c.log.Warn("refusing an identity assertion", zap.String("client", client.ID), zap.String("reason", token.Reason(err)))
		c.core.AuditRefusal(err, paths.Token)
	}
	return tokens, err
}
