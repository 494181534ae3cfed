package app

import (
	"errors"
	"net/url"
	"regexp"
	"time"

	"github.com/durward-gateway/durward/internal/directory"
	"github.com/durward-gateway/durward/internal/netguard"
)

// Bounds of what the configuration and administrators may say about models.
const (
	MaxModelWeight  = 1_000_000
	MaxModelTimeout = time.Hour
	MaxModelOutput  = 100_000_000 // tokens
)

// ProviderSecretText is what a provider's secret looks like: it goes into a header field.
var ProviderSecretText = regexp.MustCompile(`\A[\x21-\x7e]+\z`)

// CheckBaseURL says why a provider's base URL cannot be used, in words for whoever wrote it; "" when it can. The guard says
// so again when it is dialled.
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
