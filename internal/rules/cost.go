package rules

import (
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// costs counts what the interpreter takes for one step each, because it is only known of the values what they are: a
// search in a list, a comparison of lists or maps, a text that is made of two. In a loop over a list that fills a request
// such steps take minutes (attack M20).
type costs struct{}

// CallCost implements cost.ActualCostEstimator; nil leaves it to the interpreter.
func (costs) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	if len(args) != 2 {
		return nil
	}
	steps := 0
	switch function {
	case operators.In, operators.OldIn:
		if _, ok := args[1].(traits.Lister); !ok || elements(args[1]) == 0 {
			return nil
		}
		steps = product(elements(args[1]), work(args[0]))
	case operators.Equals, operators.NotEquals:
		if n := elements(args[0]); n == 0 || n != elements(args[1]) {
			return nil // they differ at the first look
		}
		steps = lesser(args[0], args[1])
	case operators.Add, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		if steps = (length(args[0]) + length(args[1])) / bytesPerStep; steps == 0 {
			return nil
		}
	default:
		return nil
	}
	charge := uint64(steps) + 1
	return &charge
}

// bytesPerStep is what the interpreter counts as one step of a text.
const bytesPerStep = 10

// lesser is the work of the value that is less of it, found without looking at much more than that.
func lesser(a, b ref.Val) int {
	for limit := 64; ; limit *= 4 {
		if w := min(weight(a, limit), weight(b, limit)); w < limit || limit > costLimit*bytesPerStep {
			return 1 + w/bytesPerStep
		}
	}
}

// work is what looking at all of a value costs.
func work(v ref.Val) int {
	switch v := v.(type) {
	case types.String:
		return 1 + len(v)/bytesPerStep
	case traits.Lister, traits.Mapper:
		return 1 + weight(v, costLimit*bytesPerStep)/bytesPerStep
	}
	return 1
}
