// Package policy is the handler durward_policy: it judges every call before anything of it leaves, and what of an answer
// its caller may see. durward_mcp and durward_sse carry nothing that it has not judged.
package policy

import (
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/modules/app"
)

func init() {
	caddy.RegisterModule(Handler{})
}

// Handler enforces access policies on `/mcp/{name}` and `/sse/{name}`. It needs durward_auth before it, and stands before
// durward_credential.
//
// What no active policy of the server grants is denied. A tool, prompt or resource that no arguments could make callable
// is answered like one that does not exist, and is in no list; a call that is refused for its arguments is answered with
// a tool error that a model can read. Policies judge the body of a message, never its headers. Methods of MCP that no
// revision knows are refused.
//
// A change of policies is in force for the next call before the API has answered it. What is open then is judged again:
// streams of /sse, and subscriptions of MCP 2026-07-28 (`subscriptions/listen`), end within a second, with reason
// `policy`, when they would not be opened any more. A call that runs goes on to its answer, for what the server does by
// then is done, and its caller should know of it. So do GET streams, which need no action: lists that come on them are
// filtered by the policies of the moment.
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

// textNoServer is what a request gets when the configuration has our handlers in the wrong order.
const textNoServer = "This call's server was not looked up; durward_auth must come before durward_policy in the configuration"

// ServeHTTP judges requests to servers and passes on what may go on, and everything else.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	prefix, _, ok := app.ProxiedName(r.URL.Path)
	if !ok {
		return next.ServeHTTP(w, r)
	}
	call, ok := app.AuthenticatedCall(w, r)
	if !ok {
		return nil
	}
	switch {
	case call.Server == nil:
		app.WriteError(w, app.InternalServerError, textNoServer)
		return nil
	case h.Off:
		call.Decide().Off = true
		return next.ServeHTTP(w, r)
	case prefix == app.SSEPrefix:
		return h.serveSSE(w, r, call, next)
	}
	return h.serveMCP(w, r, call, next)
}

// unreadable answers when the policies that decide cannot be used: nothing is allowed then.
func (h *Handler) unreadable(w http.ResponseWriter, call *app.Call, err error) {
	call.Core.LogFailure(h.logger, "reading the policies of a server", err, zap.String("server", call.Server.Slug))
	app.WriteError(w, app.Unavailable, "The policies of this server cannot be read at the moment")
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
