package app

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
	"github.com/durward-gateway/durward/storage"
)

// LastBatchVersion is the only revision of MCP with batches: the next one removed them.
const LastBatchVersion = "2025-03-26"

// Inbound is a request on /mcp that was read and checked. Policies decide on these bytes, and the same bytes are sent
// on.
type Inbound struct {
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

	// Request is the request that was read. Its method, address and headers can be used. Its body is consumed, and its
	// context is that of the first handler that read it.
	Request *http.Request

	call     *Call
	repeated int64              // answers that were given before
	sealed   string             // the sealed form of Endpoint
	one      [1]jsonrpc.Message // usual memory of Message
}

// ReadInbound reads the request of the call, which has a caller and a server, once for all the handlers that need it.
// It checks the method, memory, tracking tag, body, session, and the agreement of headers and body. When the request
// must not be carried, ReadInbound answers it, counts it and reports false.
func (c *Call) ReadInbound(w http.ResponseWriter, r *http.Request) (*Inbound, bool) {
	if c.Inbound != nil {
		return c.Inbound, true
	}
	in := &c.inbound
	in.call, in.Request = c, r
	if outcome := in.read(w); outcome != "" {
		c.Core.Metrics.Calls.WithLabelValues("mcp", outcome).Inc()
		return nil, false
	}
	c.Inbound = in
	return in, true
}

// read returns the outcome of a request that it refused, "" for a request that goes on.
func (in *Inbound) read(w http.ResponseWriter) (outcome string) {
	switch in.Request.Method {
	case http.MethodPost, http.MethodGet, http.MethodDelete:
	default:
		gateway.WriteMethodNotAllowed(w, "GET, POST, DELETE")
		return "refused"
	}
	if in.call.Shed(w, in.Request, in.Request.Method == http.MethodGet) {
		return "unavailable"
	}
	if !in.readTracking(w) || !in.readBody(w) || !in.openSession(w) || !in.checkMessage(w) || !in.takeAnswers(w) {
		return "refused"
	}
	if (in.Kind() == streams.Listen || in.OpensSession()) && in.call.Shed(w, in.Request, true) {
		return "unavailable"
	}
	return ""
}

// Modern reports whether the request is of the revision 2026-07-28 or later, which has no sessions.
func (in *Inbound) Modern() bool {
	return jsonrpc.Modern(in.declaredVersion())
}

