package auth

import (
	"net/http"
	"strings"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/identity/scim"
	"github.com/durward-gateway/durward/internal/llm/wire"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/paths"
)

// challenge answers 401.
func (h *Handler) challenge(w http.ResponseWriter, r *http.Request, core *app.Core, sent bool) {
	at := surfaceOf(r.URL.Path)
	if at != models && at != provisioning {
		core.Challenge(r.URL.Path, sent).Refuse(w)
		return
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
	message := "An API key or a bearer token is needed"
	if at == provisioning {
		message = "An API key with the scope scim is needed, as a bearer token"
	}
	if sent {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		message = "The API key or token is not valid here"
	}
	h.refuse(w, r, &gateway.ServiceError{Name: gateway.Unauthorized, Message: message})
}

// codes maps refusals to the error codes that OpenAI's clients know.
var codes = map[gateway.ErrorName]string{
	gateway.Unauthorized: "invalid_api_key", gateway.Forbidden: "insufficient_permissions", gateway.RateLimitExceeded: "rate_limit_exceeded",
}

// refuse answers an error, in the form that the clients of the path read.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, refusal *gateway.ServiceError) {
	at := surfaceOf(r.URL.Path)
	if at != models && at != provisioning {
		refusal.Write(w)
		return
	}
	if refusal.Name == gateway.Unavailable {
		gateway.SetRetryAfter(w)
	}
	if at == provisioning {
		scim.Refused(refusal.Status(), refusal.Message).Write(w)
		return
	}
	status, endpoint := refusal.Status(), wire.EndpointAt(strings.TrimPrefix(r.URL.Path, paths.ModelsPrefix))
	gateway.WriteBody(w, status, wire.ErrorBody(endpoint, status, codes[refusal.Name], refusal.Message))
}
