package engine

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/storage"
)

func TestDecide(t *testing.T) {
	outOfBand := func(r storage.Rule) storage.Rule { r.Approval.Channel = storage.ChannelOutOfBand; return r }
	inactive := func(r storage.Rule) storage.Rule { r.Active = false; return r }
	x := tool("x", `{"n":1}`)
	tests := []struct {
		name   string
		rules  []storage.Rule
		call   Call
		want   Effect
		rule   string
		hidden bool
	}{
		{"default deny", nil, x, Deny, "", true},
		{"another tool", []storage.Rule{grant("g", "tools/call:y")}, x, Deny, "", true},
		{"plain grant", []storage.Rule{grant("g", "tools/call:x")}, x, Allow, "g", false},
		{"case counts", []storage.Rule{grant("g", "tools/call:X")}, x, Deny, "", true},
		{"star grants a tool", []storage.Rule{grant("g", "*")}, x, Allow, "g", false},
		{"star grants a resource", []storage.Rule{grant("g", "*")}, Call{sales, ResourcesRead, "file:///a", nil, false, false}, Allow, "g", false},
		{"star grants a prompt", []storage.Rule{grant("g", "*")}, Call{sales, PromptsGet, "p q", nil, false, false}, Allow, "g", false},
		{"star grants the stream", []storage.Rule{grant("g", "*")}, Call{sales, SSEStream, "", nil, false, false}, Allow, "g", false},
		{"star denies a tool", []storage.Rule{grant("g", "*"), deny("d", "*")}, x, Deny, "d", true},
		{"star denies the stream", []storage.Rule{grant("g", "*"), deny("d", "*")}, Call{sales, SSEStream, "", nil, false, false}, Deny, "d", true},
		{"stream is denied", []storage.Rule{grant("g", "*"), deny("d", "sse/stream")}, Call{sales, SSEStream, "", nil, false, false}, Deny, "d", true},
		{"stream denied, tool not", []storage.Rule{grant("g", "*"), deny("d", "sse/stream")}, x, Allow, "g", false},
		{"all tools are no stream", []storage.Rule{grant("g", "tools/call:*")}, Call{sales, SSEStream, "", nil, false, false}, Deny, "", true},
		{"tools are no prompts", []storage.Rule{grant("g", "tools/call:x")}, Call{sales, PromptsGet, "x", nil, false, false}, Deny, "", true},
		{"list words grant nothing", []storage.Rule{grant("g", "tools/list", "resources/list", "prompts/list")}, x, Deny, "", true},
		{"M01 deny wins", []storage.Rule{grant("g", "tools/call:x"), deny("d", "tools/call:x")}, x, Deny, "d", true},
		{"M01 deny of a prefix wins", []storage.Rule{grant("g", "tools/call:x"), deny("d", "tools/call:x*")}, x, Deny, "d", true},
		{"M07 suffix in a deny is ignored", []storage.Rule{grant("g", "tools/call:x"), deny("d", "tools/call:x:approve")}, x, Deny, "d", true},
		{"asks", []storage.Rule{grant("a", "tools/call:x:approve")}, x, Ask, "a", false},
		{"M08 ask beats allow", []storage.Rule{grant("g", "*"), grant("a", "tools/call:x:approve")}, x, Ask, "a", false},
		{"M08 in one rule", []storage.Rule{grant("g", "tools/call:x", "tools/call:x:approve")}, x, Ask, "g", false},
		{"the stricter channel", []storage.Rule{grant("a", "tools/call:x:approve"), outOfBand(grant("b", "tools/call:*:approve"))}, x, Ask, "b", false},
		{"channel of a rule that does not ask for it", []storage.Rule{grant("a", "tools/call:x:approve"), outOfBand(grant("b", "tools/call:x", "tools/call:y:approve"))}, x, Ask, "a", false},
		{"inactive grant", []storage.Rule{inactive(grant("g", "*"))}, x, Deny, "", true},
		{"inactive deny", []storage.Rule{grant("g", "*"), inactive(deny("d", "*"))}, x, Allow, "g", false},
		{"first of several", []storage.Rule{grant("g", "tools/call:*"), grant("h", "tools/call:x")}, x, Allow, "g", false},

		{"condition holds", []storage.Rule{when(grant("g", "*"), "R.attr.n == 1")}, x, Allow, "g", false},
		{"condition does not hold", []storage.Rule{when(grant("g", "*"), "R.attr.n == 2")}, x, Deny, "", false},
		{"condition that nobody meets", []storage.Rule{when(grant("g", "*"), "P.id == 'u-2'")}, x, Deny, "", true},
		{"condition cannot be evaluated, grant", []storage.Rule{when(grant("g", "*"), "R.attr.m == 1")}, x, Deny, "", false},
		{"condition cannot be evaluated, ask", []storage.Rule{grant("g", "*"), when(grant("a", "tools/call:x:approve"), "R.attr.m == 1")}, x, Allow, "g", false},
		{"condition cannot be evaluated, deny", []storage.Rule{grant("g", "*"), when(deny("d", "tools/call:x"), "R.attr.m == 1")}, x, Deny, "d", false},
		{"condition can never be evaluated, deny", []storage.Rule{grant("g", "*"), when(deny("d", "tools/call:x"), "1 / 0 == 1")}, x, Deny, "d", true},
		{"denied for its arguments", []storage.Rule{grant("g", "*"), when(deny("d", "tools/call:x"), "R.attr.n == 1")}, x, Deny, "d", false},
		{"resource by its uri", []storage.Rule{when(grant("g", "resources/read:*"), "R.attr.uri.endsWith('.md')")}, Call{sales, ResourcesRead, "file:///a.md", nil, false, false}, Allow, "g", false},
		{"another resource by its uri", []storage.Rule{when(grant("g", "resources/read:*"), "R.attr.uri.endsWith('.md')")}, Call{sales, ResourcesRead, "file:///a.txt", nil, false, false}, Deny, "", true},
		{"resources have no other arguments", []storage.Rule{when(grant("g", "*"), "size(R.attr) == 1")}, Call{sales, ResourcesRead, "file:///a", []byte(`{"x":1,"y":2}`), false, false}, Allow, "g", false},
		{"filters of a stream", []storage.Rule{when(grant("g", "sse/stream"), "R.attr.object_type == 'issue'")}, Call{sales, SSEStream, "", []byte(`{"object_type":"issue"}`), false, false}, Allow, "g", false},

		{"M21 role", []storage.Rule{forSubjects(grant("g", "*"), "role:dev")}, x, Allow, "g", false},
		{"M21 group", []storage.Rule{forSubjects(grant("g", "*"), "group:sales")}, x, Allow, "g", false},
		{"M21 bare role", []storage.Rule{forSubjects(grant("g", "*"), "dev")}, x, Allow, "g", false},
		{"M21 bare group", []storage.Rule{forSubjects(grant("g", "*"), "sales")}, x, Allow, "g", false},
		{"M21 a group is no role", []storage.Rule{forSubjects(grant("g", "*"), "role:sales")}, x, Deny, "", true},
		{"M21 a role is no group", []storage.Rule{forSubjects(grant("g", "*"), "group:dev")}, x, Deny, "", true},
		{"M21 case counts", []storage.Rule{forSubjects(grant("g", "*"), "Dev")}, x, Deny, "", true},
		{"M21 names are not split", []storage.Rule{forSubjects(grant("g", "*"), "dev,support", "dev support", " dev")}, x, Deny, "", true},
		{"M21 star and an explicit deny", []storage.Rule{grant("g", "*"), forSubjects(deny("d", "*"), "group:sales")}, x, Deny, "d", true},
		{"M21 star is not for nobody", []storage.Rule{grant("g", "*")}, Call{nil, ToolsCall, "x", nil, false, false}, Deny, "", true},

		{"resource that climbs", []storage.Rule{grant("g", "*")}, Call{sales, ResourcesRead, "file:///a/../b", nil, false, false}, Deny, "", true},
		{"resource with a control", []storage.Rule{grant("g", "*")}, Call{sales, ResourcesRead, "file:///a\x00", nil, false, false}, Deny, "", true},
		{"no resource", []storage.Rule{grant("g", "*")}, Call{sales, ResourcesRead, "", nil, false, false}, Deny, "", true},
		{"no prompt", []storage.Rule{grant("g", "*")}, Call{sales, PromptsGet, "", nil, false, false}, Deny, "", true},
		{"prompt with a control", []storage.Rule{grant("g", "*")}, Call{sales, PromptsGet, "a\nb", nil, false, false}, Deny, "", true},
		{"prompt of bad UTF-8", []storage.Rule{grant("g", "*")}, Call{sales, PromptsGet, "a\xff", nil, false, false}, Deny, "", true},
		{"no kind", []storage.Rule{grant("g", "*")}, Call{sales, 0, "x", nil, false, false}, Deny, "", true},
		{"a list is no call", []storage.Rule{grant("g", "*")}, Call{sales, ToolsList, "", nil, false, false}, Deny, "", true},
		{"any is no call", []storage.Rule{grant("g", "*")}, Call{sales, Any, "", nil, false, false}, Deny, "", true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := compile(t, active(test.rules...)).Decide(t.Context(), test.call)
			if d.Effect != test.want || d.Rule != test.rule || d.Hidden != test.hidden || d.Reason.String() == "" {
				t.Errorf("%+v; want %v by rule %q, hidden %v", d, test.want, test.rule, test.hidden)
			}
			if d.OutOfBand != (d.Rule == "b") {
				t.Errorf("out of band: %+v", d)
			}
		})
	}
}

