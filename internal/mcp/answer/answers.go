package answer

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/mcp/method"
	"github.com/durward-gateway/durward/internal/proxy/sse"
)

// Reason says why a message was dropped.
type Reason string

// The reasons.
const (
	Unreadable Reason = "unreadable"     // no JSON-RPC message, or not the same one to every reader
	OtherID    Reason = "other_id"       // an answer to a request that is not this one
	Second     Reason = "second_answer"  // another answer to a request that has one
	Request    Reason = "server_request" // a request that servers may not make there
	EventName  Reason = "event_name"     // an event of another name than message, such as endpoint
)

// Answers filters a server's messages to one request of a client. The zero value accepts only notifications. It is
// not safe for concurrent use.
type Answers struct {
	// AnyID says that the stream brings answers to requests that came by other ways: a stream that continues another
	// one (Last-Event-ID), and that of revision 2024-11-05. It is called at each answer; nil means no.
	AnyID func() bool
	// Version is the revision that client and server speak; "" when unknown.
	Version string
	// Asks says that the server may send requests to its client.
	Asks bool
	// Mark returns the id under which the client gets a request of the server, so that its answer proves that it was
	// asked. A nil id means that the id cannot be marked, and the request is dropped. Mark must be set where Asks is.
	Mark func(id []byte) []byte
	// Batches says that messages may come in arrays (2025-03-26).
	Batches bool
	// Endpoint lets events named endpoint pass, of a stream on which they were checked.
	Endpoint bool
	// Dropped is called for every dropped message; nil means no such call.
	Dropped func(Reason)

	requests []request
	one      [1]request
	ids      bool // an event had an id
	spoken   bool // a message passed in an event
}

// request is one for which the client waits.
type request struct {
	id       []byte
	answered bool
}

// Expect notes that the client waits for an answer to a request of that id, which must not change.
func (a *Answers) Expect(id []byte) {
	if a.requests == nil {
		a.requests = a.one[:0]
	}
	a.requests = append(a.requests, request{id: id})
}

// Open yields the ids of requests that have no answer yet.
func (a *Answers) Open(yield func(id []byte) bool) {
	for i := range a.requests {
		if !a.requests[i].answered && !yield(a.requests[i].id) {
			return
		}
	}
}

// Done reports whether every request has its answer.
func (a *Answers) Done() bool {
	for range a.Open {
		return false
	}
	return true
}

// Any reports whether some request has its answer.
func (a *Answers) Any() bool {
	return slices.ContainsFunc(a.requests, func(r request) bool { return r.answered })
}

// Spoken reports whether an event came whose message passed.
func (a *Answers) Spoken() bool { return a.spoken }

// Resumable reports whether an event came from which a client may resume its stream.
func (a *Answers) Resumable() bool { return a.ids }

// Message returns the accepted part of a text: the text itself when all of it is accepted, nil when nothing is.
func (a *Answers) Message(text []byte) []byte {
	trimmed := bytes.TrimLeft(text, " \t\r\n")
	if len(trimmed) > 0 && trimmed[0] == '[' {
		return a.batch(text)
	}
	passes, why := a.judge(text)
	if why != "" {
		a.drop(why)
		return nil
	}
	return passes
}

// primed replaces empty data when servers of the TypeScript SDK replay the event that began a stream. Clients need
// only its id.
const primed = "{}"

// Event filters an event of a stream like Message: data is the accepted part, and ok is false when all of it is
// accepted. Events without data, which keep the client's place in the stream, are not dropped but lose a name that is
// not message.
func (a *Answers) Event(e *sse.Event) (data []byte, ok bool) {
	a.ids = a.ids || e.HasID && e.ID != ""
	if e.Strange {
		a.drop(Unreadable)
	}
	switch {
	case e.Name == "endpoint" && a.Endpoint:
		return e.Data, false
	case e.Name != "" && e.Name != "message":
		a.drop(EventName)
		return nil, true
	case len(e.Data) == 0:
		return e.Data, false
	case e.HasID && string(bytes.TrimSpace(e.Data)) == primed:
		return nil, true
	}
	data = a.Message(e.Data)
	a.spoken = a.spoken || data != nil
	return data, len(data) != len(e.Data)
}

// Refusal reports whether the JSON in the body of an error status may pass. It may be an error, whatever its id is:
// the status is the answer to this request, and servers that could not read it make an id up. Or it may be text that
// no reader takes for a message with an effect.
func (a *Answers) Refusal(text []byte) bool {
	e, ok := jsonrpc.ReadEnvelope(text)
	if !ok {
		if jsonrpc.Resembles(text) { // some clients read an error's body like any other
			a.drop(Unreadable)
			return false
		}
		return true
	}
	if e.Kind() != jsonrpc.Response {
		a.drop(Request)
		return false
	}
	if e.Failure {
		return true
	}
	if why := a.answer(&e); why != "" {
		a.drop(why)
		return false
	}
	return true
}

func (a *Answers) drop(why Reason) {
	if a.Dropped != nil {
		a.Dropped(why)
	}
}

// batch keeps those elements of an array that belong to the request.
func (a *Answers) batch(text []byte) []byte {
	var elements []json.RawMessage
	if !a.Batches || json.Unmarshal(text, &elements) != nil || len(elements) == 0 {
		a.drop(Unreadable)
		return nil
	}
	kept, whole := elements[:0], true
	for _, element := range elements {
		passes, why := a.judge(element)
		whole = whole && why == "" && len(passes) == len(element)
		if why != "" {
			a.drop(why)
			continue
		}
		kept = append(kept, passes)
	}
	switch {
	case whole:
		return text
	case len(kept) == 0:
		return nil
	}
	out := make([]byte, 0, len(text))
	for i, element := range kept {
		out = append(append(out, "[,"[min(i, 1)]), element...)
	}
	return append(out, ']')
}

// judge returns the accepted form of a message, or the reason why it is dropped. A message with a marked id is longer
// than before.
func (a *Answers) judge(text []byte) (passes []byte, why Reason) {
	e, ok := jsonrpc.ReadEnvelope(text)
	if !ok {
		return nil, Unreadable
	}
	switch e.Kind() {
	case jsonrpc.Response:
		return text, a.answer(&e)
	case jsonrpc.Request:
		if !a.Asks || !method.FromServer(e.Method, a.Version) {
			return nil, Request
		}
		asked, ok := jsonrpc.Replace(text, a.Mark, "id")
		if !ok {
			return nil, Unreadable
		}
		return asked, ""
	case jsonrpc.Notification:
		if !strings.HasPrefix(e.Method, "notifications/") {
			return nil, Unreadable
		}
		if e.Method == "notifications/cancelled" && a.Asks {
			// The server cancels its own request, which its client knows by another id.
			if taken, ok := jsonrpc.Replace(text, a.Mark, "params", "requestId"); ok {
				return taken, ""
			}
		}
	}
	return text, ""
}

// answer looks for the request of a response, and notes that it has one.
func (a *Answers) answer(e *jsonrpc.Envelope) Reason {
	if e.ID == nil || a.AnyID != nil && a.AnyID() {
		return "" // an error that names no request ends none
	}
	why := OtherID
	for i := range a.requests {
		switch r := &a.requests[i]; {
		case !jsonrpc.LooseID(e.ID, r.id):
		case r.answered:
			why = Second
		default:
			r.answered = true
			return ""
		}
	}
	return why
}
