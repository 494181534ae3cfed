package app

import (
	"encoding/json"
	"sync/atomic"

	"github.com/durward-gateway/durward/internal/rules"
	"github.com/durward-gateway/durward/storage"
)

// principals keeps what policies know of a token's bearer, made once for the agent that its client is at the time.
type principals struct{ last atomic.Pointer[madePrincipal] }

type madePrincipal struct {
	agent     string
	principal *rules.Principal
}

// Principal is what policies know of the call's caller; nil without one.
func (c *Call) Principal() *rules.Principal {
	agent := ""
	if c.Agent != nil {
		agent = c.Agent.ID
	}
	switch {
	case c.token != nil:
		return c.token.principal(agent)
	case c.Caller != nil: // proven by other means than a token, which have no claims
		return rules.NewPrincipal(c.Caller.UserID, c.Caller.Roles, c.Caller.Groups, agent, nil)
	}
	return nil
}

// PrincipalAs is the call's caller with another agent, nil for none.
func (c *Call) PrincipalAs(agent *storage.Agent) *rules.Principal {
	as := *c
	as.Agent = agent
	return as.Principal()
}

func (v *verified) principal(agent string) *rules.Principal {
	if made := v.principals.last.Load(); made != nil && made.agent == agent {
		return made.principal
	}
	claims, _ := v.claims.Object.Any(func(lexeme string) any { return json.Number(lexeme) }).(map[string]any)
	made := &madePrincipal{agent: agent, principal: rules.NewPrincipal(v.caller.UserID, v.caller.Roles, v.caller.Groups, agent, claims)}
	v.principals.last.Store(made)
	return made.principal
}
