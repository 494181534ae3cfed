package engine

import (
	"strings"
	"testing"
	"unicode"

	"pgregory.net/rapid"

	"github.com/durward-gateway/durward/storage"
)

// TestViewIsThreeValued checks, in a list, the effect of each expression in a grant and in a deny.
func TestViewIsThreeValued(t *testing.T) {
	tests := []struct {
		expr                  string
		grantShows, denyHides bool
	}{
		{"true", true, true}, {"false", false, false}, {"1 / 0 == 1", false, true},
		{"P.id == 'u-1'", true, true}, {"P.id == 'u-2'", false, false}, {"P.nothing == 1", false, true},
		{"request.action == 'tools/call:x'", true, true}, {"request.action == 'tools/call:y'", false, false},
		{"R.kind == 'demo'", true, true}, {"R.kind == 'other'", false, false},
		{"R.attr.n == 1", true, false}, {"request.resource.attr.n == 1", true, false}, {"request['resource']['attr']['n'] == 1", true, false},
		{"has(R.attr.n)", true, false}, {"!has(R.attr.n)", true, false}, {"size(R.attr) == 0", true, false}, {"R.attr.n", true, false},
		{"R.attr.n == 1 && P.id == 'u-2'", false, false}, {"P.id == 'u-2' && R.attr.n == 1", false, false},
		{"R.attr.n == 1 || P.id == 'u-1'", true, true}, {"P.id == 'u-1' || R.attr.n == 1", true, true},
		{"R.attr.n == 1 && 1 / 0 == 1", true, false}, // the interpreter's unknown wins over an error: too much is shown, never too little
		{"R.attr.n == 1 ? P.id == 'u-2' : P.id == 'u-2'", true, false},
		{"P.id == 'u-2' ? R.attr.n == 1 : false", false, false},
		{"R.attr.list.exists(x, x == 1)", true, false}, {"[1,2].all(x, x == R.attr.n)", true, false}, {"[1,2].all(x, x > 5 && x == R.attr.n)", false, false},
		{"[R].exists(R, R.attr.n == 1)", true, false}, {"[1].exists(R, R == 1)", true, true}, {"[request].exists(q, q.resource.attr.n == 1)", true, false},
		{"R.attr.n.matches('a')", true, false}, {"R.attr[P.id] == 1", true, false}, {"request[R.kind] == 1 || R.attr.x == 2", true, false},
		{"sets.contains(R.attr.list, [1])", true, false}, {"R.attr.a.replace('x', 'y') == 'z'", true, false}, {"R.attr.l.distinct().size() == 1", true, false},
		{"R == request.resource", true, false}, {"size(R) == 3", true, false}, {"size(request) == 3", true, false},
		{"lists.range(1000).all(i, lists.range(1000).all(j, i + j < 5000)) && R.attr.n == 1", true, false}, // costs more than allowed
	}
	for _, test := range tests {
		g := compile(t, active(when(grant("g", "*"), test.expr))).View(t.Context(), sales).Tool("x")
		d := compile(t, active(grant("g", "*"), when(deny("d", "*"), test.expr))).View(t.Context(), sales).Tool("x")
		if g != test.grantShows || d == test.denyHides {
			t.Errorf("%s: a grant shows %v, want %v; a deny hides %v, want %v", test.expr, g, test.grantShows, !d, test.denyHides)
		}
	}
}

func TestViewGroups(t *testing.T) {
	const unknown, never, always, broken = `{"expr":"R.attr.n == 1"}`, `{"expr":"false"}`, `{"expr":"true"}`, `{"expr":"P.x.y"}`
	tests := []struct {
		match                 string
		grantShows, denyHides bool
	}{
		{`{"all":{"of":[` + unknown + `,` + never + `]}}`, false, false},
		{`{"all":{"of":[` + unknown + `,` + always + `]}}`, true, false},
		{`{"all":{"of":[` + unknown + `,` + broken + `]}}`, false, false}, // no or broken, never yes
		{`{"any":{"of":[` + unknown + `,` + always + `]}}`, true, true},
		{`{"any":{"of":[` + unknown + `,` + broken + `]}}`, true, true}, // yes or broken, never no
		{`{"any":{"of":[` + never + `,` + broken + `]}}`, false, true},
		{`{"none":{"of":[` + unknown + `,` + always + `]}}`, false, false},
		{`{"none":{"of":[` + unknown + `,` + never + `]}}`, true, false},
		{`{"none":{"of":[` + never + `,{"none":{"of":[` + always + `]}}]}}`, true, true},
	}
	for _, test := range tests {
		r := withCondition(`{"match":` + test.match + `}`)
		d := r
		d.Name, d.Authorized = "d", false
		shows := compile(t, active(r)).View(t.Context(), sales).Tool("x")
		hides := !compile(t, active(grant("g", "*"), d)).View(t.Context(), sales).Tool("x")
		if shows != test.grantShows || hides != test.denyHides {
			t.Errorf("%s: a grant shows %v, a deny hides %v", test.match, shows, hides)
		}
	}
}

