package app

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/audit/record"
	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/mcp/streams"
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
}

// standingOf looks up the caller's registered agent and revocation time. With register, an unknown client is
// registered. The key and the loading function are made for each look-up. Nobody keeps them, because a result is kept
// for as long as nothing of the organization is written.
func (r *resources) standingOf(ctx context.Context, who *Caller, register bool) (standing, error) {
	mode := "as registered"
	if register {
		mode = "registering"
	}
	key := cache.NewKey(who.OrganizationID, "standing", who.Issuer, who.Agent, mode, who.UserID)
	return r.standings.Get(ctx, key, func(ctx context.Context) (s standing, err error) {
		u, err := r.store.User(ctx, who.OrganizationID, who.UserID)
		if err != nil {
			return standing{}, err
		}
		s.revokedAt = u.RevokedAt
		if who.Agent == "" {
			return s, nil
		}
		client := storage.Agent{
			OrganizationID: who.OrganizationID, WriteConfirmationsRequired: true,
			Application: storage.Application{OrganizationID: who.OrganizationID, Issuer: who.Issuer, ExternalID: who.Agent, Name: who.Agent, DCR: true},
		}
		s.agent, err = r.agents.Get(ctx, cache.NewKey(who.OrganizationID, "agent", who.Issuer, who.Agent, mode), func(ctx context.Context) (*storage.Agent, error) {
			return r.agentOf(ctx, client, register)
		})
		return s, err
	})
}

// agentOf reads the agent that a client is registered as, nil when it is none. With register it becomes one, while
// there is room.
func (r *resources) agentOf(ctx context.Context, client storage.Agent, register bool) (*storage.Agent, error) {
	known, err := r.store.AgentByClient(ctx, client.OrganizationID, client.Application.Issuer, client.Application.ExternalID)
	if register && errors.Is(err, storage.ErrNotFound) {
		known, err = r.registerAgent(ctx, client)
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

func (r *resources) registerAgent(ctx context.Context, client storage.Agent) (storage.Agent, error) {
	for _, id := range []*string{&client.ID, &client.Application.ID} {
		made, err := uuid.NewV7()
		if err != nil {
			return storage.Agent{}, err
		}
		*id = made.String()
	}
	client.CreatedAt = time.Now().UTC()
	client.UpdatedAt, client.Application.CreatedAt, client.Application.UpdatedAt = client.CreatedAt, client.CreatedAt, client.CreatedAt
	return r.store.RegisterAgent(ctx, client, maxRegistered)
}

// lastStanding holds the last known standing of a token's bearer. It is valid while nothing of its organization is
// written.
type lastStanding struct {
	at cache.Epoch
	standing
}

// standing returns the present standing of a token's bearer. Its error is token.ErrInvalid when the user's tokens are
// revoked.
func (c *Core) standing(ctx context.Context, v *verified) (*lastStanding, error) {
	// The epoch is read first: the standing read after it is at least as new.
	now := v.history.Current()
	s := v.standing.Load()
	if s == nil || s.at != now {
		found, err := c.resources.standingOf(ctx, &v.who, v.register)
		if err != nil {
			return nil, err
		}
		s = &lastStanding{now, found}
		v.standing.Store(s)
	}
	if s.refuses(v) {
		return nil, &record.BearerError{Err: &token.Error{Kind: token.ErrInvalid, Reason: "the user's tokens were revoked"}, Bearer: v.caller.Bearer()}
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

// Authenticate verifies the token of a request and sets the call's caller and agent. Errors are those of Core.Authenticate.
func (c *Call) Authenticate(ctx context.Context, raw, resource string) error {
	known, err := c.Core.verified(ctx, raw, resource)
	if err != nil {
		return err
	}
	now, err := c.Core.standing(ctx, known)
	if err != nil {
		return err
	}
	c.Caller, c.Agent = &known.caller, now.agent
	c.token, c.stood = known, now.at
	return nil
}

// epoch returns the present epoch of the caller's organization.
func (c *Call) epoch() cache.Epoch {
	if c.token != nil {
		return c.token.history.Current()
	}
	return c.Core.resources.epochs.Current(c.Caller.OrganizationID)
}

// renewStanding returns a *streams.Ended when the caller's token or key was revoked since the call began. The store is
// asked only when something of the organization was written since.
func (c *Call) renewStanding(ctx context.Context) error {
	if c.token == nil && c.key == nil || c.epoch() == c.stood {
		return nil
	}
	var err error
	if c.key != nil {
		_, err = c.Core.keyState(ctx, c.home)
	} else {
		_, err = c.Core.standing(ctx, c.token)
	}
	if errors.Is(err, token.ErrInvalid) {
		return &streams.Ended{Reason: streams.Revoked}
	}
	return err
}

// Running returns the number of streams and calls that run for a user.
func (c *Core) Running(organization, id string) int {
	return c.Streams.Count(streams.Owner{Organization: organization, User: id})
}

// EndUser ends all streams and calls of a user whose tokens are refused from now on, and returns their number.
func (c *Core) EndUser(organization, id string) int {
	return c.Streams.End(streams.Owner{Organization: organization, User: id}, streams.Revoked)
}

// AgentAllowed reports whether the call's client may use /mcp and /sse: with `agents require_registered` only one that is
// registered may.
func (c *Call) AgentAllowed() bool { return c.Agent != nil || !c.AgentRequired() }

// AgentRequired reports whether the client loses its right to use /mcp and /sse when its agent is deleted.
func (c *Call) AgentRequired() bool { return c.Core.agents.RequireRegistered }
