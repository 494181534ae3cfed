package mcp

import (
	"cmp"
	"net/http"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/mcp/method"
)

// withheld answers messages that do not belong in the client's conversation: answers to questions that its server did
// not ask, and notifications that the revision does not have. Policies do not cover either. Under an unknown name, such
// a message could do anything that the server allows with the user's credential. No client waits for an answer to it,
// and a refusal would end the conversations of clients that send more notifications than others.
func (x *exchange) withheld() bool {
	version := cmp.Or(x.session().ProtocolVersion, x.r.Header.Get(jsonrpc.HeaderProtocolVersion))
	for i := range x.Message.Messages {
		m := &x.Message.Messages[i]
		unasked := m.Kind == jsonrpc.Response && (x.Unasked || x.ForGateway)
		if !unasked && (m.Kind != jsonrpc.Notification || method.FromClient(m.Method, version)) {
			continue
		}
		x.outcome = "refused"
		if x.Message.Batch {
			gateway.RefuseBatchOfOthers(x.w)
			return true
		}
		x.w.WriteHeader(http.StatusAccepted)
		return true
	}
	return false
}
