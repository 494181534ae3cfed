package engine

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/storage"
)

func TestNumber(t *testing.T) {
	tests := []struct {
		text string
		want ref.Val // nil: cannot be judged
	}{
		{"0", types.Int(0)}, {"-0", types.Int(0)}, {"-7", types.Int(-7)},
		{"9223372036854775807", types.Int(math.MaxInt64)}, {"-9223372036854775808", types.Int(math.MinInt64)},
		{"9007199254740993", types.Int(9007199254740993)},
		{"0.1", types.Double(0.1)}, {"1.0", types.Double(1)}, {"1e2", types.Double(100)}, {"1E+2", types.Double(100)}, {"100e-2", types.Double(1)},
		{"0.0", types.Double(0)}, {"0e999", types.Double(0)}, {"-0.0", types.Double(math.Copysign(0, -1))}, {"0.000", types.Double(0)},
		{"0e9999999999999999999999", types.Double(0)}, {"Infinity", nil}, {"+Inf", nil}, {"-Inf", nil}, {"NaN", nil}, {"x", nil}, {"", nil}, {"-", nil}, {"e5", nil},
		{"1.7976931348623157e308", types.Double(math.MaxFloat64)}, {"5e-324", types.Double(5e-324)},
		{"10000000000000000000", types.Double(1e19)}, {"0.30000000000000004", types.Double(0.30000000000000004)}, {"123.4500", types.Double(123.45)},

		{"9223372036854775808", nil}, {"9007199254740993.0", nil}, {"9007199254740993e0", nil}, {"12345678901234567890", nil},
		{"0.1000000000000000055511151231257827", nil}, {"1e400", nil}, {"-1e400", nil}, {"1e-400", nil}, {"3.14159265358979323846", nil},
		{"4e-324", nil}, {"1e9999999999999999999999", nil},
	}
	for _, test := range tests {
		got, ok := number(test.text)
		if ok != (test.want != nil) || ok && got != test.want {
			t.Errorf("number(%s) = %v, %v; want %v", test.text, got, ok, test.want)
		}
	}
}

// TestNumbersThatCannotBeJudged checks that a number that no double holds spoils only expressions that look at its
// member.
func TestNumbersThatCannotBeJudged(t *testing.T) {
	const args = `{"n":1,"bad":1e400,"deep":{"a":[1,{"b":9007199254740993.0}]},"list":[1,2]}`
	tests := []struct {
		expr string
		want outcome
	}{
		{"R.attr.n == 1", yes}, {"R.attr.list == [1,2]", yes}, {"true", yes}, {"P.id == 'u-1' && R.attr['n'] < 2", yes},
		{"R.attr.bad > 1.0", broken}, {"R.attr.bad > 1.0 || true", broken}, {"R.attr.deep.a[0] == 1", broken}, {"has(R.attr.bad)", broken},
		{"R.attr.size() > 0", broken}, {"request.resource.attr == {}", broken}, {"'n' in R.attr", broken}, {"R.attr[P.roles[0]] == 1", broken},
		{"[R].exists(r, r.attr.n == 1)", broken}, {"request['resource']['attr'].n == 1", yes}, {"R == R || true", broken},
		{"R.kind == 'demo'", yes}, {"R.attr != 'n'", broken}, {"R.attr[0] == 1 || true", broken},
	}
	for _, test := range tests {
		if granted, denied, v := outcomeOf(t, test.expr, args); granted != test.want.grants() || denied != test.want.denies() {
			t.Errorf("%s: grant matches %v, deny matches %v: %+v", test.expr, granted, denied, v)
		}
	}
	// In a claim, such a number spoils every expression that looks at claims.
	p := NewPrincipal("u-1", []string{"dev"}, nil, "", map[string]any{"a": 1.5, "n": json.Number("1e400")})
	for expr, want := range map[string]Effect{"P.id == 'u-1'": Allow, "'dev' in P.roles": Allow, "P.attr.a == 1.5": Deny, "P.size() == 5 || true": Deny, "request.principal.attr == {} || true": Deny} {
		d := compile(t, active(when(grant("g", "*"), expr))).Decide(t.Context(), Call{Principal: p, Kind: ToolsCall, Name: "x"})
		if d.Effect != want {
			t.Errorf("%s: %+v", expr, d)
		}
	}
	call := tool("x", `{"n":1}`)
	call.Principal = p
	if d := compile(t, active(when(grant("g", "*"), "R.attr.n == 1"))).Decide(t.Context(), call); d.Effect != Allow {
		t.Errorf("arguments are taken for claims: %+v", d)
	}
}

