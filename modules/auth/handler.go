// Package auth is the handler durward_auth, the first step of the pipeline: it refuses callers of the wrong origin or
// host, verifies the bearer token or API key, limits guesses of both, resolves caller and server, and serves the
// metadata by which MCP clients find out where to log in (RFC 9728).
package auth

import (
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/gateway/errorpage"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/arguments"
	"github.com/durward-gateway/durward/modules/app/paths"
)

func init() {
	caddy.RegisterModule(Handler{})
}

// Handler verifies the caller. It must come before every other handler of the gateway; they refuse requests that did
// not pass it. It also answers `/.well-known/oauth-protected-resource/mcp/{name}`, and CORS preflight requests of the
// allowed origins.
//
// Requests need a token in the Authorization header, except for `/healthz`, `/readyz`, addresses below `/.well-known/`,
// and the addresses below `/api/oauth/` that browsers and authorization servers use. On `/mcp/{name}`, `/sse/{name}`
// and the LLM runtime an API key is accepted too, when its scopes cover the address; it may also come in `X-Api-Key`.
//
// A peer's address (of the connection, never of a header; the /64 of IPv6) may send 60 different wrong credentials a
// minute, and 20 keys with one beginning; further ones are answered 429. Valid tokens, and keys that were used from
// that address successfully before, pass nevertheless.
type Handler struct {
	app    *app.App
	logger *zap.Logger
}

// CaddyModule returns the Caddy module information.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.durward_auth", New: func() caddy.Module { return new(Handler) }}
}

// Provision finds the app.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.logger = ctx.Logger()
	var err error
	h.app, err = app.Attach(ctx)
	return err
}

// ServeHTTP passes on a request whose caller is known, or answers it.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	h.app.Listening().PartWith(w, r)
	w, finish := errorpage.ForBrowser(w, r, h.app.Brand())
	defer finish()
	core, unpin, ok := h.app.Pin()
	if !ok {
		h.app.Away(w, r)
		return nil
	}
	defer unpin()
	defer app.Recover(w, h.logger)
	call := &app.Call{Core: core}
	app.FollowTrace(r, call)
	return h.serve(w, r, call, next)
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request, call *app.Call, next caddyhttp.Handler) error {
	path := r.URL.Path
	// An encoded slash or dot would be one path here and another one at the next server (CVE-2026-41059 and similar ones).
	if r.URL.RawPath != "" {
		gateway.WriteNotFound(w)
		return nil
	}
	if path == paths.Health || path == paths.Ready {
		return next.ServeHTTP(w, app.WithCall(r, call)) // load balancers ask under any host name
	}
	if !call.Core.Names.HostAllowed(r.Host) {
		gateway.RefuseHost(w)
		return nil
	}
	if call.Core.Names.Returned(r) {
		h.logger.Warn("a request of the gateway's own came back: a server's address leads to the gateway", zap.String("path", path))
		gateway.RefuseLoop(w)
		return nil
	}
	if isWellKnown(path) {
		serveWellKnown(w, r, call.Core)
		return nil
	}
	// The undo form's page has Referrer-Policy: no-referrer, so that browsers send "Origin: null" with it. The token in
	// the form protects it: only a browser that showed the page has it.
	if path != paths.Undo {
		if done := checkOrigin(w, r, call.Core); done {
			return nil
		}
	}
	if paths.IsPublic(path) {
		return next.ServeHTTP(w, app.WithCall(r, call))
	}
	if wrongBase(w, r, call.Core) || slashed(w, path, call.Core) {
		return nil
	}
	if refused := h.authenticate(w, r, call); refused {
		return nil
	}
	defer call.WriteLogFields(r)
	defer call.Records().Finish(r.Context())
	call.Annotate(r)
	if refused := h.resolveServer(w, r, call); refused {
		return nil
	}
	return next.ServeHTTP(w, app.WithCall(r, call))
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Syntax:
//
//	durward_auth
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return arguments.None(d)
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
)
