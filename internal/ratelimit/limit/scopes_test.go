package limit

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/durward-gateway/durward/storage"
)

// scopeCases lists every scope in every form that the API accepts. Each says whether the call of caller() matches it,
// on traffic where it can.
var scopeCases = []struct {
	scope storage.Scope
	is    bool
	apart bool
	only  storage.TrafficType // the traffic that has such a subject; "" both
}{
	{storage.Scope{Type: storage.ScopeOrganization}, true, false, ""},
	{storage.Scope{Type: storage.ScopeOrganization, ID: acme}, true, false, ""},
	{storage.Scope{Type: storage.ScopeUser}, true, true, ""},
	{storage.Scope{Type: storage.ScopeUser, ID: alice}, true, false, ""},
	{storage.Scope{Type: storage.ScopeUser, ID: bob}, false, false, ""},
	{storage.Scope{Type: storage.ScopeUser, Value: "auth0|alice"}, true, false, ""},
	{storage.Scope{Type: storage.ScopeUser, Value: "AUTH0|alice"}, false, false, ""},
	{storage.Scope{Type: storage.ScopeUser, Value: "alice@example.com"}, true, false, ""},
	{storage.Scope{Type: storage.ScopeUser, Value: "Alice@Example.com"}, true, false, ""},
	{storage.Scope{Type: storage.ScopeUser, Value: "bob@example.com"}, false, false, ""},
	{storage.Scope{Type: storage.ScopeAgent}, true, true, ""},
	{storage.Scope{Type: storage.ScopeAgent, ID: agent}, true, false, ""},
	{storage.Scope{Type: storage.ScopeAgent, ID: others}, false, false, ""},
	{storage.Scope{Type: storage.ScopeAPIKey}, true, true, ""},
	{storage.Scope{Type: storage.ScopeAPIKey, ID: apiKey}, true, false, ""},
	{storage.Scope{Type: storage.ScopeAPIKey, ID: others}, false, false, ""},
	{storage.Scope{Type: storage.ScopeMCPServer}, true, true, storage.TrafficMCP},
	{storage.Scope{Type: storage.ScopeMCPServer, ID: server}, true, false, storage.TrafficMCP},
	{storage.Scope{Type: storage.ScopeMCPServer, Value: "github"}, true, false, storage.TrafficMCP},
	{storage.Scope{Type: storage.ScopeMCPServer, Value: "gitlab"}, false, false, storage.TrafficMCP},
	{storage.Scope{Type: storage.ScopeMCPServer, Value: server}, false, false, storage.TrafficMCP},
	{storage.Scope{Type: storage.ScopeLLMProvider}, true, true, storage.TrafficLLM},
	{storage.Scope{Type: storage.ScopeLLMProvider, ID: openai}, true, false, storage.TrafficLLM},
	{storage.Scope{Type: storage.ScopeLLMProvider, Value: "openai"}, true, false, storage.TrafficLLM},
	{storage.Scope{Type: storage.ScopeLLMProvider, Value: "fast"}, false, false, storage.TrafficLLM},
	{storage.Scope{Type: storage.ScopeModel}, true, true, storage.TrafficLLM},
	{storage.Scope{Type: storage.ScopeModel, Value: "gpt-5-mini"}, true, false, storage.TrafficLLM},
	{storage.Scope{Type: storage.ScopeModel, Value: "fast"}, false, false, storage.TrafficLLM},
	{storage.Scope{Type: storage.ScopeModelAlias}, true, true, storage.TrafficLLM},
	{storage.Scope{Type: storage.ScopeModelAlias, Value: "fast"}, true, false, storage.TrafficLLM},
	{storage.Scope{Type: storage.ScopeModelAlias, Value: "gpt-5-mini"}, false, false, storage.TrafficLLM},
	{storage.Scope{Type: storage.ScopeRole, Value: "ops"}, true, false, ""},
	{storage.Scope{Type: storage.ScopeRole, Value: "eng"}, false, false, ""},
	{storage.Scope{Type: storage.ScopeRole, Value: "Ops"}, false, false, ""},
	{storage.Scope{Type: storage.ScopeGroup, Value: "eng"}, true, false, ""}, // held twice, counted once
	{storage.Scope{Type: storage.ScopeGroup, Value: "dev"}, false, false, ""},
	{storage.Scope{Type: storage.ScopeTeam, Value: "core"}, true, false, ""},
	{storage.Scope{Type: storage.ScopeTeam, Value: "apollo"}, false, false, ""},
	{storage.Scope{Type: storage.ScopeProject, Value: "apollo"}, true, false, ""},
	{storage.Scope{Type: storage.ScopeProject, Value: "core"}, false, false, ""},
	// The API refuses these; they must not become limits on all callers.
	{storage.Scope{Type: storage.ScopeRole}, false, false, ""},
	{storage.Scope{Type: storage.ScopeGroup}, false, false, ""},
	{storage.Scope{Type: "galaxy"}, false, false, ""},
}

