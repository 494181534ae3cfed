package app

import (
	"context"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/mcp/session"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// lateAnswer is the time for which the answer to a cancelled call may still come. Servers need not send one, and
// clients do not read it (2025-11-25, basic/utilities/cancellation, "Behavior Requirements"); a server that stops its
// work says so at once.
const lateAnswer = 2 * time.Second

// EndTakenBack ends the wait for the answers to calls that the request's messages cancel. Without that they would delay
// the end of the process, which waits for calls. Only a session tells to whom the ids belong.
func (in *Inbound) EndTakenBack() {
	if in.Session.Upstream == "" {
		return
	}
	var ids []string
	for i := range in.Message.Messages {
		if id, ok := TakenBack(&in.Message.Messages[i]); ok {
			ids = append(ids, id)
		}
	}
	if ids == nil {
		return
	}
	// One search for all of them: otherwise a batch that cancels a hundred calls would make all streams of the process
	// wait a hundred times.
	in.call.Core.Streams.EndCalls(in.call.owner(), streams.Cancelled, func(ctx context.Context) bool {
		other, ok := ctx.Value(callKey{}).(*Call)
		return ok && other.Inbound != nil && other.Caller.Agent == in.call.Caller.Agent && sameSession(other.Inbound.Session, in.Session) &&
			slices.ContainsFunc(ids, other.Inbound.asks)
	}, lateAnswer)
}

// TakenBack returns the id, in the form of jsonrpc.IDValue, of the request that a message cancels.
func TakenBack(m *jsonrpc.Message) (id string, ok bool) {
	if m.Method != "notifications/cancelled" {
		return "", false
	}
	params, _ := strictjson.Parse(m.Params, strictjson.Limits{MaxBytes: len(m.Params) + 1})
	value, ok := params.Get("requestId")
	return jsonrpc.IDValue(value.Raw()), ok
}

// sameSession compares the identifying parts of sessions.
func sameSession(a, b session.Session) bool {
	return a.Upstream == b.Upstream && a.Own == b.Own && a.Guided == b.Guided
}

// asks reports whether the request is the one of that id. It is false for a batch: its other requests may still be
// waited for.
func (in *Inbound) asks(id string) bool {
	m := in.Single()
	return m != nil && m.Kind == jsonrpc.Request && jsonrpc.IDValue(m.ID) == id
}
