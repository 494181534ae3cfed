package app

import (
	"context"

	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/internal/policy/evaluator"
	"github.com/durward-gateway/durward/storage"
)

// Party shows the caller of a call to those who decide on it, to each in the form that they know.
type Party struct{ call *Call }

// Party returns the party that makes the call.
func (c *Call) Party() Party { return Party{c} }

// Principal returns the policies' view of the caller; nil without one.
func (p Party) Principal() *engine.Principal { return p.PrincipalAs(p.call.Agent) }

// PrincipalAs returns the principal of the caller with another agent, nil for none.
func (p Party) PrincipalAs(agent *storage.Agent) *engine.Principal {
	c, id := p.call, ""
	if agent != nil {
		id = agent.ID
	}
	switch {
	case c.bearer.Proven():
		return c.bearer.Principal(id)
	case c.Caller != nil: // only in tests: no credential has claims
		return engine.NewPrincipal(c.Caller.UserID, c.Caller.Roles, c.Caller.Groups, id, nil)
	}
	return nil
}

// PrincipalNow returns a function that returns the policies' view of the caller at the time of its call. Any goroutine
// may use it. It is for streams, which outlive the decision on their call.
// See authn.Authenticator.PrincipalNow.
func (p Party) PrincipalNow() func(context.Context) (*engine.Principal, error) {
	c := p.call
	if c.bearer.Proven() {
		return c.Core.Authenticator.PrincipalNow(&c.bearer)
	}
	was := p.Principal()
	return func(context.Context) (*engine.Principal, error) { return was, nil }
}

// Asker returns the party for whom the evaluator looks up servers.
func (p Party) Asker() evaluator.Asker {
	c := p.call
	who := evaluator.Asker{Organization: c.Caller.OrganizationID}
	if notes := c.tokenNotes(); notes != nil {
		who.History, who.Recent = c.bearer.History(), &notes.server
	}
	return who
}

// Decider returns the caller in the role of a person who decides on held calls with a token.
func (p Party) Decider() approval.Decider {
	who := p.call.Caller
	d := approval.Decider{
		OrganizationID: who.OrganizationID, UserID: who.UserID, Client: who.Agent, Machine: who.Machine, Key: who.Key != nil,
		Roles: who.Roles, Groups: who.Groups, FactsAt: p.call.bearer.FactsAt(),
	}
	if who.Console {
		d.Client = "" // a script holds the token: decisions are made on the page that has none
	}
	return d
}
