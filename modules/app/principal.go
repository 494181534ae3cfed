package app

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"

	"github.com/durward-gateway/durward/internal/rules"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/internal/token"
	"github.com/durward-gateway/durward/storage"
)

// attributes are what policies can see of a token's claims. Tokens of a person that say the same share them, and what is
// made of them: a new one is mostly the last one with another id and end.
type attributes struct {
	claims string // an object
	// last is the principal for the agent that the tokens' client was when it was last asked for.
	last atomic.Pointer[rules.Principal]
}

// attributesOf are those of a token of the person.
func (p *person) attributesOf(claims *token.Claims) *attributes {
	text := claims.Object.AppendWithout(make([]byte, 0, 1<<10), ofOneToken) // usual claims stay on the stack
	if last := p.attributes.Load(); last != nil && last.claims == string(text) {
		return last
	}
	made := &attributes{claims: string(text)}
	p.attributes.Store(made)
	return made
}

// Read implements rules.Claims.
func (a *attributes) Read() (all map[string]any, ok bool) {
	parsed, err := strictjson.Parse([]byte(a.claims), strictjson.Limits{})
	if err != nil {
		return nil, false
	}
	all, ok = parsed.Any(func(lexeme string) any { return json.Number(lexeme) }).(map[string]any)
	return all, ok
}

// ofOneToken is true of claims that differ from one token of somebody to the next, and that no condition of a policy sees.
func ofOneToken(claim []byte) bool {
	switch string(claim) {
	case "aud", "exp", "nbf", "iat", "jti", "nonce", "sid", "session_state":
		return rules.Unseen(string(claim))
	}
	return false
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
	case c.key != nil && agent == c.key.agentID():
		return c.key.principal
	case c.key != nil:
		return c.key.principalAs(agent)
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
	switch {
	case c.key != nil:
		return core.keyPrincipalNow(c.home, was)
	case known == nil:
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

// keyPrincipalNow is PrincipalNow for an API key, which acts by what its user's newest token says.
func (c *Core) keyPrincipalNow(home *keyHome, was *rules.Principal) func(context.Context) (*rules.Principal, error) {
	return func(ctx context.Context) (*rules.Principal, error) {
		key, err := c.keyState(ctx, home)
		switch {
		case errors.Is(err, token.ErrInvalid):
			return was, nil
		case err != nil:
			return nil, err
		}
		now := Call{Core: c, Caller: &key.caller, Agent: key.agent, key: key}
		if !now.AgentAllowed() {
			return nil, nil
		}
		return key.principal, nil
	}
}

func (v *verified) principal(agent string) *rules.Principal {
	if made := v.last.Load(); made != nil && made.AgentID() == agent {
		return made
	}
	// The attributes, and nothing else of the token, which may go before them.
	made := rules.NewPrincipalOf(v.caller.UserID, v.caller.Roles, v.caller.Groups, agent, v.attributes)
	v.last.Store(made)
	return made
}
