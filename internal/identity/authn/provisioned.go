package authn

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/storage"
)

// GroupSource says whose word about a user's groups counts.
type GroupSource int

// Sources of groups.
const (
	GroupsOfToken     GroupSource = iota // what tokens say
	GroupsProvisioned                    // what the identity provider provisioned
	GroupsOfBoth                         // both together
)

// Provisioning holds the rules for users whom an identity provider provisions (SCIM). Machines are never provisioned, and no
// rule is for them.
type Provisioning struct {
	// Match says which provisioned user a user is.
	Match storage.ProvisionedMatch
	// Groups says where the groups of users come from. The groups of a user who is not provisioned are unknown where only
	// provisioned ones count.
	Groups GroupSource
	// Require refuses users who are not provisioned.
	Require bool
}

// ErrShutOut says that the identity provider has deactivated or deleted the user, or did not provision them where that is
// required. It is also a token.ErrInvalid, because everything that ends with a credential ends with it.
var ErrShutOut = errors.New("the user may not come in")

// shutOut is an ErrShutOut with its reason. It does not count as a guess: clients have to learn of it.
type shutOut struct{ err *token.Error }

func (s shutOut) Error() string      { return s.err.Error() }
func (shutOut) Is(target error) bool { return target == ErrShutOut }
func (s shutOut) Unwrap() error      { return s.err }

var (
	errDeactivated    = shutOut{&token.Error{Kind: token.ErrInvalid, Reason: "the organization's identity provider has deactivated the user", Over: true}}
	errNotProvisioned = shutOut{&token.Error{Kind: token.ErrInvalid, Reason: "the organization's identity provider has not provisioned the user", Over: true}}
)

// refusal returns the error for a user; nil when they may come in. p is nil for machines.
func (r *Provisioning) refusal(p *storage.ProvisionedStanding) error {
	switch {
	case p == nil:
		return nil
	case p.Known && !p.Active:
		return errDeactivated
	case !p.Known && r.Require:
		return errNotProvisioned
	}
	return nil
}

// groups returns the groups of a user of whom their token says some, and whether nobody knows all.
func (r *Provisioning) groups(said []string, unknown bool, p *storage.ProvisionedStanding) (groups []string, lacking bool) {
	switch {
	case r.Groups == GroupsProvisioned && (!p.Known || p.Ambiguous):
		return nil, true
	case r.Groups == GroupsProvisioned:
		return p.Groups, false
	case !p.Known:
		return said, unknown
	}
	joined := slices.Clone(said)
	for _, name := range p.Groups {
		if !slices.Contains(joined, name) {
			joined = append(joined, name)
		}
	}
	return joined, unknown || p.Ambiguous
}

// replaces reports whether a user's groups are others than those of their token.
func (r *Provisioning) replaces(p *storage.ProvisionedStanding) bool {
	return p != nil && r.Groups != GroupsOfToken
}

// provisionedOf returns what is provisioned about a user. The store is asked once until something of the organization is
// written: a result is the same pointer until then.
func (m *Memory) provisionedOf(ctx context.Context, organization, user string, match storage.ProvisionedMatch) (*storage.ProvisionedStanding, error) {
	return m.provisioned.Get(ctx, cache.NewKey(organization, "provisioned", user, string(match)), func(ctx context.Context) (*storage.ProvisionedStanding, error) {
		s, err := m.store.ProvisionedStanding(ctx, organization, user, match)
		if err != nil {
			return nil, err
		}
		cache.Compact(&s)
		return &s, nil
	})
}

// Admits returns ErrShutOut for a user, no machine, who may not come in, or the store's error.
func (a *Authenticator) Admits(ctx context.Context, organization, user string) error {
	p, err := a.memory.provisionedOf(ctx, organization, user, a.provisioning.Match)
	if err != nil {
		return err
	}
	return a.provisioning.refusal(p)
}

// Groups returns the groups of a user, of whom somebody else said some, by the rules for provisioned users. They are unknown
// when it reports that they are lacking.
func (a *Authenticator) Groups(ctx context.Context, organization, user string, said []string) (groups []string, lacking bool, err error) {
	if a.provisioning.Groups == GroupsOfToken {
		return said, false, nil
	}
	p, err := a.memory.provisionedOf(ctx, organization, user, a.provisioning.Match)
	if err != nil {
		return nil, true, err
	}
	groups, lacking = a.provisioning.groups(said, false, p)
	return groups, lacking, nil
}

// overlaid holds what is made of a token or key for one provisioned standing: the same with other groups.
type overlaid[T any] struct {
	of   *storage.ProvisionedStanding
	made *T
}

// overlay returns what was made for a standing, or makes it.
func overlay[T any](kept *atomic.Pointer[overlaid[T]], of *storage.ProvisionedStanding, with func() *T) *T {
	if last := kept.Load(); last != nil && last.of == of {
		return last.made
	}
	next := &overlaid[T]{of, with()}
	kept.Store(next)
	return next.made
}

// as returns a token with the groups of its user by the rules for provisioned users.
func (a *Authenticator) as(v *verified, p *storage.ProvisionedStanding) *verified {
	if v.of != nil {
		v = v.of
	}
	if !a.provisioning.replaces(p) {
		return v
	}
	return overlay(&v.overlaid, p, func() *verified {
		made := &verified{person: v.person, attributes: &attributes{claims: v.claims}, vouched: v.vouched, caller: v.caller, seenAt: v.seenAt, of: v}
		made.caller.Groups, made.groupsUnknown = a.provisioning.groups(v.caller.Groups, v.unknown().Groups, p)
		made.names = sizeOf(made.caller.Roles, made.caller.Groups)
		return made
	})
}

// keyAs does the work of as for an API key.
func (a *Authenticator) keyAs(k *knownKey, p *storage.ProvisionedStanding) *knownKey {
	if !a.provisioning.replaces(p) {
		return k
	}
	return overlay(&k.overlaid, p, func() *knownKey {
		made := &knownKey{home: k.home, key: k.key, userRevoked: k.userRevoked, agent: k.agent, caller: k.caller, unknown: k.unknown, notes: k.notes}
		made.caller.Groups, made.unknown.Groups = a.provisioning.groups(k.caller.Groups, k.unknown.Groups, p)
		made.names = sizeOf(made.caller.Roles, made.caller.Groups)
		made.principal = made.principalAs(made.agentID())
		return made
	})
}