// TestScopesAndTraffic covers T10: it puts every scope with every kind of traffic in force at once. A call counts once
// in each that applies and in no other, in requests and in tokens.
func TestScopesAndTraffic(t *testing.T) {
	kinds := []storage.TrafficType{storage.TrafficAll, storage.TrafficLLM, storage.TrafficMCP}
	var limits []storage.RateLimit
	var wantLLM, wantMCP []bool
	types := map[storage.ScopeType]bool{}
	for i, c := range scopeCases {
		types[c.scope.Type] = true
		for _, kind := range kinds {
			limits = append(limits, rate(fmt.Sprint(i, kind), c.scope, kind, number(100), number(1000)))
			wantLLM = append(wantLLM, c.is && kind != storage.TrafficMCP && c.only != storage.TrafficMCP)
			wantMCP = append(wantMCP, c.is && kind != storage.TrafficLLM && c.only != storage.TrafficLLM)
		}
	}
	if len(types) != 13 {
		t.Fatalf("%d types of scope are tried, 12 and a wrong one should be", len(types))
	}
	for _, test := range []struct {
		traffic storage.TrafficType
		want    []bool
	}{{storage.TrafficLLM, wantLLM}, {storage.TrafficMCP, wantMCP}} {
		e, _ := newEngine()
		set := Compile(acme, limits)
		p := mustCharge(t, e, set.Match(caller(test.traffic)), Cost{Requests: 1, Tokens: 10})
		p.Settle(7)
		for i, s := range statusOf(t, e, set) {
			want := Status{Limit: limits[i], Requests: Gauge{Limit: 100}, Tokens: Gauge{Limit: 1000}, Apart: Apart(limits[i].Scope)}
			if test.want[i] {
				want.Requests.Used, want.Requests.Percentage, want.Tokens.Used, want.Tokens.Percentage = 1, 1, 7, 0.7
				if want.Apart {
					want.Active = 1
				}
			}
			s.Subjects = nil
			if diff := cmp.Diff(want, s, cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })); diff != "" {
				t.Errorf("a call of %s under %s %+v: %s", test.traffic, limits[i].Traffic, limits[i].Scope, diff)
			}
		}
	}
}

// TestApart covers T10: a limit that names no subject gives each subject the full amount. One that names a subject, and
// every pool, is shared by all its members.
func TestApart(t *testing.T) {
	change := map[storage.ScopeType]func(*Subject){
		storage.ScopeUser:        func(s *Subject) { s.UserID, s.UserSub, s.UserEmail = bob, "auth0|bob", "bob@example.com" },
		storage.ScopeAgent:       func(s *Subject) { s.AgentID = others },
		storage.ScopeAPIKey:      func(s *Subject) { s.APIKeyID = others },
		storage.ScopeMCPServer:   func(s *Subject) { s.ServerID, s.ServerSlug = others, "gitlab" },
		storage.ScopeLLMProvider: func(s *Subject) { s.ProviderID, s.ProviderName = "", "local" }, // from the configuration
		storage.ScopeModel:       func(s *Subject) { s.Model = "qwen" },
		storage.ScopeModelAlias:  func(s *Subject) { s.Alias = "slow" },
	}
	none := map[storage.ScopeType]func(*Subject){
		storage.ScopeUser:        func(s *Subject) { s.UserID, s.UserSub, s.UserEmail = "", "", "" }, // with a key of the organization
		storage.ScopeAgent:       func(s *Subject) { s.AgentID = "" },                                // not registered
		storage.ScopeAPIKey:      func(s *Subject) { s.APIKeyID = "" },                               // with a user's token
		storage.ScopeMCPServer:   func(s *Subject) { s.ServerID, s.ServerSlug = "", "" },
		storage.ScopeLLMProvider: func(s *Subject) { s.ProviderID, s.ProviderName = "", "" },
		storage.ScopeModel:       func(s *Subject) { s.Model = "" },
		storage.ScopeModelAlias:  func(s *Subject) { s.Alias = "" },
	}
	for _, c := range scopeCases {
		if !c.is {
			continue
		}
		traffic := c.only
		if traffic == "" {
			traffic = storage.TrafficLLM
		}
		e, _ := newEngine()
		set := Compile(acme, []storage.RateLimit{rate("l", c.scope, storage.TrafficAll, number(1), nil)})
		mustCharge(t, e, set.Match(caller(traffic)), Cost{Requests: 1})
		mustRefuse(t, e, set.Match(caller(traffic)), Cost{Requests: 1})
		other := caller(traffic)
		if f := change[c.scope.Type]; f != nil && c.scope.Type != storage.ScopeOrganization {
			f(other)
			mustCharge(t, e, set.Match(other), Cost{Requests: 1}) // its own counter, or no limit
			if _, refused, _ := e.Charge(t.Context(), set.Match(other), Cost{Requests: 1}); (refused != nil) != c.apart {
				t.Errorf("%+v: another subject is limited: %v", c.scope, refused != nil)
			}
			nobody := caller(traffic)
			none[c.scope.Type](nobody)
			if n := set.Match(nobody).Len(); n != 0 {
				t.Errorf("%+v: %d counters for nobody", c.scope, n)
			}
			continue
		}
		// In a pool, another member finds it full.
		other.UserID, other.UserSub, other.UserEmail, other.APIKeyID, other.AgentID = bob, "auth0|bob", "", others, others
		mustRefuse(t, e, set.Match(other), Cost{Requests: 1})
	}
}

