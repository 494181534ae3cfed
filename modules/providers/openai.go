// Package providers describes the protocols of providers of models: addresses, headers, and the place of the key. Its
// modules are the guests of durward.providers. They send nothing and keep nothing, and never see a body.
package providers

import (
	"net/http"

	"github.com/caddyserver/caddy/v2"

	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/app"
)

func init() {
	caddy.RegisterModule(OpenAI{})
	caddy.RegisterModule(Anthropic{})
}

// OpenAI is the module for providers with OpenAI's API: OpenAI, vLLM, Ollama and many more. The base URL has the form
// of OpenAI's clients, with its `/v1`; by default it is OpenAI's.
type OpenAI struct{}

// CaddyModule returns the Caddy module information.
func (OpenAI) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "durward.providers.openai", New: func() caddy.Module { return new(OpenAI) }}
}

// BaseURL returns OpenAI's.
func (OpenAI) BaseURL() string { return "https://api.openai.com/v1" }

// Path returns the path of an endpoint.
func (OpenAI) Path(endpoint limit.Endpoint) (path string, ok bool) {
	switch endpoint {
	case limit.ChatCompletions:
		return "/chat/completions", true
	case limit.Responses:
		return "/responses", true
	case limit.Embeddings:
		return "/embeddings", true
	}
	return "", false
}

// Authorize sets the secret as a bearer token.
func (OpenAI) Authorize(h http.Header, secret seal.Secret) {
	if !secret.Empty() {
		h["Authorization"] = []string{"Bearer " + secret.Reveal()}
	}
}

// Headers returns the rules for headers that pass. OpenAI-Organization and OpenAI-Project choose among the account's
// organizations and projects, which a client may not do; x-ratelimit-* and openai-organization of the answer describe
// the gateway's account. None of these pass.
func (OpenAI) Headers() *forward.Rules { return &openai }

var openai = forward.Rules{
	Request:  map[string]bool{"Accept": true, "Accept-Language": true, "Content-Type": false, "User-Agent": false, "Openai-Beta": true},
	Response: map[string]bool{"Content-Type": false, "X-Request-Id": false, "Openai-Processing-Ms": false, "Openai-Version": false},
}

// Interface guards
var _ app.ModelProvider = OpenAI{}
