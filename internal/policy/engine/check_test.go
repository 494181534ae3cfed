package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/storage"
)

func withCondition(text string) storage.Rule {
	r := grant("r", "*")
	r.Condition = json.RawMessage(text)
	return r
}

func TestCheck(t *testing.T) {
	deep := `{"expr":"true"}`
	for range MaxConditionDepth + 1 {
		deep = `{"all":{"of":[` + deep + `]}}`
	}
	expr := func(text string) storage.Rule { return when(grant("r", "*"), text) }
	tests := []struct {
		name string
		rule storage.Rule
		want string // loc, type and position of each problem
	}{
		{"fine", grant("r", "tools/call:x", "tools/list"), ""},
		{"fine condition", withCondition(`{"match":{"all":{"of":[{"expr":"R.attr.x == 1"},{"none":{"of":[{"expr":"P.id == ''"}]}}]}}}`), ""},
		{"unknown paths are for later", expr(`request.nothing.here == R.whatever`), ""},
		{"dynamic type", expr(`R.attr.flag`), ""},

		{"no name", grant("", "*"), "rules.0.name string_too_short"},
		{"long name", grant(strings.Repeat("é", 256), "*"), "rules.0.name string_too_long"},
		{"longest name", grant(strings.Repeat("é", MaxRuleName), "*"), ""},
		{"no actions", grant("r"), "rules.0.actions too_short"},
		{"no roles", forSubjects(grant("r", "*")), "rules.0.roles_groups too_short"},
		{"bad actions", grant("r", "*", "tools/call:x:approve:approve", "nothing"), "rules.0.actions.1 value_error; rules.0.actions.2 value_error"},
		{"list word in a deny", deny("r", "tools/list", "tools/call:x:approve", "resources/list", "prompts/list"), "rules.0.actions.0 value_error; rules.0.actions.2 value_error; rules.0.actions.3 value_error"},
		{"M21 roles", forSubjects(grant("r", "*"), "*", "a role, with a comma", "role:x", "group:*", "", "role:", "gr*", "a\nb"), "rules.0.roles_groups.3 value_error; rules.0.roles_groups.4 value_error; rules.0.roles_groups.5 value_error; rules.0.roles_groups.6 value_error; rules.0.roles_groups.7 value_error"},
		{"longest role", forSubjects(grant("r", "*"), strings.Repeat("é", MaxSubject), "role:"+strings.Repeat("é", MaxSubject), strings.Repeat("é", MaxSubject+1)), "rules.0.roles_groups.2 value_error"},
		{"role of bad UTF-8", forSubjects(grant("r", "*"), "a\xff"), "rules.0.roles_groups.0 value_error"},
		{"approval without asking", func() storage.Rule { r := grant("r", "*"); r.Approval.Channel = "out_of_band"; return r }(), "rules.0.approval value_error"},
		{"approval in a deny", func() storage.Rule {
			r := deny("r", "tools/call:x:approve")
			r.Approval.Channel = "out_of_band"
			return r
		}(), "rules.0.approval value_error"},
		{"approval of another word", func() storage.Rule { r := grant("r", "tools/call:x:approve"); r.Approval.Channel = "in_band"; return r }(), "rules.0.approval enum"},
		{"approval of one of two", func() storage.Rule {
			r := grant("r", "tools/call:x:approve", "tools/call:y")
			r.Approval.Channel = "out_of_band"
			return r
		}(), ""},
		{"approval by nobody's name", approvedBy(""), "rules.0.approval.by.0 value_error"},
		{"approval by everybody", approvedBy("*"), "rules.0.approval.by.0 value_error"},
		{"approval by a bare name", approvedBy("leads"), "rules.0.approval.by.0 value_error"},
		{"approval by a group without a name", approvedBy("role:x", "group:"), "rules.0.approval.by.1 value_error"},
		{"approval by many groups at once", approvedBy("group:l*"), "rules.0.approval.by.0 value_error"},
		{"approval by a user's address", approvedBy("user:bob@example.test"), "rules.0.approval.by.0 value_error"},
		{"approval by an id in upper case", approvedBy("user:0192F0C1-5BD2-7000-8000-0000000000AA"), "rules.0.approval.by.0 value_error"},
		{"approval by 21", approvedBy(slices.Repeat([]string{"group:x"}, 21)...), "rules.0.approval.by too_long"},
		{"approval by others in band", func() storage.Rule { r := approvedBy("group:x"); r.Approval.Channel = "in_band"; return r }(), "rules.0.approval.channel enum"},
		{"approval by others of what is granted", func() storage.Rule { r := approvedBy("group:x"); r.Actions = []string{"tools/call:x"}; return r }(), "rules.0.approval value_error"},
		{"approval by others", approvedBy("group:a b", "role:x", "user:0192f0c1-5bd2-7000-8000-0000000000aa"), ""},
		{"approval", func() storage.Rule {
			r := grant("r", "tools/call:x:approve")
			r.Approval.Channel = "out_of_band"
			return r
		}(), ""},

		{"condition is null", withCondition(`null`), "rules.0.condition dict_type"},
		{"condition is a list", withCondition(`[]`), "rules.0.condition dict_type"},
		{"condition is empty", withCondition(`{}`), "rules.0.condition.match missing"},
		{"condition is no JSON", withCondition(`{"match":`), "rules.0.condition value_error"},
		{"member twice", withCondition(`{"match":{"expr":"true","expr":"true"}}`), "rules.0.condition value_error"},
		{"member in capitals", withCondition(`{"Match":{"expr":"true"}}`), "rules.0.condition.Match extra_forbidden; rules.0.condition.match missing"},
		{"unknown members", withCondition(`{"match":{"expr":"true","x":1},"y":2}`), "rules.0.condition.match.x extra_forbidden; rules.0.condition.y extra_forbidden"},
		{"nothing to match", withCondition(`{"match":{}}`), "rules.0.condition.match value_error"},
		{"two things to match", withCondition(`{"match":{"expr":"true","all":{"of":[{"expr":"true"}]}}}`), "rules.0.condition.match value_error"},
		{"match is text", withCondition(`{"match":"true"}`), "rules.0.condition.match dict_type"},
		{"expression is a number", withCondition(`{"match":{"expr":1}}`), "rules.0.condition.match.expr string_type"},
		{"group is a list", withCondition(`{"match":{"all":[]}}`), "rules.0.condition.match.all dict_type"},
		{"group without of", withCondition(`{"match":{"all":{}}}`), "rules.0.condition.match.all.of missing"},
		{"of is an object", withCondition(`{"match":{"any":{"of":{}}}}`), "rules.0.condition.match.any.of list_type"},
		{"of is empty", withCondition(`{"match":{"any":{"of":[]}}}`), "rules.0.condition.match.any.of too_short"},
		{"member beside of", withCondition(`{"match":{"none":{"of":[{"expr":"true"}],"o":1}}}`), "rules.0.condition.match.none.o extra_forbidden"},
		{"all problems at once", withCondition(`{"match":{"all":{"of":[{"expr":"1 +"},{"x":1},{"any":{"of":[{"expr":"2"}]}}]}}}`),
			"rules.0.condition.match.all.of.0.expr value_error 1:4; rules.0.condition.match.all.of.1.x extra_forbidden; rules.0.condition.match.all.of.1 value_error; rules.0.condition.match.all.of.2.any.of.0.expr value_error 1:1"},
		{"too deep", withCondition(`{"match":` + deep + `}`), "rules.0.condition.match" + strings.Repeat(".all.of.0", MaxConditionDepth) + ".all value_error"},
		{"too many", withCondition(`{"match":{"any":{"of":[` + strings.TrimSuffix(strings.Repeat(`{"expr":"true"},`, MaxConditionExpressions+1), ",") + `]}}}`), "rules.0.condition too_long"},
		{"the last of so many", withCondition(`{"match":{"any":{"of":[` + strings.Repeat(`{"expr":"true"},`, MaxConditionExpressions-1) + `{"expr":"1 +"}]}}}`), fmt.Sprintf("rules.0.condition.match.any.of.%d.expr value_error 1:4", MaxConditionExpressions-1)},
		{"too many, and nothing of those beyond", withCondition(`{"match":{"any":{"of":[` + strings.Repeat(`{"expr":"true"},`, MaxConditionExpressions) + `{"expr":"1 +"}]}}}`), "rules.0.condition too_long"},
		{"too large", withCondition(`{"match":{"expr":"` + strings.Repeat(" ", MaxConditionBytes) + `true"}}`), "rules.0.condition too_long"},

		{"syntax error on line 2", expr("true &&\n  R.attr. == 1"), "rules.0.condition.match.expr value_error 2:11"},
		{"not true or false", expr(`'x'`), "rules.0.condition.match.expr value_error 1:1"},
		{"undeclared", expr(`true || user.name == 'x'`), "rules.0.condition.match.expr value_error 1:9"},
		{"no such function", expr(`R.attr.x.foo()`), "rules.0.condition.match.expr value_error 1:13"},
		{"types that never agree", expr(`1 == 'x'`), "rules.0.condition.match.expr value_error 1:3"},
		{"types across numbers", expr(`1 < 1.5`), ""},
		{"M20 bad pattern", expr(`R.attr.x.matches('(')`), "rules.0.condition.match.expr value_error 1:18"},
		{"M20 huge pattern", expr(`R.attr.x.matches('((a{1,30}){1,30}){1,30}')`), "rules.0.condition.match.expr value_error 1:18"},
		{"M20 loops in loops", expr(`[1].all(a, [1].all(b, [1].all(c, true)))`), "rules.0.condition.match.expr value_error 1:27"},
		{"M20 long expression", expr(strings.Repeat(" ", maxExpression) + "true"), "rules.0.condition.match.expr value_error"},
		{"M20 deep expression", expr(strings.Repeat("(", 1000) + "true" + strings.Repeat(")", 1000)), "rules.0.condition.match.expr value_error"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			problems := Check([]storage.Rule{test.rule})
			for _, p := range problems {
				if p.Line < 0 || (p.Line > 0) != (p.Column > 0) {
					t.Errorf("a problem on line %d, column %d", p.Line, p.Column)
				}
			}
			got := describe(problems)
			if strings.HasPrefix(test.name, "M20") {
				// The interpreter determines the positions of limits. We only determine that there is a problem.
				got, _, _ = strings.Cut(got, " ")
				test.want, _, _ = strings.Cut(test.want, " ")
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if _, err := Compile(serverSlug, serverID, []storage.Policy{active(test.rule)}); (err == nil) != (test.want == "") &&
				!strings.Contains(test.want, "name") && !strings.Contains(test.want, "too_short") && !strings.Contains(test.want, "approval") && !strings.Contains(test.name, "list word") {
				t.Errorf("Compile: %v", err)
			}
		})
	}
}

