package inbound

import (
	"net/http"
	"net/url"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/mcp/session"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// Request is a request on /mcp that was read and checked. Policies decide on these bytes, and the same bytes are sent
// on.
type Request struct {
	// HTTP is the request that was read. Its method, address and headers can be used. Its body is consumed, and its context
	// is that of the first handler that read it.
	HTTP *http.Request
	// Tracking is the client's tag for logs; "" for none.
	Tracking string
	// Body and Message hold the content of a POST; both are empty on GET and DELETE. They must not be changed.
	Body    []byte
	Message jsonrpc.Body
	// Session is the session of the request; zero when it has none.
	Session session.Session
	// Endpoint is the target of a message that does not go to the server's own address: revision 2024-11-05. Otherwise
	// nil.
	Endpoint *url.URL
	// Unasked reports whether the client answers a question that nobody asked in this session.
	Unasked bool
	// ForGateway reports whether an answer's id claims that the gateway asked. durward_policy takes such answers out of the
	// traffic: behind it, nobody has asked.
	ForGateway bool
	// Repeated is the number of answers in the request that were given before.
	Repeated int64

	reader *Reader
	sealed string             // the sealed form of Endpoint
	one    [1]jsonrpc.Message // usual memory of Message
}

// Modern reports whether the request is of the revision 2026-07-28 or later, which has no sessions.
func (in *Request) Modern() bool {
	return jsonrpc.Modern(in.declaredVersion())
}

// declaredVersion returns the revision that the request names; "" when it names none. The name of the header is
// canonical: bringing it into that form again would cost more than the look-up itself.
func (in *Request) declaredVersion() string {
	if values := in.HTTP.Header[jsonrpc.HeaderProtocolVersion]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// Version returns the revision that client and upstream agreed on. Clients from 2025-06-18 on name it with every
// request. For other clients it is the one that initialize asked for. "" when neither is known.
func (in *Request) Version() string {
	if declared := in.declaredVersion(); declared != "" {
		return declared
	}
	return in.Session.ProtocolVersion
}

// Single returns the request's message when it has exactly one.
func (in *Request) Single() *jsonrpc.Message {
	if in.Message.Batch || len(in.Message.Messages) != 1 {
		return nil
	}
	return &in.Message.Messages[0]
}

// Kind returns the kind of a stream that stays open until one side ends it: the GET stream, and the 2026 revision's
// subscription.
func (in *Request) Kind() streams.Kind {
	if in.HTTP.Method == http.MethodGet {
		return streams.Listen
	}
	if m := in.Single(); m != nil && m.Method == "subscriptions/listen" {
		return streams.Listen
	}
	return streams.Call
}

// OpensSession reports whether the message begins a session.
func (in *Request) OpensSession() bool {
	m := in.Single()
	return m != nil && m.Method == "initialize"
}

// ID returns the id of the request's message, as it was written; nil for a batch, for a message without an id, and
// before the request was read.
func (in *Request) ID() []byte {
	if in == nil {
		return nil
	}
	if m := in.Single(); m != nil && m.Kind == jsonrpc.Request {
		return m.ID
	}
	return nil
}

// Named returns the method, name and arguments of the request for records; all are empty for a batch, whose messages
// have a record each. The name of a message about a resource is its URI.
func (in *Request) Named() (method, name string, arguments []byte) {
	m := in.Single()
	switch {
	case m == nil && in.Message.Batch:
		return "", "", nil
	case m == nil:
		return in.HTTP.Method, "", nil
	case m.Kind == jsonrpc.Response:
		return "response", "", nil
	case m.Name != "":
		return m.Method, m.Name, m.Arguments
	}
	return m.Method, m.URI, m.Arguments
}

// Reply answers the request's messages with messages of the gateway's own, in the way of its transport. In revision
// 2024-11-05 clients read answers only on their stream. When that stream is not open on this node, a status tells them
// that their message went nowhere.
func (in *Request) Reply(w http.ResponseWriter, status int, body []byte) {
	switch {
	case in.Endpoint == nil:
		gateway.WriteBody(w, status, body)
	case in.reader.options.Desk.Deliver(in.sealed, body):
		w.WriteHeader(http.StatusAccepted)
	default:
		gateway.WriteBody(w, max(status, http.StatusBadRequest), body)
	}
}

// ReplaceBody replaces the request's body by a text from which the gateway's own members were removed. Its error is a
// *jsonrpc.Error when the text is no message.
func (in *Request) ReplaceBody(body []byte) error {
	message, err := jsonrpc.Parse(body, strictjson.Limits{MaxBytes: int(in.reader.options.MaxBody)})
	if err != nil {
		return err
	}
	in.Body, in.Message = body, message
	return nil
}
