package mcp

import (
	"errors"
	"net/http"
	"strings"

	"github.com/durward-gateway/durward/internal/forward"
	"github.com/durward-gateway/durward/internal/jsonrpc"
	"github.com/durward-gateway/durward/internal/mcpsession"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/internal/validate"
	"github.com/durward-gateway/durward/modules/app"
)

// lastBatchVersion is the only revision with batches: the next one removed them.
const lastBatchVersion = "2025-03-26"

// readTracking notes the client's tracking tag: headers that end in -session-id, other than MCP's own, are for logs and
// never forwarded. Odd ones are refused, because logs are read by programs.
func (x *exchange) readTracking() bool {
	tag, ok := app.TrackingTag(x.r.Header)
	if !ok {
		x.writeRPC(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "A session id for tracking has at most 256 visible ASCII characters", app.BadRequest)
		return false
	}
	x.call.Log.Session = tag
	return true
}

func (x *exchange) readBody() bool {
	if x.r.Method != http.MethodPost {
		return true
	}
	if err := validate.CheckMedia(x.r.Header); err != nil {
		app.WriteError(x.w, app.UnsupportedMediaType, err.Error())
		return false
	}
	body, err := forward.ReadBody(x.r, x.call.Core.Sizes.MCP)
	if err != nil {
		x.refuseBody(err)
		return false
	}
	x.body = body
	x.message, err = jsonrpc.Parse(body, strictjson.Limits{MaxBytes: int(x.call.Core.Sizes.MCP)})
	var refused *jsonrpc.Error
	if errors.As(err, &refused) {
		x.writeBody(http.StatusBadRequest, jsonrpc.ErrorResponse(refused.ID, refused.Code, refused.Message,
			&app.ServiceError{Name: app.BadRequest, Message: refused.Message}))
		return false
	}
	if m := x.single(); m != nil {
		x.call.Log.Method, x.call.Log.Tool = m.Method, toolName(m)
	}
	return true
}

func toolName(m *jsonrpc.Message) string {
	if m.Method == "tools/call" {
		return m.Name
	}
	return ""
}

func (x *exchange) refuseBody(err error) {
	refused := new(forward.BodyError) // answered like one that is incomplete
	_ = errors.As(err, &refused)
	refused.Answer(x.w, func() {
		answer := app.BodyRefusal(refused)
		if answer.Name == app.BadRequest {
			x.writeRPC(http.StatusBadRequest, jsonrpc.CodeParseError, answer.Message, answer.Name)
			return
		}
		answer.Write(x.w)
	})
}

// openSession unseals the session id of the request. An id that is not ours, or not for this user, agent and server, is
// answered like one that has ended (404, not 403: some clients begin to log in on any 403).
func (x *exchange) openSession() bool {
	if x.modern() {
		return true
	}
	if !x.openEndpoint() {
		return false
	}
	sealed := x.r.Header.Values(jsonrpc.HeaderSessionID)
	if len(sealed) == 0 {
		return true
	}
	var err error
	if len(sealed) == 1 {
		x.session, err = x.handler.sessions.Open(sealed[0], x.binding())
	}
	if len(sealed) > 1 || err != nil {
		app.WriteError(x.w, app.NotFound, "There is no such session; begin anew with initialize")
		return false
	}
	return true
}

func (x *exchange) binding() mcpsession.Binding {
	return mcpsession.Binding{
		Organization: x.call.Caller.OrganizationID, User: x.call.Caller.UserID, Agent: x.call.Caller.Agent, Server: x.call.Server.ID,
	}
}

// checkMessage holds headers and message against each other.
func (x *exchange) checkMessage() bool {
	if x.message.Batch && !x.batchAllowed() {
		x.writeRPC(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "Batches exist in revision "+lastBatchVersion+" only", app.BadRequest)
		return false
	}
	m := x.single()
	if m == nil {
		return true
	}
	var refused *jsonrpc.Error
	if err := jsonrpc.CheckHeaders(x.r.Header, m); errors.As(err, &refused) {
		x.writeBody(http.StatusBadRequest, jsonrpc.ErrorResponse(m.ID, refused.Code, refused.Message,
			&app.ServiceError{Name: app.BadRequest, Message: refused.Message}))
		return false
	}
	return true
}

// batchAllowed: the header says the one revision that has batches, or nothing, and so does the session.
func (x *exchange) batchAllowed() bool {
	version := strings.TrimSpace(x.r.Header.Get(jsonrpc.HeaderProtocolVersion))
	return (version == "" || version == lastBatchVersion) &&
		(x.session.ProtocolVersion == "" || x.session.ProtocolVersion == lastBatchVersion)
}
