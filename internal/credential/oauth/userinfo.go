package oauth

import (
	"context"
	"fmt"
	"net/http"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// Userinfo asks an OpenID provider for the claims of the access token's user (OpenID Connect Core section 5.3). The
// caller has to compare sub with that of the ID token (section 5.3.2). Errors are ErrUnavailable, and ErrMalformed
// when the status is not 200 or the answer is no JSON object. An answer is no JSON object when the client has asked
// the provider for signed claims.
func (c *Client) Userinfo(ctx context.Context, endpoint string, access seal.Secret) (strictjson.Value, error) {
	if err := c.checkURL(endpoint); err != nil {
		return strictjson.Value{}, fmt.Errorf("%w: userinfo_endpoint: %w", ErrMalformed, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint, nil)
	if err != nil {
		return strictjson.Value{}, fmt.Errorf("%w: address of userinfo", ErrMalformed)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Authorization", "Bearer "+access.Reveal())
	a, err := c.do(req)
	switch {
	case err != nil:
		return strictjson.Value{}, err
	case busy(a.status):
		return strictjson.Value{}, fmt.Errorf("asking %s: %w: status %d", req.URL.Host, ErrUnavailable, a.status)
	case a.status != http.StatusOK:
		return strictjson.Value{}, fmt.Errorf("asking %s: %w: userinfo answered %d", req.URL.Host, ErrMalformed, a.status)
	}
	return parseObject(a.body)
}
