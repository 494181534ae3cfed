package rules

import (
	"hash/maphash"
	"slices"
	"sync"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// Principal is who calls. It is immutable and may be used by any number of calls at once. One is kept for each token, and
// made of as few objects as can be.
type Principal struct {
	id, agentID   string
	roles, groups nameList
	mask          mask // of everybody, and of all names in roles and groups
	unknown       Unknown

	// What conditions see is made once, when the first one asks: most tokens are gone by then.
	once   sync.Once
	claims Claims // until then
	facts  facts
}

// facts are a principal as conditions see it.
type facts struct {
	value ref.Val
	// unreadable: a claim holds a number that cannot be judged. Conditions that read claims are not evaluable then.
	unreadable bool
}

// protocolClaims are those by which a token is verified and bound (RFC 7519, RFC 9068, OpenID Connect, RFC 7800). They
// say nothing about a person that a policy could mean, and request.principal.attr leaves them out.
var protocolClaims = []string{
	"iss", "sub", "aud", "exp", "nbf", "iat", "jti", "azp", "client_id", "cid", "nonce", "at_hash", "c_hash", "s_hash",
	"sid", "session_state", "typ", "cnf", "events", "rat",
}

// Unseen reports whether no condition sees a claim of that name.
func Unseen(claim string) bool { return slices.Contains(protocolClaims, claim) }

// Claims are what a token says, for whoever reads it: not ok when it cannot be read.
type Claims interface {
	Read() (all map[string]any, ok bool)
}

// readClaims have been read.
type readClaims map[string]any

func (c readClaims) Read() (all map[string]any, ok bool) { return c, true }

// NewPrincipal makes the principal of a verified token, once: id is the user's, agentID the registered agent's or "",
// claims what the token says. Numbers among the claims should be json.Number, so that none is changed by reading. The lists
// must not be changed any more.
func NewPrincipal(id string, roles, groups []string, agentID string, claims map[string]any) *Principal {
	return NewPrincipalOf(id, roles, groups, agentID, readClaims(claims))
}

// NewPrincipalOf is NewPrincipal with claims that are read when a condition looks at the principal, at most once. When they
// cannot be, conditions that read claims are not evaluable.
func NewPrincipalOf(id string, roles, groups []string, agentID string, claims Claims) *Principal {
	p := &Principal{id: id, agentID: agentID, roles: nameListOf(roles), groups: nameListOf(groups), mask: everybody, claims: claims}
	for _, names := range [...][]string{roles, groups} {
		for _, n := range names {
			p.mask.add(maskOf(n))
		}
	}
	return p
}

// Unknown says which facts about a principal nobody knows. A rule that denies by one of them matches, and a rule that grants by
// one does not. What another rule grants has to be approved where a rule asks by one.
type Unknown struct {
	Roles, Groups bool
	Claims        bool // what else a token would say
}

func (u Unknown) names() bool { return u.Roles || u.Groups }

// NewPrincipalWithout makes the principal of a credential that is no token and does not say all that one would. Roles and groups
// are not looked at when they are unknown.
func NewPrincipalWithout(unknown Unknown, id string, roles, groups []string, agentID string) *Principal {
	if unknown.Roles {
		roles = nil
	}
	if unknown.Groups {
		groups = nil
	}
	p := NewPrincipal(id, roles, groups, agentID, nil)
	p.unknown = unknown
	if unknown.names() {
		p.mask = mask{^uint64(0), ^uint64(0)} // rules for any name have to be looked at
	}
	return p
}

// AgentID is the registered agent's; "" for none.
func (p *Principal) AgentID() string { return p.agentID }

// seen is what conditions see.
func (p *Principal) seen() *facts {
	p.once.Do(func() {
		p.facts.unreadable = true // also when what follows panics: there is no second time
		p.facts = p.see(p.claims.Read())
		p.claims = nil
	})
	return &p.facts
}

func (p *Principal) see(claims map[string]any, readable bool) facts {
	own := make(map[string]any, len(claims))
	for name, claim := range claims {
		if !Unseen(name) {
			own[name] = claim
		}
	}
	attr, ok := fromGo(own)
	if !ok {
		attr = types.NewStringInterfaceMap(adapter, nil)
	}
	return facts{unreadable: !ok || !readable, value: types.NewStringInterfaceMap(adapter, map[string]any{
		"id":     types.String(p.id),
		"roles":  stringList(p.roles.sorted()),
		"groups": stringList(p.groups.sorted()),
		"agent":  types.String(p.agentID),
		"attr":   attr,
	})}
}

// nameList is a list in which names are looked up.
type nameList struct {
	names []string
	set   map[string]struct{} // of the names when they are many
}

// fewNames are found as fast in the list itself.
const fewNames = 8

func nameListOf(names []string) nameList {
	l := nameList{names: names}
	if len(names) > fewNames {
		l.set = make(map[string]struct{}, len(names))
		for _, n := range names {
			l.set[n] = struct{}{}
		}
	}
	return l
}

func (l *nameList) has(name string) bool {
	if l.set != nil {
		_, ok := l.set[name]
		return ok
	}
	return slices.Contains(l.names, name)
}

// hasAny reports whether one of the names is in the list.
func (l *nameList) hasAny(names []string) bool {
	for _, n := range names {
		if l.has(n) {
			return true
		}
	}
	return false
}

// sorted is the names, each once.
func (l *nameList) sorted() []string { return slices.Compact(slices.Sorted(slices.Values(l.names))) }

// subjects is whom a rule is for: its roles_groups.
type subjects struct {
	everyone             bool
	roles, groups, mixed []string // mixed: of names that mean either
}

func (s *subjects) add(entry string) {
	kind, name := subjectOf(entry)
	switch kind {
	case subjectAll:
		s.everyone = true
	case subjectRole:
		s.roles = append(s.roles, name)
	case subjectGroup:
		s.groups = append(s.groups, name)
	case subjectEither:
		s.mixed = append(s.mixed, name)
	}
}

// mask is of all names in it.
func (s *subjects) mask() (m mask) {
	if s.everyone {
		m = everybody
	}
	for _, names := range [][]string{s.roles, s.groups, s.mixed} {
		for _, n := range names {
			m.add(maskOf(n))
		}
	}
	return m
}

// include reports whether a rule is for the principal. One that restricts is for whoever may have its roles or groups.
func (s *subjects) include(p *Principal, restricts bool) bool {
	if restricts && (p.unknown.Roles && len(s.roles)+len(s.mixed) > 0 || p.unknown.Groups && len(s.groups)+len(s.mixed) > 0) {
		return true
	}
	return s.everyone || p.roles.hasAny(s.roles) || p.groups.hasAny(s.groups) || p.roles.hasAny(s.mixed) || p.groups.hasAny(s.mixed)
}

// mask is names as two sets of bits, so that nearly all rules for others are passed over without comparing names: a policy
// may well have a rule for each of a thousand groups. Each name has a bit in both.
type mask [2]uint64

// everybody is in every principal, and in whatever is for *.
var everybody = mask{1 << 63, 1 << 63}

var maskSeed = maphash.MakeSeed()

func maskOf(name string) mask {
	h := maphash.String(maskSeed, name)
	return mask{1 << (h % 63), 1 << (h >> 32 % 63)}
}

func (m *mask) add(names mask) {
	m[0] |= names[0]
	m[1] |= names[1]
}

// meets reports whether the two may have a name in common. When they have one, it does.
func (m *mask) meets(other mask) bool { return m[0]&other[0] != 0 && m[1]&other[1] != 0 }