func TestM02OnlyActivePoliciesCount(t *testing.T) {
	for _, status := range []storage.PolicyStatus{storage.PolicyDraft, storage.PolicyInactive, storage.PolicyArchived, ""} {
		p := active(grant("g", "*"))
		p.Status = status
		if d := compile(t, p).Decide(t.Context(), tool("x", "")); d.Effect != Deny || !d.Hidden || d.PolicyID != "" {
			t.Errorf("%s: %+v", status, d)
		}
		if p.Shadow = status != storage.PolicyDraft; p.Shadow {
			if d := compile(t, p).Decide(t.Context(), tool("x", "")); d.Effect != Deny || d.Shadow != nil {
				t.Errorf("%s in the shadow: %+v", status, d)
			}
		}
	}
	p := active(grant("g", "*"))
	p.ServerID = "another"
	if d := compile(t, p).Decide(t.Context(), tool("x", "")); d.Effect != Deny {
		t.Errorf("policy of another server: %+v", d)
	}
	if d := compile(t).Decide(t.Context(), tool("x", "")); d.Effect != Deny || compile(t).View(t.Context(), sales).Tool("x") {
		t.Errorf("no policy: %+v", d)
	}
}

func scoped(id string, agents []string, rules ...storage.Rule) storage.Policy {
	p := active(rules...)
	p.ID, p.Name, p.ApplicationIDs = id, id, agents
	return p
}

