package authn

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/storage"
)

// maxRegistered is the greatest number of agents of an organization up to which new clients are registered when first
// seen.
const maxRegistered = 1_000

// standing holds the store's facts about the bearer of a token. Unlike the token's own claims, they can change at any
// time. Requests share it: it is never changed.
type standing struct {
	agent *storage.Agent // nil: the client is not registered
	// revokedAt is the time up to which the user's issued tokens are refused; zero when nobody revoked them.
	revokedAt time.Time
	// login holds the present facts of the login; nil for tokens of other issuers, and when the login has ended.
	login *storage.LoginFacts
	// provisioned holds the statements of the identity provider that provisions the user; nil for machines.
	provisioned *storage.ProvisionedStanding
}

// standingOf looks up the caller's registered agent and revocation time, and who they are by match. With register, an unknown client is
// registered. The key and the loading function are made for each look-up. Nobody keeps them, because a result is kept
// for as long as nothing of the organization is written.
func (m *Memory) standingOf(ctx context.Context, p *person, match storage.ProvisionedMatch) (standing, error) {
	who := &p.who
	if who.Credential != "" {
		return m.standingOfAgent(ctx, who)
	}
	registers := strconv.FormatBool(p.register)
	key := cache.NewKey(who.OrganizationID, "standing", who.Issuer, who.Agent, registers, who.UserID, who.Login, string(match))
	return m.standings.Get(ctx, key, func(ctx context.Context) (s standing, err error) {
		u, err := m.store.User(ctx, who.OrganizationID, who.UserID)
		if err != nil {
			return standing{}, err
		}
		s.revokedAt = u.RevokedAt
		if !who.Machine {
			if s.provisioned, err = m.provisionedOf(ctx, who.OrganizationID, who.UserID, match); err != nil {
				return standing{}, err
			}
		}
		if p.login != nil {
			if s.login, err = m.loginOf(ctx, p, &u); err != nil {
				return standing{}, err
			}
		}
		if who.Agent == "" {
			return s, nil
		}
		client := storage.Agent{
			OrganizationID: who.OrganizationID,
			Application:    storage.Application{OrganizationID: who.OrganizationID, Issuer: who.Issuer, ExternalID: who.Agent, Name: p.agentName(), DCR: true},
		}
		s.agent, err = m.agents.Get(ctx, cache.NewKey(who.OrganizationID, "agent", who.Issuer, who.Agent, registers), func(ctx context.Context) (*storage.Agent, error) {
			return m.agentOf(ctx, client, p.register)
		})
		return s, err
	})
}

// agentOf reads the agent that a client is registered as, nil when it is none. With register it becomes one, while
// there is room.
func (m *Memory) agentOf(ctx context.Context, client storage.Agent, register bool) (*storage.Agent, error) {
	known, err := m.store.AgentByClient(ctx, client.OrganizationID, client.Application.Issuer, client.Application.ExternalID)
	if register && errors.Is(err, storage.ErrNotFound) {
		known, err = m.registerAgent(ctx, client)
	}
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, nil //nolint:nilnil // no agent is a fact that is kept like any other
	case err != nil:
		return nil, err
	}
	cache.Compact(&known)
	return &known, nil
}

func (m *Memory) registerAgent(ctx context.Context, client storage.Agent) (storage.Agent, error) {
	for _, id := range []*string{&client.ID, &client.Application.ID} {
		made, err := uuid.NewV7()
		if err != nil {
			return storage.Agent{}, err
		}
		*id = made.String()
	}
	client.CreatedAt = m.now().UTC()
	client.UpdatedAt, client.Application.CreatedAt, client.Application.UpdatedAt = client.CreatedAt, client.CreatedAt, client.CreatedAt
	return m.store.RegisterAgent(ctx, client, maxRegistered)
}

// lastStanding holds the last known standing of a token's bearer. It is valid while nothing of its organization is
// written.
type lastStanding struct {
	at cache.Epoch
	standing
	refusal string // says why all tokens of the login or credential are refused; "": they are not
}

// standing returns the present standing of a token's bearer. Its error is token.ErrInvalid when the user's tokens are
// revoked, and ErrShutOut too when the user may not come in.
func (a *Authenticator) standing(ctx context.Context, v *verified) (*lastStanding, error) {
	// The epoch is read first: the standing read after it is at least as new.
	now := v.history.Current()
	s := v.standing.Load()
	if s == nil || s.at != now {
		found, err := a.memory.standingOf(ctx, v.person, a.provisioning.Match)
		if err != nil {
			return nil, err
		}
		s = &lastStanding{now, found, v.person.refusal(&found)}
		v.standing.Store(s)
	}
	if err := a.provisioning.refusal(s.provisioned); err != nil {
		return nil, &RefusedError{Err: err, Caller: &v.caller}
	}
	reason := s.refusal
	if reason == "" && s.refuses(v) {
		reason = "the user's tokens were revoked"
	}
	if reason != "" {
		return nil, &RefusedError{Err: &token.Error{Kind: token.ErrInvalid, Reason: reason}, Caller: &v.caller}
	}
	return s, nil
}

// refuses reports whether a token is among the revoked ones. A token without a time of issue is among them. So is one
// that this node saw before the revocation, whatever its issuer's clock says.
func (s *standing) refuses(v *verified) bool {
	if s.revokedAt.IsZero() {
		return false
	}
	return !v.vouched.IssuedAt.After(s.revokedAt) || !v.seenAt.After(s.revokedAt)
}
