// Package platformapi is the handler durward_platform: the API of servers, the server directory, connections, agents,
// policies, approvals, users and the audit log, and the health checks. It is the last handler of the pipeline and
// answers every unknown address with 404.
package platformapi

import (
	"errors"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/api/slug"
	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/gateway/body"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
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

// These are the refusals of unknown objects. They do not describe the object, so that another organization's is
// answered like one that does not exist (attack O01).
var (
	errNoServer       = routes.Refused(gateway.ServerNotFound, "Server not found")
	errNoTemplate     = routes.Refused(gateway.ServerNotFound, "Server directory template not found")
	errNoConnection   = routes.Refused(gateway.ConnectionNotFound, "You have no connection to this server")
	errNoRegistration = routes.Refused(gateway.NotFound, "No OAuth client is registered for this server")
	errTooManyTests   = routes.Refused(gateway.RateLimitExceeded, "Too many servers are being tested; try again in a minute")
	errNoEntry        = routes.Refused(gateway.DirectoryNotFound, "Server directory entry not found")

	errNoAgent        = routes.Refused(gateway.AgentNotFound, "Agent not found")
	errNoApplication  = routes.Refused(gateway.AgentNotFound, "Application directory entry not found")
	errNoPolicy       = routes.Refused(gateway.PolicyNotFound, "Policy not found")
	errNoOrganization = routes.Refused(gateway.NotFound, "Organization not found")
	errNoUser         = routes.Refused(gateway.NotFound, "User not found")
)

// refuse answers an error of a route. An error that is not known to be the client's fault is logged, and its text is
// never shown.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var known *routes.Refusal
	switch {
	case errors.As(err, &known):
		known.Write(w)
	case body.WriteShapeError(w, err):
	case h.refuseConnect(w, r, err):
	case errors.Is(err, storage.ErrText):
		gateway.RefuseUnstorable(w)
	case errors.Is(err, storage.ErrUnavailable), r.Context().Err() != nil:
		app.LogUnavailable(r, h.logger, "serving the API", err)
		gateway.RefuseStoreAway(w)
	default:
		h.logger.Error("serving the API", zap.String("method", r.Method), zap.Error(err))
		gateway.WriteInternalError(w)
	}
}

// refuseConnect answers the broker's own errors. It reports whether err was one.
func (h *Handler) refuseConnect(w http.ResponseWriter, r *http.Request, err error) bool {
	var place *connection.ReturnURLError
	var field *connection.BadRequestError
	var configuration *connection.ConfigurationError
	switch {
	case errors.As(err, &place):
		body.WriteProblems(w, validate.Problems{{
			Loc: []any{"query", "return_url"}, Type: validate.ValueError, Msg: "Value error, return_url is not allowed: " + place.Reason,
		}})
	case errors.As(err, &field):
		(&gateway.ServiceError{Name: gateway.BadRequest, Message: field.Message, Details: map[string]any{"field": field.Field}}).Write(w)
	case errors.As(err, &configuration):
		h.logger.Warn("no OAuth client can be had for a server", zap.Error(configuration.Cause))
		text := noOAuthClient
		if call, ok := app.CallOf(r); ok && (call.Caller.Admin || call.Caller.Operator) {
			if advice := netguard.Advice(configuration.Cause); advice != "" {
				text += ". What failed: " + advice
			}
		}
		gateway.WriteError(w, gateway.OAuthConfigurationError, text)
	default:
		return false
	}
	return true
}

// noOAuthClient begins with the text that existing clients look for.
const noOAuthClient = "OAuth server configuration not found; an administrator must supply an OAuth client for this server"