func TestAgents(t *testing.T) {
	s := compile(t, scoped("all", nil, grant("all", "tools/call:x")), scoped("one", []string{"a1", "a2"}, grant("one", "tools/call:y")), scoped("none", []string{"a3"}))
	tests := []struct{ agent, tool, policy, rule string }{
		{"", "x", "all", "all"}, {"", "y", "all", ""}, {"a9", "x", "all", "all"},
		{"a1", "x", "one", ""}, {"a1", "y", "one", "one"}, {"a2", "y", "one", "one"},
		{"a3", "x", "none", ""}, {"a3", "y", "none", ""}, {"A1", "x", "all", "all"},
	}
	for _, test := range tests {
		p := NewPrincipal("u", nil, nil, test.agent, nil)
		d := s.Decide(t.Context(), Call{Principal: p, Kind: ToolsCall, Name: test.tool})
		if d.PolicyID != test.policy || d.Rule != test.rule || (d.Effect == Allow) != (test.rule != "") || s.View(t.Context(), p).Tool(test.tool) != (test.rule != "") {
			t.Errorf("agent %q, tool %s: %+v", test.agent, test.tool, d)
		}
	}
	onlyScoped := compile(t, scoped("one", []string{"a1"}, grant("one", "*")))
	if d := onlyScoped.Decide(t.Context(), tool("x", "")); d.Effect != Deny || d.PolicyID != "" {
		t.Errorf("a policy for an agent, called by none: %+v", d)
	}
}

