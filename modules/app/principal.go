package app

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"

	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/storage"
)

// attributes holds the claims of a token that policies can see. Tokens of a person with the same claims share them, and
// everything made from them: a new token mostly differs from the last one only in its id and end.
type attributes struct {
	claims string // an object
	// last is the principal with the agent of the last look-up for the tokens' client.
	last atomic.Pointer[engine.Principal]
}

// attributesOf returns the attributes of a token of the person.
func (p *person) attributesOf(claims *token.Claims) *attributes {
	text := claims.Object.AppendWithout(make([]byte, 0, 1<<10), ofOneToken) // usual claims stay on the stack
	if last := p.attributes.Load(); last != nil && last.claims == string(text) {
		return last
	}
	made := &attributes{claims: string(text)}
	p.attributes.Store(made)
	return made
}

// Read implements engine.Claims.
func (a *attributes) Read() (all map[string]any, ok bool) {
	parsed, err := strictjson.Parse([]byte(a.claims), strictjson.Limits{})
	if err != nil {
		return nil, false
	}
	all, ok = parsed.Any(func(lexeme string) any { return json.Number(lexeme) }).(map[string]any)
	return all, ok
}

// ofOneToken reports whether a claim differs between a person's tokens. No condition of a policy sees such a claim.
func ofOneToken(claim []byte) bool {
	switch string(claim) {
	case "aud", "exp", "nbf", "iat", "jti", "nonce", "sid", "session_state":
		return engine.Unseen(string(claim))
	}
	return false
}

// Principal returns the policies' view of the call's caller; nil without one.
func (c *Call) Principal() *engine.Principal {
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
		return engine.NewPrincipal(c.Caller.UserID, c.Caller.Roles, c.Caller.Groups, agent, nil)
	}
	return nil
}

// PrincipalAs returns the principal of the call's caller with another agent, nil for none.
func (c *Call) PrincipalAs(agent *storage.Agent) *engine.Principal {
	as := *c
	as.Agent = agent
	return as.Principal()
}

// PrincipalNow returns a function that returns the policies' view of the caller at the time of its call. Any goroutine
// may use it. It is for streams, which outlive the decision on their call. The result is nil when clients must be
// agents and this one no longer is. A caller whose tokens were revoked stays the same principal: the revocation ends
// their streams, with a reason of its own.
func (c *Call) PrincipalNow() func(context.Context) (*engine.Principal, error) {
	core, known, was := c.Core, c.token, c.Principal()
	switch {
	case c.key != nil:
		return core.keyPrincipalNow(c.home, was)
	case known == nil:
		return func(context.Context) (*engine.Principal, error) { return was, nil }
	}
	return func(ctx context.Context) (*engine.Principal, error) {
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

// keyPrincipalNow does the work of PrincipalNow for an API key, which uses the facts in its user's newest token.
func (c *Core) keyPrincipalNow(home *keyHome, was *engine.Principal) func(context.Context) (*engine.Principal, error) {
	return func(ctx context.Context) (*engine.Principal, error) {
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

func (v *verified) principal(agent string) *engine.Principal {
	if made := v.last.Load(); made != nil && made.AgentID() == agent {
		return made
	}
	// The function keeps the attributes, and nothing else of the token, whose memory may be freed before.
	made := engine.NewPrincipalOf(v.caller.UserID, v.caller.Roles, v.caller.Groups, agent, v.attributes)
	v.last.Store(made)
	return made
}
