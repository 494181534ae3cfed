package platformapi

import (
	"errors"
	"net/http"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/broker"
	"github.com/durward-gateway/durward/internal/validate"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/storage"
)

// refusal is a service error as a Go error.
type refusal struct{ app.ServiceError }

func (r *refusal) Error() string { return r.Message }

func refused(name app.ErrorName, message string) error {
	return &refusal{app.ServiceError{Name: name, Message: message}}
}

// Refusals of unknown objects. They say nothing of the object, so that another organization's is answered like one that
// does not exist (attack O01).
var (
	errNoServer     = refused(app.ServerNotFound, "Server not found")
	errNoTemplate   = refused(app.ServerNotFound, "Server directory template not found")
	errNoConnection = refused(app.ConnectionNotFound, "You have no connection to this server")
	errNoEntry      = refused(app.DirectoryNotFound, "Server directory entry not found")

	errNoAgent       = refused(app.AgentNotFound, "Agent not found")
	errNoApplication = refused(app.AgentNotFound, "Application directory entry not found")
	errNoPolicy      = refused(app.PolicyNotFound, "Policy not found")
	errNoUser        = refused(app.NotFound, "User not found")
)

// missing turns a store's ErrNotFound into what the client is told.
func missing(err, answer error) error {
	if errors.Is(err, storage.ErrNotFound) {
		return answer
	}
	return err
}

// conflict is 409 with the field that is taken.
func conflict(field, message string) error {
	return &refusal{app.ServiceError{Name: app.Conflict, Message: message, Details: map[string]any{"field": field}}}
}

// refuse answers an error of a route. Whatever is not known to be the client's fault is logged, and its text is never
// shown.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var known *refusal
	switch {
	case errors.As(err, &known):
		known.Write(w)
	case app.WriteShapeError(w, err):
	case h.refuseConnect(w, err):
	case errors.Is(err, storage.ErrUnavailable), r.Context().Err() != nil:
		h.logger.Warn("the store is away", zap.String("method", r.Method), zap.Error(err))
		app.WriteError(w, app.Unavailable, "The gateway cannot reach its store at the moment")
	default:
		h.logger.Error("serving the API", zap.String("method", r.Method), zap.Error(err))
		app.WriteInternalError(w)
	}
}

// refuseConnect answers the broker's own errors. It reports whether err was one.
func (h *Handler) refuseConnect(w http.ResponseWriter, err error) bool {
	var place *broker.ReturnURLError
	var field *broker.BadRequestError
	var configuration *broker.ConfigurationError
	switch {
	case errors.As(err, &place):
		app.WriteProblems(w, validate.Problems{{
			Loc: []any{"query", "return_url"}, Type: validate.ValueError, Msg: "Value error, return_url is not allowed: " + place.Reason,
		}})
	case errors.As(err, &field):
		(&app.ServiceError{Name: app.BadRequest, Message: field.Message, Details: map[string]any{"field": field.Field}}).Write(w)
	case errors.As(err, &configuration):
		h.logger.Warn("no OAuth client can be had for a server", zap.Error(configuration.Cause))
		app.WriteError(w, app.OAuthConfigurationError, noOAuthClient)
	default:
		return false
	}
	return true
}

// noOAuthClient begins with the text that existing clients look for.
const noOAuthClient = "OAuth server configuration not found; an administrator must supply an OAuth client for this server"
