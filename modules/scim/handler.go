// Package scim is the handler durward_scim: identity providers provision users and groups with it (SCIM 2.0).
package scim

import (
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/identity/scim"
	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/arguments"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/storage"
)

func init() {
	caddy.RegisterModule(Handler{})
}

// Handler serves `/scim/v2/`, and passes on all other requests. Requests need an API key with the scope `scim`, whose
// organization's users and groups they read and write. It needs durward_auth before it.
type Handler struct {
	logger *zap.Logger
	now    func() time.Time
}

// CaddyModule returns the Caddy module information.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.durward_scim", New: func() caddy.Module { return new(Handler) }}
}

// Provision makes sure that there is an app.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.logger, h.now = ctx.Logger(), time.Now
	_, err := app.Attach(ctx)
	return err
}

// ServeHTTP answers requests for provisioning.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	rest, ok := strings.CutPrefix(r.URL.Path, paths.SCIM)
	if !ok || rest != "" && rest[0] != '/' {
		return next.ServeHTTP(w, r)
	}
	call, ok := app.CallOf(r)
	if !ok || call.Caller == nil || call.Caller.Key == nil || !call.Caller.Key.Scopes.SCIM || call.Caller.UserID != "" {
		scim.Refused(http.StatusForbidden, gateway.OnlyProvisions().Message).Write(w) // durward_auth refuses it before
		return nil
	}
	v := &visit{handler: h, core: call.Core, organization: call.Caller.OrganizationID, key: call.Caller.Key.ID, base: call.Core.PublicURL + paths.SCIM, w: w, r: r}
	if err := v.serve(strings.Split(strings.TrimPrefix(rest, "/"), "/")); err != nil {
		v.refuse(err)
	}
	return nil
}

// visit is one request.
type visit struct {
	handler           *Handler
	core              *app.Core
	organization, key string
	base              string // the address of SCIM
	w                 http.ResponseWriter
	r                 *http.Request
	query             scim.Query
	filter            string
}

func (v *visit) now() time.Time {
	return v.core.Clock.Shared(v.handler.now()).UTC().Truncate(time.Microsecond)
}

var errNoResource = scim.Refused(http.StatusNotFound, "There is no such resource")

// serve answers a request for a path, given by its segments.
func (v *visit) serve(path []string) error {
	parameters, err := url.ParseQuery(v.r.URL.RawQuery)
	if err != nil {
		return &scim.Error{Status: http.StatusBadRequest, Type: scim.TypeInvalidValue, Detail: "The query cannot be read"}
	}
	if v.query, err = scim.ReadQuery(parameters); err != nil {
		return err
	}
	v.filter = parameters.Get("filter")
	var methods map[string]func() error
	switch {
	case len(path) == 1 && path[0] == "Users":
		methods = map[string]func() error{http.MethodGet: v.listUsers, http.MethodPost: v.createUser}
	case len(path) == 2 && path[0] == "Users":
		methods = v.on(path[1], map[string]func(string) error{
			http.MethodGet: v.getUser, http.MethodPut: v.replaceUser, http.MethodPatch: v.patchUser, http.MethodDelete: v.deleteUser,
		})
	case len(path) == 1 && path[0] == "Groups":
		methods = map[string]func() error{http.MethodGet: v.listGroups, http.MethodPost: v.createGroup}
	case len(path) == 2 && path[0] == "Groups":
		methods = v.on(path[1], map[string]func(string) error{
			http.MethodGet: v.getGroup, http.MethodPut: v.replaceGroup, http.MethodPatch: v.patchGroup, http.MethodDelete: v.deleteGroup,
		})
	default:
		methods = v.documents(path)
	}
	if methods == nil {
		return errNoResource
	}
	serve, ok := methods[v.r.Method]
	if !ok {
		var allow []string
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			if methods[method] != nil {
				allow = append(allow, method)
			}
		}
		v.w.Header().Set("Allow", strings.Join(allow, ", "))
		return scim.Refused(http.StatusMethodNotAllowed, "The method is not allowed here")
	}
	return serve()
}

// on returns the methods of a resource. An id of another form names none.
func (v *visit) on(text string, methods map[string]func(string) error) map[string]func() error {
	id, ok := validate.UUID(text)
	if !ok {
		return nil
	}
	bound := make(map[string]func() error, len(methods))
	for method, serve := range methods {
		bound[method] = func() error { return serve(id) }
	}
	return bound
}

