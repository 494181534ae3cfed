package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/durward-gateway/durward/internal/seal"
)

// RevokeRequest names the tokens to revoke (RFC 7009). Empty tokens are skipped.
type RevokeRequest struct {
	Endpoint string // revocation endpoint
	Client   ClientAuth
	Refresh  seal.Secret
	Access   seal.Secret
}

// Revoke asks the server to forget tokens. The refresh token comes first, because most servers drop the access tokens
// of its grant with it. Both are tried; the errors are joined. A server that does not know a token answers success.
// For a server that revokes no access tokens (RFC 7009 section 2.2.1) revoking the refresh token is enough, because
// asking again would change nothing.
func (c *Client) Revoke(ctx context.Context, r RevokeRequest) error {
	c = c.trusting(r.Client.Roots)
	refresh, access := c.revoke(ctx, r, r.Refresh, "refresh_token"), c.revoke(ctx, r, r.Access, "access_token")
	if !r.Refresh.Empty() && refresh == nil && Code(access) == CodeUnsupportedToken {
		return nil
	}
	return errors.Join(refresh, access)
}

func (c *Client) revoke(ctx context.Context, r RevokeRequest, token seal.Secret, hint string) error {
	if token.Empty() {
		return nil
	}
	a, err := c.post(ctx, c.http, r.Endpoint, r.Client, url.Values{"token": {token.Reveal()}, "token_type_hint": {hint}})
	if err != nil {
		return fmt.Errorf("revocation endpoint: %w", err)
	}
	if a.status != http.StatusOK && a.status != http.StatusNoContent {
		return refusal("revocation", a, token.Reveal(), a.proof.Reveal())
	}
	return nil
}
