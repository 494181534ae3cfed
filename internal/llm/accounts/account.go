package accounts

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// Protocol is the protocol of one kind of provider of models. It has no settings and keeps nothing: one value serves
// every account of its kind.
type Protocol interface {
	// BaseURL returns the base URL for accounts that set none; "" when accounts must set one.
	BaseURL() string
	// Path returns the path of an endpoint, to be appended to the base URL. ok is false for one that the kind does not
	// serve.
	Path(endpoint limit.Endpoint) (path string, ok bool)
	// Authorize sets an account's secret, which may be empty, and all other headers that every request needs.
	Authorize(h http.Header, secret seal.Secret)
	// Headers returns the rules for the headers of the client and of the answer that may pass. Headers that tell about the
	// gateway's own account do not pass.
	Headers() *forward.Rules
}

// Account is an account with a provider of models.
type Account struct {
	ID       string
	Name     string
	Kind     string
	Protocol Protocol // nil: this binary knows no such kind

	// NoStreamOptions reports that the provider does not know stream_options.
	NoStreamOptions bool

	urls     [endpoints]*url.URL // nil where the provider does not serve the endpoint
	timeouts storage.ModelTimeouts
	secret   seal.Secret          // of an account of the configuration
	stored   *storage.LLMProvider // nil: it is an account of the configuration
}

const endpoints = int(limit.CountTokens) + 1

// URL returns the address of an endpoint; nil when the provider does not serve it. It must not be changed.
func (a *Account) URL(endpoint limit.Endpoint) *url.URL { return a.urls[endpoint] }

// setURLs appends the paths of the protocol's endpoints to the base URL.
func (a *Account) setURLs(base string) error {
	if a.Protocol == nil {
		return nil
	}
	if base == "" {
		base = a.Protocol.BaseURL()
	}
	u, err := url.Parse(base)
	if err != nil {
		return fmt.Errorf("reading the base URL of provider %s: %w", a.Name, err)
	}
	for endpoint := range endpoints {
		path, ok := a.Protocol.Path(limit.Endpoint(endpoint))
		if !ok {
			continue
		}
		at := *u
		at.Path = strings.TrimRight(u.Path, "/") + path
		if at.RawPath != "" {
			at.RawPath = strings.TrimRight(u.RawPath, "/") + path
		}
		a.urls[endpoint] = &at
	}
	return nil
}