// TestViewRemembersOnlyWhatIsTheSame checks that a remembered result of one item is not used wrongly for another.
func TestViewRemembersOnlyWhatIsTheSame(t *testing.T) {
	v := compile(t, active(
		when(grant("g", "*"), "request.action.endsWith('a')"), when(deny("d", "*"), "P.id == 'u-2'"), when(grant("r", "resources/read:*"), "R.attr.uri == 'x:b'"),
		when(grant("p", "prompts/get:b"), "R.attr.uri == 'x:b'"),
	)).View(t.Context(), sales)
	for range 2 {
		if !v.Tool("a") || v.Tool("b") || !v.Tool("ca") || v.Resource("x:c") || !v.Resource("x:b") || v.Resource("x:d") || !v.Prompt("b") || v.Prompt("c") || !v.Resource("x:a") {
			t.Fatal("the view mixes items up")
		}
	}
}

func TestNobodySeesNothing(t *testing.T) {
	v := compile(t, active(grant("g", "*"))).View(t.Context(), nil)
	if v.Tool("x") || v.Prompt("x") || v.Resource("x:y") || v.Template("x:{y}") {
		t.Error("nobody is shown something")
	}
}

func TestTemplates(t *testing.T) {
	g := func(actions ...string) []storage.Rule { return []storage.Rule{grant("g", actions...)} }
	tests := []struct {
		name, template string
		rules          []storage.Rule
		want           bool
	}{
		{"everything", "file:///{path}", g("*"), true},
		{"all resources", "file:///{path}", g("resources/read:*"), true},
		{"no grant", "file:///{path}", g("tools/call:*"), false},
		{"prefix shorter than the start", "file:///a/{path}", g("resources/read:file:///*"), true},
		{"prefix longer than the start", "file:///{path}", g("resources/read:file:///a/b*"), true},
		{"another prefix", "file:///{path}", g("resources/read:http:*"), false},
		{"prefix that parts ways", "file:///a/{path}", g("resources/read:file:///b*"), false},
		{"exact", "file:///{path}/x", g("resources/read:file:///a/x"), true},
		{"exact that is no expansion", "file:///{path}/x", g("resources/read:file:///a/y"), false},
		{"exact with two expressions", "db:{table}/row/{id}", g("resources/read:db:users/row/7"), true},
		{"exact without the middle", "db:{table}/row/{id}", g("resources/read:db:users/col/7"), false},
		{"expression first", "{+all}", g("resources/read:db:users"), true},
		{"no expression, granted", "db:users", g("resources/read:db:users"), true},
		{"no expression, not granted", "db:users", g("resources/read:db:other"), false},
		{"never closed", "db:{x", g("resources/read:db:other"), true},
		{"denied as a whole", "file:///a/{path}", append(g("*"), deny("d", "resources/read:file:///a*")), false},
		{"denied as a whole, and more than that granted", "file:///a/{path}", append(g("resources/read:file:///*"), deny("d", "resources/read:file:///a*")), false},
		{"denied in part", "file:///a/{path}", append(g("*"), deny("d", "resources/read:file:///a/secret*")), true},
		{"all that is granted is denied", "file:///a/{path}", append(g("resources/read:file:///a/secret/x*"), deny("d", "resources/read:file:///a/secret*")), false},
		{"the granted one is denied", "file:///{path}", append(g("resources/read:file:///a"), deny("d", "resources/read:file:///a")), false},
		{"condition on the uri", "file:///{path}", []storage.Rule{when(grant("g", "*"), "R.attr.uri.endsWith('.md')")}, true},
		{"condition on the action", "file:///{path}", []storage.Rule{when(grant("g", "*"), "request.action.endsWith('.md')")}, true},
		{"condition that nobody meets", "file:///{path}", []storage.Rule{when(grant("g", "*"), "P.id == 'x' && R.attr.uri == ''")}, false},
		{"exact, and its condition is not met", "file:///{path}", []storage.Rule{when(grant("g", "resources/read:file:///a"), "R.attr.uri == 'b'")}, false},
		{"climbs", "file:///../{path}", g("*"), false},
		{"a control before the expression", "file:///a%0ab{path}", g("*"), false},
		{"longer prefix that parts ways", "file:///a/{path}", g("resources/read:file:///bbbbbb/*"), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := compile(t, active(test.rules...)).View(t.Context(), sales).Template(test.template); got != test.want {
				t.Errorf("Template(%q) = %v", test.template, got)
			}
		})
	}
}

func TestTemplateUngoverned(t *testing.T) {
	if compile(t).View(t.Context(), sales).Template("file:///{path}") {
		t.Error("shown without a policy")
	}
}

