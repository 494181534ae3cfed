// Package devidp holds the surroundings of development mode: an identity provider whose users are picked from a list, a
// demo third party to connect to, and a demo provider of models. All are for loopback addresses only: the site of
// `identity dev` must listen on nothing else, and requests under another host name or through a proxy are refused.
package devidp

import (
	"errors"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/api/webpage"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/arguments"
	"github.com/durward-gateway/durward/modules/devidp/welcome"
)

func init() {
	caddy.RegisterModule(Handler{})
	caddy.RegisterModule(Identity{})
}

// Handler serves the development identity provider under `/dev/idp`, and at `/` a page that lists the running services
// and their use. It needs `identity dev` in the app.
type Handler struct {
	app      *app.App
	provider app.DevelopmentIdentity
	logger   *zap.Logger
}

// CaddyModule returns the Caddy module information.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.durward_dev", New: func() caddy.Module { return new(Handler) }}
}

// Provision finds the provider.
func (h *Handler) Provision(ctx caddy.Context) error {
	configured, err := app.Attach(ctx)
	if err != nil {
		return err
	}
	h.app, h.logger = configured, ctx.Logger()
	if h.provider = configured.Development(); h.provider == nil {
		return errors.New("durward_dev needs `identity dev` in the durward option")
	}
	return nil
}

// ServeHTTP serves the provider's addresses and passes on everything else.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if !h.provider.Owns(r.URL.Path) {
		return next.ServeHTTP(w, r)
	}
	if r.URL.Path == welcomePath {
		r = welcome.For(r, h.reader(r), h.app.Brand())
	}
	h.provider.Handler().ServeHTTP(w, r)
	return nil
}

// reader returns the user who is logged in with the browser that opens the page at /, for its head; nil for nobody, and
// while the session cannot be read.
func (h *Handler) reader(r *http.Request) *webpage.User {
	core, unpin, ok := h.app.Pin()
	if !ok {
		return nil
	}
	defer unpin()
	user, err := core.BrowserUser(r)
	if err != nil {
		core.LogFailure(h.logger, "looking up who is logged in", err)
		return nil
	}
	return core.Logins.PageUser(user)
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Syntax:
//
//	durward_dev
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return arguments.None(d)
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
)
