package engine

import (
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// costs counts the real steps of operations that the interpreter charges as one step each. The interpreter charges one
// step because it knows only the kind of the values, or because it has no better rule. These operations are: a search
// in a list, a comparison of lists or maps, a text made of two texts, and every function but a few. In a loop over a
// list that fills a request such steps take minutes (attack M20).
type costs struct {
	patterns map[string]int // patterns written in the expression, with their number of instructions
}

// note stores the size of a pattern while an expression is planned.
func (c *costs) note(pattern string, size int) {
	if c.patterns == nil {
		c.patterns = make(map[string]int)
	}
	c.patterns[pattern] = size
}

// immediate lists the operators, which are charged one by one or take one step. It also lists the functions that take
// one step for any argument. Every other function is charged as if it looked at all of its arguments.
var immediate = map[string]bool{
	operators.LogicalAnd: true, operators.LogicalOr: true, operators.LogicalNot: true, operators.Conditional: true,
	operators.NotStrictlyFalse: true,
	operators.Negate:           true, operators.Subtract: true, operators.Multiply: true, operators.Divide: true, operators.Modulo: true,
	operators.Index: true, operators.In: true, operators.OldIn: true, operators.Equals: true, operators.NotEquals: true,
	operators.Add: true, operators.Less: true, operators.LessEquals: true, operators.Greater: true, operators.GreaterEquals: true,
	overloads.StartsWith: true, overloads.EndsWith: true, overloads.TypeConvertType: true, overloads.TypeConvertDyn: true,
}

// CallCost implements cost.ActualCostEstimator. With nil the interpreter counts the cost itself.
func (c *costs) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	steps := 0
	switch {
	case function == overloads.Matches && len(args) == 2:
		steps = c.search(args[0], args[1]) //nolint:gosec // there are two, as the case says
	case function == overloads.Size && len(args) == 1:
		steps = length(args[0]) / bytesPerStep // the function counts characters; a list knows its length
	case !immediate[function]:
		for _, a := range args {
			steps += work(a)
		}
	case len(args) == 2:
		steps = operation(function, args[0], args[1])
	}
	if steps == 0 {
		return nil
	}
	charge := uint64(steps) + 1
	return &charge
}

// operation returns the steps that an operator takes for its operands. 0 means that the interpreter charges it
// correctly.
func operation(function string, a, b ref.Val) int {
	switch function {
	case operators.In, operators.OldIn:
		switch b.(type) {
		case traits.Lister:
			return product(elements(b), 1+work(a))
		case traits.Mapper:
			return work(a)
		}
	case operators.Equals, operators.NotEquals:
		if n := elements(a); n > 0 && n == elements(b) { // otherwise they differ at the first look
			return lesser(a, b)
		}
	case operators.Add:
		_, isList := a.(traits.Lister)
		if _, inPlace := a.(traits.MutableLister); isList && !inPlace {
			// The result is a view of two lists. Each access to an element goes through the view.
			return (elements(a) + elements(b)) * stepsPerView
		}
		return (length(a) + length(b)) / bytesPerStep
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return (length(a) + length(b)) / bytesPerStep
	}
	return 0
}

const (
	bytesPerStep = 10 // bytes of a text that the interpreter counts as one step
	stepsPerView = 4  // for each element of concatenated lists: sorting looks at each element a dozen times
	regexPerStep = 8  // instructions of a pattern, or bytes matched against one
)

// search returns the steps of a search for a pattern. It adds the steps to compile a pattern that is not written in the
// expression.
func (c *costs) search(text, pattern ref.Val) int {
	p, _ := pattern.(types.String)
	size, written := c.patterns[string(p)]
	if !written {
		size, _ = types.RegexProgramSize(string(p))
		return (product(length(text), size) + size*size) / regexPerStep
	}
	return product(length(text), size) / regexPerStep
}

// lesser returns the work of the smaller of two values. It does not look at much more than that value.
func lesser(a, b ref.Val) int {
	for limit := 64; ; limit *= 4 {
		if w := min(weight(a, limit), weight(b, limit)); w < limit || limit > costLimit*bytesPerStep {
			return 1 + w/bytesPerStep
		}
	}
}

// work returns the steps that it takes to look at all of a value. It is 0 for a value without parts.
func work(v ref.Val) int {
	switch v := v.(type) {
	case types.String, types.Bytes:
		return length(v) / bytesPerStep
	case traits.Lister, traits.Mapper:
		return weight(v, costLimit*bytesPerStep) / bytesPerStep
	}
	return 0
}
