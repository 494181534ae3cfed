package oauthflow

import (
	"context"
	"fmt"
	"net/http"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// Userinfo asks an OpenID provider for the claims of the user whose access token this is (OpenID Connect Core section 5.3).
// Whoever asks has to compare sub with that of the ID token (section 5.3.2). ErrUnavailable; ErrMalformed when the answer is
// another status than 200 or no JSON object, as it is when the client has asked the provider for signed ones.
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
