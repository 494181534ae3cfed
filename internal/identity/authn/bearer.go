package authn

import (
	"context"
	"errors"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/storage"
)

// Bearer is the proven bearer of a credential, as the store knew them when the credential was checked. The zero value is
// nobody.
type Bearer struct {
	token    *verified // nil for the bearer of a key
	key      *knownKey // nil for the bearer of a token
	agent    *storage.Agent
	provenAt cache.Epoch
}

// Proven reports whether the bearer is somebody.
func (b *Bearer) Proven() bool { return b.token != nil || b.key != nil }

// Caller returns the bearer as a caller; nil for nobody. Other requests share it: it must not be changed.
func (b *Bearer) Caller() *Caller {
	switch {
	case b.token != nil:
		return &b.token.caller
	case b.key != nil:
		return &b.key.caller
	}
	return nil
}

// IdentityProvider returns the issuer that proves the bearer: that of their token, or the one at which they logged in for a
// token of the gateway's own. It is "" for the bearer of a key, and for nobody.
func (b *Bearer) IdentityProvider() string {
	switch {
	case b.token == nil:
		return ""
	case b.token.login != nil:
		return b.token.login.issuer
	}
	return b.token.vouched.Issuer
}

// Agent returns the registered agent that holds the credential; nil for none. Other requests share it: it must not be
// changed.
func (b *Bearer) Agent() *storage.Agent { return b.agent }

// Notes returns the notes of the package's user, which the bearer's requests share; nil when there are none. Those about
// the bearer of a token are shared by all tokens with the same facts, those about a key end when something of its
// organization is written.
func (b *Bearer) Notes() any {
	switch {
	case b.token != nil:
		return b.token.notes
	case b.key != nil:
		return b.key.notes
	}
	return nil
}

// ProvenAt returns the epoch of the bearer's organization that was read before the store was asked about the bearer.
func (b *Bearer) ProvenAt() cache.Epoch { return b.provenAt }

// History returns the epochs of the organization of a proven bearer.
func (b *Bearer) History() cache.History {
	if b.token != nil {
		return b.token.history
	}
	return b.key.home.history
}

// RolesSize returns the length of the names of the bearer's roles and groups.
func (b *Bearer) RolesSize() int {
	switch {
	case b.token != nil:
		return b.token.names
	case b.key != nil:
		return b.key.names
	}
	return 0
}

// RolesUnknown reports whether nobody knows all roles and groups that the bearer has now.
func (b *Bearer) RolesUnknown() bool {
	var unknown engine.Unknown
	switch {
	case b.token != nil:
		unknown = b.token.unknown()
	case b.key != nil:
		unknown = b.key.unknown
	}
	return unknown.Roles || unknown.Groups
}

// FactsAt returns the time at which an identity provider named the roles and groups of a token's bearer. It is zero where
// that is not known.
func (b *Bearer) FactsAt() time.Time {
	switch {
	case b.token == nil:
		return time.Time{}
	case b.token.login != nil:
		return b.token.login.at
	}
	return b.token.vouched.IssuedAt
}

// Principal returns the policies' view of the bearer with an agent, "" for none; it is nil for nobody.
func (b *Bearer) Principal(agent string) *engine.Principal {
	switch {
	case b.token != nil:
		return b.token.principal(agent)
	case b.key == nil:
		return nil
	case agent == b.key.agentID():
		return b.key.principal
	}
	return b.key.principalAs(agent)
}

var errNobody = errors.New("there is no proven bearer")

// Recheck checks anew whether the bearer's credential was revoked. Its error is token.ErrInvalid when it was, or the
// store's. For nobody it is always an error: streams are checked beside all requests, where a panic would end the process.
func (a *Authenticator) Recheck(ctx context.Context, b *Bearer) (err error) {
	switch {
	case b.key != nil:
		_, err = a.keyState(ctx, b.key.home)
	case b.token != nil:
		_, err = a.standing(ctx, b.token)
	default:
		err = errNobody
	}
	return err
}

// Renew does the work of Recheck when something of the bearer's organization was written since the credential was
// checked.
func (a *Authenticator) Renew(ctx context.Context, b *Bearer) error {
	if b.Proven() && b.History().Current() == b.provenAt {
		return nil
	}
	return a.Recheck(ctx, b)
}

// PrincipalNow returns a function that returns the policies' view of the bearer at the time of its call. Any goroutine
// may use it. It is for streams, which outlive the decision on their call. The result is nil when clients must be agents
// and this one no longer is. A bearer whose credential was revoked stays the same principal: the revocation ends their
// streams, with a reason of its own. For nobody it is always an error.
func (a *Authenticator) PrincipalNow(b *Bearer) func(context.Context) (*engine.Principal, error) {
	was := b.Principal(agentID(b.agent))
	if b.key != nil {
		return a.keyPrincipalNow(b.key.home, was)
	}
	known := b.token
	if known == nil {
		return func(context.Context) (*engine.Principal, error) { return nil, errNobody }
	}
	return func(ctx context.Context) (*engine.Principal, error) {
		s, err := a.standing(ctx, known)
		switch {
		case errors.Is(err, token.ErrInvalid):
			return was, nil
		case err != nil:
			return nil, err
		case !a.allowed(s.agent):
			return nil, nil
		}
		return a.as(known, s.provisioned).principal(agentID(s.agent)), nil
	}
}

// keyPrincipalNow does the work of PrincipalNow for an API key, which uses the facts in its user's newest token.
func (a *Authenticator) keyPrincipalNow(home *keyHome, was *engine.Principal) func(context.Context) (*engine.Principal, error) {
	return func(ctx context.Context) (*engine.Principal, error) {
		key, err := a.keyState(ctx, home)
		switch {
		case errors.Is(err, token.ErrInvalid):
			return was, nil
		case err != nil:
			return nil, err
		case !a.allowed(key.agent):
			return nil, nil
		}
		return key.principal, nil
	}
}

// allowed reports whether a client that is registered as agent, nil for none, may use servers.
func (a *Authenticator) allowed(agent *storage.Agent) bool { return agent != nil || !a.requireAgents }

// agentID returns the id of an agent; "" for none.
func agentID(agent *storage.Agent) string {
	if agent == nil {
		return ""
	}
	return agent.ID
}