// declaredVersion returns the revision that the request names; "" when it names none. The name of the header is
// canonical: bringing it into that form again would cost more than the look-up itself.
func (in *Inbound) declaredVersion() string {
	if values := in.Request.Header[jsonrpc.HeaderProtocolVersion]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// Version returns the revision that client and upstream agreed on. Clients from 2025-06-18 on name it with every
// request. For other clients it is the one that initialize asked for. "" when neither is known.
func (in *Inbound) Version() string {
	if declared := in.declaredVersion(); declared != "" {
		return declared
	}
	return in.Session.ProtocolVersion
}

// Single returns the request's message when it has exactly one.
func (in *Inbound) Single() *jsonrpc.Message {
	if in.Message.Batch || len(in.Message.Messages) != 1 {
		return nil
	}
	return &in.Message.Messages[0]
}

// Kind returns the kind of a stream that stays open until one side ends it: the GET stream, and the 2026 revision's
// subscription.
func (in *Inbound) Kind() streams.Kind {
	if in.Request.Method == http.MethodGet {
		return streams.Listen
	}
	if m := in.Single(); m != nil && m.Method == "subscriptions/listen" {
		return streams.Listen
	}
	return streams.Call
}

// OpensSession reports whether the message begins a session.
func (in *Inbound) OpensSession() bool {
	m := in.Single()
	return m != nil && m.Method == "initialize"
}

// Binding returns the user, agent and server to which sessions of this call are bound.
func (c *Call) Binding() session.Binding {
	return session.Binding{Organization: c.Caller.OrganizationID, User: c.Caller.UserID, Agent: c.Caller.Agent, Server: c.Server.ID}
}

// ID returns the id of the request's message, as it was written; nil for a batch, for a message without an id, and
// before the request was read.
func (in *Inbound) ID() []byte {
	if in == nil {
		return nil
	}
	if m := in.Single(); m != nil && m.Kind == jsonrpc.Request {
		return m.ID
	}
	return nil
}

// Reply answers the request's messages with messages of the gateway's own, in the way of its transport. In revision
// 2024-11-05 clients read answers only on their stream. When that stream is not open on this node, a status tells them
// that their message went nowhere.
func (in *Inbound) Reply(w http.ResponseWriter, status int, body []byte) {
	switch {
	case in.Endpoint == nil:
		gateway.WriteBody(w, status, body)
	case in.call.Core.Desk.Deliver(in.sealed, body):
		w.WriteHeader(http.StatusAccepted)
	default:
		gateway.WriteBody(w, max(status, http.StatusBadRequest), body)
	}
}

// readTracking notes the client's tracking tag: headers that end in -session-id, other than MCP's own, are for logs and
// never forwarded. Tags with unusual characters are refused, because logs are read by programs.
func (in *Inbound) readTracking(w http.ResponseWriter) bool {
	tag, ok := TrackingTag(in.Request.Header)
	if !ok {
		gateway.RefuseTracking(w, gateway.RPC(nil)) // the body was not read yet
		return false
	}
	in.call.Log.Session = tag
	return true
}

func (in *Inbound) readBody(w http.ResponseWriter) bool {
	if in.Request.Method != http.MethodPost {
		return true
	}
	if err := validate.CheckMedia(in.Request.Header); err != nil {
		gateway.RefuseMedia(w, err.Error())
		return false
	}
	limit := in.call.Core.Sizes.MCP
	body, err := forward.ReadBody(in.Request, limit)
	if err != nil {
		refuseBody(w, err)
		return false
	}
	in.Body, in.Message.Messages = body, in.one[:0]
	if err = in.Message.Decode(body, strictjson.Limits{MaxBytes: int(limit)}); err != nil {
		if refused := (*jsonrpc.Error)(nil); errors.As(err, &refused) {
			gateway.RefuseMessage(w, refused.ID, refused.Code, refused.Message)
			return false
		}
	}
	if m := in.Single(); m != nil {
		in.call.Log.Method, in.call.Log.Tool = m.Method, toolName(m)
	}
	return true
}

func toolName(m *jsonrpc.Message) string {
	if m.Method == "tools/call" {
		return m.Name
	}
	return ""
}

func refuseBody(w http.ResponseWriter, err error) {
	refused := new(forward.BodyError) // answered like one that is incomplete
	_ = errors.As(err, &refused)
	refused.Answer(w, func() { gateway.RefuseBody(w, gateway.RPC(nil), refused.Status) })
}

// openSession unseals the session id of the request. An id that the gateway did not make, or that is for another user,
// agent or server, is answered like one that has ended.
func (in *Inbound) openSession(w http.ResponseWriter) bool {
	if len(in.Request.Header.Values(jsonrpc.HeaderSessionID)) == 0 || in.Modern() {
		// Only a session binds an event to the clients that may have it. All users reach the upstream with one credential, so
		// the id of another user's event must not reach it (attack M25). 2024-11-05 and 2026-07-28 know no resumption.
		in.Request.Header.Del("Last-Event-Id")
	}
	if in.Modern() {
		return true
	}
	if !in.openEndpoint(w) {
		return false
	}
	sealed := in.Request.Header.Values(jsonrpc.HeaderSessionID)
	if len(sealed) == 0 {
		return true
	}
	var err error
	if len(sealed) == 1 {
		in.Session, err = in.call.Core.Sessions.Open(sealed[0], in.call.Binding())
	}
	if errors.Is(err, storage.ErrUnavailable) {
		in.sessionUnread(w, err)
		return false
	}
	if len(sealed) > 1 || err != nil {
		gateway.RefuseSessionGone(w, "initialize")
		return false
	}
	if in.Session.Own {
		in.Request.Header.Del("Last-Event-Id") // the upstream sees no session: for it, nothing binds the event
	}
	return true
}

// EndpointParameter is the query parameter of the gateway's address for messages of revision 2024-11-05. It is spelled
// as in the official servers.
const EndpointParameter = "sessionId"

// openEndpoint unseals the address for messages that a client of 2024-11-05 posts to. An address that the gateway did
// not make, or that is for another user, agent or server, is answered like a session that has ended.
func (in *Inbound) openEndpoint(w http.ResponseWriter) bool {
	if in.Request.Method != http.MethodPost || in.Request.URL.RawQuery == "" {
		return true
	}
	sealed := in.Request.URL.Query()[EndpointParameter]
	if len(sealed) == 0 {
		return true
	}
	if len(in.Request.Header.Values(jsonrpc.HeaderSessionID)) > 0 {
		gateway.RefuseTwoSessions(w, in.ID())
		return false
	}
	if len(sealed) == 1 {
		endpoint, err := in.call.unsealEndpoint(sealed[0])
		if err != nil {
			in.sessionUnread(w, err)
			return false
		}
		in.sealed, in.Endpoint = sealed[0], endpoint
	}
	if in.Endpoint == nil {
		gateway.RefuseSessionGone(w, http.MethodGet)
		return false
	}
	return true
}

// unsealEndpoint returns nil for an address that is not this caller's, and for an address of another origin than the
// server's present one: the credential is for the server. Its error is storage.ErrUnavailable.
func (c *Call) unsealEndpoint(sealed string) (*url.URL, error) {
	opened, err := c.Core.Sessions.OpenEndpoint(sealed, c.Binding())
	if errors.Is(err, storage.ErrUnavailable) {
		return nil, err
	}
	if err != nil {
		return nil, nil
	}
	endpoint, err := url.Parse(opened)
	server, bad := c.ServerURL()
	if err != nil || bad != nil || !legacysse.SameOrigin(endpoint, server) {
		return nil, nil
	}
	return endpoint, nil
}

// sessionUnread answers a request when the key of its session cannot be looked up.
func (in *Inbound) sessionUnread(w http.ResponseWriter, err error) {
	in.call.Core.storeRefuses(err) // the log says so once for all requests
	in.call.Core.Log.Debug("opening a session", "error", err)
	gateway.RefuseSessionUnread(w)
}

// checkMessage checks that headers and message agree.
func (in *Inbound) checkMessage(w http.ResponseWriter) bool {
	if in.Message.Batch && !in.batchAllowed() {
		gateway.RefuseBatch(w, LastBatchVersion)
		return false
	}
	m := in.Single()
	if m == nil {
		return true
	}
	err := jsonrpc.CheckHeaders(in.Request.Header, m)
	if err == nil {
		return true
	}
	var refused *jsonrpc.Error
	if errors.As(err, &refused) {
		gateway.RefuseMessage(w, m.ID, refused.Code, refused.Message)
		return false
	}
	return true
}

// batchAllowed reports whether the header names the one revision that has batches, or nothing, and the session does the
// same.
func (in *Inbound) batchAllowed() bool {
	version := strings.TrimSpace(in.declaredVersion())
	return (version == "" || version == LastBatchVersion) &&
		(in.Session.ProtocolVersion == "" || in.Session.ProtocolVersion == LastBatchVersion)
}
