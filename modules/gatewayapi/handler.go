// Package gatewayapi contains the handler durward_gateway: the administration of the LLM gateway. Administrators manage
// API keys, rate limits, models, providers and budgets and read the usage; users manage their own keys.
package gatewayapi

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/api/openapi"
	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/gateway/body"
	"github.com/durward-gateway/durward/internal/llm/smart"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

func init() {
	caddy.RegisterModule(Handler{})
	routes.Register(func() ([]openapi.Operation, error) {
		h := &Handler{logger: zap.NewNop(), now: time.Now}
		return h.api().Describe()
	})
}

// Handler serves `/api/llm-gateway/admin/` and `/api/llm-gateway/user/`, and passes on all other requests. It needs
// durward_auth before it.
type Handler struct {
	logger *zap.Logger
	now    func() time.Time
	router *smart.Router // of previews, which remember nothing
}

// CaddyModule returns the Caddy module information.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.durward_gateway", New: func() caddy.Module { return new(Handler) }}
}

// Provision makes sure that there is an app.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.logger = ctx.Logger()
	h.now = time.Now
	h.router = smart.New(h.now)
	_, err := app.Attach(ctx)
	return err
}

// ServeHTTP answers requests of the family.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if !strings.HasPrefix(r.URL.Path, adminPrefix) && !strings.HasPrefix(r.URL.Path, userPrefix) {
		return next.ServeHTTP(w, r)
	}
	h.api().ServeHTTP(w, r)
	return nil
}

// api returns the family of this handler.
func (h *Handler) api() routes.API[*request] {
	return routes.API[*request]{
		Table: table, Of: func(q *routes.Request) *request { return &request{Request: q, handler: h} },
		Refuse: h.refuse, ShapeStatus: http.StatusBadRequest,
	}
}

// refuse answers an error of a route. An error that is not known to be the client's fault is logged, and its text is
// never shown.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var known *routes.Refusal
	var problems validate.Problems
	switch {
	case errors.As(err, &known):
		known.Write(w)
	case errors.As(err, &problems):
		gateway.WriteError(w, gateway.BadRequest, problems.Error())
	case body.WriteShapeError(w, err):
	case errors.Is(err, storage.ErrText):
		gateway.RefuseUnstorable(w)
	case errors.Is(err, storage.ErrUnavailable), r.Context().Err() != nil:
		app.LogUnavailable(r, h.logger, "serving the API of the LLM gateway", err)
		gateway.RefuseStoreAway(w)
	default:
		h.logger.Error("serving the API of the LLM gateway", zap.String("method", r.Method), zap.Error(err))
		gateway.WriteInternalError(w)
	}
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Syntax:
//
//	durward_gateway
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	d.Next() // the directive's name
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
