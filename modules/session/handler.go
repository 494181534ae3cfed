// Package session is the handler durward_session: users log in at the gateway's own pages with a browser, and decide there
// on held calls. It is the only place where a browser's cookie means anything: the API and the proxies know tokens alone.
package session

import (
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/modules/app"
)

func init() {
	caddy.RegisterModule(Handler{})
}

// Handler serves `/login`, `/logout`, `/approvals` and `/connect/{slug}`, the gateway's pages for people with a browser, and
// tells the OAuth callback who is logged in. It comes before durward_auth. Its pages need an identity provider with a
// `login_client`.
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

// ServeHTTP serves the pages, and passes on everything else.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if !h.concerns(r.URL.Path) {
		return next.ServeHTTP(w, r)
	}
	w, finish := app.ForBrowser(w, r)
	defer finish()
	core, unpin, ok := h.app.Pin()
	if !ok {
		h.app.Away(w, r)
		return nil
	}
	defer unpin()
	defer app.Recover(w, h.logger)
	v := &visit{Handler: h, core: core, w: w, r: r}
	if !v.admitted() {
		return nil
	}
	if isCallback(r.URL.Path) {
		return next.ServeHTTP(w, app.WithBrowser(r, &app.Browser{User: v.user}))
	}
	v.serve()
	return nil
}

// concerns reports whether a path is a page's, or one at which it matters who is logged in.
func (h *Handler) concerns(path string) bool {
	switch path {
	case app.LoginPath, app.LoginCallbackPath, app.LogoutPath, app.ApprovalsPath:
		return true
	}
	return isCallback(path) || strings.HasPrefix(path, app.ApprovalsPath+"/") || strings.HasPrefix(path, app.ConnectPrefix)
}

func isCallback(path string) bool { return path == app.CallbackPath || path == app.HeldPath }

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Syntax:
//
//	durward_session
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return app.NoArguments(d)
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
)
