package app

import (
	"log/slog"
	"net/http"
	"strings"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/gateway/tracing"
	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/internal/ratelimit/admission"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/internal/ratelimit/overload"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/storage"
)

// Admission applies rate limits to a call.
type Admission struct{ call *Call }

// Admission returns the admission of a call that has a caller.
func (c *Call) Admission() Admission { return Admission{c} }

// Charge charges a call to a server, or answers its refusal and reports false. A handler that carries the call must
// settle its limits afterwards.
func (a Admission) Charge(w http.ResponseWriter, r *http.Request) bool {
	c := a.call
	if !c.Limits.Seen() {
		gateway.RefuseNoLimit(w)
		return false
	}
	if !c.Limits.Counts() {
		return true
	}
	// durward_policy has read the request, unless it is off.
	if _, events := proxied(r); events {
		if _, ok := c.ReadEvents(w, r); !ok {
			return false
		}
	} else if _, ok := c.ReadInbound(w, r); !ok {
		return false
	}
	step := c.Trace.Limit()
	refused, err := c.Core.Admitter.Charge(r.Context(), a.Described(), a.work())
	step.Limited(tracing.Charge, refused != nil, err)
	return a.Pass(w, r, refused, err)
}

// Pass reports whether the limits let a call to a server go on. When they do not, it answers in the way of the call's
// protocol.
func (a Admission) Pass(w http.ResponseWriter, r *http.Request, refused *limit.Refusal, err error) bool {
	c := a.call
	if refused == nil && err == nil {
		return true
	}
	family, events := proxied(r)
	if err != nil {
		c.Records().Outcome("unavailable", 0)
		c.Core.Metrics.Calls.WithLabelValues(family, "unavailable").Inc()
		if !c.Core.storeRefuses(err) {
			c.Core.Log.Error("counting a call", slog.Any("error", err))
		}
		gateway.RefuseUncounted(w)
		return false
	}
	c.Records().Outcome("limited", 0)
	c.Core.Metrics.Calls.WithLabelValues(family, "limited").Inc()
	refused.SetHeader(w.Header())
	form := gateway.Plain
	if !events {
		form = gateway.RPC(c.Inbound.ID())
	}
	gateway.RefuseRateLimited(w, form)
	return false
}

// proxied returns the family of a call to a server.
func proxied(r *http.Request) (family string, events bool) {
	if strings.HasPrefix(r.URL.Path, paths.SSEPrefix) {
		return "sse", true
	}
	return "mcp", false
}

// shed answers a call that must be refused because memory is short, and reports whether it did. lasting reports whether
// the call stays: streams, sessions.
func (c *Core) shed(w http.ResponseWriter, r *http.Request, lasting bool) bool {
	if !c.Overload.Refuses(r.Context(), overload.Work{Lasting: lasting, Body: r.ContentLength, Most: c.Sizes.MCP}) {
		return false
	}
	forward.AnswerUnread(w, r, func() { gateway.RefuseMemory(w) })
	return true
}

// Described describes the call to the admitter. It is short enough to be inlined, so that the description stays on the
// stack.
func (a Admission) Described() *admission.Call {
	c := a.call
	described := &admission.Call{State: &c.Limits, Organization: c.Caller.OrganizationID, Server: c.Server, Agent: c.Agent, Subject: a}
	switch {
	case c.notes == nil:
	case c.Caller.Key == nil:
		described.Recent = &c.notes.limits
	case c.Agent == nil:
		described.RecentModels = &c.notes.models
	}
	return described
}

// LimitSubject implements admission.Describer.
func (a Admission) LimitSubject(traffic storage.TrafficType) limit.Subject {
	c := a.call
	s := limit.Subject{
		Traffic: traffic, UserID: c.Caller.UserID, UserSub: c.Caller.Subject, UserEmail: c.Caller.Email,
		Roles: c.Caller.Roles, Groups: c.Caller.Groups, Teams: c.Caller.Teams, Projects: c.Caller.Projects,
	}
	if c.Agent != nil {
		s.AgentID = c.Agent.ID
	}
	if c.Caller.Key != nil {
		s.APIKeyID = c.Caller.Key.ID
	}
	if c.Server != nil && traffic == storage.TrafficMCP {
		s.ServerID, s.ServerSlug = c.Server.ID, c.Server.Slug
	}
	return s
}

// work returns the part of a call to a server that limits count. GET and DELETE of /mcp have none, and the opening of a
// stream of /sse counts as one request.
func (a Admission) work() admission.Work {
	c := a.call
	switch {
	case c.Events != nil:
		return admission.Work{Requests: 1}
	case c.Inbound == nil:
		return admission.Work{}
	}
	return admission.OfMessages(c.Inbound.Message.Messages, c.Inbound.Unasked || c.Inbound.ForGateway, c.Inbound.Repeated)
}
