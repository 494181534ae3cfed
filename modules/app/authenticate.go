package app

import (
	"context"
	"crypto/sha256"
	"strconv"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/caller"
	"github.com/durward-gateway/durward/internal/token"
	"github.com/durward-gateway/durward/storage"
)

// verified is a token that was verified once, with what it says about its caller. Requests share it.
type verified struct {
	claims *token.Claims
	caller Caller
	bearer bearer
	seenAt time.Time
	// principals fill themselves on first use; nothing else of a verified token ever changes.
	principals principals
}

// Authenticate verifies a token and resolves its caller, which must not be changed. resource is an audience that is good
// besides the gateway's own; "" for none. Errors are those of internal/token (ErrInvalid, ErrUnavailable), internal/caller (ErrInvalid,
// ErrForbidden) and the store.
func (c *Core) Authenticate(ctx context.Context, raw, resource string) (*Caller, error) {
	known, err := c.verified(ctx, raw, resource)
	if err != nil {
		return nil, err
	}
	if _, err := c.standing(ctx, known); err != nil {
		return nil, err
	}
	return &known.caller, nil
}

// verified is what a token says, once it was verified. Whether its user's tokens were revoked is not looked at.
func (c *Core) verified(ctx context.Context, raw, resource string) (*verified, error) {
	if len(raw) > token.MaxSize {
		return nil, token.ErrInvalid // before its digest is made (J22)
	}
	// The key holds what the verdict depends on: the rules of this configuration too, because the cache outlives it. The
	// token names its issuer.
	digest := sha256.Sum256(append(make([]byte, 0, 2<<10), raw...)) // usual tokens are copied to the stack, not the heap
	key := cache.NewKey("", "caller", c.rulesID, resource, string(digest[:]))
	known, err := c.resources.callers.GetAlone(ctx, key, func(ctx context.Context) (*verified, error) { return c.verify(ctx, raw, resource) })
	if err != nil {
		return nil, err
	}
	identity, ok := c.identities[known.claims.Issuer]
	if !ok {
		return nil, token.ErrInvalid
	}
	// What was true when the token was verified may have ended: its life, or its key's (J30).
	if err := identity.Verifier().Recheck(ctx, known.claims); err != nil {
		return nil, err
	}
	return known, nil
}

func (c *Core) verify(ctx context.Context, raw, resource string) (*verified, error) {
	unverified, err := token.Parse(raw)
	if err != nil {
		return nil, err
	}
	issuer, err := unverified.Issuer()
	if err != nil {
		return nil, err
	}
	identity, ok := c.identities[issuer]
	if !ok {
		return nil, token.ErrInvalid
	}
	claims, err := identity.Verifier().VerifyParsed(ctx, unverified, resource)
	if err != nil {
		return nil, err
	}
	rules := identity.Rules()
	who, err := caller.Map(claims, rules.Mapping)
	if err != nil {
		return nil, err
	}
	resolved, err := c.resolve(ctx, who, rules.AdminRole)
	if err != nil {
		return nil, err
	}
	resolved.ExpiresAt = identity.Verifier().GoodUntil(claims)
	known := &verified{claims: claims, caller: resolved, seenAt: time.Now()}
	known.bearer = c.resources.newBearer(&known.caller, c.agents.AutoRegister)
	return known, nil
}

// resolve finds, or makes on first sight, the organization and the user that a token speaks of.
func (c *Core) resolve(ctx context.Context, who caller.Identity, adminRole string) (Caller, error) {
	// The key is everything that the store goes by.
	claim, person := who.Organization, who.UserClaim("")
	key := cache.NewKey("", "person", claim.Issuer, claim.ID, claim.Slug, claim.DerivedID, strconv.FormatBool(claim.Shared),
		person.Issuer, person.Subject, string(person.Kind), person.Name, person.Email)
	user, err := c.resources.people.Get(ctx, key, func(ctx context.Context) (storage.User, error) {
		now := time.Now()
		organization, err := c.Store.ResolveOrganization(ctx, claim, now)
		if err != nil {
			return storage.User{}, err
		}
		return c.Store.ResolveUser(ctx, who.UserClaim(organization.ID), now)
	})
	if err != nil {
		return Caller{}, err
	}
	return Caller{
		Issuer: who.Issuer, Subject: who.Subject, OrganizationID: user.OrganizationID, UserID: user.ID, Name: user.Name, Email: user.Email,
		Roles: who.Roles, Groups: who.Groups, Teams: who.Teams, Projects: who.Projects, Agent: who.AgentExternalID,
		Admin: who.HasRole(adminRole), Machine: who.Machine,
	}, nil
}
