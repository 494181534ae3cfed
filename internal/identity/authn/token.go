package authn

import (
	"context"
	"crypto/sha256"
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/identity/token"
)

// verified is a token that was verified once, with its facts about the caller. Requests share it.
type verified struct {
	*person
	*attributes
	vouched token.Vouched
	caller  Caller // the person's, with the token's end
	names   int    // the length of the caller's roles and groups
	seenAt  time.Time
	// of is the token itself, in a copy with the groups that are provisioned; groupsUnknown reports that nobody knows them.
	// overlaid is the last such copy.
	of            *verified
	groupsUnknown bool
	overlaid      atomic.Pointer[overlaid[verified]]
}

// Token verifies a token and finds its bearer. resource is an audience that is accepted besides the gateway's own; ""
// for none. Errors are those of internal/identity/token (ErrInvalid, ErrUnavailable), internal/identity/caller
// (ErrInvalid, ErrForbidden) and the store.
func (a *Authenticator) Token(ctx context.Context, raw, resource string) (Bearer, error) {
	known, err := a.verified(ctx, raw, resource)
	if err != nil {
		return Bearer{}, err
	}
	now, err := a.standing(ctx, known)
	if err != nil && known.outdated() {
		// A token that is verified anew takes the present facts of its login.
		if known, err = a.verify(ctx, raw, resource); err == nil {
			now, err = a.standing(ctx, known)
		}
	}
	if err != nil {
		return Bearer{}, err
	}
	return Bearer{token: a.as(known, now.provisioned), agent: now.agent, provenAt: now.at}, nil
}

// verified returns the facts of a token, once it was verified. It does not check whether the user's tokens were
// revoked.
func (a *Authenticator) verified(ctx context.Context, raw, resource string) (*verified, error) {
	if len(raw) > token.MaxSize {
		return nil, token.ErrInvalid // before its digest is made (J22)
	}
	// The key holds everything that the verdict depends on. The rules of this configuration belong to it, because the
	// cache outlives the configuration. The token itself names its issuer.
	digest := sha256.Sum256(append(make([]byte, 0, 2<<10), raw...)) // usual tokens are copied to the stack, not the heap
	// The end of the token is checked below.
	known, ok := a.memory.tokens.Recent(time.Time{}, "", "caller", a.rulesID, resource, string(digest[:]))
	if !ok {
		var err error
		if known, err = a.verifyUnlessKept(ctx, raw, resource, digest); err != nil {
			return nil, err
		}
	}
	verifier, ok := a.verifierOf(known.vouched.Issuer)
	if !ok {
		return nil, token.ErrInvalid
	}
	// Facts that held when the token was verified may have ended since: the token's lifetime, or its key's (J30).
	if err := verifier.Recheck(ctx, &known.vouched); err != nil {
		return nil, err
	}
	return known, nil
}

func (a *Authenticator) verifyUnlessKept(ctx context.Context, raw, resource string, digest [sha256.Size]byte) (*verified, error) {
	key := cache.NewKey("", "caller", a.rulesID, resource, string(digest[:]))
	return a.memory.tokens.GetAlone(ctx, key, func(ctx context.Context) (*verified, error) { return a.verify(ctx, raw, resource) })
}

func (a *Authenticator) verify(ctx context.Context, raw, resource string) (*verified, error) {
	seenAt := a.shared(a.memory.now()) // a revocation while the token is read is one after the node saw it
	unverified, err := token.Parse(raw)
	if err != nil {
		return nil, err
	}
	name, err := unverified.Issuer()
	if err != nil {
		return nil, err
	}
	if a.logins != nil && a.logins.Issuer == string(name) {
		return a.verifyLogin(ctx, unverified, resource, seenAt)
	}
	issuer, ok := a.issuers[string(name)]
	if !ok {
		return nil, &token.Error{Kind: token.ErrInvalid, Reason: "iss is not that of a configured identity"}
	}
	if a.isConsole(resource) {
		resource = "" // it is an audience of the gateway's own tokens only
	}
	claims, err := issuer.Verifier().VerifyParsed(ctx, unverified, resource)
	if err != nil {
		return nil, err
	}
	somebody, err := a.person(ctx, claims, issuer)
	if err != nil {
		return nil, err
	}
	return newVerified(claims, issuer.Verifier(), somebody, somebody.attributesOf(claims), seenAt), nil
}

func newVerified(claims *token.Claims, by *token.Verifier, somebody *person, seen *attributes, seenAt time.Time) *verified {
	known := &verified{person: somebody, attributes: seen, vouched: claims.Vouched, caller: somebody.who, seenAt: seenAt}
	known.names = sizeOf(known.caller.Roles, known.caller.Groups)
	known.caller.ExpiresAt = by.GoodUntil(&claims.Vouched)
	return known
}

// verifierOf returns the verifier of an issuer's tokens.
func (a *Authenticator) verifierOf(issuer string) (*token.Verifier, bool) {
	if a.logins != nil && a.logins.Issuer == issuer {
		return a.logins.Verifier, true
	}
	known, ok := a.issuers[issuer]
	if !ok {
		return nil, false
	}
	return known.Verifier(), true
}
