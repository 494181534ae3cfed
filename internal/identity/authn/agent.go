package authn

import (
	"context"
	"errors"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/internal/identity/logins"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/storage"
)

// credentialEnded is the reason for which tokens of an agent's credential are refused.
const credentialEnded = "the agent or its credential was deleted"

// verifyAgent finds the agent that a verified token of the gateway's own names. The agent logged in without a person, with
// the credential that the token names.
func (a *Authenticator) verifyAgent(ctx context.Context, claims *token.Claims, organization, client string, seenAt time.Time) (*verified, error) {
	id, _ := claims.Str(logins.ClaimCredential)
	holder, err := a.memory.store.AgentCredential(ctx, organization, id)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, &token.Error{Kind: token.ErrInvalid, Reason: credentialEnded}
	case err != nil:
		return nil, err
	case holder.AgentID != claims.Subject, holder.AgentID != client:
		return nil, &token.Error{Kind: token.ErrInvalid, Reason: "the token is not one of its credential"}
	}
	somebody, err := a.agentPerson(ctx, &holder, claims.IssuedAt)
	if err != nil {
		return nil, err
	}
	return newVerified(claims, a.logins.Verifier, somebody, somebody.attributesOf(claims), seenAt), nil
}

// agentPerson returns the machine that an agent without a person is: a user whose subject is the agent's id, without roles
// and groups. It never has the rights of an administrator.
func (a *Authenticator) agentPerson(ctx context.Context, holder *storage.AgentCredentialHolder, issued time.Time) (*person, error) {
	key := cache.NewKey("", "agent without a person", a.rulesID, holder.OrganizationID, holder.ID)
	return a.memory.people.Get(ctx, key, func(ctx context.Context) (*person, error) {
		who := caller.Identity{Issuer: a.logins.owner(), Subject: holder.AgentID, Name: holder.Agent.Application.Name, Machine: true}
		claim := who.UserClaim(holder.OrganizationID)
		claim.IssuedAt = issued
		u, err := a.memory.store.ResolveUser(ctx, claim, a.memory.now())
		if err != nil {
			return nil, err
		}
		made := &person{
			who: Caller{
				Issuer: who.Issuer, Subject: who.Subject, OrganizationID: u.OrganizationID, UserID: u.ID, Name: u.Name,
				Agent: holder.Agent.Application.ExternalID, Credential: holder.ID, Machine: true,
			},
			history: a.memory.epochs.Of(u.OrganizationID), notes: a.memory.newNotes(),
		}
		cache.Compact(&made.who)
		return made, nil
	})
}

// standingOfAgent looks up whether the credential of an agent without a person still exists. The agent is the credential's,
// whatever issuer its application was registered under.
func (m *Memory) standingOfAgent(ctx context.Context, who *Caller) (standing, error) {
	key := cache.NewKey(who.OrganizationID, "standing of an agent", who.UserID, who.Credential)
	return m.standings.Get(ctx, key, func(ctx context.Context) (s standing, err error) {
		u, err := m.store.User(ctx, who.OrganizationID, who.UserID)
		if err != nil {
			return standing{}, err
		}
		s.revokedAt = u.RevokedAt
		holder, err := m.store.AgentCredential(ctx, who.OrganizationID, who.Credential)
		switch {
		case errors.Is(err, storage.ErrNotFound):
			return s, nil // that it has ended is a fact that is kept like any other
		case err != nil:
			return standing{}, err
		}
		s.agent = &holder.Agent
		cache.Compact(s.agent)
		return s, nil
	})
}

// refusal says why tokens of a person are refused, given the present facts; "" when they are not.
func (p *person) refusal(now *standing) string {
	if p.who.Credential == "" {
		return p.login.refusal(now.login)
	}
	if now.agent == nil {
		return credentialEnded
	}
	return ""
}
