package mcp

import (
	"cmp"
	"net/http"

	"github.com/durward-gateway/durward/internal/jsonrpc"
	"github.com/durward-gateway/durward/internal/mcpmethod"
	"github.com/durward-gateway/durward/modules/app"
)

// withheld answers a notification that the client's revision does not have: policies say nothing of notifications, so that one of
// another name would be anything that the server takes, with the user's credential. Nobody waits for an answer to one, and a refusal
// would end the conversations of clients that tell more than others.
func (x *exchange) withheld() bool {
	version := cmp.Or(x.session().ProtocolVersion, x.r.Header.Get(jsonrpc.HeaderProtocolVersion))
	for i := range x.Message.Messages {
		m := &x.Message.Messages[i]
		if m.Kind != jsonrpc.Notification || mcpmethod.FromClient(m.Method, version) {
			continue
		}
		x.outcome = "refused"
		if x.Message.Batch {
			x.writeRPC(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "The batch holds a notification that clients of its revision do not have", app.BadRequest)
			return true
		}
		x.w.WriteHeader(http.StatusAccepted)
		return true
	}
	return false
}
