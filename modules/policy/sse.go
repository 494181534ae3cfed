package policy

import (
	"context"
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/durward-gateway/durward/internal/rules"
	"github.com/durward-gateway/durward/modules/app"
)

func (h *Handler) serveSSE(w http.ResponseWriter, r *http.Request, call *app.Call, next caddyhttp.Handler) error {
	asked, ok := call.ReadEvents(w, r)
	if !ok {
		return nil
	}
	set, err := call.Rules()
	if err != nil {
		call.Core.Metrics.Calls.WithLabelValues("sse", "unavailable").Inc()
		h.unreadable(w, call, err)
		return nil
	}
	question := rules.Call{Principal: call.Principal(), Kind: rules.SSEStream, Arguments: asked.Filters()}
	said := set.Decide(r.Context(), question)
	call.Note(question, said)
	if !h.open(said) {
		call.Core.Metrics.Calls.WithLabelValues("sse", "denied").Inc()
		app.WriteError(w, app.Forbidden, textByPolicy)
		return nil
	}
	call.Decide().Right = h.right(call, func(ctx context.Context, set *rules.Set, asking *rules.Principal) bool {
		return h.open(set.Decide(ctx, rules.Call{Principal: asking, Kind: rules.SSEStream, Arguments: question.Arguments}))
	})
	return next.ServeHTTP(w, r)
}

// open reports whether a stream may be opened: it is, for whoever is connected, unless a rule denies it or the
// configuration demands a grant.
func (h *Handler) open(d rules.Decision) bool {
	if d.Effect == rules.Allow {
		return true
	}
	grantNeeded := h.app.SSE != nil && h.app.SSE.RequireGrant
	return d.Effect == rules.Deny && d.Rule == "" && !grantNeeded
}