func TestM23OverlapIsRefused(t *testing.T) {
	for _, policies := range [][]storage.Policy{
		{scoped("a", nil), scoped("b", nil)},
		{scoped("a", []string{"a1", "a2"}), scoped("b", []string{"a2"})},
	} {
		if _, err := Compile(serverSlug, serverID, policies); err == nil {
			t.Error("two active policies for one agent are taken")
		}
	}
}

// byText compares reasons by the text that people read.
var byText = cmp.Comparer(func(a, b Reason) bool { return a.String() == b.String() })

func TestDecisionTells(t *testing.T) {
	r := grant("the rule", "tools/call:x")
	r.Condition = []byte(`{"match":{"all":{"of":[{"expr":"R.attr.n == 1"},{"any":{"of":[{"expr":"R.attr.m > 1"},{"expr":"P.id == 'u-1'"}]}}]}}}`)
	s := compile(t, active(r, when(grant("other", "tools/call:x"), "false")))
	got := s.Decide(t.Context(), tool("x", `{"n":1}`))
	want := Decision{
		Effect: Allow, PolicyID: "p1", PolicyName: "policy", Revision: 7, Rule: "the rule", Reason: Reason{text: `Rule "the rule" grants it.`},
		Values: []ConditionValue{
			{"the rule", "R.attr.n == 1", "true", ""}, {"the rule", "R.attr.m > 1", "", "no such member: m"}, {"the rule", "P.id == 'u-1'", "true", ""},
		},
	}
	if diff := cmp.Diff(want, got, byText); diff != "" {
		t.Error(diff)
	}
	got = s.Decide(t.Context(), tool("x", `{"n":2}`))
	want = Decision{
		PolicyID: "p1", PolicyName: "policy", Revision: 7, Reason: reasonCondition,
		Values: []ConditionValue{{"the rule", "R.attr.n == 1", "false", ""}, {"other", "false", "false", ""}},
	}
	if diff := cmp.Diff(want, got, byText); diff != "" {
		t.Error(diff)
	}
}

// TestValuesOfTheDecidingRule checks that the values belong to the deciding rule, each once, even if several of its
// patterns match. It also checks their maximum number for a call that no rule grants.
func TestValuesOfTheDecidingRule(t *testing.T) {
	d := compile(t, active(when(grant("g", "tools/call:x", "tools/call:*", "*"), "true"), when(deny("d", "*"), "false"))).Decide(t.Context(), tool("x", ""))
	if diff := cmp.Diff([]ConditionValue{{"g", "true", "true", ""}}, d.Values); diff != "" {
		t.Error(diff)
	}
	var refusing []storage.Rule
	for i := range maxValues + 1 {
		refusing = append(refusing, when(grant(string(rune('a'+i)), "*"), "false"))
	}
	if d := compile(t, active(refusing...)).Decide(t.Context(), tool("x", "")); len(d.Values) != maxValues {
		t.Errorf("%d values", len(d.Values))
	}
}

// TestWhyNothingGrants checks a denial that no rule makes. It names the conditions that kept grants from matching, and
// nothing of rules that deny. The reason mentions conditions if there are any.
func TestWhyNothingGrants(t *testing.T) {
	denying := when(deny("d", "*"), "R.attr.n == 2")
	for name, test := range map[string]struct {
		rules  []storage.Rule
		reason Reason
		values []ConditionValue
	}{
		"no grant":            {[]storage.Rule{denying}, reasonNoGrant, nil},
		"a grant for another": {[]storage.Rule{denying, when(grant("g", "tools/call:y"), "R.attr.n == 3")}, reasonNoGrant, nil},
		"a grant":             {[]storage.Rule{denying, when(grant("g", "*"), "R.attr.n == 3")}, reasonCondition, []ConditionValue{{"g", "R.attr.n == 3", "false", ""}}},
		"a grant that has several ways, and another": {
			[]storage.Rule{when(grant("g", "tools/call:x", "tools/call:x*", "*"), "R.attr.n == 3"), denying, when(grant("h", "tools/call:x", "*"), "R.attr.n == 3")}, reasonCondition,
			[]ConditionValue{{"g", "R.attr.n == 3", "false", ""}, {"h", "R.attr.n == 3", "false", ""}},
		},
	} {
		d := compile(t, active(test.rules...)).Decide(t.Context(), tool("x", `{"n":1}`))
		if diff := cmp.Diff(test.values, d.Values); diff != "" || d.Effect != Deny || d.Reason != test.reason {
			t.Errorf("%s: %+v %s", name, d, diff)
		}
	}
	// A draft reports its own conditions.
	draft := active(when(grant("g", "*"), "R.attr.n == 3"))
	draft.ID, draft.Status, draft.Shadow = "draft", storage.PolicyDraft, true
	d := compile(t, active(grant("all", "*")), draft).Decide(t.Context(), tool("x", `{"n":1}`))
	if len(d.Shadow) != 1 || d.Shadow[0].Reason != reasonCondition {
		t.Errorf("%+v", d.Shadow)
	}
}

