// Package platformapi is the handler durward_platform: the API of servers, the server directory, connections, agents,
// policies, approvals, users and the audit log, and the health checks. It is the last handler of the pipeline and
// answers every unknown address with 404.
package platformapi

import (
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/api/slug"
	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/modules/app/routes"
)

func init() {
	caddy.RegisterModule(Handler{})
}

// Handler serves the platform API below `/api/` (servers, the server directory, connections, agents, policies,
// approvals, users, the audit log), `/healthz` and `/readyz`. It needs durward_auth before it, and never calls the
// handlers after it.
type Handler struct {
	// Serve `/healthz` and `/readyz` only, and answer 404 to everything else: for sites that carry calls and no API.
	// Default: false.
	HealthOnly bool `json:"health_only,omitempty"`

	logger *zap.Logger
	now    func() time.Time
	// streamsOpen reports whether streams of /sse need no rule that grants them.
	streamsOpen bool
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
		h.streamsOpen = a.StreamsOpen()
	}
	return err
}

// ServeHTTP answers every request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	if h.HealthOnly && r.URL.Path != paths.Health && r.URL.Path != paths.Ready {
		gateway.WriteNotFound(w)
		return nil
	}
	h.api().ServeHTTP(w, r)
	return nil
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

// request is one request on a route of this family.
type request struct {
	*routes.Request
	handler *Handler
}

// serverRef names a server in a path: by id or by slug.
type serverRef struct{ id, slug string }

// server reads the server that the path names: {server_id} is a uuid or a slug, {slug} a slug.
func (q *request) server() serverRef {
	if name, ok := q.Params["slug"]; ok {
		if !slug.Valid(name) {
			q.Note(validate.InPath("slug", validate.StringPatternMismatch, "String should match pattern '"+slug.Pattern+"'", name))
		}
		return serverRef{slug: name}
	}
	name := q.Params["server_id"]
	if id, ok := validate.UUID(name); ok {
		return serverRef{id: id}
	}
	if !slug.Valid(name) {
		q.Note(validate.InPath("server_id", validate.UUIDParsing, "Input should be a valid UUID or slug", name))
	}
	return serverRef{slug: name}
}