// documents returns the methods of the documents that describe the service; nil for an unknown path.
func (v *visit) documents(path []string) map[string]func() error {
	var body json.RawMessage
	one := len(path) == 2
	switch path[0] {
	case "ServiceProviderConfig":
		if !one {
			body = scim.ServiceProviderConfig(v.base)
		}
	case "ResourceTypes":
		body = listed(path, one)(scim.ResourceTypes(v.base))
	case "Schemas":
		body = listed(path, one)(scim.Schemas(v.base))
	}
	if body == nil || len(path) > 2 {
		return nil
	}
	return map[string]func() error{http.MethodGet: func() error { return v.answer(http.StatusOK, body) }}
}

// listed returns a function that chooses all documents, or the one that a path names; nil when there is none.
func listed(path []string, one bool) func(all []json.RawMessage, by map[string]json.RawMessage) json.RawMessage {
	return func(all []json.RawMessage, by map[string]json.RawMessage) json.RawMessage {
		if one {
			return by[path[1]]
		}
		return scim.List(all, len(all), 0)
	}
}

func (v *visit) answer(status int, body json.RawMessage) error {
	scim.Answer(v.w, status, body)
	return nil
}

// body reads the message of a request.
func (v *visit) body() (strictjson.Value, error) {
	kind, _, err := mime.ParseMediaType(v.r.Header.Get("Content-Type"))
	if err != nil || kind != scim.MediaType && kind != "application/json" {
		return strictjson.Value{}, scim.Refused(http.StatusUnsupportedMediaType, "The body has to be of the type "+scim.MediaType)
	}
	text, err := forward.ReadBody(v.r, scim.MaxBody)
	if err != nil {
		return strictjson.Value{}, err
	}
	return scim.Parse(text)
}

// recorded returns a context in which the next write records an entry in its own transaction.
func (v *visit) recorded(entry storage.AuditEntry, id string) (recorded, error) {
	entry.Kind, entry.Outcome = storage.AuditAdmin, "ok"
	entry.Detail = map[string]any{"api_key_id": v.key, "provisioned_id": id}
	entry.TraceID = app.TraceID(v.r.Context(), v.r.Header)
	ctx, e, err := v.core.Audit.With(v.r.Context(), v.organization, entry)
	return recorded{ctx, e}, err
}

// refuse answers an error. One that is not known to be the client's fault is logged, and its text is never shown.
func (v *visit) refuse(err error) {
	var refusal *scim.Error
	var conflict *storage.ConflictError
	var body *forward.BodyError
	switch {
	case errors.As(err, &refusal):
		refusal.Write(v.w)
	case errors.As(err, &conflict):
		ofConflict(conflict.Field).Write(v.w)
	case errors.As(err, &body):
		body.Answer(v.w, func() { scim.Refused(body.Status, "The body is too large, too slow, or encoded").Write(v.w) })
	case errors.Is(err, storage.ErrNotFound):
		errNoResource.Write(v.w)
	case storage.Unstorable(err):
		(&scim.Error{Status: http.StatusBadRequest, Type: scim.TypeInvalidValue, Detail: "The store cannot keep a text of the request"}).Write(v.w)
	case errors.Is(err, storage.ErrUnavailable), v.r.Context().Err() != nil:
		app.LogUnavailable(v.r, v.handler.logger, "serving SCIM", err)
		gateway.SetRetryAfter(v.w)
		scim.Refused(http.StatusServiceUnavailable, "The store cannot be used at the moment").Write(v.w)
	default:
		v.handler.logger.Error("serving SCIM", zap.String("method", v.r.Method), zap.Error(err))
		scim.Refused(http.StatusInternalServerError, "The gateway made a mistake").Write(v.w)
	}
}

func ofConflict(field string) *scim.Error {
	switch field {
	case "members":
		return &scim.Error{Status: http.StatusBadRequest, Type: scim.TypeInvalidValue, Detail: "A member is no user of the organization"}
	case "count":
		return &scim.Error{Status: http.StatusBadRequest, Type: scim.TypeTooMany, Detail: "The organization, or the group, has as many as may be"}
	}
	return &scim.Error{Status: http.StatusConflict, Type: scim.TypeUniqueness, Detail: "Another resource has this " + map[string]string{"user_name": "userName", "name": "displayName"}[field]}
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Syntax:
//
//	durward_scim
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return arguments.None(d)
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
)