// TestExplain checks that expressions that did not match are reported too, and none twice.
func TestExplain(t *testing.T) {
	s := compile(t, active(
		when(deny("d", "tools/call:x", "tools/call:x*", "*"), "R.attr.n == 2"), when(deny("broken", "tools/call:y"), "R.attr.m == 1"),
		when(grant("g", "*"), "R.attr.n == 1"), when(grant("never asked", "*"), "true"),
	))
	call := tool("x", `{"n":1}`)
	got := s.Explain(t.Context(), call)
	want := []ConditionValue{{"d", "R.attr.n == 2", "false", ""}, {"g", "R.attr.n == 1", "true", ""}}
	if diff := cmp.Diff(want, got.Values); diff != "" {
		t.Error(diff)
	}
	got.Values = s.Decide(t.Context(), call).Values
	if diff := cmp.Diff(s.Decide(t.Context(), call), got, byText); diff != "" || len(got.Values) != 1 {
		t.Errorf("%s %v", diff, got.Values)
	}
}

// TestDecisionTellsNoValues checks that a decision holds no values of arguments: it goes to places where arguments may
// not.
func TestDecisionTellsNoValues(t *testing.T) {
	const secret = "hunter2"
	for _, expr := range []string{
		"int(R.attr.p) == 1", "R.attr.p + 1 == 2", "{'a':1}[R.attr.p] == 1", "R.attr.p.foo == 1", "R.attr.p.matches(R.attr.p + '(')",
		"timestamp(R.attr.p) == timestamp('2020-01-01T00:00:00Z')", "R.attr.p", "'%d'.format([R.attr.p]) == ''", "R.attr[R.attr.p] == 1",
	} {
		d := compile(t, active(when(grant("g", "*"), expr))).Decide(t.Context(), tool("x", `{"p":"`+secret+`"}`))
		if d.Effect != Deny || len(d.Values) != 1 || d.Values[0].Error == "" || strings.Contains(d.Values[0].Error+d.Reason.String(), secret) {
			t.Errorf("%s: %+v", expr, d)
		}
	}
}