func describe(problems []Problem) string {
	var out []string
	for _, p := range problems {
		steps := make([]string, len(p.Loc))
		for i, step := range p.Loc {
			steps[i] = fmt.Sprint(step)
		}
		text := strings.Join(steps, ".") + " " + p.Type
		if p.Line > 0 {
			text += fmt.Sprintf(" %d:%d", p.Line, p.Column)
		}
		if p.Message == "" {
			text += " without a message"
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func TestCheckWholePolicy(t *testing.T) {
	if got := describe(Check([]storage.Rule{grant("a", "*"), deny("a", "*")})); got != "rules.1.name value_error" {
		t.Errorf("one name twice: %q", got)
	}
	if got := describe(Check(make([]storage.Rule, MaxRules+1))); got != "rules too_long" {
		t.Errorf("too many rules: %q", got)
	}
	if got := Check(make([]storage.Rule, MaxRules)); len(got) != maxProblems || got[0].Type == typeTooLong {
		t.Errorf("as many rules as there may be: %d problems", len(got))
	}
	if got := Check(nil); got != nil {
		t.Errorf("no rules: %v", got)
	}
	var many []storage.Rule
	of := strings.TrimSuffix(strings.Repeat(`{"expr":"R.attr.x == 1"},`, MaxConditionExpressions), ",")
	for i := range MaxExpressions/MaxConditionExpressions + 1 {
		r := withCondition(`{"match":{"all":{"of":[` + of + `]}}}`)
		r.Name = fmt.Sprint(i)
		many = append(many, r)
	}
	if got := describe(Check(many)); got != "rules too_long" {
		t.Errorf("too many expressions: %q", got)
	}
	draft := active(many[1:]...)
	draft.Status, draft.Shadow = storage.PolicyDraft, true
	two := compile(t, active(many[1:]...), draft)
	if d := two.Decide(t.Context(), tool("x", `{"x":2}`)); two.Skipped() != nil || d.Effect != Deny || d.Shadow != nil {
		t.Errorf("two policies have no more expressions than one may: %v, %+v", two.Skipped(), d)
	}
	last := &many[len(many)-1].Condition
	for beyond, want := range []string{"", "rules too_long"} {
		left := MaxExpressions%MaxConditionExpressions + beyond
		*last = json.RawMessage(`{"match":{"all":{"of":[` + strings.Repeat(`{"expr":"true"},`, left-1) + `{"expr":"true"}]}}}`)
		if got := describe(Check(many)); got != want {
			t.Errorf("%d expressions beyond: %q", beyond, got)
		}
		*last = json.RawMessage(`{"match":{"all":{"of":[` + strings.Repeat(`{"expr":"true"},`, left-1) + `{"expr":"1 +"}]}}}`)
		if got := describe(Check(many)); strings.Contains(got, "value_error") != (beyond == 0) {
			t.Errorf("%d expressions beyond, the last one wrong: %q", beyond, got)
		}
	}
}

// TestShown checks that a long text is not repeated in a problem.
func TestShown(t *testing.T) {
	for length, want := range map[int]bool{1: true, maxInput: true, maxInput + 1: false} {
		text := strings.Repeat("x", length)
		if got := Check([]storage.Rule{grant("r", text)})[0].Input; (got == text) != want || want != (got != nil) {
			t.Errorf("%d bytes: %.20v", length, got)
		}
	}
}

func FuzzCondition(f *testing.F) {
	for _, s := range []string{
		`{"match":{"expr":"R.attr.x == 1"}}`, `{"match":{"all":{"of":[{"expr":"R.attr.l.exists(x, x > 1)"},{"none":{"of":[{"expr":"P.id.matches('a+')"}]}}]}}}`,
		`{"match":{"expr":"request.resource.attr['x'].size() < 3 || has(R.attr.y)"}}`, `{"match":{}}`, `{"match":{"any":{"of":[]}}}`,
	} {
		f.Add([]byte(s), []byte(`{"x":1,"l":[1,2]}`))
	}
	f.Fuzz(func(t *testing.T, text, args []byte) {
		rule := grant("r", "tools/call:x")
		rule.Condition = text
		problems := Check([]storage.Rule{rule})
		s, err := Compile(serverSlug, serverID, []storage.Policy{active(rule)})
		if (len(problems) > 0) != (err != nil) {
			t.Fatalf("Check says %v, Compile %v", problems, err)
		}
		if err != nil {
			return
		}
		d := s.Decide(t.Context(), tool("x", string(args)))
		if d.Effect == Allow && !s.View(t.Context(), sales).Tool("x") {
			t.Fatalf("allowed and not shown: %+v", d)
		}
	})
}
