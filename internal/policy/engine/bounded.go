package engine

import (
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
)

// bounded reports whether the length of an expression limits its cost, for every possible request. Such an expression
// only compares values that it looks up with literals that it contains. Its cost stays far below the cost limit, and
// counting the cost would take longer than evaluating it.
func bounded(e ast.Expr) bool {
	if _, ok := pathOf(e); ok || e.Kind() == ast.LiteralKind {
		return true
	}
	if e.Kind() != ast.CallKind {
		return false
	}
	call := e.AsCall()
	args := call.Args()
	switch call.FunctionName() {
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		if args[0].Kind() != ast.LiteralKind && args[1].Kind() != ast.LiteralKind {
			return false // two of the caller's values can be as large as a request
		}
	case operators.In:
		return bounded(args[0]) && listOfLiterals(args[1])
	case operators.LogicalAnd, operators.LogicalOr, operators.LogicalNot, operators.Conditional:
	default:
		return false
	}
	for _, a := range args {
		if !bounded(a) {
			return false
		}
	}
	return true
}

// listOfLiterals reports whether an expression is a list of nothing but literals.
func listOfLiterals(e ast.Expr) bool {
	if e.Kind() != ast.ListKind {
		return false
	}
	for _, element := range e.AsList().Elements() {
		if element.Kind() != ast.LiteralKind {
			return false
		}
	}
	return true
}
