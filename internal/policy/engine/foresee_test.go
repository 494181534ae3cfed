package engine

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/durward-gateway/durward/storage"
)

func TestForesee(t *testing.T) {
	all := grant("all", "*")
	tests := []struct {
		name    string
		rules   []storage.Rule
		args    string
		lacking Lacking
		want    string // the effect, or the facts that it depends on
		rule    string
	}{
		{"nothing is lacking", []storage.Rule{all}, `{}`, Lacking{}, "allow", "all"},
		{"no condition", []storage.Rule{all}, ``, Lacking{Arguments: true, Claims: true}, "allow", "all"},
		{"nothing grants", nil, ``, Lacking{Arguments: true, Claims: true, Roles: true}, "deny", ""},
		{"a deny that depends", []storage.Rule{all, when(deny("no", "*"), "R.attr.n == 1")}, ``, Lacking{Arguments: true}, "arguments", ""},
		{"a deny for another tool", []storage.Rule{all, when(deny("no", "tools/call:y"), "R.attr.n == 1")}, ``, Lacking{Arguments: true}, "allow", "all"},
		{"a deny beside one that depends", []storage.Rule{all, when(deny("perhaps", "*"), "R.attr.n == 1"), deny("no", "tools/call:x")}, ``, Lacking{Arguments: true}, "deny", "no"},
		{"a deny of what nothing grants", []storage.Rule{when(deny("perhaps", "*"), "R.attr.n == 1")}, ``, Lacking{Arguments: true}, "deny", ""},
		{"a grant that depends", []storage.Rule{when(all, "R.attr.n == 1")}, ``, Lacking{Arguments: true}, "arguments", ""},
		{"a grant beside one that depends", []storage.Rule{when(grant("perhaps", "*"), "R.attr.n == 1"), all}, ``, Lacking{Arguments: true}, "allow", "all"},
		{"asking beside a grant that depends", []storage.Rule{when(grant("perhaps", "*"), "R.attr.n == 1"), grant("ask", "tools/call:x:approve")}, ``, Lacking{Arguments: true}, "ask", "ask"},
		{"asking that depends", []storage.Rule{all, when(grant("perhaps", "tools/call:x:approve"), "R.attr.n == 1")}, ``, Lacking{Arguments: true}, "arguments", ""},
		{"the rest makes a grant fail", []storage.Rule{when(all, "R.attr.n == 1 && P.id == 'nobody'")}, ``, Lacking{Arguments: true}, "deny", ""},
		{"the rest decides, but for numbers", []storage.Rule{all, when(deny("no", "*"), "R.attr.n == 1 && P.id == 'nobody'")}, ``, Lacking{Arguments: true}, "arguments", ""},
		{"all arguments at once", []storage.Rule{when(all, "size(R) == 3")}, ``, Lacking{Arguments: true}, "arguments", ""},
		{"a member that is known", []storage.Rule{when(all, "R.attr.n == 1")}, `{"n":1,"secret":"REDACTED"}`, Lacking{Members: []string{"secret"}}, "allow", "all"},
		{"a member that is not", []storage.Rule{when(all, "R.attr.secret == 'REDACTED'")}, `{"n":1,"secret":"REDACTED"}`, Lacking{Members: []string{"secret"}}, "arguments", ""},
		{"all members, one of which is not known", []storage.Rule{when(all, "R.attr.all(k, k != 'z')")}, `{"n":1,"secret":"REDACTED"}`, Lacking{Members: []string{"secret"}}, "arguments", ""},
		{"claims", []storage.Rule{when(all, "P.attr.level == 3")}, `{}`, Lacking{Claims: true}, "claims", ""},
		{"claims are not arguments", []storage.Rule{when(all, "P.id == 'u-1' && R.attr.n == 1")}, `{"n":1}`, Lacking{Claims: true}, "allow", "all"},
		{"roles in a rule", []storage.Rule{forSubjects(all, "role:dev")}, `{}`, Lacking{Roles: true}, "roles", ""},
		{"roles in a condition", []storage.Rule{when(all, "'dev' in P.roles")}, `{}`, Lacking{Roles: true}, "roles", ""},
		{"groups in a condition", []storage.Rule{when(all, "size(P) == 5")}, `{}`, Lacking{Roles: true}, "roles", ""},
		{"roles do not matter", []storage.Rule{forSubjects(deny("no", "tools/call:y"), "role:dev"), all}, `{}`, Lacking{Roles: true}, "allow", "all"},
		{"the stricter of two that ask is named", []storage.Rule{grant("ask", "*", "tools/call:x:approve"), strict("strict", "tools/call:x:approve")}, `{}`, Lacking{}, "ask", "strict"},
		{"a member that may be there", []storage.Rule{when(all, "has(R.attr.n)")}, ``, Lacking{Arguments: true}, "arguments", ""},
		{"asking strictly that depends", []storage.Rule{all, when(strict("perhaps", "tools/call:x:approve"), "R.attr.n == 1")}, ``, Lacking{Arguments: true}, "arguments", ""},
		{"the first of two that grant is named", []storage.Rule{all, strict("strict", "tools/call:x", "tools/call:y:approve")}, `{}`, Lacking{}, "allow", "all"},
		{"the rest makes a deny match", []storage.Rule{all, when(deny("no", "*"), "R.attr.n == 1 || P.id == 'u-1'")}, ``, Lacking{Arguments: true}, "deny", "no"},
		{"facts that are no roles", []storage.Rule{when(all, "P.id == 'u-1'")}, `{}`, Lacking{Roles: true}, "allow", "all"},
		{"claims that are known", []storage.Rule{when(all, "P.attr.level == 3")}, ``, Lacking{Arguments: true}, "allow", "all"},
		{"arguments that are known", []storage.Rule{when(all, "size(R.attr) == 1")}, `{"n":1}`, Lacking{Claims: true}, "allow", "all"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			call := tool("x", test.args)
			got := compile(t, active(test.rules...)).Foresee(t.Context(), call, test.lacking)
			said := got.Effect.String()
			switch {
			case got.Certain:
			case got.Lacked.Arguments && !got.Lacked.Claims && !got.Lacked.Roles:
				said = "arguments"
			case got.Lacked.Claims && !got.Lacked.Arguments:
				said = "claims"
			case got.Lacked.Roles && !got.Lacked.Arguments:
				said = "roles"
			}
			if said != test.want || got.Rule != test.rule || got.PolicyID != "p1" || !got.Certain && got.Lacked.nothing() {
				t.Errorf("%+v, want %s by %q", got, test.want, test.rule)
			}
		})
	}
}

