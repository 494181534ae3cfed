// Package session is the handler durward_session: users log in at the gateway's own pages with a browser, and decide
// there on held calls. Only this handler and durward_console read a browser's cookie: the API and the proxies accept only
// tokens.
package session

import (
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/gateway/errorpage"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/arguments"
	"github.com/durward-gateway/durward/modules/app/browsers"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/modules/session/oauthapi"
)

func init() {
	caddy.RegisterModule(Handler{})
}

// Handler serves the gateway's pages for people with a browser: `/login`, `/logout`, `/approvals`, `/clients`,
// `/connect` and `/connect/{slug}`, and, for browsers only, `/` and `/mcp/{name}`. It also serves the gateway as an authorization
// server for OAuth clients: the addresses below `/oauth/`, `/.well-known/oauth-authorization-server` and
// `/.well-known/openid-configuration`. It tells the OAuth callback which user is logged in. It comes before durward_auth.
// Logins need an identity provider with a `login_client`.
type Handler struct {
	app    *app.App
	logger *zap.Logger
}

// CaddyModule returns the Caddy module information.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.durward_session", New: func() caddy.Module { return new(Handler) }}
}

// Provision finds the app.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.logger = ctx.Logger()
	var err error
	h.app, err = app.Attach(ctx)
	return err
}

// ServeHTTP serves the pages, and passes on all other requests.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if !h.concerns(r) {
		return next.ServeHTTP(w, r)
	}
	w, finish := errorpage.ForBrowser(w, r, h.app.Brand())
	defer finish()
	core, unpin, ok := h.app.Pin()
	if !ok {
		h.app.Away(w, r)
		return nil
	}
	defer unpin()
	defer app.Recover(w, h.logger)
	if oauthapi.Concerns(r.URL.Path) {
		switch {
		case r.URL.RawPath != "": // an encoded slash would be one path here and another one elsewhere
			gateway.WriteNotFound(w)
		case !core.Names.HostAllowed(r.Host):
			gateway.RefuseHost(w)
		default:
			oauthapi.Serve(w, r, core, h.logger)
		}
		return nil
	}
	v := &visit{Handler: h, core: core, w: w, r: r}
	if !v.admitted() {
		return nil
	}
	if isCallback(r.URL.Path) {
		return next.ServeHTTP(w, browsers.WithBrowser(r, &browsers.Browser{User: v.user}))
	}
	v.serve()
	return nil
}

// concerns reports whether a request is for a page, or for an address that needs to know the logged-in user. Pages at
// addresses that programs use as well are for browsers alone.
func (h *Handler) concerns(r *http.Request) bool {
	switch path := r.URL.Path; path {
	case paths.Login, paths.LoginCallback, paths.Logout, paths.Approvals, paths.Connect, paths.Clients, paths.Authorize:
		return true
	default:
		return isCallback(path) || oauthapi.Concerns(path) || strings.HasPrefix(path, paths.Approvals+"/") || strings.HasPrefix(path, paths.ConnectPrefix) ||
			r.Method == http.MethodGet && isOpen(path) && errorpage.Navigates(r)
	}
}

// isOpen reports whether a path has a page for people who are not logged in.
func isOpen(path string) bool {
	if path == paths.Front {
		return true
	}
	_, ok := opensServer(path)
	return ok
}

func isCallback(path string) bool { return path == paths.Callback || path == paths.Held }

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Syntax:
//
//	durward_session
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return arguments.None(d)
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
)
