package providers

import (
	"net/http"

	"github.com/caddyserver/caddy/v2"

	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/app"
)

// Anthropic is the module for providers with Anthropic's API. The base URL has the form of Anthropic's clients, without
// `/v1`; by default it is Anthropic's.
type Anthropic struct{}

// anthropicVersion is the version of the API that is requested when the client names none.
const anthropicVersion = "2023-06-01"

// CaddyModule returns the Caddy module information.
func (Anthropic) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "durward.providers.anthropic", New: func() caddy.Module { return new(Anthropic) }}
}

// BaseURL returns Anthropic's.
func (Anthropic) BaseURL() string { return "https://api.anthropic.com" }

// Path returns the path of an endpoint.
func (Anthropic) Path(endpoint limit.Endpoint) (path string, ok bool) {
	switch endpoint {
	case limit.Messages:
		return "/v1/messages", true
	case limit.CountTokens:
		return "/v1/messages/count_tokens", true
	}
	return "", false
}

// Authorize sets the secret, and the version of the API when the client named none.
func (Anthropic) Authorize(h http.Header, secret seal.Secret) {
	if !secret.Empty() {
		h["X-Api-Key"] = []string{secret.Reveal()}
	}
	if len(h["Anthropic-Version"]) == 0 {
		h["Anthropic-Version"] = []string{anthropicVersion}
	}
}

// Headers returns the rules for headers that pass. The anthropic-ratelimit-* and anthropic-organization-id of the
// answer describe the gateway's account, and do not pass.
func (Anthropic) Headers() *forward.Rules { return &anthropic }

var anthropic = forward.Rules{
	Request: map[string]bool{
		"Accept": true, "Accept-Language": true, "Content-Type": false, "User-Agent": false, "Anthropic-Version": false, "Anthropic-Beta": true,
	},
	Response: map[string]bool{"Content-Type": false, "Request-Id": false},
}

// Interface guards
var _ app.ModelProvider = Anthropic{}
