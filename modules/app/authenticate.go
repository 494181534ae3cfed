package app

import (
	"context"
	"crypto/sha256"
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/policy/evaluator"
	"github.com/durward-gateway/durward/internal/ratelimit/admission"
)

// verified is a token that was verified once, with its facts about the caller. Requests share it.
type verified struct {
	*person
	*attributes
	vouched token.Vouched
	caller  Caller // the person's, with the token's end
	names   int    // the length of the caller's roles and groups
	seenAt  time.Time
}

// person holds the part that tokens with the same facts have in common. Tokens share it: for a new token of a known
// person only the signature has to be checked.
type person struct {
	who      Caller        // but for the end of a token
	history  cache.History // of the organization
	register bool          // a client that is not known becomes an agent
	// attributes holds the attributes in the last new token.
	attributes atomic.Pointer[attributes]
	// These hold the bearer's standing at the last call, the server of that call, its credential, and the limits that
	// counted it.
	standing   atomic.Pointer[lastStanding]
	connection connection.Recent
	server     evaluator.Recent
	limits     admission.Recent
}

// Authenticate verifies a token and resolves its caller, which must not be changed. resource is an audience that is
// accepted besides the gateway's own; "" for none. Errors are those of internal/identity/token (ErrInvalid, ErrUnavailable),
// internal/identity/caller (ErrInvalid, ErrForbidden) and the store.
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

// verified returns the facts of a token, once it was verified. It does not check whether the user's tokens were
// revoked.
func (c *Core) verified(ctx context.Context, raw, resource string) (*verified, error) {
	if len(raw) > token.MaxSize {
		return nil, token.ErrInvalid // before its digest is made (J22)
	}
	// The key holds everything that the verdict depends on. The rules of this configuration belong to it, because the
	// cache outlives the configuration. The token itself names its issuer.
	digest := sha256.Sum256(append(make([]byte, 0, 2<<10), raw...)) // usual tokens are copied to the stack, not the heap
	// The end of the token is checked below.
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
	// Facts that held when the token was verified may have ended since: the token's lifetime, or its key's (J30).
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

// person returns the person that a token names. The store is asked about people every peopleKnownFor, and when a token
// has new facts about them. A token's end and id are no such facts.
func (c *Core) person(ctx context.Context, claims *token.Claims, identity Identity) (*person, error) {
	rules := identity.Rules()
	// The key includes the rules of this configuration, for the same reason as above; facts of usual size stay on the
	// stack.
	facts := sha256.Sum256(rules.AppendFacts(make([]byte, 0, 1<<10), claims))
	if known, ok := c.resources.people.Recent(time.Now(), "", "person", c.rulesID, string(facts[:])); ok {
		return known, nil
	}
	key := cache.NewKey("", "person", c.rulesID, string(facts[:]))
	return c.resources.people.Get(ctx, key, func(ctx context.Context) (*person, error) {
		rules := identity.Rules() // made again: few requests need it, and otherwise all would have to keep it for them
		who, err := caller.Map(claims, rules.Mapping)
		if err != nil {
			return nil, err
		}
		resolved, err := c.resolve(ctx, who, &rules, claims.IssuedAt)
		if err != nil {
			return nil, err
		}
		cache.Compact(&resolved)
		return &person{who: resolved, history: c.resources.epochs.Of(resolved.OrganizationID), register: c.agents.AutoRegister}, nil
	})
}

// resolve finds the organization and the user that a token names, or makes them when they are new. issued is the time
// of issue of the token; it is zero for a token that has none, or that does not have all facts of the user's tokens.
func (c *Core) resolve(ctx context.Context, who caller.Identity, rules *caller.Rules, issued time.Time) (Caller, error) {
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