// TestM04CaseVariantsOfArguments checks that an expression cannot be evaluated if a reader that folds case could take
// another name for one that the expression reads. A server with such a reader would get "evil" where the condition saw
// "safe".
func TestM04CaseVariantsOfArguments(t *testing.T) {
	many := ""
	for _, c := range "abcdefghijklmnop" {
		many += `"` + string(c) + `":1,`
	}
	for _, test := range []struct {
		expr, args string
		want       outcome
	}{
		{"R.attr.repo == 'safe'", `{"repo":"safe","REPO":"evil"}`, broken}, {"R.attr.repo == 'safe'", `{"REPO":"evil","repo":"safe"}`, broken},
		{"R.attr.repo == 'safe'", `{"repo":"safe","\u0052epo":"evil"}`, broken}, {"R.attr.repo == 'safe'", `{"repo":"safe","Other":1,"other":2}`, yes},
		{"R.attr.repo == 'safe' || true", `{"repo":"safe","rEpo":1}`, broken}, {"P.id == 'u-1'", `{"repo":"safe","REPO":"evil"}`, yes},
		{"R.attr.token == 'a'", `{"token":"a","to\u212aen":"b"}`, broken}, {"R.attr.task == 'a'", `{"task":"a","ta\u017fk":"b"}`, broken}, {"R.attr['\u00e5'] == 'a'", `{"å":"a","\u212b":"b"}`, broken},
		{"has(R.attr.path) && R.attr.path == 'x'", `{"Path":"x"}`, broken}, {"has(R.attr.path)", `{"Path":"x"}`, broken}, {"!has(R.attr.path)", `{"Path":"x"}`, broken}, {"!has(R.attr.path)", `{"paths":"x"}`, yes},
		{"R.attr['repo'] == 'safe'", `{"repo":"safe","REPO":"evil"}`, broken}, {"request.resource.attr.repo == 'safe'", `{"repo":"safe","REPO":"evil"}`, broken},
		// An expression that names both spellings decides on both.
		{"R.attr.repo == 'safe' && !has(R.attr.Repo)", `{"repo":"safe"}`, yes}, {"R.attr.repo == 'safe' && !has(R.attr.Repo)", `{"repo":"safe","Repo":"evil"}`, no}, {"R.attr.repo == 'safe' && !has(R.attr.Repo)", `{"repo":"safe","REPO":"evil"}`, broken},
		// Names below an argument.
		{"R.attr.o.repo == 'safe'", `{"o":{"repo":"safe","REPO":"evil"}}`, broken}, {"!has(R.attr.o.repo)", `{"o":{"Repo":"evil"}}`, broken}, {"!has(R.attr.o.repo)", `{"o":{"repos":"evil"}}`, yes},
		{"R.attr.l.all(x, !has(x.repo))", `{"l":[{"REPO":1}]}`, broken}, {"R.attr.l.all(x, !has(x.repo))", `{"l":[{"repository":1}]}`, yes}, {"R.attr.l[0]['repo'] == 'safe'", `{"l":[{"repo":"safe","REPO":1}]}`, broken},
		{"!('repo' in R.attr.o)", `{"o":{"Repo":1}}`, broken}, {"R.attr.o != {'repo': 1}", `{"o":{"Repo":1}}`, broken}, {"R.attr.o[P.id].repo == 'safe'", `{"o":{"u-1":{"Repo":1,"repo":"safe"}}}`, broken},
		{"R.attr.o.a == 1", `{"o":{"a":1,"z":1,"Z":2}}`, broken}, {"R.attr.o.a == 1", `{"o":{"a":1,"l":[{"z":1,"Z":2}]}}`, broken}, {"R.attr.o.a == 1", `{"o":{"a":1},"p":{"A":1,"z":1,"Z":2}}`, yes},
		{"R.attr.o.a == 1", `{"o":{` + many + `"A":2}}`, broken}, {"R.attr.o.a == 1", `{"o":{` + many + `"z":2}}`, yes},
		{"R.attr.o.a == 1", `{"o":{"a":1,"k":1,"\u212a":2}}`, broken}, {"R.attr.o.a == 1", `{"o":{"a":1,"\u212a":1,"k":2}}`, broken},
		{"R.attr.o.repo == 'safe' && R.attr.o.p.Repo == 'x'", `{"o":{"repo":"safe","p":{"Repo":"x"}}}`, yes},
		{"R.attr.o.a == 1 && !has(R.attr.o.repo)", `{"o":{"a":1,"Repo":2}}`, broken}, {"R.attr.l[0]['repo'] == 'safe' || true", `{"l":[{"Repo":"evil"}]}`, broken},
		{"!R.attr.o.exists(k, k == 'path')", `{"o":{"Path":1}}`, broken},
		// Computed names below an argument: any of the written texts may be the name.
		{"!((P.id == 'u-1' ? 'path' : 'x') in R.attr.o)", `{"o":{"Path":1}}`, broken}, {"!((P.id == 'u-1' ? 'path' : 'x') in R.attr.o)", `{"o":{"paths":1}}`, yes}, {"R.attr.o[P.id == 'u-1' ? 'path' : 'x'] == 1 || true", `{"o":{"Path":1}}`, broken},
		{"R.attr.o != {(P.id == 'u-1' ? 'path' : 'x'): 1}", `{"o":{"Path":1}}`, broken}, {"!((P.id == 'u-1' ? 'path' : 'x') in R.attr.l[0])", `{"l":[{"Path":1}]}`, broken}, {"!((P.id == 'u-1' ? 'path' : 'x') in R.attr.o[P.id])", `{"o":{"u-1":{"Path":1}}}`, broken},
		// Values that are searched in lists, and values that are no arguments, are not names.
		{"R.attr.a in ['S', 'T'] && R.attr.o.x == 1", `{"a":"S","o":{"x":1,"s":2}}`, yes}, {"'S' in ['S', R.attr.a] && R.attr.o.x == 1", `{"a":"S","o":{"x":1,"s":2}}`, yes},
		{"R.attr.g in P.groups && R.attr.o.x == 'Y'", `{"g":"sales","o":{"x":"Y","y":2}}`, yes}, {"'sales' in P.groups && R.attr.o.x == 1", `{"o":{"x":1,"Sales":2}}`, yes}, {"R.attr.l[0].x == 'Y'", `{"l":[{"x":"Y","y":2}]}`, yes},
		// All arguments together.
		{"!((P.id == 'u-1' ? 'path' : 'x') in R.attr)", `{"Path":1}`, broken},
		{"size(R.attr) == 2", `{"repo":"safe","REPO":"evil"}`, broken}, {"size(R.attr) == 1", `{"o":{"a":1,"A":1}}`, broken}, {"size(R.attr) == 1", `{"Repo":1}`, yes},
		{"size(R.attr) == 1 && P.id != 'path'", `{"Path":1}`, broken}, {"!R.attr.exists(k, k == 'path')", `{"Path":1}`, broken}, {"!('path' in R.attr)", `{"Path":1}`, broken}, {"size(R.attr) == 1 && !has(R.attr.path)", `{"Path":1}`, broken}, {"R == R && !has(R.attr.path)", `{"Path":1}`, broken},
	} {
		if granted, denied, v := outcomeOf(t, test.expr, test.args); granted != test.want.grants() || denied != test.want.denies() {
			t.Errorf("%s of %s: grant matches %v, deny matches %v: %+v", test.expr, test.args, granted, denied, v)
		}
	}
	// A member that spoils one expression does not affect another, in any order.
	one, other, whole := deny("1", "*"), deny("2", "*"), deny("3", "*")
	for range 3 { // evaluations are reused
		d := compile(t, active(when(one, "R.attr.a == 2"), when(other, "R.attr.b.c == 2"), grant("g", "*"))).Decide(t.Context(), tool("x", `{"a":1,"b":{"c":1},"d":{"A":1,"z":1,"Z":1}}`))
		if d.Effect != Allow {
			t.Errorf("%+v", d)
		}
		d = compile(t, active(when(one, "R.attr.a == 2"), when(whole, "size(R.attr) == 0"), when(other, "R.attr.b.c == 2"), grant("g", "*"))).Decide(t.Context(), tool("x", `{"a":1,"b":{"c":1},"d":{"A":1,"z":1,"Z":1}}`))
		if d.Rule != "3" || d.Values[0].Error != errSpelling.Error() {
			t.Errorf("%+v", d)
		}
	}
}

