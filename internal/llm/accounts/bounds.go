package accounts

import (
	"net/url"
	"regexp"
	"time"
)

// These are the bounds for values of the configuration and of administrators about models.
const (
	MaxWeight  = 1_000_000
	MaxTimeout = time.Hour
	MaxOutput  = 100_000_000 // tokens
)

// These are the values of `stream_options` of an account, in the configuration and in the API.
const (
	StreamOptionsAuto = "auto"
	StreamOptionsOff  = "off"
)

// SecretText is the pattern of an account's secret: it goes into a header field.
var SecretText = regexp.MustCompile(`\A[\x21-\x7e]+\z`)

// CheckBaseURL returns the reason why an account's base URL cannot be used, in words for its author; "" when it can.
// The address is checked again when the gateway dials it.
func (b *Base) CheckBaseURL(text string) (reason string) {
	u, err := url.Parse(text)
	if err != nil {
		return "this is no URL"
	}
	if u.RawQuery != "" || u.ForceQuery {
		return "a base URL has no query"
	}
	return b.checkAddress(u)
}
