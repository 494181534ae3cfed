package app

import (
	"context"
	"crypto/sha256"
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/internal/broker"
	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/caller"
	"github.com/durward-gateway/durward/internal/token"
)

// verified is a token that was verified once, with what it says about its caller. Requests share it.
type verified struct {
	*person
	*attributes
	vouched token.Vouched
	caller  Caller // the person's, with the token's end
	names   int    // the length of the caller's roles and groups
	seenAt  time.Time
}

// person is what tokens of the same facts have in common. Tokens share it, which spares a new one of somebody known most of
// what is not its signature.
type person struct {
	who      Caller        // but for the end of a token
	history  cache.History // of the organization
	register bool          // a client that is not known becomes an agent
	// attributes are those of the last token that was new.
	attributes atomic.Pointer[attributes]
	// These say how the bearer stood at the last call, where that went, with which credential, and what it counted in.
	standing   atomic.Pointer[lastStanding]
	connection broker.Recent
	server     atomic.Pointer[lastServer]
	limits     atomic.Pointer[lastMatched]
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
	// Whether the token has ended is asked below.
	known, ok := c.resources.callers.Recent(time.Time{}, "", "caller", c.rulesID, resource, string(digest[:]))
	if !ok {
		var err error
		if known, err = c.verifyUnlessKept(ctx, raw, resource, digest); err != nil {
			return nil, err
		}
	}
	identity, ok := c.identities[known.vouched.Issuer]
	if !ok {
		return nil, token.ErrInvalid
	}
	// What was true when the token was verified may have ended: its life, or its key's (J30).
	if err := identity.Verifier().Recheck(ctx, &known.vouched); err != nil {
		return nil, err
	}
	return known, nil
}

func (c *Core) verifyUnlessKept(ctx context.Context, raw, resource string, digest [sha256.Size]byte) (*verified, error) {
	key := cache.NewKey("", "caller", c.rulesID, resource, string(digest[:]))
	return c.resources.callers.GetAlone(ctx, key, func(ctx context.Context) (*verified, error) { return c.verify(ctx, raw, resource) })
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
	identity, ok := c.identities[string(issuer)]
	if !ok {
		return nil, &token.Error{Kind: token.ErrInvalid, Reason: "iss is not that of a configured identity"}
	}
	claims, err := identity.Verifier().VerifyParsed(ctx, unverified, resource)
	if err != nil {
		return nil, err
	}
	somebody, err := c.person(ctx, claims, identity)
	if err != nil {
		return nil, err
	}
	known := &verified{person: somebody, attributes: somebody.attributesOf(claims), vouched: claims.Vouched, caller: somebody.who, seenAt: c.Shared(time.Now())}
	known.names = sizeOf(known.caller.Roles, known.caller.Groups)
	known.caller.ExpiresAt = identity.Verifier().GoodUntil(&claims.Vouched)
	return known, nil
}

// person is who a token speaks of. The store is asked about people every peopleKnownFor, and when something else is said
// about them; what else a token says, such as its end and its id, makes nobody else of them.
func (c *Core) person(ctx context.Context, claims *token.Claims, identity Identity) (*person, error) {
	rules := identity.Rules()
	// With the rules of this configuration, for the same reason as above; usual facts stay on the stack.
	facts := sha256.Sum256(rules.AppendFacts(make([]byte, 0, 1<<10), claims))
	if known, ok := c.resources.people.Recent(time.Now(), "", "person", c.rulesID, string(facts[:])); ok {
		return known, nil
	}
	key := cache.NewKey("", "person", c.rulesID, string(facts[:]))
	return c.resources.people.Get(ctx, key, func(ctx context.Context) (*person, error) {
		rules := identity.Rules() // made again: few need it, and all would have to keep it for them
		who, err := caller.Map(claims, rules.Mapping)
		if err != nil {
			return nil, err
		}
		resolved, err := c.resolve(ctx, who, &rules, claims.IssuedAt)
		if err != nil {
			return nil, err
		}
		pack(&resolved)
		return &person{who: resolved, history: c.resources.epochs.Of(resolved.OrganizationID), register: c.agents.AutoRegister}, nil
	})
}

// resolve finds, or makes on first sight, the organization and the user that a token speaks of. issued is when the token was;
// zero for one that does not say, or not all that the user's tokens do.
func (c *Core) resolve(ctx context.Context, who caller.Identity, rules *IdentityRules, issued time.Time) (Caller, error) {
	now := time.Now()
	organization, err := c.Store.ResolveOrganization(ctx, who.Organization, now)
	if err != nil {
		return Caller{}, err
	}
	if rules.Organization == "" {
		c.noticeOrganization(organization, now)
	}
	claim := who.UserClaim(organization.ID)
	claim.Roles, claim.Groups, claim.Teams, claim.Projects, claim.IssuedAt = who.Roles, who.Groups, who.Teams, who.Projects, issued
	user, err := c.Store.ResolveUser(ctx, claim, now)
	if err != nil {
		return Caller{}, err
	}
	return Caller{
		Issuer: who.Issuer, Subject: who.Subject, OrganizationID: user.OrganizationID, UserID: user.ID, Name: user.Name, Email: user.Email,
		Roles: who.Roles, Groups: who.Groups, Teams: who.Teams, Projects: who.Projects, Agent: who.AgentExternalID,
		Admin: who.HasRole(rules.AdminRole), Machine: who.Machine,
	}, nil
}