func TestShadow(t *testing.T) {
	draft := func(id string, agents []string, rules ...storage.Rule) storage.Policy {
		p := scoped(id, agents, rules...)
		p.Status, p.Shadow, p.Revision = storage.PolicyDraft, true, 3
		return p
	}
	plain := draft("plain draft", nil, deny("d", "*"))
	plain.Shadow = false
	broken := draft("broken", nil, when(grant("g", "*"), "1 +"))
	s := compile(t,
		scoped("all", nil, grant("all", "*")), scoped("one", []string{"a1"}, grant("one", "tools/call:y")),
		plain, broken, draft("stricter", nil, deny("no", "tools/call:x"), grant("yes", "*")), draft("for a1", []string{"a1", "a2"}, grant("asks", "tools/call:*:approve")),
	)
	if len(s.Skipped()) != 1 {
		t.Errorf("skipped: %v", s.Skipped())
	}
	tests := []struct {
		agent, tool string
		want        []ShadowDecision
	}{
		{"", "x", []ShadowDecision{{"stricter", "stricter", 3, Deny, "no", false, nil, Reason{text: `Rule "no" denies it.`}}}},
		{"", "y", nil},
		{"a9", "x", []ShadowDecision{{"stricter", "stricter", 3, Deny, "no", false, nil, Reason{text: `Rule "no" denies it.`}}}},
		// The active policy for a1 would stay in force beside the draft for all agents.
		{"a1", "x", []ShadowDecision{{"for a1", "for a1", 3, Ask, "asks", false, nil, Reason{text: `Rule "asks" grants it once a human has approved.`}}}},
		// a2 is under the policy for all agents; either draft would govern it.
		{"a2", "x", []ShadowDecision{
			{"stricter", "stricter", 3, Deny, "no", false, nil, Reason{text: `Rule "no" denies it.`}}, {"for a1", "for a1", 3, Ask, "asks", false, nil, Reason{text: `Rule "asks" grants it once a human has approved.`}},
		}},
	}
	for _, test := range tests {
		d := s.Decide(t.Context(), Call{Principal: NewPrincipal("u", nil, nil, test.agent, nil), Kind: ToolsCall, Name: test.tool})
		if diff := cmp.Diff(test.want, d.Shadow, byText); diff != "" {
			t.Errorf("agent %q, tool %s: %s", test.agent, test.tool, diff)
		}
	}
	if d := s.Decide(t.Context(), tool("x", "")); d.Effect != Allow || d.PolicyID != "all" {
		t.Errorf("the draft decides: %+v", d)
	}
}

