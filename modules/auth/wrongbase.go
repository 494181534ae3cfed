package auth

import (
	"net/http"
	"strings"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/llm/wire"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/paths"
)

// modelsBase is the base URL of Anthropic's clients; OpenAI's take it with /v1.
var modelsBase = strings.TrimSuffix(paths.ModelsPrefix, "/v1/")

// wrongBases lists base URLs that people configure by mistake: a part of the right one, or more of it. Clients append
// an endpoint, with /v1 before it or not.
var wrongBases = map[string]bool{
	"": true, "/v1": true, "/api": true, "/api/v1": true, "/llm-gateway": true, "/llm-gateway/v1": true, "/openai": true, "/openai/v1": true,
	"/anthropic": true, "/anthropic/v1": true, modelsBase: true, modelsBase + "/v1/v1": true, modelsBase + "/openai": true, modelsBase + "/openai/v1": true,
	modelsBase + "/anthropic": true, modelsBase + "/anthropic/v1": true,
	// These are whole addresses of a call.
	"/v1/chat/completions": true, modelsBase + "/v1/chat/completions": true, "/v1/messages/v1": true, modelsBase + "/v1/messages/v1": true,
}

// wrongBase answers a client of models that has a wrong base URL, and names the right one. Without this the client
// would be told that its key is not valid, because keys are accepted below the right base only. The answer holds only
// facts of the documentation, so no credential is checked. A request without a credential is left to the page that may
// have that address.
func wrongBase(w http.ResponseWriter, r *http.Request, core *app.Core) bool {
	endpoint, base := modelsEndpoint(r.URL.Path)
	if endpoint == "" || !wrongBases[base] || len(r.Header["Authorization"]) == 0 && len(r.Header["X-Api-Key"]) == 0 {
		return false
	}
	kind, right := limit.ChatCompletions, core.PublicURL+modelsBase+"/v1"
	if strings.HasPrefix(endpoint, "/messages") || r.Header.Get("Anthropic-Version") != "" {
		kind, right = limit.Messages, core.PublicURL+modelsBase
	}
	message := "There is nothing at this address. The base URL of this gateway for this client is " + right
	gateway.WriteBody(w, http.StatusNotFound, wire.ErrorBody(kind, http.StatusNotFound, "unknown_url", message))
	return true
}

// modelsEndpoint splits a path into the base of a client of models and the endpoint that the client appends; "" when no
// such client made it.
func modelsEndpoint(path string) (endpoint, base string) {
	for _, endpoint := range [...]string{
		"/chat/completions", "/completions", "/responses", "/embeddings", "/messages", "/messages/count_tokens", "/models",
	} {
		if base, ok := strings.CutSuffix(path, endpoint); ok {
			return endpoint, base
		}
	}
	return "", ""
}
