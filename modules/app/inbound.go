package app

import (
	"net/http"

	"github.com/durward-gateway/durward/internal/mcp/inbound"
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
	return session.Binding{Organization: c.Caller.OrganizationID, User: c.Caller.UserID, Agent: c.Caller.Agent, Server: c.Server.ID}
}
