// Package policy is the handler durward_policy: it judges every call before anything of it leaves, and removes the
// parts of an answer that its caller may not see. durward_mcp and durward_sse carry only calls that it has judged.
package policy

import (
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/paths"
)

func init() {
	caddy.RegisterModule(Handler{})
}

// Handler enforces access policies on `/mcp/{name}` and `/sse/{name}`. It needs durward_auth before it, and stands
// before durward_credential.
//
// A call that no active policy of the server grants is denied. A tool, prompt or resource that no arguments could make
// callable is answered like one that does not exist, and is in no list; a call that is refused for its arguments is
// answered with a tool error that a model can read. Policies judge the body of a message, never its headers. Unknown
// methods of MCP are refused.
//
// A change of policies is in force for the next call before the API has answered it. Open streams are judged again:
// streams of /sse, and subscriptions of MCP 2026-07-28 (`subscriptions/listen`), end within a second, with reason
// `policy`, when they would not be opened any more. A running call goes on to its answer: the server has acted by then,
// and the caller should know of it. GET streams go on too, because they need no action: lists on them are filtered by
// the present policies.
type Handler struct {
	// Judge nothing: every caller with a connection may do everything. Lists are not filtered. Default: false.
	Off bool `json:"off,omitempty"`

	app    *app.App
	logger *zap.Logger
}

// CaddyModule returns the Caddy module information.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.durward_policy", New: func() caddy.Module { return new(Handler) }}
}

// Provision finds the app.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.logger = ctx.Logger()
	var err error
	h.app, err = app.Attach(ctx)
	return err
}

// ServeHTTP judges requests to servers, and passes on allowed ones and all other requests.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	prefix, _, ok := paths.ProxiedName(r.URL.Path)
	if !ok {
		return next.ServeHTTP(w, r)
	}
	call, ok := app.AuthenticatedCall(w, r)
	if !ok {
		return nil
	}
	switch {
	case call.Server == nil:
		gateway.RefuseNoServerSet(w, "durward_policy")
		return nil
	case h.Off:
		call.Decide().Off = true
		call.Trace.Policy().Decided("off", "", 0, "")
		return next.ServeHTTP(w, r)
	case prefix == paths.SSEPrefix:
		return h.serveSSE(w, r, call, next)
	}
	return h.serveMCP(w, r, call, next)
}

// unreadable answers when the deciding policies cannot be used: nothing is allowed then.
func (h *Handler) unreadable(w http.ResponseWriter, call *app.Call, err error) {
	call.Core.LogFailure(h.logger, "reading the policies of a server", err, zap.String("server", call.Server.Slug))
	gateway.RefusePoliciesUnread(w)
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Syntax:
//
//	durward_policy [off]
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next()
	if word := ""; d.AllArgs(&word) {
		if word != "off" {
			return d.Errf("unrecognized argument %q; the only one is off", word)
		}
		h.Off = true
	} else if d.CountRemainingArgs() > 0 {
		return d.ArgErr()
	}
	if d.NextBlock(0) {
		return d.Errf("durward_policy takes no block")
	}
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
)