// TestNoAgent checks that a policy for agents never governs a caller without an agent, for any names of its agents.
func TestNoAgent(t *testing.T) {
	of := func(status storage.PolicyStatus, agents []string, rules ...storage.Rule) storage.Policy {
		p := scoped(string(status), agents, rules...)
		p.Status, p.Shadow = status, status == storage.PolicyDraft
		return p
	}
	for name, s := range map[string]*Set{
		"a draft":           compile(t, of(storage.PolicyDraft, []string{""}, grant("g", "*"))),
		"an active policy":  compile(t, of(storage.PolicyActive, []string{""}, grant("g", "*"))),
		"a draft beside it": compile(t, of(storage.PolicyActive, []string{""}, grant("g", "*")), of(storage.PolicyDraft, nil, grant("g", "*"))),
	} {
		d := s.Decide(t.Context(), tool("x", ""))
		if d.Effect != Deny || d.PolicyID != "" || (len(d.Shadow) == 1) != (name == "a draft beside it") {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// TestShadowTells checks that a draft that asks on another channel counts as a different decision, with its own
// conditions.
func TestShadowTells(t *testing.T) {
	ask := grant("ask", "tools/call:x:approve")
	draft := active(strict("strictly", "tools/call:x:approve"))
	draft.ID, draft.Name, draft.Status, draft.Shadow = "draft", "draft", storage.PolicyDraft, true
	d := compile(t, active(ask), draft).Decide(t.Context(), tool("x", ""))
	if len(d.Shadow) != 1 || d.Shadow[0].Effect != Ask || !d.Shadow[0].OutOfBand {
		t.Errorf("%+v", d.Shadow)
	}
	draft.Rules = nil
	d = compile(t, active(when(grant("g", "*"), "true")), draft).Decide(t.Context(), tool("x", ""))
	if len(d.Shadow) != 1 || d.Shadow[0].Reason != reasonNoGrant {
		t.Errorf("%+v", d.Shadow)
	}
}

func TestDoneContextDenies(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := compile(t, active(when(grant("g", "tools/call:x"), "true"), grant("h", "tools/call:y")))
	if d := s.Decide(ctx, tool("x", "")); d.Effect != Deny || d.Values[0].Error != errInterrupt.Error() {
		t.Errorf("%+v", d)
	}
	if d := s.Decide(ctx, tool("y", "")); d.Effect != Allow {
		t.Errorf("without a condition: %+v", d)
	}
	begun := &evaluation{ctx: ctx, until: time.Now().Add(time.Hour)}
	if !begun.overdue() {
		t.Error("what was begun before goes on")
	}
}

// TestOpen checks that an open call is allowed unless a rule denies it, also for drafts in the shadow.
func TestOpen(t *testing.T) {
	stream := Call{Principal: sales, Kind: SSEStream, Open: true}
	draft := active(grant("some", "tools/call:x"))
	draft.ID, draft.Status, draft.Shadow = "draft", storage.PolicyDraft, true
	denying := active(when(deny("no", "sse/stream"), "R.attr.object_type == 'issue'"))
	denying.ID, denying.Status, denying.Shadow = "denying", storage.PolicyDraft, true
	s := compile(t, active(grant("g", "tools/call:x")), draft, denying)
	got := s.Decide(t.Context(), stream)
	if got.Effect != Allow || got.Rule != "" || got.PolicyID != "p1" || got.Hidden {
		t.Errorf("%+v", got)
	}
	// A deny that cannot be evaluated matches.
	if len(got.Shadow) != 1 || got.Shadow[0].PolicyID != "denying" || got.Shadow[0].Effect != Deny {
		t.Errorf("%+v", got.Shadow)
	}
	if said := s.Foresee(t.Context(), stream, Lacking{}); !said.Certain || said.Effect != Allow {
		t.Errorf("%+v", said)
	}
	for name, s := range map[string]*Set{"none": compile(t), "a deny": compile(t, active(deny("d", "sse/stream")))} {
		want := map[string]Effect{"none": Allow, "a deny": Deny}[name]
		if got := s.Decide(t.Context(), stream); got.Effect != want || got.Reason.String() == "" {
			t.Errorf("%s: %+v", name, got)
		}
		if said := s.Foresee(t.Context(), stream, Lacking{Arguments: true, Roles: true, Claims: true}); !said.Certain || said.Effect != want {
			t.Errorf("%s: %+v", name, said)
		}
	}
	stream.Open = false
	if got := s.Decide(t.Context(), stream); got.Effect != Deny {
		t.Errorf("%+v", got)
	}
}

func TestCheckStops(t *testing.T) {
	many := make([]string, 10*maxProblems)
	for i := range many {
		many[i] = "x"
	}
	rule := grant("g", many...)
	if got := len(Check([]storage.Rule{rule, grant("g", "y")})); got != maxProblems {
		t.Errorf("%d problems", got)
	}
}

// TestConfirmed checks that a confirmation that the agent needs makes what is allowed ask, and nothing else weaker or
// stricter; of the drafts in the shadow those stay that would still have decided otherwise.
func TestConfirmed(t *testing.T) {
	shadow := []ShadowDecision{{PolicyID: "d", Effect: Deny}, {PolicyID: "a", Effect: Ask}, {PolicyID: "o", Effect: Ask, OutOfBand: true}, {PolicyID: "l", Effect: Allow, Rule: "r"}}
	for _, tc := range []struct {
		d      Decision
		effect Effect
		rule   string
		shadow string
	}{
		{Decision{Effect: Allow, Rule: "r", PolicyID: "p", Shadow: shadow[:3]}, Ask, RuleConfirmation, "d,o"},
		{Decision{Effect: Ask, Rule: "r", PolicyID: "p", Shadow: slices.Concat(shadow[:1], shadow[2:])}, Ask, "r", "d,o"},
		{Decision{Effect: Ask, Rule: "r", PolicyID: "p", OutOfBand: true, Shadow: slices.Concat(shadow[:2], shadow[3:])}, Ask, "r", "d,a,l"},
		{Decision{Effect: Deny, Hidden: true, PolicyID: "p", Shadow: shadow[1:]}, Deny, "", "a,o,l"},
	} {
		got := tc.d.Confirmed()
		var left []string
		for _, s := range got.Shadow {
			left = append(left, s.PolicyID)
			if s.Effect == Allow {
				t.Errorf("%+v allows", s)
			}
		}
		if got.Effect != tc.effect || got.Rule != tc.rule || got.PolicyID != "p" || got.OutOfBand != tc.d.OutOfBand || got.Hidden != tc.d.Hidden || strings.Join(left, ",") != tc.shadow {
			t.Errorf("%+v: %+v", tc.d, got)
		}
		if got.Reason.String() == "" && tc.d.Effect == Allow {
			t.Error("no reason")
		}
	}
}
