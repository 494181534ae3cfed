package app

import (
	"log/slog"
	"net/http"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/gateway/body"
	"github.com/durward-gateway/durward/internal/gateway/eventstream"
	"github.com/durward-gateway/durward/internal/gateway/inbound"
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/mcp/session"
)

// BindReader makes the reader of requests on /mcp from the core's other parts.
func (c *Core) BindReader() {
	c.Reader = inbound.New(inbound.Options{
		MaxBody: c.Sizes.MCP, Sessions: c.Sessions, Questions: c.Questions, Desk: c.Desk, Shed: c.shed,
		Asked: func(id []byte) bool { return c.Asks.Asked(id) },
		Unread: func(err error) {
			c.storeRefuses(err) // the log says so once for all requests
			c.Log.Debug("opening a session", "error", err)
		},
	})
}

// ReadInbound reads the request of the call, which has a caller and a server, once for all the handlers that need it.
// When the request must not be carried, ReadInbound answers it, counts it and reports false.
func (c *Call) ReadInbound(w http.ResponseWriter, r *http.Request) (*inbound.Request, bool) {
	if c.Inbound != nil {
		return c.Inbound, true
	}
	in := &c.inbound
	outcome := c.Core.Reader.Read(w, r, c, in)
	c.Log.Session = in.Tracking
	if outcome != "" {
		c.Core.Metrics.Calls.WithLabelValues("mcp", outcome).Inc()
		return nil, false
	}
	c.Inbound = in
	return in, true
}

// NoteMessage implements inbound.Parties. It keeps what placeholders and the access log show of a message, also of one
// that is refused.
func (c *Call) NoteMessage(m *jsonrpc.Message) {
	c.Log.Method = m.Method
	if m.Method == "tools/call" {
		c.Log.Tool = m.Name
	}
}

// Binding returns the user, agent and server to which sessions of this call are bound.
func (c *Call) Binding() session.Binding {
	return session.Binding{
		Organization: c.Caller.OrganizationID, User: c.Caller.UserID, Issuer: c.ClientIssuer(), Agent: c.Caller.Agent, Server: c.Server.ID,
	}
}

// ClientIssuer returns the issuer that gave the call's client its id: a client of another issuer may have the same one. A
// key of an agent is its user's, but the client is the agent's.
func (c *Call) ClientIssuer() string {
	if c.Agent != nil {
		return c.Agent.Application.Issuer
	}
	return c.Caller.Issuer
}

// ReadEvents reads the request of a stream on /sse once for all the handlers that need it. When the request must not
// get a stream, ReadEvents answers it, counts it and reports false.
func (c *Call) ReadEvents(w http.ResponseWriter, r *http.Request) (*eventstream.Request, bool) {
	if c.Events != nil {
		return c.Events, true
	}
	events, outcome := c.readEvents(w, r)
	if outcome != "" {
		c.Core.Metrics.Calls.WithLabelValues("sse", outcome).Inc()
		return nil, false
	}
	c.Events = events
	return events, true
}

// readEvents returns the outcome of a request that it answered, "" for a request that goes on.
func (c *Call) readEvents(w http.ResponseWriter, r *http.Request) (events *eventstream.Request, outcome string) {
	if r.Method != http.MethodGet {
		gateway.WriteMethodNotAllowed(w, http.MethodGet)
		return nil, "refused"
	}
	if !eventstream.Accepted(r.Header) {
		gateway.RefuseNoEvents(w)
		return nil, "refused"
	}
	if c.Core.shed(w, r, true) {
		return nil, "unavailable"
	}
	tag, ok := inbound.TrackingTag(r.Header)
	if !ok {
		gateway.RefuseTracking(w, gateway.Plain)
		return nil, "refused"
	}
	c.Log.Session = tag
	events, err := eventstream.Read(r, c.Core.Sizes.SSE)
	if err != nil {
		if !body.WriteShapeError(w, err) {
			c.Core.Log.Error("reading the options of a stream", slog.Any("error", err))
			gateway.WriteInternalError(w)
		}
		return nil, "refused"
	}
	c.audit.header = r.Header
	return events, ""
}
