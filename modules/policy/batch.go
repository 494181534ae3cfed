package policy

import (
	"bytes"
	"context"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
)

// These are the messages for the other messages of a batch that has a refused one, or one that would have had to wait
// for a human.
const (
	textBatchRefused = "Nothing of the batch was done, because another message in it was refused"
	textBatchAsks    = "This call needs approval; send it by itself"
)

// judgeBatch returns nil when every message of the batch may pass, else the answer: an error for each id. Nothing of a
// refused batch is forwarded.
func (q *request) judgeBatch(ctx context.Context) []byte {
	messages := q.Message.Messages
	verdicts := make([]verdict, len(messages))
	refused := false
	for i := range messages {
		m, v := &messages[i], &verdicts[i]
		switch *v = q.judge(ctx, m); {
		case v.ask:
			*v = verdict{text: textBatchAsks}
		case m.Kind == jsonrpc.Response && q.call.Core.Asks.Asked(m.ID):
			*v = verdict{code: jsonrpc.CodeInvalidRequest, text: "An answer to the gateway must not be part of a batch", service: gateway.BadRequest}
		}
		refused = refused || v.refused()
	}
	if !refused {
		return nil
	}
	answers := make([][]byte, 0, len(messages))
	for i := range messages {
		if messages[i].Kind != jsonrpc.Request {
			continue
		}
		v := verdicts[i]
		if !v.refused() {
			v = verdict{code: jsonrpc.CodeForbidden, text: textBatchRefused, service: gateway.Forbidden}
		}
		answers = append(answers, v.body(&messages[i], false))
	}
	if len(answers) == 0 {
		return jsonrpc.ErrorResponse(nil, jsonrpc.CodeInvalidRequest, "The batch holds a message that is refused", nil)
	}
	return append(append([]byte{'['}, bytes.Join(answers, []byte{','})...), ']')
}
