package authn

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/internal/identity/token"
)

// person holds the part that tokens with the same facts have in common. Tokens share it: for a new token of a known
// person only the signature has to be checked.
type person struct {
	who      Caller        // but for the end of a token
	history  cache.History // of the organization
	register bool          // a client that is not known becomes an agent
	// login holds the login of the gateway's own tokens; nil for those of other issuers.
	login *loginFacts
	// attributes holds the attributes in the last new token.
	attributes atomic.Pointer[attributes]
	// standing holds the bearer's standing at the last call.
	standing atomic.Pointer[lastStanding]
	notes    any // see Bearer.Notes
}

// person returns the person that a token names. The store is asked about people every peopleKnownFor, and when a token
// has new facts about them. A token's end and id are no such facts.
func (a *Authenticator) person(ctx context.Context, claims *token.Claims, issuer Issuer) (*person, error) {
	rules := issuer.Rules()
	// The key includes the rules of this configuration: the cache outlives the configuration. Facts of usual size stay on
	// the stack.
	facts := sha256.Sum256(rules.AppendFacts(make([]byte, 0, 1<<10), claims))
	if known, ok := a.memory.people.Recent(a.memory.now(), "", "person", a.rulesID, string(facts[:])); ok {
		return known, nil
	}
	key := cache.NewKey("", "person", a.rulesID, string(facts[:]))
	return a.memory.people.Get(ctx, key, func(ctx context.Context) (*person, error) {
		rules := issuer.Rules() // made again: few requests need it, and otherwise all would have to keep it for them
		who, err := caller.Map(claims, rules.Mapping)
		if err != nil {
			return nil, err
		}
		resolved, err := a.resolve(ctx, who, &rules, claims.IssuedAt)
		if err != nil {
			return nil, err
		}
		cache.Compact(&resolved)
		return &person{
			who: resolved, history: a.memory.epochs.Of(resolved.OrganizationID), register: a.registerAgents, notes: a.memory.newNotes(),
		}, nil
	})
}

// resolve finds the organization and the user that a token names, or makes them when they are new. issued is the time
// of issue of the token; it is zero for a token that has none, or that does not have all facts of the user's tokens.
func (a *Authenticator) resolve(ctx context.Context, who caller.Identity, rules *caller.Rules, issued time.Time) (Caller, error) {
	now := a.memory.now()
	organization, err := a.memory.store.ResolveOrganization(ctx, who.Organization, now)
	if err != nil {
		return Caller{}, err
	}
	if rules.Organization == "" {
		a.resolved(organization, now)
	}
	claim := who.UserClaim(organization.ID)
	claim.Roles, claim.Groups, claim.Teams, claim.Projects, claim.IssuedAt = who.Roles, who.Groups, who.Teams, who.Projects, issued
	user, err := a.memory.store.ResolveUser(ctx, claim, now)
	if err != nil {
		return Caller{}, err
	}
	return Caller{
		Issuer: who.Issuer, Subject: who.Subject, OrganizationID: user.OrganizationID, UserID: user.ID, Name: user.Name, Email: user.Email,
		Roles: who.Roles, Groups: who.Groups, Teams: who.Teams, Projects: who.Projects, Agent: who.AgentExternalID,
		Powers: rules.Roles.Powers(who.Roles), Machine: who.Machine,
	}, nil
}

// ErrMachine reports that an ID token names a machine, which has no browser.
var ErrMachine = errors.New("the ID token is a machine's")

// Login finds the user that a verified ID token names. It reads the token like bearer tokens of its issuer. facts is the time
// from which API keys of the user have the token's roles and groups; zero where access tokens say that: providers leave roles
// and groups out of ID tokens that they put into access tokens. Errors are those of Token, ErrShutOut among them, and ErrMachine.
func (a *Authenticator) Login(ctx context.Context, claims *token.Claims, facts time.Time) (*Caller, error) {
	issuer, ok := a.issuers[claims.Issuer]
	if !ok {
		return nil, token.ErrInvalid
	}
	rules := issuer.Rules()
	who, err := caller.Map(claims, rules.Mapping)
	if err != nil {
		return nil, err
	}
	if who.Machine {
		return nil, ErrMachine
	}
	resolved, err := a.resolve(ctx, who, &rules, facts)
	if err != nil {
		return nil, err
	}
	if err := a.Admits(ctx, resolved.OrganizationID, resolved.UserID); errors.Is(err, ErrShutOut) {
		return nil, &RefusedError{Err: err, Caller: &resolved}
	} else if err != nil {
		return nil, err
	}
	return &resolved, nil
}
