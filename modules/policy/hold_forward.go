package policy

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/storage"
)

// forwardInto lets the call go on and puts its answer into the open stream: an event stream unchanged, any other answer
// as one event.
func (h *held) forwardInto(client *heldStream, used *storage.Approval) error {
	h.released(h.r.Context(), used)
	into := &intoStream{client: client, header: make(http.Header), id: h.message.ID}
	if err := h.next.ServeHTTP(into, h.r); err != nil {
		return err
	}
	return into.finish()
}

// intoStream writes the answer to a held call, whose stream is open already.
type intoStream struct {
	client *heldStream
	header http.Header // is not sent: the stream's own header was sent
	id     []byte      // of the call, as it was written
	status int
	events bool
	whole  bytes.Buffer // of an answer that is no stream
}

// Header implements http.ResponseWriter.
func (i *intoStream) Header() http.Header { return i.header }

// WriteHeader implements http.ResponseWriter.
func (i *intoStream) WriteHeader(status int) {
	if i.status != 0 || status < http.StatusOK {
		return
	}
	i.status = status
	i.events = status == http.StatusOK && strings.HasPrefix(strings.ToLower(i.header.Get("Content-Type")), "text/event-stream")
}

// Write implements http.ResponseWriter.
func (i *intoStream) Write(p []byte) (int, error) {
	i.WriteHeader(http.StatusOK)
	if i.events {
		return i.client.w.Write(p)
	}
	return i.whole.Write(p)
}

// FlushError implements the method that http.ResponseController calls.
func (i *intoStream) FlushError() error {
	if i.events {
		return i.client.rc.Flush()
	}
	return nil
}

// Unwrap lets http.ResponseController reach the connection's deadlines.
func (i *intoStream) Unwrap() http.ResponseWriter { return i.client.w }

// finish writes an answer that was no stream. A text that is not a response to the call, such as a refusal of a later
// handler or of the upstream, becomes an error response to it.
func (i *intoStream) finish() error {
	if i.events {
		return nil
	}
	answer := bytes.TrimSpace(i.whole.Bytes())
	if !i.answers(answer) {
		answer = jsonrpc.ErrorResponse(i.id, jsonrpc.CodeInternalError, "The call was approved, and refused afterwards: "+http.StatusText(i.status), detail(answer))
	}
	_ = i.client.message(answer) // a client that has left needs none
	return nil
}

// answers reports whether a text is the response to the call.
func (i *intoStream) answers(text []byte) bool {
	m, err := jsonrpc.Parse(text, strictjson.Limits{MaxBytes: len(text) + 1, MaxDepth: 1 << 10, MaxMembers: len(text) + 1})
	return err == nil && !m.Batch && m.Messages[0].Kind == jsonrpc.Response && jsonrpc.SameID(m.Messages[0].ID, i.id)
}

// detail returns a service error for an error's data; nil when the text is none.
func detail(text []byte) any {
	v, err := strictjson.Parse(text, strictjson.Limits{})
	if name, _ := v.Get("error"); err != nil || name.Kind() != strictjson.String {
		return nil
	}
	return rawJSON(text)
}

type rawJSON []byte

// MarshalJSON implements json.Marshaler.
func (r rawJSON) MarshalJSON() ([]byte, error) { return r, nil }
