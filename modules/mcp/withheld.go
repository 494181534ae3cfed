package mcp

import (
	"cmp"
	"net/http"

	"github.com/durward-gateway/durward/internal/jsonrpc"
	"github.com/durward-gateway/durward/internal/mcpmethod"
	"github.com/durward-gateway/durward/modules/app"
)

// withheld answers what has no place in the client's conversation: answers to questions that its server did not ask, and a
// notification that the revision does not have. Policies say nothing of either, so that one of another name would be anything that
// the server takes, with the user's credential. Nobody waits for an answer, and a refusal would end the conversations of clients that
// tell more than others.
func (x *exchange) withheld() bool {
	version := cmp.Or(x.session().ProtocolVersion, x.r.Header.Get(jsonrpc.HeaderProtocolVersion))
	for i := range x.Message.Messages {
		m := &x.Message.Messages[i]
		unasked := m.Kind == jsonrpc.Response && (x.Modern() || x.Unasked)
		if !unasked && (m.Kind != jsonrpc.Notification || mcpmethod.FromClient(m.Method, version)) {
			continue
		}
		x.outcome = "refused"
		if x.Message.Batch {
			x.writeRPC(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "The batch holds an answer that nobody asked for, or a notification that clients of its revision do not have", app.BadRequest)
			return true
		}
		x.w.WriteHeader(http.StatusAccepted)
		return true
	}
	return false
}
