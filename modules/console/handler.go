// Package console is the handler durward_console: the console, an application in the browser for users and
// administrators. Its script asks the API, which takes tokens only: the handler gives the browser of a logged-in user one
// that lasts five minutes, and ends with the browser's session.
package console

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/api/webpage"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/gateway/errorpage"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/arguments"
	"github.com/durward-gateway/durward/modules/app/browsers"
	"github.com/durward-gateway/durward/modules/app/paths"
)

func init() {
	caddy.RegisterModule(Handler{})
}

// Handler serves the console at `/console` and below. It comes before durward_auth, and needs durward_session, with which
// users log in, durward_platform for the API, and the gateway as an authorization server. Without a login for browsers it
// says so.
type Handler struct {
	app    *app.App
	logger *zap.Logger
	look   *look
}

// CaddyModule returns the Caddy module information.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.durward_console", New: func() caddy.Module { return new(Handler) }}
}

// Provision finds the app.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.logger = ctx.Logger()
	var err error
	if h.app, err = app.Attach(ctx); err != nil {
		return err
	}
	h.look = newLook(h.app.Brand())
	return nil
}

// ServeHTTP serves the console, and passes on all other requests.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if r.URL.Path != paths.Console && !strings.HasPrefix(r.URL.Path, paths.ConsolePrefix) {
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
	h.serve(w, r, core)
	return nil
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request, core *app.Core) {
	path := r.URL.Path
	switch {
	case r.URL.RawPath != "": // an encoded slash would be one path here and another one elsewhere
		gateway.WriteNotFound(w)
	case !core.Names.HostAllowed(r.Host):
		gateway.RefuseHost(w)
	case path == paths.ConsoleToken:
		if allows(w, r, http.MethodPost) {
			h.token(w, r, core)
		}
	case strings.HasPrefix(path, assetsPrefix):
		if allows(w, r, http.MethodGet) {
			if name := strings.TrimPrefix(path, assetsPrefix); !h.look.serve(w, name) {
				serveAsset(w, r, name)
			}
		}
	default:
		if allows(w, r, http.MethodGet) {
			h.page(w, r, core)
		}
	}
}

func allows(w http.ResponseWriter, r *http.Request, method string) bool {
	if r.Method == method {
		return true
	}
	gateway.WriteMethodNotAllowed(w, method)
	return false
}

// page answers with the application, which reads its screen from the address. A browser in which nobody is logged in logs
// in first, and comes back.
func (h *Handler) page(w http.ResponseWriter, r *http.Request, core *app.Core) {
	switch {
	case len(core.Logins.Issuers()) == 0:
		h.say(w, http.StatusNotFound, "There is no console here", "This gateway has no login for browsers. Its operator can set one up with `login_client`.")
		return
	case core.Authorization == nil:
		h.say(w, http.StatusNotFound, "There is no console here", "The console needs tokens of the gateway's own, and this gateway makes none. Its operator can let it, with `authorization_server` and a `login_client` for every identity.")
		return
	case browsers.Elsewhere(core.PublicURL, r):
		webpage.Redirect(w, core.PublicURL+r.URL.RequestURI())
		return
	}
	user, err := core.BrowserUser(r)
	switch {
	case err != nil:
		core.LogFailure(h.logger, "looking up who is logged in", err)
		gateway.SetRetryAfter(w)
		h.say(w, http.StatusServiceUnavailable, "Try again in a moment", "The gateway cannot find out what it needs to know just now.")
	case user == nil:
		webpage.Redirect(w, paths.Login+"?"+url.Values{"return": {r.URL.RequestURI()}}.Encode())
	default:
		h.look.serveIndex(w)
	}
}

var sayPage = webpage.MustParse(`<p>{{.}}</p>`)

func (h *Handler) say(w http.ResponseWriter, status int, title, text string) {
	if err := sayPage.WriteIn(w, status, webpage.Frame{Title: title, Brand: h.app.Brand()}, text); err != nil {
		h.logger.Error("making a page", zap.Error(err))
		gateway.WriteInternalError(w)
	}
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Syntax:
//
//	durward_console
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return arguments.None(d)
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
)
