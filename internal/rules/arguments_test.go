package rules

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"

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
		{"0e9999999999999999999999", types.Double(0)},
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

// A number that no double holds spoils what looks at the member that it is in, and nothing else.
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
	}
	for _, test := range tests {
		if granted, denied, v := outcomeOf(t, test.expr, args); granted != test.want.grants() || denied != test.want.denies() {
			t.Errorf("%s: grant matches %v, deny matches %v: %+v", test.expr, granted, denied, v)
		}
	}
	// Of a claim it spoils all that looks at claims.
	p := NewPrincipal("u-1", []string{"dev"}, nil, "", map[string]any{"a": 1.5, "n": json.Number("1e400")})
	for expr, want := range map[string]Effect{"P.id == 'u-1'": Allow, "'dev' in P.roles": Allow, "P.attr.a == 1.5": Deny, "P.size() == 5 || true": Deny, "request.principal.attr == {} || true": Deny} {
		d := compile(t, active(when(grant("g", "*"), expr))).Decide(t.Context(), Call{Principal: p, Kind: ToolsCall, Name: "x"})
		if d.Effect != want {
			t.Errorf("%s: %+v", expr, d)
		}
	}
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
	for _, args := range []string{"", "{}", ` { } `} {
		if granted, _, _ := outcomeOf(t, "size(R.attr) == 0", args); !granted {
			t.Errorf("%q is not {}", args)
		}
	}
}

// Two conditions share one reading of the arguments, whichever needs less.
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
		// What was taken is what was written, to arbitrary precision.
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

// rational is a number exactly; nil when its exponent would make it too large to hold.
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
