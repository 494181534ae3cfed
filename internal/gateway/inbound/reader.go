package inbound

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/mcp/legacysse"
	"github.com/durward-gateway/durward/internal/mcp/session"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// LastBatchVersion is the only revision of MCP with batches: the next one removed them.
const LastBatchVersion = "2025-03-26"

// These are the outcomes of requests that were answered here, as metrics name them.
const (
	refused     = "refused"
	unavailable = "unavailable"
)

// Options holds the dependencies of a Reader. Those that say nothing of nil are required. Tests can leave out Sessions,
// Questions and Desk when their requests name no session and no address, and hold no answer.
type Options struct {
	// MaxBody is the size of the largest body, in bytes.
	MaxBody int64
	// Sessions opens the ids of sessions and the addresses for messages.
	Sessions *session.Codec
	// Questions knows the questions of servers to their clients.
	Questions *session.Questions
	// Desk brings answers to open streams of 2024-11-05.
	Desk *legacysse.Desk
	// Asked reports whether an answer's id claims that the gateway asked; nil: none does.
	Asked func(id []byte) bool
	// Shed answers a request that must be refused because memory is short, and reports whether it did. lasting reports
	// whether the request stays: streams, sessions. nil: memory is never short.
	Shed func(w http.ResponseWriter, r *http.Request, lasting bool) bool
	// Unread is told why the key of a session could not be looked up; nil: nobody is told.
	Unread func(error)
}

// Reader reads requests. It is safe for concurrent use.
type Reader struct{ options Options }

// New makes a reader.
func New(o Options) *Reader {
	if o.Asked == nil {
		o.Asked = func([]byte) bool { return false }
	}
	if o.Shed == nil {
		o.Shed = func(http.ResponseWriter, *http.Request, bool) bool { return false }
	}
	if o.Unread == nil {
		o.Unread = func(error) {}
	}
	return &Reader{o}
}

// Parties tells who speaks with which server, and what they say.
type Parties interface {
	// Binding returns the user, agent and server to which sessions are bound.
	Binding() session.Binding
	// ServerURL returns the server's own address.
	ServerURL() (*url.URL, error)
	// NoteMessage gets the message of a request that has exactly one, before the request is answered: configurations can
	// name its method in the headers of answers.
	NoteMessage(*jsonrpc.Message)
}

// Read reads r, a request of the parties, into in, which must be new. When the request must not be carried, Read answers
// it and returns its outcome, "refused" or "unavailable"; otherwise "".
func (rd *Reader) Read(w http.ResponseWriter, r *http.Request, parties Parties, in *Request) (outcome string) {
	in.HTTP, in.reader = r, rd
	reading := reading{in, parties}
	switch r.Method {
	case http.MethodPost, http.MethodGet, http.MethodDelete:
	default:
		gateway.WriteMethodNotAllowed(w, "GET, POST, DELETE")
		return refused
	}
	if rd.options.Shed(w, r, r.Method == http.MethodGet) {
		return unavailable
	}
	if !reading.tracking(w) || !reading.body(w) || !reading.session(w) || !reading.message(w) || !reading.answers(w) {
		return refused
	}
	if (in.Kind() == streams.Listen || in.OpensSession()) && rd.options.Shed(w, r, true) {
		return unavailable
	}
	return ""
}

// reading is a request while it is read. Its steps report false when they have answered the request.
type reading struct {
	*Request
	parties Parties
}

// tracking notes the client's tracking tag: headers that end in -session-id, other than MCP's own, are for logs and
// never forwarded. Tags with unusual characters are refused, because logs are read by programs.
func (in reading) tracking(w http.ResponseWriter) bool {
	tag, ok := TrackingTag(in.HTTP.Header)
	if !ok {
		gateway.RefuseTracking(w, gateway.RPC(nil)) // the body was not read yet
		return false
	}
	in.Tracking = tag
	return true
}

func (in reading) body(w http.ResponseWriter) bool {
	if in.HTTP.Method != http.MethodPost {
		return true
	}
	if err := validate.CheckMedia(in.HTTP.Header); err != nil {
		gateway.RefuseMedia(w, err.Error())
		return false
	}
	limit := in.reader.options.MaxBody
	body, err := forward.ReadBody(in.HTTP, limit)
	if err != nil {
		refuseBody(w, err)
		return false
	}
	in.Body, in.Message.Messages = body, in.one[:0]
	if err := in.Message.Decode(body, strictjson.Limits{MaxBytes: int(limit)}); err != nil {
		in.Message = jsonrpc.Body{}
		refuseMessage(w, nil, err)
		return false
	}
	if m := in.Single(); m != nil {
		in.parties.NoteMessage(m)
	}
	return true
}

func refuseBody(w http.ResponseWriter, err error) {
	refused := new(forward.BodyError) // answered like one that is incomplete
	_ = errors.As(err, &refused)
	refused.Answer(w, func() { gateway.RefuseBody(w, gateway.RPC(nil), refused.Status) })
}

// refuseMessage answers the error that reading or checking a message has given. An error of another kind is an error
// too: whatever was not understood is not carried.
func refuseMessage(w http.ResponseWriter, id []byte, err error) {
	var known *jsonrpc.Error
	if !errors.As(err, &known) {
		known = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "Invalid request", ID: id}
	}
	gateway.RefuseMessage(w, known.ID, known.Code, known.Message)
}

// message checks that headers and message agree.
func (in reading) message(w http.ResponseWriter) bool {
	if in.Message.Batch && !in.batchAllowed() {
		gateway.RefuseBatch(w, LastBatchVersion)
		return false
	}
	m := in.Single()
	if m == nil {
		return true
	}
	if err := jsonrpc.CheckHeaders(in.HTTP.Header, m); err != nil {
		refuseMessage(w, m.ID, err)
		return false
	}
	return true
}

// batchAllowed reports whether the header names the one revision that has batches, or nothing, and the session does the
// same.
func (in reading) batchAllowed() bool {
	version := strings.TrimSpace(in.declaredVersion())
	return (version == "" || version == LastBatchVersion) &&
		(in.Session.ProtocolVersion == "" || in.Session.ProtocolVersion == LastBatchVersion)
}
