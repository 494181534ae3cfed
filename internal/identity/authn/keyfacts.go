package authn

import (
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/internal/identity/apikey"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/storage"
)

// factsLast is the time for which an API key uses the facts in a token of its user (contract 4.3).
const factsLast = 30 * 24 * time.Hour

// knownKey holds a key as the store has it. Requests share it: it is never changed.
type knownKey struct {
	home *keyHome
	key  storage.APIKey
	// userRevoked reports whether the key's user was revoked after the key was made.
	userRevoked bool
	agent       *storage.Agent // that it was made for; nil for none
	caller      Caller
	names       int // the length of the caller's roles and groups
	unknown     engine.Unknown
	principal   *engine.Principal
	notes       any // see Bearer.Notes
	overlaid    atomic.Pointer[overlaid[knownKey]]
}

func newKnownKey(holder storage.APIKeyHolder, now time.Time) *knownKey {
	scopes, _ := apikey.ParseScopes(holder.Scopes) // none when one was not understood
	if holder.MadeWith == "" {
		scopes.MCP = false // an agent's token may have made it, and it would escape what governs the agent
	}
	k := &knownKey{key: holder.APIKey, agent: holder.Agent, unknown: engine.Unknown{Claims: true}, caller: Caller{
		OrganizationID: holder.OrganizationID, UserID: holder.UserID, Machine: true, ExpiresAt: holder.ExpiresAt,
		Key: &APIKey{ID: holder.ID, Name: holder.Name, Scopes: scopes},
	}}
	if holder.GroupName != "" {
		k.caller.Groups = []string{holder.GroupName}
	}
	if holder.Agent != nil {
		k.caller.Agent = holder.Agent.Application.ExternalID
	}
	if u := holder.User; u != nil {
		k.caller.Issuer, k.caller.Subject, k.caller.Name, k.caller.Email = u.Issuer, u.Subject, u.Name, u.Email
		k.caller.Machine = u.Kind == storage.UserMachine
		k.userRevoked = !u.RevokedAt.IsZero() && !holder.CreatedAt.After(u.RevokedAt)
		k.actBy(u, now)
	}
	k.names = sizeOf(k.caller.Roles, k.caller.Groups)
	k.principal = k.principalAs(k.agentID())
	return k
}

// actBy gives a key the facts of its user. Without them the key would escape the rules of policies, limits and budgets
// for a role or group. Names that are not certain any more still count in limits, because there they can only narrow.
func (k *knownKey) actBy(user *storage.User, now time.Time) {
	facts := &user.Facts
	k.caller.Roles, k.caller.Groups, k.caller.Teams, k.caller.Projects = facts.Roles.Names, facts.Groups.Names, facts.Teams.Names, facts.Projects.Names
	k.unknown.Roles, k.unknown.Groups = unsure(user, facts.Roles, now), unsure(user, facts.Groups, now)
}

// unsure reports whether the present content of a list is unknown. This is so when no token is new enough, or when the
// newest does not name the list and an earlier one did. The list stays unknown until a token names it again: old names
// must not grant anything. For users whose tokens have never named the list it is known to be empty.
func unsure(user *storage.User, list storage.Fact, now time.Time) bool {
	if now.Sub(user.FactsAt) > factsLast { // also since the zero time, when there was no token
		return true
	}
	return !list.At.IsZero() && list.At.Before(user.FactsAt)
}

func (k *knownKey) principalAs(agent string) *engine.Principal {
	return engine.NewPrincipalWithout(k.unknown, k.caller.UserID, k.caller.Roles, k.caller.Groups, agent)
}

func (k *knownKey) agentID() string { return agentID(k.agent) }
