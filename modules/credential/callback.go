package credential

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/api/webpage"
	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/identity/websession"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/browsers"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/storage"
)

// These are the bounds for parameters of a browser: codes and states are short.
const (
	maxCallbackQuery = 16 << 10
	maxUndoForm      = 8 << 10
)

const (
	titleFailed = "The account was not connected"
	titleUndone = "The connection was undone"
)

// serveCallback ends a connection attempt (RFC 6749 section 4.1.2).
func (h *Handler) serveCallback(w http.ResponseWriter, r *http.Request, call *app.Call) {
	if r.Method != http.MethodGet {
		gateway.WriteMethodNotAllowed(w, http.MethodGet)
		return
	}
	var query url.Values
	err := errors.New("the query is too long")
	if len(r.URL.RawQuery) <= maxCallbackQuery {
		query, err = url.ParseQuery(r.URL.RawQuery)
	}
	if err != nil {
		page{Status: http.StatusBadRequest, Title: titleFailed, Text: "The address of this page is not complete."}.write(w, call.Core.Brand)
		return
	}
	b := browser{core: call.Core, request: r}
	result, err := call.Core.Broker.Callback(r.Context(), query, b.whose)
	if err == nil && result.Held != "" {
		h.loginFirst(w, &b, result)
		return
	}
	h.finish(w, r, call.Core, result, err)
}

// serveHeld ends a connection attempt whose user had to log in first.
func (h *Handler) serveHeld(w http.ResponseWriter, r *http.Request, call *app.Call) {
	if r.Method != http.MethodGet {
		gateway.WriteMethodNotAllowed(w, http.MethodGet)
		return
	}
	b := browser{core: call.Core, request: r}
	handle := call.Core.Cookies.Value(r, websession.CookieHeld)
	call.Core.Cookies.Drop(w, websession.CookieHeld)
	result, err := call.Core.Broker.Resume(r.Context(), handle, b.whose)
	h.finish(w, r, call.Core, result, err)
}

// finish answers with the result of an attempt.
func (h *Handler) finish(w http.ResponseWriter, r *http.Request, core *app.Core, result connection.CallbackResult, err error) {
	if err != nil {
		h.refuseCallback(w, core, err)
		return
	}
	event := "connected"
	switch {
	case result.Refused:
		event = "refused"
	case !result.OK:
		event = "failed"
	}
	core.Metrics.Connections.WithLabelValues(event).Inc()
	if result.Refused {
		h.refuseBrowser(w, r, core, result)
		return
	}
	if result.ReturnURL != "" {
		webpage.Redirect(w, result.ReturnURL)
		return
	}
	h.resultPage(r.Context(), core, result).write(w, core.Brand)
}

func (h *Handler) refuseCallback(w http.ResponseWriter, core *app.Core, err error) {
	if errors.Is(err, connection.ErrState) {
		page{Status: http.StatusBadRequest, Title: titleFailed,
			Text: "This attempt is unknown, has been used already, or is older than ten minutes. Start connecting again where you began."}.write(w, core.Brand)
		return
	}
	core.LogFailure(h.logger, "ending a connection attempt", err)
	page{Status: http.StatusServiceUnavailable, Title: titleFailed, Text: "The gateway could not store the connection. Try again in a moment."}.write(w, core.Brand)
}

func (h *Handler) resultPage(ctx context.Context, core *app.Core, result connection.CallbackResult) page {
	if !result.OK {
		failed := page{Status: http.StatusBadRequest, Title: titleFailed, Text: result.Reason}
		if result.Server.Slug != "" { // the server was not deleted meanwhile
			failed.Again = paths.ConnectPrefix + result.Server.Slug
		}
		return failed
	}
	return page{
		Status: http.StatusOK, Title: result.Server.Name + " is connected", Text: "Go back to your client: the same conversation can use the server now. Nothing needs to be restarted.",
		Holder: &holder{User: h.userName(ctx, core, result.ConnectionKey), Organization: h.organizationName(ctx, core, result.ConnectionKey), Token: result.Undo},
	}
}

func (h *Handler) userName(ctx context.Context, core *app.Core, key storage.ConnectionKey) string {
	user, err := core.Store.User(ctx, key.OrganizationID, key.UserID)
	if err != nil {
		return key.UserID
	}
	return browsers.NameOf(user)
}

func (h *Handler) organizationName(ctx context.Context, core *app.Core, key storage.ConnectionKey) string {
	organization, err := core.Store.Organization(ctx, key.OrganizationID)
	if err != nil || organization.Slug == "" {
		return key.OrganizationID
	}
	return organization.Slug
}

// serveUndo removes a connection again. The token on the page is good for the connection that was just made and no
// other.
func (h *Handler) serveUndo(w http.ResponseWriter, r *http.Request, call *app.Call) {
	if r.Method != http.MethodPost {
		gateway.WriteMethodNotAllowed(w, http.MethodPost)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxUndoForm)
	if err := call.Core.Connections.Undo(r.Context(), r.PostFormValue("undo")); err != nil {
		if !errors.Is(err, connection.ErrUndo) {
			call.Core.LogFailure(h.logger, "undoing a connection", err)
		}
		page{Status: http.StatusBadRequest, Title: "Nothing was undone",
			Text: "The connection has changed since, or this page is too old. You can still disconnect through the API."}.write(w, call.Core.Brand)
		return
	}
	page{Status: http.StatusOK, Title: titleUndone, Text: "The gateway no longer holds this account's tokens."}.write(w, call.Core.Brand)
}

// serveClientMetadata serves the gateway's client-id metadata document: authorization servers that take its address for
// a client_id fetch it here.
func (h *Handler) serveClientMetadata(w http.ResponseWriter, r *http.Request, call *app.Call) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		gateway.WriteMethodNotAllowed(w, "GET, HEAD")
		return
	}
	document, err := call.Core.Broker.ClientMetadata()
	if err != nil {
		h.logger.Error("making the client metadata document", zap.Error(err))
		gateway.WriteInternalError(w)
		return
	}
	gateway.WriteJSON(w, http.StatusOK, json.RawMessage(document))
}