func TestExpands(t *testing.T) {
	for _, test := range []struct {
		parts     []string
		text      string
		onlyStart bool
		want      bool
	}{
		{[]string{"abc", ""}, "ab", true, true}, {[]string{"abc", ""}, "ab", false, false}, {[]string{"abc", ""}, "xb", true, false}, {[]string{"abc", "z"}, "abcd", true, true},
		{[]string{"ab", "b"}, "ab", false, false}, {[]string{"ab", "b"}, "abb", false, true}, {[]string{"", "ab", "b"}, "ab", false, false}, {[]string{"", "x", ""}, "x", false, true},
		{[]string{"", "x", ""}, "y", false, false},
	} {
		if got := expands(test.parts, test.text, test.onlyStart); got != test.want {
			t.Errorf("%q, %q, only its start %v: %v", test.parts, test.text, test.onlyStart, got)
		}
	}
}

// TestM11PropertyTemplates checks that a template is hidden only when none of its expansions can be read.
func TestM11PropertyTemplates(t *testing.T) {
	patterns := []string{"*", "resources/read:*", "resources/read:f:a*", "resources/read:f:a/b*", "resources/read:f:a/b/c", "resources/read:f:b", "resources/read:f:b*", "resources/read:f:a/x", "resources/read:g*"}
	templates := []string{"f:{x}", "f:a{x}", "f:a/{x}", "f:{x}/c", "{x}", "f:a/{x}/c", "g:{x}"}
	values := []string{"", "a", "b", "a/b", "b/c", "a/b/c", "x", "f:b", "f:a/x", "zzz"}
	rapid.Check(t, func(t *rapid.T) {
		var rules []storage.Rule
		for i := range rapid.IntRange(1, 6).Draw(t, "rules") {
			r := grant(string(rune('a'+i)), rapid.SampledFrom(patterns).Draw(t, "pattern"))
			r.Authorized = rapid.IntRange(0, 2).Draw(t, "authorized") > 0
			if e := rapid.SampledFrom([]string{"", "", "R.attr.uri.endsWith('c')", "request.action.contains('b')", "P.id == 'u-2'"}).Draw(t, "expr"); e != "" {
				r = when(r, e)
			}
			rules = append(rules, r)
		}
		s, err := Compile(serverSlug, serverID, []storage.Policy{active(rules...)})
		if err != nil {
			t.Fatal(err)
		}
		v := s.View(t.Context(), sales)
		for _, template := range templates {
			shown := v.Template(template)
			for _, value := range values {
				uri := strings.Replace(template, "{x}", value, 1)
				if !shown && v.Resource(uri) {
					t.Fatalf("%s is hidden, and %s can be read", template, uri)
				}
				if d := s.Decide(t.Context(), Call{Principal: sales, Kind: ResourcesRead, Name: uri}); (d.Effect != Deny) != v.Resource(uri) {
					t.Fatalf("%s: %+v, shown %v", uri, d, v.Resource(uri))
				}
			}
		}
	})
}

func TestNamesOfResources(t *testing.T) {
	for _, uri := range []string{
		"..", "file:///a/..", "file:///../b", "a/%2e%2e/b", "a/%2E./b", "a/..%2fb", "a%2f..%2fb", "a/%252e%252e/b", `a\..\b`, "a/..;x=1/b", "a/..?x", "a/..#x", "x:..", "a/%2e%2e%zz/../b", "%zz/%2e%2e/",
		"file:///ok/.%09./x", "file:///ok/.%0a./x", "file:///ok/.%250D./x", "file:///ok/.%09./%zz", "a/b%00", "a/b%C2%85", "a/b%7f",
		"a\x7fb", "a\nb", "a\u0085b", "a\xff", "a/%25252e%25252e/b", "a%25250ab",
	} {
		if callable(ResourcesRead, uri) {
			t.Errorf("%q can be read", uri)
		}
	}
	for _, uri := range []string{"file:///a/b", "a..b", "git:HEAD...main", "file:///a/...", "file:///a/.hidden", "a/%20b", "x:%zz", "a/..b/c", "file:///a%2e%2eb", "file:///é", "a?x=1..2", "a/%", "a/%2", "a/%zz%20", "a/%e2%82%ac", "a/%25252525", "a/%20/z2ez2e/b"} {
		if !callable(ResourcesRead, uri) {
			t.Errorf("%q cannot be read", uri)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	f.Add("file:///{path}", "file:///a/b")
	f.Add("db:{table}/row/{id}", "db:users/row/7")
	f.Add("{", "}")
	s := compile(f, active(grant("g", "resources/read:f*", "resources/read:a/b"), deny("d", "resources/read:fo*")))
	f.Fuzz(func(t *testing.T, template, uri string) {
		v := s.View(t.Context(), sales)
		v.Template(template)
		if v.Resource(uri) && strings.ContainsFunc(uri, unicode.IsControl) {
			t.Fatalf("%q is shown", uri)
		}
		if strings.Contains(template, "{") && expands(literals(template), uri, false) && v.Resource(uri) && !v.Template(template) && !refusedStart(template) {
			t.Fatalf("%q is hidden, and %q can be read", template, uri)
		}
	})
}
