// Package sse is the handler durward_sse: it carries a third party's event stream to a user who has connected it, with
// their own credential. It is not a transport of MCP.
package sse

import (
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/paths"
)

func init() {
	caddy.RegisterModule(Handler{})
}

// headerTimeout is the longest time until an upstream begins its stream.
const headerTimeout = 30 * time.Second

// Handler serves `/sse/{name}`: the events of a third party as server-sent events, filtered as the client asks. It needs
// durward_auth, durward_limit, durward_policy and durward_credential before it.
type Handler struct {
	app.Carrier
}

// CaddyModule returns the Caddy module information.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.durward_sse", New: func() caddy.Module { return new(Handler) }}
}

// Provision finds the app and makes the forwarder.
func (h *Handler) Provision(ctx caddy.Context) error {
	return h.Carry(ctx, headerTimeout)
}

// ServeHTTP serves /sse/{name} and passes on all other requests.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	prefix, _, ok := paths.ProxiedName(r.URL.Path)
	if !ok || prefix != paths.SSEPrefix {
		return next.ServeHTTP(w, r)
	}
	call, ok := app.ProxiedCall(w, r)
	if !ok {
		return nil
	}
	asked, ok := call.ReadEvents(w, r)
	if !ok {
		return nil
	}
	s := &stream{handler: h, call: call, w: w, r: r, options: options{asked}, outcome: "ok"}
	s.serve()
	call.Upstream.End(s.outcome, s.status)
	call.Records().Outcome(s.outcome, s.status)
	call.Core.Metrics.Calls.WithLabelValues("sse", s.outcome).Inc()
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.CleanerUpper          = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
)
