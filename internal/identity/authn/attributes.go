package authn

import (
	"encoding/json"
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

// FactsOf returns the facts about a user in the claims of an identity provider, for a login with the gateway.
func FactsOf(who *Caller, claims *token.Claims) storage.LoginFacts {
	return storage.LoginFacts{
		Roles: who.Roles, Groups: who.Groups, Teams: who.Teams, Projects: who.Projects, Claims: string(claims.Object.AppendWithout(nil, ofOneToken)),
	}
}

// AssertedFactsOf returns the facts about a user in an identity assertion. It names what its issuer chose for one client, and
// no userinfo completes it as after a login with a browser: lists that it does not name are unknown, not empty.
func AssertedFactsOf(who *Caller, claims *token.Claims) storage.LoginFacts {
	facts := FactsOf(who, claims)
	facts.RolesUnknown, facts.GroupsUnknown = who.Roles == nil, who.Groups == nil
	return facts
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

func (v *verified) principal(agent string) *engine.Principal {
	if made := v.last.Load(); made != nil && made.AgentID() == agent {
		return made
	}
	// The function keeps the attributes, and nothing else of the token, whose memory may be freed before.
	made := engine.NewPrincipalLacking(v.unknown(), v.caller.UserID, v.caller.Roles, v.caller.Groups, agent, v.attributes)
	v.last.Store(made)
	return made
}
