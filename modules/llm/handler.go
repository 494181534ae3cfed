// Package llm is the handler durward_llm: the runtime of the LLM gateway. It answers the clients of OpenAI's and
// Anthropic's APIs with the models that an organization has set up, under names of its own, and sends every call to one
// of the providers that serve them.
package llm

import (
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/paths"
)

func init() {
	caddy.RegisterModule(Handler{})
}

// Handler serves the addresses below `/api/llm-gateway/v1/`: `chat/completions`, `responses` and `embeddings` of
// OpenAI's API, `messages` and `messages/count_tokens` of Anthropic's, and `models`. Requests and answers pass byte for
// byte, except for the name of the model and the members that counting needs. It needs durward_auth before it; policies
// are for calls to servers and have no effect here.
type Handler struct {
	app.Carrier

	now func() time.Time
}

// CaddyModule returns the Caddy module information.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.durward_llm", New: func() caddy.Module { return new(Handler) }}
}

// Provision finds the app and makes the forwarder.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.now = time.Now
	a, err := h.CarryModels(ctx)
	if err != nil {
		return err
	}
	a.ProvideModels(h.ask)
	return nil
}

// endpoints maps the addresses that take a prompt to their endpoints.
var endpoints = map[string]limit.Endpoint{
	"chat/completions": limit.ChatCompletions, "responses": limit.Responses, "embeddings": limit.Embeddings, "messages": limit.Messages,
}

const (
	modelsPath = "models"
	countPath  = "messages/count_tokens"
)

// ServeHTTP serves the addresses below /api/llm-gateway/v1 and passes on all other requests.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	path, ok := strings.CutPrefix(r.URL.Path, paths.ModelsPrefix)
	if !ok && r.URL.Path != strings.TrimSuffix(paths.ModelsPrefix, "/") {
		return next.ServeHTTP(w, r)
	}
	endpoint, prompt := endpoints[path]
	if path == countPath {
		endpoint, prompt = limit.CountTokens, true
	}
	a := answerer{w: w, r: r, endpoint: endpoint, anthropic: endpoint == limit.Messages || endpoint == limit.CountTokens || !prompt && r.Header.Get("Anthropic-Version") != ""}
	call, ok := app.CallOf(r)
	if !ok || call.Caller == nil {
		a.refuse(&refusal{status: http.StatusUnauthorized, code: codeInvalidKey, message: textNoAuth})
		return nil
	}
	if prompt && !call.Limits.Seen() {
		a.refuse(&refusal{status: http.StatusInternalServerError, code: "no_limit", message: gateway.TextNoLimit + "."})
		return nil
	}
	h.serve(&a, call, path, prompt)
	return nil
}

// serve serves one of the addresses, given without the prefix, for a caller who was found. prompt says that it takes a
// prompt.
func (h *Handler) serve(a *answerer, call *app.Call, path string, prompt bool) {
	listed := path == modelsPath || strings.HasPrefix(path, modelsPath+"/")
	switch {
	case !prompt && !listed:
		a.refuse(&refusal{status: http.StatusNotFound, code: "unknown_url", message: "There is nothing at this address."})
	case prompt && a.r.Method != http.MethodPost:
		a.wrongMethod("POST")
	case listed && a.r.Method != http.MethodGet && a.r.Method != http.MethodHead:
		a.wrongMethod("GET")
	case listed:
		h.serveModels(a, call, strings.TrimPrefix(strings.TrimPrefix(path, modelsPath), "/"))
	case a.endpoint == limit.CountTokens:
		h.serveCount(a, call)
	default:
		h.servePrompt(a, call)
	}
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.CleanerUpper          = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
)
