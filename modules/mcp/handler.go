// Package mcp is the handler durward_mcp: it carries MCP over HTTP to the caller's server, in every revision of the
// protocol, with the caller's own credential, and changes nothing else.
package mcp

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

// headerTimeout is the longest time until an upstream begins its answer: tools are slow.
const headerTimeout = 5 * time.Minute

// Handler serves `/mcp/{name}`: POST, GET and DELETE of MCP's Streamable HTTP transport, from revision 2025-03-26 to
// 2026-07-28, and the HTTP+SSE transport of revision 2024-11-05. Messages pass byte for byte; session ids, and the
// address that a session of 2024-11-05 has for messages, are replaced by sealed ones that are valid for this user,
// agent and server only. It needs durward_auth, durward_limit, durward_policy and durward_credential before it.
type Handler struct {
	app.Carrier
}

// CaddyModule returns the Caddy module information.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.durward_mcp", New: func() caddy.Module { return new(Handler) }}
}

// Provision finds the app and makes the forwarder.
func (h *Handler) Provision(ctx caddy.Context) error {
	return h.Carry(ctx, headerTimeout)
}

// ServeHTTP serves /mcp/{name} and passes on all other requests.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	prefix, _, ok := paths.ProxiedName(r.URL.Path)
	if !ok || prefix != paths.MCPPrefix {
		return next.ServeHTTP(w, r)
	}
	call, ok := app.ProxiedCall(w, r)
	if !ok {
		return nil
	}
	in, ok := call.ReadInbound(w, r)
	if !ok {
		return nil
	}
	x := &exchange{Request: in, handler: h, call: call, w: w, r: r, outcome: "ok"}
	if !x.endsOwnSession() {
		x.forward()
	}
	call.Records().Outcome(x.outcome, x.status)
	call.Core.Metrics.CountMCP(x.outcome)
	if x.abort {
		panic(http.ErrAbortHandler)
	}
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.CleanerUpper          = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
)
