package app

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"

	"github.com/durward-gateway/durward/internal/rules"
	"github.com/durward-gateway/durward/internal/token"
	"github.com/durward-gateway/durward/storage"
)

// principals keeps what policies know of a token's bearer, made once for the agent that its client is at the time.
type principals struct {
	last atomic.Pointer[rules.Principal]
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
	case c.key != nil && agent == "":
		return c.key.principal
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

// PrincipalNow returns what tells, at any later time and to any goroutine, what policies know of the caller by then: for
// streams, which outlive what their call was allowed by. It is nil for a client that is no agent any more where it has to be.
// A caller whose tokens were revoked stays who they were: the revocation ends their streams, with a reason of its own.
func (c *Call) PrincipalNow() func(context.Context) (*rules.Principal, error) {
	core, known, was := c.Core, c.token, c.Principal()
	if known == nil {
		return func(context.Context) (*rules.Principal, error) { return was, nil }
	}
	return func(ctx context.Context) (*rules.Principal, error) {
		s, err := core.standing(ctx, known)
		if errors.Is(err, token.ErrInvalid) {
			return was, nil
		}
		if err != nil {
			return nil, err
		}
		now := Call{Core: core, Caller: &known.caller, Agent: s.agent, token: known}
		if !now.AgentAllowed() {
			return nil, nil
		}
		return now.Principal(), nil
	}
}

func (v *verified) principal(agent string) *rules.Principal {
	if made := v.principals.last.Load(); made != nil && made.AgentID() == agent {
		return made
	}
	claims := func() map[string]any {
		object, _ := v.claims.Object.Any(func(lexeme string) any { return json.Number(lexeme) }).(map[string]any)
		return object
	}
	made := rules.NewPrincipalOf(v.caller.UserID, v.caller.Roles, v.caller.Groups, agent, claims)
	v.principals.last.Store(made)
	return made
}
