package engine

import (
	"errors"
	"math/bits"
	"strings"
	"sync"

	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// Limits of functions whose work or result is a product of their arguments' sizes. The interpreter charges a function
// after it has run, which is too late for these. `distinct` or `lastIndexOf` on a value that fills a request takes
// minutes. A `join`, or two `replace` in a row, takes all memory. So these calls are checked before they run (attack
// M20). One call that passes takes less than maxEvaluation.
const (
	maxComparisons = 1 << 20                  // of elements with elements
	maxSearch      = costLimit * bytesPerStep // bytes of a text times bytes of the text sought in it: up to the cost limit
	maxText        = 4 << 20                  // bytes of a text that a function makes
	maxRegexSteps  = 1 << 23                  // bytes of a text times instructions of a pattern
	maxPattern     = 1000                     // bytes of a pattern that is not written in the expression
)

var errWork = errors.New("it would take too much work")

// guards maps these functions to a check, which reports before each call whether it may run.
var guards = map[string]func(args []ref.Val) bool{
	"distinct":              func(a []ref.Val) bool { return fewComparisons([]ref.Val{a[0], a[0]}) },
	"sets.contains":         fewComparisons,
	"sets.equivalent":       fewComparisons,
	"sets.intersects":       fewComparisons,
	"hasOnly":               fewComparisons,
	"hasAny":                fewComparisons,
	"hasAll":                fewComparisons,
	"hasExactly":            fewComparisons,
	"flatten":               func(a []ref.Val) bool { return weight(a[0], maxComparisons) < maxComparisons },
	"sort":                  maySort,
	"@sortByAssociatedKeys": maySort,
	"indexOf":               maySearch,
	"lastIndexOf":           maySearch,
	"split":                 maySplit,
	"join":                  mayJoin,
	"replace":               mayReplace,
	"format":                mayFormat,
	overloads.Matches:       mayMatch,
}

// fewComparisons reports whether each element of one list may be compared with each element of another. Comparing two
// elements takes no longer than looking at all of either one. So the work is at most the number of elements in one list
// times the size of all elements in the other.
func fewComparisons(a []ref.Val) bool {
	n, m := elements(a[0]), elements(a[1])
	return product(n, m) <= maxComparisons &&
		(product(n, extent(a[1], maxComparisons)) <= maxComparisons || product(m, extent(a[0], maxComparisons)) <= maxComparisons)
}

// extent returns how much there is to compare in the elements of a list. It counts 1 for each element that holds no
// others, and more for a long text. It stops at limit.
func extent(v ref.Val, limit int) int {
	list, ok := v.(traits.Lister)
	if !ok {
		return 0
	}
	total := 0
	for it := list.Iterator(); total < limit && it.HasNext() == types.True; {
		switch e := it.Next().(type) {
		case traits.Lister, traits.Mapper:
			total += 1 + weight(e, limit-total)
		default:
			total += 1 + length(e)/bytesCompared
		}
	}
	return total
}

// bytesCompared is the number of bytes of a text that take about as long to compare as one small element.
const bytesCompared = 256

func maySort(a []ref.Val) bool {
	n := elements(a[0])
	return product(n, bits.Len(uint(n))) <= maxComparisons
}

// maySearch reports whether a search may run. The library tries each place of the text, and compares there until the
// first difference.
func maySearch(a []ref.Val) bool { return product(length(a[0]), length(a[1])) <= maxSearch }

func maySplit(a []ref.Val) bool {
	text, _ := a[0].(types.String)
	separator, _ := a[1].(types.String)
	return strings.Count(string(text), string(separator)) <= maxComparisons/4 // of 16 bytes each
}

// elements returns the length of a list or map. It returns 0 for other values, which the function itself refuses.
func elements(v ref.Val) int {
	if _, isString := v.(types.String); isString {
		return 0
	}
	if sizer, ok := v.(traits.Sizer); ok {
		if n, ok := sizer.Size().(types.Int); ok {
			return int(n)
		}
	}
	return 0
}

// length returns the length of a text in bytes. It returns 0 for other values.
func length(v ref.Val) int {
	switch v := v.(type) {
	case types.String:
		return len(v)
	case types.Bytes:
		return len(v)
	}
	return 0
}

// product multiplies two sizes. The result stays in range, because neither factor comes near the square root of the
// maximum.
func product(a, b int) int { return max(a, 0) * max(b, 0) }

// weight returns the size of a value in elements and bytes. It counts a shared list each time that it occurs. It stops
// at limit.
func weight(v ref.Val, limit int) int {
	switch v := v.(type) {
	case types.String, types.Bytes:
		return length(v) + 1
	case traits.Lister:
		total := 1
		for it := v.Iterator(); total < limit && it.HasNext() == types.True; {
			total += weight(it.Next(), limit-total)
		}
		return total
	case traits.Mapper:
		total := 1
		for it := v.Iterator(); total < limit && it.HasNext() == types.True; {
			key := it.Next()
			total += weight(key, limit-total)
			total += weight(v.Get(key), limit-total)
		}
		return total
	}
	return 24 // length of a number or a time as text
}

func mayJoin(a []ref.Val) bool {
	separators := 0
	if len(a) > 1 {
		separators = product(elements(a[0]), length(a[1]))
	}
	return separators <= maxText && separators+weight(a[0], maxText) <= maxText
}

func mayReplace(a []ref.Val) bool {
	if len(a) < 3 {
		return true
	}
	text, _ := a[0].(types.String)
	old, _ := a[1].(types.String)
	times := strings.Count(string(text), string(old)) // "" is found around each character
	return product(times, length(a[2]))+len(text) <= maxText
}

func mayFormat(a []ref.Val) bool {
	text, _ := a[0].(types.String)
	verbs := strings.Count(string(text), "%")
	return len(a) < 2 || product(verbs+1, weight(a[1], maxText))+product(verbs, maxPrecision)+len(text) <= maxText
}

func mayMatch(a []ref.Val) bool {
	pattern, _ := a[1].(types.String)
	size, err := types.RegexProgramSize(string(pattern))
	return err == nil && size <= maxRegexProgram && product(length(a[0]), size) <= maxRegexSteps
}

// bindings returns the implementations of the guarded functions, by overload and by function.
var bindings = sync.OnceValue(func() map[string]*functions.Overload {
	out := make(map[string]*functions.Overload)
	declared := environment().Functions()
	for name := range guards {
		f, ok := declared[name]
		if !ok {
			continue
		}
		bound, err := f.Bindings()
		if err != nil {
			continue
		}
		for _, b := range bound {
			out[b.Operator] = b
		}
	}
	return out
})

// guarded puts the guard before each call of a guarded function, while an expression is planned. Before each call of a
// function outside immediate it puts a check of the time.
func (c *costs) guarded(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok || immediate[call.Function()] {
		return i, nil
	}
	guard, ok := guards[call.Function()]
	if !ok {
		return &paced{call}, nil
	}
	args := call.Args()
	if call.Function() == overloads.Matches && len(args) == 2 {
		if pattern, isConst := args[1].(interpreter.InterpretableConst); isConst {
			// The interpreter compiles this pattern once, in place of this call. Only the text is left to check.
			text, _ := pattern.Value().(types.String)
			size, err := types.RegexProgramSize(string(text))
			if err != nil {
				return nil, err
			}
			c.note(string(text), size)
			args = []interpreter.InterpretableV2{&shortText{args[0], maxRegexSteps / max(size, 1)}, args[1]}
			guard = func([]ref.Val) bool { return true }
		} else {
			// The pattern is compiled before it is checked.
			args = []interpreter.InterpretableV2{args[0], &shortText{args[1], maxPattern}}
		}
	}
	bound := bindings()[call.OverloadID()]
	if bound == nil {
		bound = bindings()[call.Function()]
	}
	if bound == nil {
		return &paced{call}, nil
	}
	return &paced{interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), args, func(values ...ref.Val) ref.Val {
		if !guard(values) {
			return types.WrapErr(errWork)
		}
		return invoke(bound, values)
	})}, nil
}