// FuzzM04Folding compares folded names with bytes.EqualFold, which folds as encoding/json does.
func FuzzM04Folding(f *testing.F) {
	f.Add("repo", "REPO")
	f.Add("k\u017f", "\u212aS")
	f.Add("\u00df", "\u1e9e")
	f.Add("k", "\u212a")
	f.Add("\u212a", "k")
	f.Add("z", "Z")
	f.Add("A", "a")
	f.Add("A@", "a`")
	f.Add("A[", "a{")
	f.Fuzz(func(t *testing.T, a, b string) {
		if !utf8.ValidString(a) || !utf8.ValidString(b) {
			return
		}
		same := strings.EqualFold(a, b)
		if (string(folded([]byte(a))) == string(folded([]byte(b)))) != same || foldsTo([]byte(a), b) != same {
			t.Errorf("%q and %q", a, b)
		}
	})
}

func TestArgumentsThatAreNoObject(t *testing.T) {
	for _, args := range []string{`[]`, `1`, `null`, `{"a":1,"a":2}`, `{`, ` `, "\xef\xbb\xbf{}"} {
		if granted, denied, _ := outcomeOf(t, "size(R.attr) >= 0 || true", args); granted || !denied {
			t.Errorf("%s: grant matches %v, deny matches %v", args, granted, denied)
		}
		if granted, _, _ := outcomeOf(t, "P.id == 'u-1'", args); !granted {
			t.Errorf("%s: a condition that does not look at them does not hold", args)
		}
	}
	// These are no objects either, even if a reader of one member alone would find that member.
	for _, args := range []string{`{"a":1,"a":1}`, `{"a":1,}`, `{"a":1}}`, `{"a":1,"b":01}`, `{"a":1,"b":{"c":1,"c":2}}`} {
		for _, expr := range []string{"R.attr.a == 1 || true", "!has(R.attr.zz)", "size(R.attr) >= 0 || true"} {
			if granted, denied, _ := outcomeOf(t, expr, args); granted || !denied {
				t.Errorf("%s of %s: grant matches %v, deny matches %v", expr, args, granted, denied)
			}
		}
	}
	// A text that the strict reader has not really accepted is no object either, where that is noticed.
	for expr, args := range map[string]string{"size(R.attr) >= 0 || true": `{"a":1,"a":2}`, "has(R.attr.a)": `{"a":{"b":1,"b":2}}`} {
		call := tool("x", args)
		call.Checked = true
		if d := compile(t, active(when(grant("g", "*"), expr))).Decide(t.Context(), call); d.Effect != Deny || d.Values[0].Error != errArguments.Error() {
			t.Errorf("%s of %s: %+v", expr, args, d)
		}
	}
	for _, args := range []string{"", "{}", ` { } `} {
		if granted, _, _ := outcomeOf(t, "size(R.attr) == 0", args); !granted {
			t.Errorf("%q is not {}", args)
		}
	}
}

