package inbound

import (
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// TakenBack returns the id, in the form of jsonrpc.IDValue, of the request that a message cancels.
func TakenBack(m *jsonrpc.Message) (id string, ok bool) {
	if m.Method != "notifications/cancelled" {
		return "", false
	}
	params, _ := strictjson.Parse(m.Params, strictjson.Limits{MaxBytes: len(m.Params) + 1})
	value, ok := params.Get("requestId")
	return jsonrpc.IDValue(value.Raw()), ok
}

// TakenBack returns the ids of the requests that this one cancels, in the form of jsonrpc.IDValue. There are none
// without a session: only it tells to whom the ids belong.
func (in *Request) TakenBack() (ids []string) {
	if in.Session.Upstream == "" {
		return nil
	}
	for i := range in.Message.Messages {
		if id, ok := TakenBack(&in.Message.Messages[i]); ok {
			ids = append(ids, id)
		}
	}
	return ids
}

// SameSession reports whether two requests belong to one session.
func (in *Request) SameSession(other *Request) bool {
	a, b := in.Session, other.Session
	return a.Upstream == b.Upstream && a.Own == b.Own && a.Guided == b.Guided
}

// Asks reports whether the request is the one of that id. It is false for a batch: its other requests may still be
// waited for.
func (in *Request) Asks(id string) bool {
	m := in.Single()
	return m != nil && m.Kind == jsonrpc.Request && jsonrpc.IDValue(m.ID) == id
}