func (l Lacking) nothing() bool { return !l.Arguments && !l.Roles && !l.Claims && len(l.Members) == 0 }

func strict(name string, actions ...string) storage.Rule {
	r := grant(name, actions...)
	r.Approval.Channel = storage.ChannelOutOfBand
	return r
}

func TestForeseeResource(t *testing.T) {
	s := compile(t, active(when(grant("docs", "resources/read:*"), "R.attr.uri.startsWith('docs:')")))
	got := s.Foresee(t.Context(), Call{Principal: sales, Kind: ResourcesRead, Name: "docs:a"}, Lacking{Arguments: true})
	if !got.Certain || got.Effect != Allow {
		t.Errorf("%+v", got)
	}
}

// TestForeseeTellsWhatMatters checks that Lacked holds the facts that could change the answer, and no others.
func TestForeseeTellsWhatMatters(t *testing.T) {
	perhaps := when(deny("perhaps", "*"), "R.attr.n == 1")
	claims := func(r storage.Rule) storage.Rule { return when(r, "P.attr.level == 3") }
	for name, rules := range map[string][]storage.Rule{
		"another that grants":           {perhaps, grant("all", "*"), claims(grant("more", "*"))},
		"another that asks":             {perhaps, grant("ask", "tools/call:x:approve"), claims(grant("more", "tools/call:x:approve"))},
		"another that asks strictly":    {perhaps, strict("ask", "tools/call:x:approve"), claims(strict("more", "tools/call:x:approve"))},
		"one that asks for another":     {perhaps, grant("all", "tools/call:x"), claims(strict("more", "tools/call:x", "tools/call:y:approve"))},
		"one for somebody else":         {perhaps, forSubjects(claims(grant("more", "*")), "role:nobody"), grant("all", "*")},
		"a denial that nothing changes": {perhaps},
	} {
		got := compile(t, active(rules...)).Foresee(t.Context(), tool("x", ""), Lacking{Arguments: true, Claims: true})
		if !got.Lacked.Arguments || got.Lacked.Claims || got.Certain != (len(rules) == 1) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := compile(t, active()).Foresee(t.Context(), tool("x", ""), Lacking{Arguments: true}); !got.Certain || !got.Lacked.nothing() {
		t.Errorf("no rules: %+v", got)
	}
	if got := compile(t, active(when(grant("g", "*"), "R.attr.n == 1 && P.id == 'nobody'"))).Foresee(t.Context(), tool("x", ""), Lacking{Arguments: true}); !got.Certain || !got.Lacked.nothing() {
		t.Errorf("a denial that no rule makes: %+v", got)
	}
	if got := compile(t, active(grant("all", "*"))).Foresee(t.Context(), tool("x y", ""), Lacking{}); !got.Certain || got.Effect != Deny {
		t.Errorf("a name that cannot be called: %+v", got)
	}
}

func TestForeseeUngoverned(t *testing.T) {
	scoped := active(grant("all", "*"))
	scoped.ApplicationIDs = []string{"a1"}
	for name, c := range map[string]Call{"another agent": tool("x", ""), "a name that is none": tool("x y", ""), "nobody": {Kind: ToolsCall, Name: "x"}} {
		if got := compile(t, scoped).Foresee(t.Context(), c, Lacking{Arguments: true}); !got.Certain || got.Effect != Deny || got.PolicyID != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestPropertyForeseeNeverGuesses checks that Decide gives the certain answer for all values of the unknown facts. With
// no unknown facts every answer is certain.
func TestPropertyForeseeNeverGuesses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policies, who := drawPolicies(t), drawWho(t)
		s, p := compileAll(t, policies), who.principal()
		kind := rapid.SampledFrom([]Kind{ToolsCall, PromptsGet}).Draw(t, "kind")
		c := Call{Principal: p, Kind: kind, Name: rapid.SampledFrom(drawnNames).Draw(t, "name")}
		withoutArguments := s.Foresee(t.Context(), c, Lacking{Arguments: true, Claims: true})
		withoutMember := func(c Call) Foreseen { return s.Foresee(t.Context(), c, Lacking{Members: []string{"n"}}) }
		for _, args := range refArguments {
			c.Arguments = mustJSON(args)
			d := s.Decide(t.Context(), c)
			if withoutArguments.Certain && withoutArguments.Effect != d.Effect {
				t.Fatalf("%s %v: foreseen %+v, decided %+v", c.Name, args, withoutArguments, d)
			}
			if got := s.Foresee(t.Context(), c, Lacking{}); !got.Certain || got.Effect != d.Effect || got.Rule != d.Rule || got.PolicyID != d.PolicyID {
				t.Fatalf("%s %v: foreseen %+v, decided %+v", c.Name, args, got, d)
			}
			foreseen := withoutMember(c)
			for _, n := range []string{`1`, `2`, `"text"`, `1e400`} {
				c.Arguments = []byte(`{"n":` + n + `}`)
				if _, has := args["n"]; !has || len(args) > 1 {
					continue
				}
				if d := s.Decide(t.Context(), c); foreseen.Certain && foreseen.Effect != d.Effect {
					t.Fatalf("%s n=%s: foreseen %+v, decided %+v", c.Name, n, foreseen, d)
				}
			}
		}
		for _, hostile := range []string{`{"n":1e400}`, `{"n":9007199254740993.0,"s":"x"}`, `[]`} {
			c.Arguments = []byte(hostile)
			if d := s.Decide(t.Context(), c); withoutArguments.Certain && withoutArguments.Effect != d.Effect {
				t.Fatalf("%s %s: foreseen %+v, decided %+v", c.Name, hostile, withoutArguments, d)
			}
		}
		c.Arguments = mustJSON(rapid.SampledFrom(refArguments).Draw(t, "arguments"))
		withoutRoles := s.Foresee(t.Context(), c, Lacking{Roles: true})
		for _, roles := range [][]string{nil, {"r1"}, {"r2"}, {"r1", "r2"}} {
			for _, groups := range [][]string{nil, {"g1"}, {"g2"}, {"g1", "g2"}} {
				as := c
				as.Principal = NewPrincipal(who.id, roles, groups, who.agent, nil)
				if d := s.Decide(t.Context(), as); withoutRoles.Certain && withoutRoles.Effect != d.Effect {
					t.Fatalf("%s %v %v: foreseen %+v, decided %+v", c.Name, roles, groups, withoutRoles, d)
				}
			}
		}
	})
}
