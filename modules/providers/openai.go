// Package providers contains the guests of durward.providers: how providers of models are spoken to.
package providers

import (
	"net/http"

	"github.com/caddyserver/caddy/v2"

	"github.com/durward-gateway/durward/internal/forward"
	"github.com/durward-gateway/durward/internal/limit"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/app"
)

func init() {
	caddy.RegisterModule(OpenAI{})
	caddy.RegisterModule(Anthropic{})
}

// OpenAI is providers that are spoken to as OpenAI is: OpenAI, vLLM, Ollama and many more. The base URL is what their
// clients are given as such, with its `/v1`; by default it is OpenAI's.
type OpenAI struct{}

// CaddyModule returns the Caddy module information.
func (OpenAI) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "durward.providers.openai", New: func() caddy.Module { return new(OpenAI) }}
}

// BaseURL is OpenAI's.
func (OpenAI) BaseURL() string { return "https://api.openai.com/v1" }

// Path gives the path of an endpoint.
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

// Authorize puts the secret on as a bearer token.
func (OpenAI) Authorize(h http.Header, secret seal.Secret) {
	if !secret.Empty() {
		h["Authorization"] = []string{"Bearer " + secret.Reveal()}
	}
}

// Headers are those that pass. OpenAI-Organization and OpenAI-Project choose among what an account may use, which is not the
// client's to do; x-ratelimit-* and openai-organization of the answer tell of the gateway's account.
func (OpenAI) Headers() *forward.Rules { return &openai }

var openai = forward.Rules{
	Request:  map[string]bool{"Accept": true, "Accept-Language": true, "Content-Type": false, "User-Agent": false, "Openai-Beta": true},
	Response: map[string]bool{"Content-Type": false, "X-Request-Id": false, "Openai-Processing-Ms": false, "Openai-Version": false},
}

// Interface guards
var _ app.ModelProvider = OpenAI{}