// TestRotation covers T03: other keys, agents and sessions of one user count for the user and the organization.
func TestRotation(t *testing.T) {
	e, _ := newEngine()
	set := Compile(acme, []storage.RateLimit{
		rate("each", storage.Scope{Type: storage.ScopeUser}, storage.TrafficAll, number(10), nil),
		rate("org", storage.Scope{Type: storage.ScopeOrganization}, storage.TrafficAll, number(15), nil),
	})
	passed := 0
	for i := range 30 {
		s := caller([]storage.TrafficType{storage.TrafficLLM, storage.TrafficMCP}[i%2])
		s.APIKeyID, s.AgentID = fmt.Sprintf("018f3c2e-0000-7000-8000-%012d", i), fmt.Sprintf("018f3c2e-0000-7000-8000-%012d", 100+i)
		if p, _, _ := e.Charge(t.Context(), set.Match(s), Cost{Requests: 1}); p != nil {
			passed++
		}
	}
	if passed != 10 {
		t.Errorf("%d of a user's calls passed", passed)
	}
	passed = 0
	for i := range 30 {
		s := caller(storage.TrafficLLM)
		s.UserID = fmt.Sprintf("018f3c2e-0000-7000-8000-%012d", i)
		if p, _, _ := e.Charge(t.Context(), set.Match(s), Cost{Requests: 1}); p != nil {
			passed++
		}
	}
	if passed != 5 {
		t.Errorf("%d of other users' calls passed", passed)
	}
}

