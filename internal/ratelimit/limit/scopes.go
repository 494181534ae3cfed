package limit

import (
	"slices"
	"strings"

	"github.com/durward-gateway/durward/storage"
)

// Scoped is an item that an organization defines for a scope and a kind of traffic, such as a rate limit or a budget.
type Scoped struct {
	Scope   storage.Scope
	Traffic storage.TrafficType
}

// Hit says that a call counts in one scoped item.
type Hit struct {
	Index int
	// Subject names the subject that is counted apart from others. It is "" when all matching calls share one counter.
	Subject string
}

// Index finds the scoped items that apply to a call. The time does not grow with the items of others.
type Index struct {
	scoped []Scoped
	named  map[name][]int
	each   map[storage.ScopeType][]int
	all    []int
}

// name is one name in a scope. An id and a value are different names of one thing.
type name struct {
	scope storage.ScopeType
	field field
	text  string
}

type field uint8

const (
	byID field = iota
	byValue
	byEmail
)

// NewIndex makes the index of all scoped items of an organization.
func NewIndex(scoped []Scoped) *Index {
	x := &Index{scoped: slices.Clone(scoped), named: make(map[name][]int), each: make(map[storage.ScopeType][]int)}
	for i, s := range x.scoped {
		add := func(f field, text string) {
			n := name{s.Scope.Type, f, text}
			x.named[n] = append(x.named[n], i)
		}
		switch {
		case s.Scope.Type == storage.ScopeOrganization:
			x.all = append(x.all, i)
		case s.Scope.ID != "":
			add(byID, s.Scope.ID)
		case s.Scope.Value == "":
			if Apart(s.Scope) {
				x.each[s.Scope.Type] = append(x.each[s.Scope.Type], i)
			}
		default:
			add(byValue, s.Scope.Value)
			if s.Scope.Type == storage.ScopeUser {
				add(byEmail, strings.ToLower(s.Scope.Value))
			}
		}
	}
	return x
}

// Apart reports whether a scope counts each of its subjects apart. That is so when it names no subject and its type
// allows it.
func Apart(s storage.Scope) bool {
	if s.ID != "" || s.Value != "" {
		return false
	}
	switch s.Type {
	case storage.ScopeUser, storage.ScopeAgent, storage.ScopeAPIKey, storage.ScopeMCPServer,
		storage.ScopeLLMProvider, storage.ScopeModel, storage.ScopeModelAlias:
		return true
	}
	return false
}

// Match returns the items that a call counts in, each once, in the order of NewIndex's argument.
func (x *Index) Match(s *Subject) []Hit {
	m := matching{index: x, traffic: s.Traffic}
	m.hits("", x.all)
	m.one(storage.ScopeUser, s.UserID, s.UserID, s.UserSub)
	if s.UserEmail != "" {
		m.hits("", x.named[name{storage.ScopeUser, byEmail, strings.ToLower(s.UserEmail)}])
	}
	m.one(storage.ScopeAgent, s.AgentID, s.AgentID, s.AgentID)
	m.one(storage.ScopeAPIKey, s.APIKeyID, s.APIKeyID, s.APIKeyID)
	m.pools(storage.ScopeRole, s.Roles)
	m.pools(storage.ScopeGroup, s.Groups)
	m.pools(storage.ScopeTeam, s.Teams)
	m.pools(storage.ScopeProject, s.Projects)
	switch s.Traffic {
	case storage.TrafficMCP:
		m.one(storage.ScopeMCPServer, s.ServerID, s.ServerID, s.ServerSlug)
	case storage.TrafficLLM:
		provider := s.ProviderID
		if provider == "" { // providers from the configuration only have a name
			provider = s.ProviderName
		}
		m.one(storage.ScopeLLMProvider, provider, s.ProviderID, s.ProviderName)
		m.one(storage.ScopeModel, s.Model, "", s.Model)
		m.one(storage.ScopeModelAlias, s.Alias, "", s.Alias)
		if s.Via != s.Alias {
			m.one(storage.ScopeModelAlias, s.Via, "", s.Via)
		}
	}
	slices.SortFunc(m.out, func(a, b Hit) int { return a.Index - b.Index })
	return m.out
}

// matching is one run of Match.
type matching struct {
	index   *Index
	traffic storage.TrafficType
	out     []Hit
}

// one adds the items for a single subject: by id, by value, or for each subject apart.
func (m *matching) one(scope storage.ScopeType, subject, id, value string) {
	if id != "" {
		m.hits("", m.index.named[name{scope, byID, id}])
	}
	if value != "" {
		m.hits("", m.index.named[name{scope, byValue, value}])
	}
	if subject != "" {
		m.hits(subject, m.index.each[scope])
	}
}

// pools adds the items for any of several names. A caller may hold a name twice; it counts once.
func (m *matching) pools(scope storage.ScopeType, names []string) {
	for i, n := range names {
		if n != "" && !slices.Contains(names[:i], n) {
			m.hits("", m.index.named[name{scope, byValue, n}])
		}
	}
}

func (m *matching) hits(subject string, indexes []int) {
	for _, i := range indexes {
		if t := m.index.scoped[i].Traffic; t != storage.TrafficAll && t != m.traffic {
			continue
		}
		hit := Hit{Index: i, Subject: subject}
		if !slices.Contains(m.out, hit) { // a user whose sub and email may be the same text
			m.out = append(m.out, hit)
		}
	}
}
