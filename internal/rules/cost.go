package rules

import (
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// costs counts what the interpreter takes for one step each, because it is only known of the values what they are, or
// because it knows no better: a search in a list, a comparison of lists or maps, a text that is made of two, and every
// function but a few. In a loop over a list that fills a request such steps take minutes (attack M20).
type costs struct {
	patterns map[string]int // those that are written in the expression, with their instructions
}

// note the size of a pattern while an expression is planned.
func (c *costs) note(pattern string, size int) {
	if c.patterns == nil {
		c.patterns = make(map[string]int)
	}
	c.patterns[pattern] = size
}

// immediate are the operators, which are charged one by one or take one step, and the functions that take one step
// whatever they are given. All others are taken to look at all of it.
var immediate = map[string]bool{
	operators.LogicalAnd: true, operators.LogicalOr: true, operators.LogicalNot: true, operators.Conditional: true,
	operators.NotStrictlyFalse: true,
	operators.Negate:           true, operators.Subtract: true, operators.Multiply: true, operators.Divide: true, operators.Modulo: true,
	operators.Index: true, operators.In: true, operators.OldIn: true, operators.Equals: true, operators.NotEquals: true,
	operators.Add: true, operators.Less: true, operators.LessEquals: true, operators.Greater: true, operators.GreaterEquals: true,
	overloads.StartsWith: true, overloads.EndsWith: true, overloads.TypeConvertType: true, overloads.TypeConvertDyn: true,
}

// CallCost implements cost.ActualCostEstimator; nil leaves it to the interpreter.
func (c *costs) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	steps := 0
	switch {
	case function == overloads.Matches && len(args) == 2:
		steps = c.search(args[0], args[1])
	case function == overloads.Size && len(args) == 1:
		steps = length(args[0]) / bytesPerStep // it counts characters; a list knows how long it is
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

// operation is what an operator does with its operands; 0: the interpreter charges it right.
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
		if n := elements(a); n > 0 && n == elements(b) { // else they differ at the first look
			return lesser(a, b)
		}
	case operators.Add:
		_, isList := a.(traits.Lister)
		if _, inPlace := a.(traits.MutableLister); isList && !inPlace {
			// It makes a view of two lists, which each look at an element goes through.
			return (elements(a) + elements(b)) * stepsPerView
		}
		return (length(a) + length(b)) / bytesPerStep
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return (length(a) + length(b)) / bytesPerStep
	}
	return 0
}

const (
	bytesPerStep = 10 // what the interpreter counts as one step of a text
	stepsPerView = 4  // for each element of lists that are put together: sorting looks at each a dozen times
	regexPerStep = 8  // instructions of a pattern, or bytes that meet one
)

// search is what it takes to compile a pattern, when it is not written in the expression, and to look for it.
func (c *costs) search(text, pattern ref.Val) int {
	p, _ := pattern.(types.String)
	size, written := c.patterns[string(p)]
	if !written {
		size, _ = types.RegexProgramSize(string(p))
		return (product(length(text), size) + size*size) / regexPerStep
	}
	return product(length(text), size) / regexPerStep
}

// lesser is the work of the value that is less of it, found without looking at much more than that.
func lesser(a, b ref.Val) int {
	for limit := 64; ; limit *= 4 {
		if w := min(weight(a, limit), weight(b, limit)); w < limit || limit > costLimit*bytesPerStep {
			return 1 + w/bytesPerStep
		}
	}
}

// work is what looking at all of a value costs; 0 for what has no parts.
func work(v ref.Val) int {
	switch v := v.(type) {
	case types.String, types.Bytes:
		return length(v) / bytesPerStep
	case traits.Lister, traits.Mapper:
		return weight(v, costLimit*bytesPerStep) / bytesPerStep
	}
	return 0
}