// TestIndexAgainstReference compares the index with a check of every scope.
func TestIndexAgainstReference(t *testing.T) {
	texts := rapid.SampledFrom([]string{"", "", "a", "b", "A", alice, bob})
	lists := rapid.SliceOfN(texts, 0, 4)
	kinds := rapid.SampledFrom([]storage.TrafficType{storage.TrafficAll, storage.TrafficLLM, storage.TrafficMCP})
	types := rapid.SampledFrom([]storage.ScopeType{
		storage.ScopeOrganization, storage.ScopeTeam, storage.ScopeUser, storage.ScopeRole, storage.ScopeGroup, storage.ScopeAPIKey,
		storage.ScopeMCPServer, storage.ScopeAgent, storage.ScopeProject, storage.ScopeLLMProvider, storage.ScopeModel, storage.ScopeModelAlias,
	})
	rapid.Check(t, func(t *rapid.T) {
		var scoped []Scoped
		for range rapid.IntRange(0, 30).Draw(t, "limits") {
			s := Scoped{Scope: storage.Scope{Type: types.Draw(t, "type")}, Traffic: kinds.Draw(t, "traffic")}
			if rapid.Bool().Draw(t, "by id") {
				s.Scope.ID = texts.Draw(t, "id")
			} else {
				s.Scope.Value = texts.Draw(t, "value")
			}
			scoped = append(scoped, s)
		}
		s := &Subject{
			Traffic: rapid.SampledFrom([]storage.TrafficType{storage.TrafficLLM, storage.TrafficMCP}).Draw(t, "call"),
			UserID:  texts.Draw(t, "user"), UserSub: texts.Draw(t, "sub"), UserEmail: texts.Draw(t, "email"),
			Roles: lists.Draw(t, "roles"), Groups: lists.Draw(t, "groups"), Teams: lists.Draw(t, "teams"), Projects: lists.Draw(t, "projects"),
			AgentID: texts.Draw(t, "agent"), APIKeyID: texts.Draw(t, "key"), ServerID: texts.Draw(t, "server"), ServerSlug: texts.Draw(t, "slug"),
			ProviderID: texts.Draw(t, "provider"), ProviderName: texts.Draw(t, "provider name"), Model: texts.Draw(t, "model"), Alias: texts.Draw(t, "alias"),
		}
		var want []Hit
		for i, sc := range scoped {
			if subject, ok := applies(sc, s); ok {
				want = append(want, Hit{i, subject})
			}
		}
		if diff := cmp.Diff(want, NewIndex(scoped).Match(s)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// applies checks the table of scopes in docs/limits.md row by row.
func applies(sc Scoped, s *Subject) (subject string, ok bool) {
	if sc.Traffic != storage.TrafficAll && sc.Traffic != s.Traffic {
		return "", false
	}
	llm := s.Traffic == storage.TrafficLLM
	is := func(text string, of ...string) bool { return text != "" && slices.Contains(of, text) }
	one := func(subject string, ids, values []string) (string, bool) {
		switch {
		case sc.Scope.ID != "":
			return "", is(sc.Scope.ID, ids...)
		case sc.Scope.Value != "":
			return "", is(sc.Scope.Value, values...)
		}
		return subject, subject != ""
	}
	pool := func(names []string) (string, bool) { return "", sc.Scope.ID == "" && is(sc.Scope.Value, names...) }
	switch sc.Scope.Type {
	case storage.ScopeOrganization:
		return "", true
	case storage.ScopeUser:
		values := []string{s.UserSub}
		if strings.EqualFold(s.UserEmail, sc.Scope.Value) {
			values = append(values, sc.Scope.Value)
		}
		return one(s.UserID, []string{s.UserID}, values)
	case storage.ScopeAgent:
		return one(s.AgentID, []string{s.AgentID}, []string{s.AgentID})
	case storage.ScopeAPIKey:
		return one(s.APIKeyID, []string{s.APIKeyID}, []string{s.APIKeyID})
	case storage.ScopeMCPServer:
		if !llm {
			return one(s.ServerID, []string{s.ServerID}, []string{s.ServerSlug})
		}
	case storage.ScopeLLMProvider:
		if llm {
			subject := s.ProviderID
			if subject == "" {
				subject = s.ProviderName
			}
			return one(subject, []string{s.ProviderID}, []string{s.ProviderName})
		}
	case storage.ScopeModel:
		if llm {
			return one(s.Model, nil, []string{s.Model})
		}
	case storage.ScopeModelAlias:
		if llm {
			return one(s.Alias, nil, []string{s.Alias})
		}
	case storage.ScopeRole:
		return pool(s.Roles)
	case storage.ScopeGroup:
		return pool(s.Groups)
	case storage.ScopeTeam:
		return pool(s.Teams)
	case storage.ScopeProject:
		return pool(s.Projects)
	}
	return "", false
}

// BenchmarkMatch covers P6: the time of a match does not grow with the limits of others.
func BenchmarkMatch(b *testing.B) {
	for _, n := range []int{10, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			limits := make([]storage.RateLimit, 0, n)
			for i := range n - 4 {
				limits = append(limits, rate(fmt.Sprint(i), storage.Scope{Type: storage.ScopeUser, ID: fmt.Sprint("somebody ", i)}, storage.TrafficAll, number(1), nil))
			}
			limits = append(limits,
				rate("o", storage.Scope{Type: storage.ScopeOrganization}, storage.TrafficAll, number(1), number(1)),
				rate("u", storage.Scope{Type: storage.ScopeUser}, storage.TrafficAll, number(1), nil),
				rate("g", storage.Scope{Type: storage.ScopeGroup, Value: "eng"}, storage.TrafficAll, number(1), nil),
				rate("m", storage.Scope{Type: storage.ScopeModel, Value: "gpt-5-mini"}, storage.TrafficAll, nil, number(1)))
			set := Compile(acme, limits)
			s := caller(storage.TrafficLLM)
			b.ReportAllocs()
			for b.Loop() {
				if set.Match(s).Len() != 5 {
					b.Fatal("another number of counters")
				}
			}
		})
	}
}
