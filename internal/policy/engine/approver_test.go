package engine

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/durward-gateway/durward/storage"
)

const leadID = "0192f0c1-5bd2-7000-8000-0000000000aa"

// approvedBy returns a rule that lets other people decide on calls of x.
func approvedBy(by ...string) storage.Rule {
	r := grant("by", "tools/call:x:approve")
	r.Approval = storage.RuleApproval{Channel: storage.ChannelOutOfBand, By: by}
	return r
}

// sameApprovers reports whether two sets of lists, in any order, let the same people decide.
func sameApprovers(a, b [][]string) bool {
	set := func(lists [][]string) map[string]bool {
		out := make(map[string]bool)
		for _, list := range lists {
			out[strings.Join(slices.Compact(slices.Sorted(slices.Values(list))), " ")] = true
		}
		return out
	}
	return maps.Equal(set(a), set(b))
}

// TestApprovers checks who decides when several rules ask: their order makes no difference, and none weakens another.
func TestApprovers(t *testing.T) {
	named := func(name string, r storage.Rule) storage.Rule { r.Name = name; return r }
	leads, security := named("leads", approvedBy("group:leads", "role:boss")), named("security", approvedBy("group:security"))
	others := func(r storage.Rule) storage.Rule { r.RolesGroups = []string{"group:nobody"}; return r }
	for name, tc := range map[string]struct {
		rules []storage.Rule
		want  [][]string
		rule  string
	}{
		"one rule":                        {[]storage.Rule{leads}, [][]string{{"group:leads", "role:boss"}}, "leads"},
		"the caller may not, elsewhere":   {[]storage.Rule{grant("own", "tools/call:*:approve"), strict("strict", "tools/call:x:approve"), leads}, [][]string{{"group:leads", "role:boss"}}, "leads"},
		"two rules":                       {[]storage.Rule{security, leads}, [][]string{{"group:leads", "role:boss"}, {"group:security"}}, "security"},
		"two rules with the same people":  {[]storage.Rule{leads, named("again", approvedBy("role:boss", "group:leads", "role:boss"))}, [][]string{{"group:leads", "role:boss"}}, "leads"},
		"a rule for somebody else":        {[]storage.Rule{others(security), leads}, [][]string{{"group:leads", "role:boss"}}, "leads"},
		"a condition that does not match": {[]storage.Rule{when(security, "R.attr.n == 2"), leads}, [][]string{{"group:leads", "role:boss"}}, "leads"},
		"no such rule":                    {[]storage.Rule{grant("own", "tools/call:*:approve")}, nil, "own"},
	} {
		d := compile(t, active(tc.rules...)).Decide(t.Context(), tool("x", `{"n":1}`))
		if diff := cmp.Diff(tc.want, d.Approvers); d.Effect != Ask || d.Rule != tc.rule || d.OutOfBand != (tc.want != nil) || diff != "" {
			t.Errorf("%s: %+v %s", name, d, diff)
		}
		f := compile(t, active(tc.rules...)).Foresee(t.Context(), tool("x", `{"n":1}`), Lacking{})
		if !f.Certain || f.Effect != Ask || f.Rule != tc.rule {
			t.Errorf("%s: foreseen %+v", name, f)
		}
	}
	broken := active(approvedBy("leads"))
	if _, err := Compile(serverSlug, serverID, []storage.Policy{broken}); err == nil {
		t.Error("a policy whose approvers cannot be read is in force")
	}
}

// TestApproversUnknown checks that a caller with unknown groups is decided on by all who might have to.
func TestApproversUnknown(t *testing.T) {
	sales := approvedBy("group:leads")
	sales.RolesGroups = []string{"group:sales"}
	everybody := approvedBy("group:security")
	everybody.Name = "everybody"
	p := NewPrincipalWithout(Unknown{Groups: true}, "u1", nil, nil, "")
	for _, rules := range [][]storage.Rule{{sales, everybody}, {everybody, sales}, {strict("strict", "tools/call:x:approve"), everybody, sales}} {
		d := compile(t, active(rules...)).Decide(t.Context(), Call{Principal: p, Kind: ToolsCall, Name: "x"})
		if d.Effect != Ask || !sameApprovers(d.Approvers, [][]string{{"group:leads"}, {"group:security"}}) {
			t.Errorf("%+v", d)
		}
	}
}

// TestApproversInShadow checks that a draft that lets other people decide differs from one that asks the caller.
func TestApproversInShadow(t *testing.T) {
	draft := active(approvedBy("group:leads"))
	draft.ID, draft.Status, draft.Shadow = "draft", storage.PolicyDraft, true
	d := compile(t, active(strict("strict", "tools/call:x:approve")), draft).Decide(t.Context(), tool("x", ""))
	if len(d.Shadow) != 1 || !sameApprovers(d.Shadow[0].Approvers, [][]string{{"group:leads"}}) || d.Approvers != nil {
		t.Errorf("%+v", d)
	}
}

func TestIsApprover(t *testing.T) {
	for name, tc := range map[string]struct {
		approvers [][]string
		want      bool
	}{
		"no list": {nil, false}, "an empty list": {[][]string{{}}, false}, "the group": {[][]string{{"group:leads"}}, true},
		"the role": {[][]string{{"role:editor"}}, true}, "the user": {[][]string{{"user:" + leadID}}, true},
		"one of several":          {[][]string{{"group:none", "role:editor"}}, true},
		"both lists":              {[][]string{{"group:leads"}, {"role:editor", "role:x"}}, true},
		"one list of two":         {[][]string{{"group:leads"}, {"group:security"}}, false},
		"a role of that name":     {[][]string{{"role:leads"}}, false},
		"a group of that name":    {[][]string{{"group:editor"}}, false},
		"a bare name":             {[][]string{{"leads"}}, false},
		"everybody":               {[][]string{{"*"}}, false},
		"a user without an id":    {[][]string{{"user:"}}, false},
		"the beginning of a name": {[][]string{{"group:lead"}}, false},
		"another case":            {[][]string{{"group:Leads"}}, false},
	} {
		if got := IsApprover(tc.approvers, leadID, []string{"editor"}, []string{"leads"}); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if IsApprover([][]string{{"user:"}}, "", nil, nil) {
		t.Error("nobody is an approver")
	}
}

// TestPropertyApproversNarrow checks that a further rule never lets more people decide on a call that asks.
func TestPropertyApproversNarrow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, who := drawPolicy(t, "p", storage.PolicyActive), drawWho(t)
		more := p
		more.rules = append(slices.Clone(p.rules), drawRule(t, "more"))
		before, after := compileAll(t, []refPolicy{p}), compileAll(t, []refPolicy{more})
		roles, groups := rapid.SliceOf(rapid.SampledFrom([]string{"r1", "g1"})).Draw(t, "roles"), rapid.SliceOf(rapid.SampledFrom([]string{"g1", "g2"})).Draw(t, "groups")
		for _, name := range drawnNames {
			c := Call{Principal: who.principal(), Kind: ToolsCall, Name: name, Arguments: []byte(`{"n":1}`)}
			a, b := before.Decide(t.Context(), c), after.Decide(t.Context(), c)
			if a.Approvers != nil && b.Effect != Deny && !IsApprover(a.Approvers, "lead", roles, groups) && IsApprover(b.Approvers, "lead", roles, groups) {
				t.Fatalf("%s: %+v, with another rule %+v", name, a, b)
			}
			if a.Approvers != nil && b.Effect != Deny && b.Approvers == nil {
				t.Fatalf("%s: with another rule the caller decides: %+v", name, b)
			}
		}
	})
}
