package app

import (
	"time"

	"github.com/durward-gateway/durward/internal/apikey"
	"github.com/durward-gateway/durward/internal/rules"
	"github.com/durward-gateway/durward/storage"
)

// factsLast is how long an API key acts by what a token of its user said (contract 4.3).
const factsLast = 30 * 24 * time.Hour

func newKnownKey(holder storage.APIKeyHolder, now time.Time) *knownKey {
	scopes, err := apikey.ParseScopes(holder.Scopes)
	if err != nil {
		scopes = apikey.Scopes{} // a key never means more than was understood
	}
	if holder.MadeWith == "" {
		scopes.MCP = false // an agent's token may have made it, and it would escape what governs the agent
	}
	k := &knownKey{key: holder.APIKey, agent: holder.Agent, unknown: rules.Unknown{Claims: true}, caller: Caller{
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
	k.principal = k.principalAs(k.agentID())
	return k
}

// actBy has a key act by the facts of its user. Without them it would escape what policies, limits and budgets say of a role or
// group. Names that are not sure any more still count in limits, which they can only narrow.
func (k *knownKey) actBy(user *storage.User, now time.Time) {
	facts := &user.Facts
	k.caller.Roles, k.caller.Groups, k.caller.Teams, k.caller.Projects = facts.Roles.Names, facts.Groups.Names, facts.Teams.Names, facts.Projects.Names
	k.unknown.Roles, k.unknown.Groups = unsure(user, facts.Roles, now), unsure(user, facts.Groups, now)
}

// unsure reports whether nobody knows what a list holds now: there is no token that is new enough, or the newest does not name the
// list and one before it did. It stays so until a token names the list again: names of long ago must not grant anything. Users
// whose tokens have never named the list have none.
func unsure(user *storage.User, list storage.Fact, now time.Time) bool {
	if user.FactsAt.IsZero() || now.Sub(user.FactsAt) > factsLast {
		return true
	}
	return !list.At.IsZero() && list.At.Before(user.FactsAt)
}

func (k *knownKey) principalAs(agent string) *rules.Principal {
	return rules.NewPrincipalWithout(k.unknown, k.caller.UserID, k.caller.Roles, k.caller.Groups, agent)
}

func (k *knownKey) agentID() string {
	if k.agent == nil {
		return ""
	}
	return k.agent.ID
}
