package platformapi

import (
	"errors"
	"net/http"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/gateway/body"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

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