// TestArgumentsAreReadOnceForAll checks that two conditions share one reading of the arguments, in either order.
func TestArgumentsAreReadOnceForAll(t *testing.T) {
	rules := []storage.Rule{
		when(deny("1", "*"), "R.attr.a == 2"), when(deny("2", "*"), "R.attr.b != R.attr.a + 1"), when(deny("3", "*"), "size(R.attr) != 3"),
		when(deny("4", "*"), "R.attr.c != 'x'"), grant("5", "*"),
	}
	for range 3 { // evaluations are reused
		if d := compile(t, active(rules...)).Decide(t.Context(), tool("x", `{"a":1,"b":2,"c":"x"}`)); d.Effect != Allow {
			t.Errorf("%+v", d)
		}
		if d := compile(t, active(rules...)).Decide(t.Context(), tool("x", `{"a":1,"b":2}`)); d.Rule != "3" {
			t.Errorf("%+v", d)
		}
	}
}

// TestArgumentsAreForgotten checks that nothing of a call remains for the next one, or in the reused memory.
func TestArgumentsAreForgotten(t *testing.T) {
	var a arguments
	a.reset([]byte(`{"x":1e400,"y":{"b":1}}`), false)
	for _, r := range []reads{{members: []string{"y"}}, {arguments: true}} {
		_ = a.provide(&r)
	}
	a.reset([]byte(`{"z":1}`), false)
	if err := a.provide(&reads{arguments: true}); err != nil || len(a.members) != 1 || a.below != nil {
		t.Errorf("%v: %v, %v", err, a.members, a.below)
	}
	for n, kept := range map[int]bool{64: true, 65: false} {
		for _, a := range []arguments{
			{members: make(map[string]any), index: make([]member, n), looked: make([]look, 1)}, {members: make(map[string]any), index: make([]member, 1), looked: make([]look, n)},
		} {
			for i := range n {
				a.members[strconv.Itoa(i)] = types.Int(1)
			}
			a.index[0].name, a.looked[0].name = []byte("a"), "a"
			index, looked := a.index, a.looked
			a.forget()
			if (a.members != nil) != kept || len(a.members) > 0 || (cap(a.index) > 0) != kept || (cap(a.looked) > 0) != kept {
				t.Errorf("%d: %d, %d and %d are kept", n, len(a.members), cap(a.index), cap(a.looked))
			}
			if index[0].name != nil || looked[0].name != "" {
				t.Errorf("%v and %v are still held", index[0], looked[0])
			}
		}
	}
}

