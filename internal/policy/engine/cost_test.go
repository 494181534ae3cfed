package engine

import (
	"strings"
	"testing"

	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// TestM20Costs checks that a loop that looks at all of a large argument each time is counted, and ends soon.
func TestM20Costs(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes this twenty times slower: see make allocations")
	}
	list := "[" + strings.TrimSuffix(strings.Repeat("7,", 30_000), ",") + ",8]"
	arguments := `{"l":` + list + `,"m":{"k":` + list + `},"s":"` + strings.Repeat("x", 1<<20) + `","few":[1,2,3]}`
	for expr, over := range map[string]bool{
		"R.attr.l.all(x, !(9 in R.attr.l))":                       true,
		"R.attr.l.all(x, !(R.attr.s in R.attr.l))":                true,
		"R.attr.l.all(x, R.attr.l == R.attr.l)":                   true,
		"R.attr.l.all(x, R.attr.m == R.attr.m)":                   true,
		"R.attr.l.all(x, R.attr == R.attr)":                       true,
		"R.attr.l.all(x, !(R.attr.m != R.attr.m))":                true,
		"R.attr.l.all(x, (R.attr.s + R.attr.s).size() > 0)":       true,
		"R.attr.l.all(x, R.attr.s <= R.attr.s)":                   true,
		"R.attr.l.all(x, R.attr.s.reverse() != '')":               true,
		"R.attr.l.all(x, R.attr.l.size() > 0)":                    false,
		"R.attr.l.all(x, R.attr.l[0] == 7 && type(x) == int)":     false,
		"R.attr.l.all(x, R.attr.s.startsWith('x'))":               false,
		"R.attr.l.all(x, (R.attr.l + R.attr.l).size() > 0)":       true,
		"lists.range(100).all(x, !string(x).matches('a{900}'))":   false,
		"R.attr.l.map(x, x).size() > 0":                           false,
		"R.attr.l.all(x, R.attr.l != [x])":                        false,
		"R.attr.l.all(x, !(R.attr.m in []))":                      false,
		"R.attr.l.all(x, x in [7, 8])":                            false,
		"R.attr.few.all(x, x in R.attr.few && x != R.attr.l)":     false,
		"8 in R.attr.l && R.attr.m == R.attr.m && 'x' < R.attr.s": false,
	} {
		t.Run(expr, func(t *testing.T) {
			s := compile(t, active(when(grant("r", "*"), expr)))
			d := s.Decide(t.Context(), tool("x", arguments))
			if over != (len(d.Values) == 1 && d.Values[0].Error == errCost.Error()) || over == (d.Effect == Allow) {
				t.Errorf("%v %+v", d.Effect, d.Values)
			}
		})
	}
}

// TestM20CostOfCalls checks the charges for calls that the interpreter counts as one step, and which calls are left to
// the interpreter.
func TestM20CostOfCalls(t *testing.T) {
	one, text, few := types.Int(1), textOf(100), listOf(3, types.Int(1))
	object := types.NewStringInterfaceMap(adapter, map[string]any{"a": one})
	inPlace := types.NewMutableList(adapter)
	inPlace.Add(few)
	var counted costs
	counted.note("written", 16)
	counted.note("written too", 24)
	for _, test := range []struct {
		name, function string
		args           []ref.Val
		want           uint64 // 0: left to the interpreter
	}{
		{"a pattern that is written", overloads.Matches, []ref.Val{text, types.String("written")}, 201}, {"another one", overloads.Matches, []ref.Val{text, types.String("written too")}, 301},
		{"a pattern that is not", overloads.Matches, []ref.Val{text, types.String("aa")}, 53}, {"a match of no text", overloads.Matches, []ref.Val{text}, 11},
		{"the size of a text", overloads.Size, []ref.Val{text}, 11}, {"the size of a list", overloads.Size, []ref.Val{few}, 0}, {"a size of two", overloads.Size, []ref.Val{text, text}, 21},
		{"a function of a text", "reverse", []ref.Val{text}, 11}, {"a function of bytes", "reverse", []ref.Val{types.Bytes(strings.Repeat("a", 100))}, 11},
		{"a function of a list", "reverse", []ref.Val{few}, 8}, {"a function of a map", "f", []ref.Val{object}, 3}, {"a function of a number", "abs", []ref.Val{one}, 0},
		{"a function of three", "replace", []ref.Val{text, text, few}, 28}, {"a function of nothing", "f", nil, 0},
		{"in a list", operators.In, []ref.Val{text, few}, 34}, {"in a list, as it was", operators.OldIn, []ref.Val{text, few}, 34}, {"in a map", operators.In, []ref.Val{text, object}, 11},
		{"a number in a map", operators.In, []ref.Val{one, object}, 0}, {"in a text", operators.In, []ref.Val{text, text}, 0}, {"in no list", operators.In, []ref.Val{text, listOf(0, one)}, 0},
		{"lists are equal", operators.Equals, []ref.Val{few, few}, 9}, {"lists differ", operators.NotEquals, []ref.Val{few, few}, 9}, {"maps are equal", operators.Equals, []ref.Val{object, object}, 4},
		{"lists of other lengths", operators.Equals, []ref.Val{few, listOf(4, one)}, 0}, {"no list is equal", operators.Equals, []ref.Val{listOf(0, one), listOf(0, one)}, 0}, {"numbers are equal", operators.Equals, []ref.Val{one, one}, 0},
		{"a small list and a large one", operators.Equals, []ref.Val{few, listOf(3, textOf(1000))}, 9}, {"a large list and a small one", operators.Equals, []ref.Val{listOf(3, textOf(1000)), few}, 9},
		{"as much as is looked at first", operators.Equals, []ref.Val{listOf(2, textOf(62)), listOf(2, textOf(62))}, 14},
		{"texts put together", operators.Add, []ref.Val{text, textOf(50)}, 16}, {"lists put together", operators.Add, []ref.Val{few, listOf(5, one)}, 33}, {"a list that grows", operators.Add, []ref.Val{inPlace, few}, 0}, {"numbers", operators.Add, []ref.Val{one, one}, 0},
		{"less", operators.Less, []ref.Val{text, textOf(50)}, 16}, {"less or equal", operators.LessEquals, []ref.Val{text, textOf(50)}, 16}, {"greater", operators.Greater, []ref.Val{text, textOf(50)}, 16}, {"greater or equal", operators.GreaterEquals, []ref.Val{text, textOf(50)}, 16},
		{"an element", operators.Index, []ref.Val{few, one}, 0}, {"not", operators.LogicalNot, []ref.Val{types.True}, 0}, {"a choice", operators.Conditional, []ref.Val{types.True, text, text}, 0}, {"the beginning of a text", overloads.StartsWith, []ref.Val{text, text}, 0},
	} {
		got := uint64(0)
		if charge := counted.CallCost(test.function, "", test.args, nil); charge != nil {
			got = *charge
		}
		if got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
	// Shared lists hold more than anybody could look at.
	huge := listOf(10, listOf(10, listOf(100_000, one)))
	for _, charge := range []*uint64{counted.CallCost(operators.Equals, "", []ref.Val{huge, huge}, nil), counted.CallCost("reverse", "", []ref.Val{huge}, nil)} {
		if charge == nil || *charge <= costLimit || *charge > 2*costLimit {
			t.Errorf("of a huge list: %v", charge)
		}
	}
}
