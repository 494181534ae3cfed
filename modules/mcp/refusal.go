package mcp

import (
	"context"
	"errors"
	"net/http"

	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/internal/proxy/forward"
)

const (
	textLost  = "Your account is not connected to this server, or no longer. Connect it here: "
	textScope = "The server asks for a permission that your connection does not give. Connect your account again here: "
	// textNoScope is for servers to which nobody connects an account.
	textNoScope = "the server asks for a permission that it does not give. An administrator must look at the scopes of its directory entry"
	textThen    = "\nOnce it is connected, make the same call again: this conversation goes on."
)

// refuseCredential answers when there is no credential to send. A client that has not begun gets one 403, unless users
// are led to the page for connecting. A client in the middle of a conversation gets an answer that its user sees,
// because to many clients a 403 there means to log in to the gateway again.
func (x *exchange) refuseCredential(ctx context.Context, err error) {
	if gone := (*streams.Ended)(nil); errors.As(err, &gone) {
		x.ended(gone.Reason) //nolint:contextcheck // what is left to do goes with the request
		return
	}
	if unavailable := (*connection.UnavailableError)(nil); errors.As(err, &unavailable) {
		x.outcome = "unavailable"
		gateway.RefuseProviderAway(x.w, unavailable.RetryAfter)
		return
	}
	var lost *connection.NotConnectedError
	if !errors.As(err, &lost) {
		if ctx.Err() != nil {
			x.failed(ctx, &forward.Error{Class: forward.ErrClientGone, Cause: err}) // nobody waits any more, or the right ended
			return
		}
		x.outcome = "error"
		x.call.Core.LogFailure(x.handler.Logger, "getting the credential", err)
		gateway.RefuseConnectionUnread(x.w)
		return
	}
	x.outcome = "not_connected"
	if lost.NoStep {
		x.refuseUnvouched(lost.Reason)
		return
	}
	if !x.scope && x.lead(ctx) {
		return
	}
	if m := x.readByUser(); m != nil {
		x.Reply(x.w, http.StatusOK, x.lost(m))
		return
	}
	gateway.RefuseNotConnected(x.w, x.call.Core.ConnectAddress(x.call.Server), lost.Reason)
}

// readByUser returns the message of a request whose answer reaches its user, in a conversation; nil for others.
func (x *exchange) readByUser() *jsonrpc.Message {
	if m := x.Single(); m != nil && m.Kind == jsonrpc.Request && answersUser(m.Method) && (x.inConversation() || x.call.Account().Led()) {
		return m
	}
	return nil
}

// refuseUnvouched answers when nobody gives a token for the server, and no page can change that.
func (x *exchange) refuseUnvouched(reason string) {
	m := x.readByUser()
	switch {
	case m == nil:
		gateway.Unvouched(reason).Write(x.w)
	case m.Method == "tools/call":
		x.Reply(x.w, http.StatusOK, jsonrpc.ToolError(m.ID, gateway.Unvouched(reason).Message, x.Modern()))
	default:
		x.Reply(x.w, http.StatusOK, jsonrpc.ErrorResponse(m.ID, jsonrpc.CodeNotConnected, gateway.Unvouched(reason).Message, gateway.Unvouched(reason)))
	}
}

// refuseScope answers when the upstream wants a wider scope than the user granted. The scope is never widened without
// the user, whose next connect asks for it.
func (x *exchange) refuseScope(ctx context.Context, scope string) {
	if connection.KindOf(&x.call.Server.Entry).Obtained() {
		x.refuseCredential(ctx, &connection.NotConnectedError{NoStep: true, Reason: textNoScope})
		return
	}
	x.scope = true
	if err := x.call.Account().Want(ctx, scope); err != nil { // also without a scope: otherwise the page says that all is well
		x.call.Core.LogFailure(x.handler.Logger, "noting a missing permission", err)
	}
	x.refuseCredential(ctx, &connection.NotConnectedError{Reason: "a permission is missing: the server asks for more than the connection allows; connect it again"})
}

// inConversation reports whether the client has a session with this server. The 2026 revision has no sessions, and
// every request counts as part of one.
func (x *exchange) inConversation() bool {
	return x.Modern() || x.Session.Upstream != ""
}

// answersUser lists the methods whose answer reaches a user or a model.
func answersUser(method string) bool {
	switch method {
	case "tools/call", "resources/read", "prompts/get":
		return true
	}
	return false
}

// lost returns the answer that tells a user where to connect, in the best way the client knows.
func (x *exchange) lost(m *jsonrpc.Message) []byte {
	address := x.call.Core.ConnectAddress(x.call.Server)
	asks := answersUser(m.Method) // answers to these methods let a client make its user open a page
	switch {
	case asks && x.Modern() && m.Client().ElicitURL:
		return jsonrpc.Result(m.ID, inputRequired(address, x.textLost()))
	case asks && x.opensPages():
		return jsonrpc.ErrorResponse(m.ID, jsonrpc.CodeURLElicitationRequired, gateway.TextNotConnected, map[string]any{
			"elicitations": []any{map[string]any{
				"mode": "url", "elicitationId": x.elicitation(), "url": address, "message": x.textLost() + address,
			}},
		})
	case m.Method == "tools/call":
		return jsonrpc.ToolError(m.ID, x.textLost()+address+textThen, x.Modern())
	}
	return jsonrpc.ErrorResponse(m.ID, jsonrpc.CodeNotConnected, x.textLost()+address, gateway.NotConnected(address, ""))
}

// textLost returns the reason why the user has to connect.
func (x *exchange) textLost() string {
	if x.scope {
		return textScope
	}
	return textLost
}

// inputRequired asks the user to open a page (2026-07-28, multi round-trip requests). There is no state to keep: the
// retry is the same request, with a connection by then.
func inputRequired(address, text string) map[string]any {
	return map[string]any{
		"resultType": "input_required",
		"inputRequests": map[string]any{approval.ConnectKey: map[string]any{
			"method": "elicitation/create",
			"params": map[string]any{"mode": "url", "url": address, "message": text + address},
		}},
	}
}