func FuzzArguments(f *testing.F) {
	for _, s := range []string{`{"n":1}`, `{"n":1e400}`, `{"n":[1,{"a":"\u0041"}]}`, `{"n":-0.0}`, `{"n":123456789012345678901234567890}`, `{"n":"x","m":null}`} {
		f.Add([]byte(s))
	}
	granted := compile(f, active(when(grant("g", "*"), "R.attr.n == R.attr.n && size(R.attr) > 0 || !has(R.attr.n) || R.attr.n != R.attr.n")))
	denied := compile(f, active(grant("g", "*"), when(deny("d", "*"), "!has(R.attr.n)")))
	f.Fuzz(func(t *testing.T, args []byte) {
		if len(args) == 0 {
			return
		}
		d := granted.Decide(t.Context(), tool("x", string(args)))
		var object map[string]json.RawMessage
		if err := json.Unmarshal(args, &object); err != nil && d.Effect == Allow {
			t.Fatalf("%q is no object and is judged: %+v", args, d)
		}
		if d := denied.Decide(t.Context(), tool("x", string(args))); d.Effect == Allow {
			if _, ok := object["n"]; !ok {
				t.Fatalf("%q: %+v", args, d)
			}
		}
		if strictjson.Check(args, strictjson.Limits{MaxBytes: len(args)}) == nil {
			checked := tool("x", string(args))
			checked.Checked = true
			if again := granted.Decide(t.Context(), checked); again.Effect != d.Effect {
				t.Fatalf("%q is judged %s, and %s once it is known to be checked", args, d.Effect, again.Effect)
			}
		}
	})
}

func FuzzNumber(f *testing.F) {
	for _, s := range []string{"0", "1e5", "-12.50", "9007199254740993", "1e400", "0.1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !json.Valid([]byte(s)) || s == "" || !strings.ContainsAny(s[:1], "-0123456789") || strings.TrimSpace(s) != s {
			return
		}
		v, ok := number(s)
		if !ok {
			return
		}
		// The value that was read equals the text, in arbitrary precision.
		back := ""
		switch v := v.(type) {
		case types.Int:
			back = strconv.FormatInt(int64(v), 10)
		case types.Double:
			back = strconv.FormatFloat(float64(v), 'g', -1, 64)
		}
		if len(s) > 400 || strings.ContainsAny(s, "eE") && len(s) > 30 {
			return
		}
		if a, b := rational(s), rational(back); a != nil && b != nil && a.Cmp(b) != 0 {
			t.Fatalf("%s became %s", s, back)
		}
	})
}

// rational returns the exact value of a number. It is nil when the exponent would make the number too large to hold.
func rational(s string) *big.Rat {
	if at := strings.IndexAny(s, "eE"); at >= 0 {
		if e, err := strconv.Atoi(s[at+1:]); err != nil || e > 2000 || e < -2000 {
			return nil
		}
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return nil
	}
	return r
}
