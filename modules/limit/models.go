package limit

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/gateway/tracing"
	"github.com/durward-gateway/durward/internal/llm/wire"
	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/paths"
)

// admitPrompt checks the limits of a call to a model that are known before its body is read: those of its caller.
// durward_llm checks the model's limits, and charges all of them.
func (h *Handler) admitPrompt(w http.ResponseWriter, r *http.Request) bool {
	call, ok := app.CallOf(r)
	if !ok || call.Caller == nil {
		return true // durward_llm answers, in its own words
	}
	if h.Off {
		call.Limits.Exempt()
		return true
	}
	call.Limits.Count()
	if r.Method != http.MethodPost {
		return true
	}
	step := call.Trace.Limit()
	refused, err := call.Core.Admitter.LookModels(r.Context(), call.Admission().Described())
	step.Limited(tracing.Look, refused != nil, err)
	switch {
	case err != nil:
		call.Core.LogFailure(h.logger, "looking at the limits of a call to a model", err)
		call.Core.Metrics.Calls.WithLabelValues("llm", "unavailable").Inc()
		gateway.SetRetryAfter(w)
		refuse(w, r, http.StatusServiceUnavailable, "unavailable", gateway.TextUncounted+".")
		return false
	case refused != nil:
		call.Core.Metrics.Calls.WithLabelValues("llm", "limited").Inc()
		call.Records().ModelRequest(r.Context(), r.Header, nil)
		call.Records().ModelRefused(r.Context(), "", "limited")
		refused.SetHeader(w.Header())
		refuse(w, r, http.StatusTooManyRequests, wire.CodeRateLimit, wire.Limited)
		return false
	}
	return true
}

// refuse answers in the error format of the address.
func refuse(w http.ResponseWriter, r *http.Request, status int, code, message string) {
	endpoint := wire.EndpointAt(strings.TrimPrefix(r.URL.Path, paths.ModelsPrefix))
	forward.AnswerUnread(w, r, func() { gateway.WriteBody(w, status, wire.ErrorBody(endpoint, status, code, message)) })
}

func known(kind string) error {
	if kind == trafficMCP || kind == trafficLLM {
		return nil
	}
	return fmt.Errorf("unrecognized kind of traffic %q; known are mcp, llm, off", kind)
}
