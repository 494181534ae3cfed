package app

import (
	"github.com/durward-gateway/durward/internal/ratelimit/admission"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/storage"
)

// Admission describes the call to the admitter. It is short enough to be inlined, so that the description stays on the
// stack.
func (c *Call) Admission() *admission.Call {
	described := &admission.Call{State: &c.Limits, Organization: c.Caller.OrganizationID, Server: c.Server, Agent: c.Agent, Subject: c}
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
func (c *Call) LimitSubject(traffic storage.TrafficType) limit.Subject {
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
func (c *Call) work() admission.Work {
	switch {
	case c.Events != nil:
		return admission.Work{Requests: 1}
	case c.Inbound == nil:
		return admission.Work{}
	}
	return admission.OfMessages(c.Inbound.Message.Messages, c.Inbound.Unasked || c.Inbound.ForGateway, c.Inbound.Repeated)
}
