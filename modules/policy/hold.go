package policy

import (
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/durward-gateway/durward/internal/jsonrpc"
	"github.com/durward-gateway/durward/internal/rules"
	"github.com/durward-gateway/durward/modules/app"
)

// hold answers a call, call.Inbound's single tools/call, that a human has to confirm first.
func (h *Handler) hold(w http.ResponseWriter, _ *http.Request, _ caddyhttp.Handler, call *app.Call, _ rules.Decision) error {
	h.count(call, "denied")
	v := verdict{text: "This call needs approval"}
	v.write(w, call.Inbound.Single(), call.Inbound.Modern())
	return nil
}

// answered takes a client's answer to a question of the gateway's own. It never reaches the upstream.
func (h *Handler) answered(w http.ResponseWriter, _ *http.Request, call *app.Call, _ *jsonrpc.Message) error {
	h.count(call, "ok")
	w.WriteHeader(http.StatusAccepted)
	return nil
}
