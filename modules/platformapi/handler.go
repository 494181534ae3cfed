// Package platformapi is the handler durward_platform: the API of servers, the server directory and connections, and the
// health checks. It is the last handler of the pipeline and answers every address that is nobody's with 404.
package platformapi

import (
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/validate"
	"github.com/durward-gateway/durward/modules/app"
)

func init() {
	caddy.RegisterModule(Handler{})
}

// Handler serves the platform API (`/api/servers`, `/api/server-directory`), `/healthz` and `/readyz`. It needs
// durward_auth before it, and never calls what comes after it.
type Handler struct {
	// Serve `/healthz` and `/readyz` only, and answer 404 to everything else: for sites that carry calls and no API.
	// Default: false.
	HealthOnly bool `json:"health_only,omitempty"`

	logger *zap.Logger
	now    func() time.Time
	// sseGrant: streams of /sse need a rule that grants them.
	sseGrant bool
}

// CaddyModule returns the Caddy module information.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.durward_platform", New: func() caddy.Module { return new(Handler) }}
}

// Provision makes sure that there is an app.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.logger = ctx.Logger()
	h.now = time.Now
	a, err := app.Attach(ctx)
	if err == nil {
		h.sseGrant = a.SSE != nil && a.SSE.RequireGrant
	}
	return err
}

// ServeHTTP answers every request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	address, params := table.find(r.URL.Path)
	if address == nil || (h.HealthOnly && r.URL.Path != app.HealthPath && r.URL.Path != app.ReadyPath) {
		app.WriteNotFound(w)
		return nil
	}
	chosen, ok := address.methods[r.Method]
	if !ok {
		app.WriteMethodNotAllowed(w, address.allow)
		return nil
	}
	call, ok := admit(w, r, chosen)
	if !ok {
		return nil
	}
	query, err := validate.ParseQuery(r.URL.RawQuery)
	if err != nil {
		h.refuse(w, r, err)
		return nil
	}
	q := &request{handler: h, http: r, call: call, core: call.Core, route: chosen, params: params, query: query}
	if err := q.audited(); err != nil {
		h.refuse(w, r, err)
		return nil
	}
	body, err := chosen.serve(q)
	switch {
	case err != nil:
		q.unaudited(err)
		h.refuse(w, r, err)
	case body == nil:
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusNoContent)
	default:
		if write, ok := body.(streamed); ok {
			if err := write(w); err != nil {
				h.refuse(w, r, err)
			}
			return nil
		}
		status := http.StatusOK
		if made, ok := body.(created); ok {
			status, body = http.StatusCreated, made.body
		}
		app.WriteJSON(w, status, body)
	}
	return nil
}

var errRole = &refusal{app.ServiceError{Name: app.Forbidden, Message: "This needs the role of an administrator"}}

// created is what a route returns to answer 201.
type created struct{ body any }

// admit holds the caller against what the route demands, or answers the refusal.
func admit(w http.ResponseWriter, r *http.Request, chosen *route) (*app.Call, bool) {
	if chosen.role == public {
		return app.RequireCall(w, r)
	}
	call, ok := app.AuthenticatedCall(w, r)
	if !ok {
		return nil, false
	}
	if chosen.role != user && !call.Caller.Admin {
		(&request{http: r, call: call, core: call.Core, route: chosen}).unaudited(errRole)
		errRole.Write(w)
		return nil, false
	}
	return call, true
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Syntax:
//
//	durward_platform [health_only]
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the directive's name
	if d.NextArg() {
		if d.Val() != "health_only" {
			return d.Errf("unrecognized word %q; known is health_only", d.Val())
		}
		h.HealthOnly = true
	}
	if d.NextArg() {
		return d.ArgErr()
	}
	if d.NextBlock(0) {
		return d.Errf("unrecognized word %q: this directive takes no block", d.Val())
	}
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
)
