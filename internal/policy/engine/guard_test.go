package engine

import (
	"strings"
	"testing"

	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// listOf makes a list with n equal elements.
func listOf(n int, element ref.Val) ref.Val {
	elements := make([]ref.Val, n)
	for i := range elements {
		elements[i] = element
	}
	return types.NewRefValList(adapter, elements)
}

func textOf(n int) ref.Val { return types.String(strings.Repeat("a", n)) }

// TestM20Guards checks that each guard allows arguments at its limit, and none beyond.
func TestM20Guards(t *testing.T) {
	one, row := types.Int(1), listOf(1, types.Int(1))
	pair := textOf(2) // a pattern with as many instructions as letters, and two more
	size, err := types.RegexProgramSize("aa")
	if err != nil || maxRegexSteps%size != 0 {
		t.Fatalf("%d instructions: %v", size, err)
	}
	longest := maxRegexProgram - (size - 2)
	for _, test := range []struct {
		name  string
		guard func([]ref.Val) bool
		args  []ref.Val
		want  bool
	}{
		{"few", fewComparisons, []ref.Val{listOf(1024, one), listOf(1024, one)}, true}, {"one more", fewComparisons, []ref.Val{listOf(1024, one), listOf(1025, one)}, false},
		{"one with very many", fewComparisons, []ref.Val{listOf(1, one), listOf(maxComparisons+1, one)}, false}, {"with no list", fewComparisons, []ref.Val{listOf(2, one), pair}, true},
		{"rows", fewComparisons, []ref.Val{listOf(1024, row), listOf(1024, row)}, false}, {"rows with others", fewComparisons, []ref.Val{listOf(1024, row), listOf(1024, one)}, true},
		{"others with rows", fewComparisons, []ref.Val{listOf(1024, one), listOf(1024, row)}, true}, {"few rows", fewComparisons, []ref.Val{listOf(100, row), listOf(100, row)}, true},
		{"long texts", fewComparisons, []ref.Val{listOf(1024, textOf(512)), listOf(1024, textOf(512))}, false},
		{"just few in the second", fewComparisons, []ref.Val{listOf(512, textOf(512)), listOf(1024, textOf(256))}, true}, {"more in the second", fewComparisons, []ref.Val{listOf(513, textOf(512)), listOf(1024, textOf(256))}, false},
		{"just few in the first", fewComparisons, []ref.Val{listOf(1024, textOf(256)), listOf(512, textOf(512))}, true}, {"more in the first", fewComparisons, []ref.Val{listOf(1024, textOf(256)), listOf(513, textOf(512))}, false},
		{"sort", maySort, []ref.Val{listOf(61680, one)}, true}, {"sort more", maySort, []ref.Val{listOf(65536, one)}, false},
		{"search", maySearch, []ref.Val{textOf(5000), textOf(2000)}, true}, {"search for more", maySearch, []ref.Val{textOf(5000), textOf(2001)}, false},
		{"split", maySplit, []ref.Val{textOf(maxComparisons / 4), textOf(1)}, true}, {"split more", maySplit, []ref.Val{textOf(maxComparisons/4 + 1), textOf(1)}, false},
		{"join", mayJoin, []ref.Val{listOf(1, textOf(maxText-2))}, true}, {"join more", mayJoin, []ref.Val{listOf(1, textOf(maxText-1))}, false},
		{"join with", mayJoin, []ref.Val{listOf(2, textOf(1)), textOf((maxText - 6) / 2)}, true}, {"join with more", mayJoin, []ref.Val{listOf(2, textOf(1)), textOf((maxText-6)/2 + 1)}, false},
		{"replace", mayReplace, []ref.Val{textOf(4), textOf(1), textOf((maxText - 4) / 4)}, true}, {"replace with more", mayReplace, []ref.Val{textOf(4), textOf(1), textOf((maxText-4)/4 + 1)}, false},
		{"replace nothing", mayReplace, []ref.Val{types.String("é"), textOf(0), textOf((maxText - 2) / 2)}, true}, {"replace nothing with more", mayReplace, []ref.Val{types.String("é"), textOf(0), textOf((maxText-2)/2 + 1)}, false},
		{"replace at most", mayReplace, []ref.Val{textOf(4), textOf(1), textOf(maxText), one}, false}, {"replace what is no call", mayReplace, []ref.Val{textOf(4), textOf(1)}, true},
		{"format", mayFormat, []ref.Val{types.String("%s"), listOf(1, textOf(maxText/2-2-(maxPrecision+2)/2))}, true}, {"format more", mayFormat, []ref.Val{types.String("%s"), listOf(1, textOf(maxText/2-1-(maxPrecision+2)/2))}, false},
		{"format what is no call", mayFormat, []ref.Val{types.String("%s")}, true},
		{"match", mayMatch, []ref.Val{textOf(maxRegexSteps / size), pair}, true}, {"match more", mayMatch, []ref.Val{textOf(maxRegexSteps/size + 1), pair}, false},
		{"longest pattern", mayMatch, []ref.Val{textOf(1), textOf(longest)}, true}, {"longer pattern", mayMatch, []ref.Val{textOf(1), textOf(longest + 1)}, false},
		{"no pattern", mayMatch, []ref.Val{textOf(0), types.String("(")}, false},
	} {
		if got := test.guard(test.args); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// TestM20Weights checks the measured size of values, up to the limit.
func TestM20Weights(t *testing.T) {
	one := types.Int(1)
	object := types.NewStringInterfaceMap(adapter, map[string]any{"a": one, "b": one})
	for _, test := range []struct {
		value                      ref.Val
		limit                      int
		weight, elements, extended int
	}{
		{one, 1000, 24, 0, 0}, {textOf(5), 1000, 6, 0, 0}, {types.Bytes("abc"), 1000, 4, 3, 0},
		{listOf(3, one), 1000, 73, 3, 3}, {listOf(3, one), 25, 25, 3, 3}, {listOf(3, one), 2, 25, 3, 2}, {listOf(2, listOf(1, one)), 1000, 51, 2, 52}, {listOf(2, textOf(256)), 1000, 515, 2, 4},
		{object, 1000, 53, 2, 0}, {object, 27, 27, 2, 0}, {listOf(1, object), 1000, 54, 1, 54},
	} {
		if got := [...]int{weight(test.value, test.limit), elements(test.value), extent(test.value, test.limit)}; got != [...]int{test.weight, test.elements, test.extended} {
			t.Errorf("%v, limit %d: %v, want %d, %d and %d", test.value, test.limit, got, test.weight, test.elements, test.extended)
		}
	}
}

// TestM20LongPatterns checks that a pattern from the call is refused for its length before it is compiled, even if it
// has few instructions.
func TestM20LongPatterns(t *testing.T) {
	s := compile(t, active(when(grant("r", "*"), "R.attr.s.matches(R.attr.pattern)")))
	for length, want := range map[int]Effect{maxPattern: Allow, maxPattern + 1: Deny} {
		d := s.Decide(t.Context(), tool("x", `{"s":"a","pattern":"[`+strings.Repeat("a", length-2)+`]"}`))
		if d.Effect != want || want == Deny && d.Values[0].Error != errWork.Error() {
			t.Errorf("%d bytes: %+v", length, d)
		}
	}
}

// TestInvoke checks that invoke runs the implementation of a function that takes the given number of values.
func TestInvoke(t *testing.T) {
	one := func(ref.Val) ref.Val { return types.Int(1) }
	two := func(_, _ ref.Val) ref.Val { return types.Int(2) }
	more := func(...ref.Val) ref.Val { return types.Int(3) }
	for _, test := range []struct {
		of     functions.Overload
		values int
		want   ref.Val // nil: an error
	}{
		{functions.Overload{Unary: one, Binary: two, Function: more}, 1, types.Int(1)}, {functions.Overload{Unary: one, Binary: two, Function: more}, 2, types.Int(2)}, {functions.Overload{Unary: one, Binary: two, Function: more}, 3, types.Int(3)},
		{functions.Overload{Function: more}, 1, types.Int(3)}, {functions.Overload{Function: more}, 2, types.Int(3)},
		{functions.Overload{Unary: one}, 2, nil}, {functions.Overload{Binary: two}, 1, nil}, {functions.Overload{Unary: one, Binary: two}, 3, nil},
	} {
		got := invoke(&test.of, make([]ref.Val, test.values))
		if test.want == nil != types.IsError(got) || test.want != nil && got != test.want {
			t.Errorf("%+v of %d values: %v", test.of, test.values, got)
		}
	}
}
