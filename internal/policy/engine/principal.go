package engine

import (
	"hash/maphash"
	"slices"
	"sync"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// Principal describes the caller. It is immutable, and any number of calls may use it at once. One is kept for each
// token, so it consists of as few objects as possible.
type Principal struct {
	id, agentID   string
	roles, groups nameList
	mask          mask // everybody, and the masks of all names in roles and groups
	unknown       Unknown

	// The values for conditions are made once, when the first condition asks. Most tokens are gone before that.
	once   sync.Once
	claims Claims // until the values are made
	facts  facts
}

// facts holds a principal in the form that conditions see.
type facts struct {
	value ref.Val
	// unreadable reports that a claim holds a number that cannot be judged. Conditions that read claims cannot be
	// evaluated then.
	unreadable bool
}

// protocolClaims lists the claims that verify and bind a token (RFC 7519, RFC 9068, OpenID Connect, RFC 7800). They say
// nothing about a person that a policy could use, and request.principal.attr leaves them out.
var protocolClaims = []string{
	"iss", "sub", "aud", "exp", "nbf", "iat", "jti", "azp", "client_id", "cid", "nonce", "at_hash", "c_hash", "s_hash",
	"sid", "session_state", "typ", "cnf", "events", "rat",
}

// Unseen reports whether conditions never see a claim of that name.
func Unseen(claim string) bool { return slices.Contains(protocolClaims, claim) }

// Claims reads the claims of a token on demand. ok is false when they cannot be read.
type Claims interface {
	Read() (all map[string]any, ok bool)
}

// readClaims holds claims that are already read.
type readClaims map[string]any

func (c readClaims) Read() (all map[string]any, ok bool) { return c, true }

// NewPrincipal makes the principal of a verified token. It is called once for a token. id is the user, agentID the
// registered agent or "", claims the claims of the token. Numbers among the claims should be json.Number, so that
// reading changes none of them. The caller must not change the lists afterwards.
func NewPrincipal(id string, roles, groups []string, agentID string, claims map[string]any) *Principal {
	return NewPrincipalOf(id, roles, groups, agentID, readClaims(claims))
}

// NewPrincipalOf makes a principal as NewPrincipal does, and reads the claims later: when a condition first looks at
// the principal, at most once. If they cannot be read, conditions that read claims cannot be evaluated.
func NewPrincipalOf(id string, roles, groups []string, agentID string, claims Claims) *Principal {
	p := &Principal{id: id, agentID: agentID, roles: nameListOf(roles), groups: nameListOf(groups), mask: everybody, claims: claims}
	for _, names := range [...][]string{roles, groups} {
		for _, n := range names {
			p.mask.add(maskOf(n))
		}
	}
	return p
}

// Unknown lists the facts about a principal that nobody knows. A rule that denies by an unknown fact matches. A rule
// that grants by an unknown fact does not match. If a rule asks by an unknown fact, a call that another rule grants
// needs approval.
type Unknown struct {
	Roles, Groups bool
	Claims        bool // all else that a token would say
}

func (u Unknown) names() bool { return u.Roles || u.Groups }

// NewPrincipalWithout makes the principal of a credential that is no token and lacks some facts that a token has. It
// ignores roles and groups that are unknown.
func NewPrincipalWithout(unknown Unknown, id string, roles, groups []string, agentID string) *Principal {
	return NewPrincipalLacking(unknown, id, roles, groups, agentID, readClaims(nil))
}

// NewPrincipalLacking makes a principal as NewPrincipalOf does, of whom some facts are unknown. It ignores roles and groups
// that are unknown.
func NewPrincipalLacking(unknown Unknown, id string, roles, groups []string, agentID string, claims Claims) *Principal {
	if unknown.Roles {
		roles = nil
	}
	if unknown.Groups {
		groups = nil
	}
	p := NewPrincipalOf(id, roles, groups, agentID, claims)
	p.unknown = unknown
	if unknown.names() {
		p.mask = mask{^uint64(0), ^uint64(0)} // rules for any name may apply
	}
	return p
}

// AgentID returns the id of the registered agent; "" for none.
func (p *Principal) AgentID() string { return p.agentID }

// seen returns the facts that conditions see.
func (p *Principal) seen() *facts {
	p.once.Do(func() {
		p.facts.unreadable = true // set first, in case the next line panics: there is no second try
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

// nameList is a list of names for look-ups.
type nameList struct {
	names []string
	set   map[string]struct{} // set of the names, if there are many
}

// fewNames is the length up to which a search in the list itself is as fast.
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

// sorted returns the names in order, each once.
func (l *nameList) sorted() []string { return slices.Compact(slices.Sorted(slices.Values(l.names))) }

// subjects holds the roles and groups that a rule is for: its roles_groups.
type subjects struct {
	everyone             bool
	roles, groups, mixed []string // mixed: names that may be a role or a group
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

// mask returns the mask of all names in the subjects.
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

// include reports whether a rule is for the principal. A rule that restricts is also for a principal that may have its
// roles or groups, because some of those are unknown.
func (s *subjects) include(p *Principal, restricts bool) bool {
	if restricts && (p.unknown.Roles && len(s.roles)+len(s.mixed) > 0 || p.unknown.Groups && len(s.groups)+len(s.mixed) > 0) {
		return true
	}
	return s.everyone || p.roles.hasAny(s.roles) || p.groups.hasAny(s.groups) || p.roles.hasAny(s.mixed) || p.groups.hasAny(s.mixed)
}

// mask holds names as two sets of bits. Each name has a bit in both sets. With it nearly all rules for others are
// skipped without comparing names: a policy may have a rule for each of a thousand groups.
type mask [2]uint64

// everybody is the mask that every principal has, and every rule for *.
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

// meets reports whether the two may have a name in common. It returns true whenever they have one.
func (m *mask) meets(other mask) bool { return m[0]&other[0] != 0 && m[1]&other[1] != 0 }
