package app

import (
	"errors"
	"net/url"
	"regexp"
	"time"

	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
)

// These are the bounds for values of the configuration and of administrators about models.
const (
	MaxModelWeight  = 1_000_000
	MaxModelTimeout = time.Hour
	MaxModelOutput  = 100_000_000 // tokens
)

// ProviderSecretText is the pattern of a provider's secret: it goes into a header field.
var ProviderSecretText = regexp.MustCompile(`\A[\x21-\x7e]+\z`)

// CheckBaseURL returns the reason why a provider's base URL cannot be used, in words for its author; "" when it can.
// The guard checks again when the gateway dials it.
func (c *Core) CheckBaseURL(text string) (reason string) {
	u, err := url.Parse(text)
	if err != nil {
		return "this is no URL"
	}
	if u.RawQuery != "" || u.ForceQuery {
		return "a base URL has no query"
	}
	var refused *netguard.URLError
	switch err := c.CheckUpstream(u); {
	case errors.Is(err, directory.ErrOwnAddress):
		return err.Error()
	case errors.As(err, &refused):
		return refused.Reason
	case err != nil:
		return "this URL cannot be used"
	}
	return ""
}
