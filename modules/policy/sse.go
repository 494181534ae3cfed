package policy

import (
	"context"
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/gateway/tracing"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/modules/app"
)

func (h *Handler) serveSSE(w http.ResponseWriter, r *http.Request, call *app.Call, next caddyhttp.Handler) error {
	asked, ok := call.ReadEvents(w, r)
	if !ok {
		return nil
	}
	set, err := call.Known.Rules()
	if err != nil {
		call.Core.Metrics.Calls.WithLabelValues("sse", "unavailable").Inc()
		call.Trace.Policy().Decided(tracing.Unavailable, "", 0, "")
		h.unreadable(w, call, err)
		return nil
	}
	step := call.Trace.Policy()
	question := engine.Call{Principal: call.Party().Principal(), Kind: engine.SSEStream, Arguments: asked.Filters(), Open: h.app.StreamsOpen()}
	said := set.Decide(r.Context(), question)
	call.Note(question, said)
	traced(call, step, said.Effect.String())
	if said.Effect != engine.Allow {
		call.Core.Metrics.Calls.WithLabelValues("sse", "denied").Inc()
		gateway.RefuseDenied(w)
		return nil
	}
	call.Decide().Right = h.right(call, func(ctx context.Context, set *engine.Set, asking *engine.Principal) bool {
		again := question
		again.Principal = asking
		return set.Decide(ctx, again).Effect == engine.Allow
	})
	return next.ServeHTTP(w, r)
}