func invoke(f *functions.Overload, values []ref.Val) ref.Val {
	switch {
	case len(values) == 1 && f.Unary != nil:
		return f.Unary(values[0])
	case len(values) == 2 && f.Binary != nil:
		return f.Binary(values[0], values[1])
	case f.Function != nil:
		return f.Function(values...)
	}
	return types.NewErr("no such overload")
}

// shortText is a pattern, or a text to search with one. It is refused when it is too long.
type shortText struct {
	interpreter.InterpretableV2
	limit int
}

// Exec implements interpreter.InterpretableV2.
func (s *shortText) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := s.InterpretableV2.Exec(frame)
	switch {
	case length(v) > s.limit:
		return types.WrapErr(errWork)
	case overdue(frame):
		return types.WrapErr(interpreter.InterruptError{})
	}
	return v
}

// Eval implements interpreter.Interpretable.
func (s *shortText) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, s.Exec)
}

// paced is a call that does not start any more once the evaluation has taken too long.
type paced struct{ interpreter.InterpretableCall }

// Exec implements interpreter.InterpretableV2.
func (p *paced) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	if overdue(frame) {
		return types.WrapErr(interpreter.InterruptError{})
	}
	return p.InterpretableCall.Exec(frame)
}

// Eval implements interpreter.Interpretable.
func (p *paced) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, p.Exec)
}

// theEvaluation is a variable that expressions cannot name. Through it a planned step finds the evaluation that runs
// it.
const theEvaluation = "@evaluation"

func overdue(frame *interpreter.ExecutionFrame) bool {
	v, _ := frame.ResolveName(theEvaluation)
	e, ok := v.(*evaluation)
	return ok && e.overdue()
}
