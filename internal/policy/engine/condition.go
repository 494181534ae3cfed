package engine

import (
	"errors"
	"fmt"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// Bounds of a condition.
const (
	MaxConditionBytes       = 64 << 10
	MaxConditionDepth       = 8  // nested groups
	MaxConditionExpressions = 64 // in one condition
)

// operator is the way in which a group combines the parts of a condition.
type operator uint8

const (
	opExpr operator = iota
	opAll
	opAny
	opNone
)

// condition is the compiled tree of a rule's condition: an expression, or a group of conditions.
type condition struct {
	op   operator
	of   []*condition
	expr *expression
}

// conditionReader reads conditions. It compiles each expression once, even if it occurs several times.
type conditionReader struct {
	organization string // the owner of shared expressions; "": none are shared
	compiled     map[string]compilation
	problems     []Problem
	expressions,
	inCondition int
}

type compilation struct {
	expr   *expression
	faults []fault
}

func (r *conditionReader) report(loc []any, kind, format string, args ...any) {
	r.problems = append(r.problems, Problem{Loc: loc, Message: fmt.Sprintf(format, args...), Type: kind})
}

// full reports whether there are so many problems that the check stops.
func (r *conditionReader) full() bool { return len(r.problems) >= maxProblems }

// below returns a new location under loc.
func below(loc []any, steps ...any) []any {
	return append(append(make([]any, 0, len(loc)+len(steps)), loc...), steps...)
}

// read reads the condition {"match":...} at loc. It reports mistakes, and then returns nil.
func (r *conditionReader) read(raw []byte, loc []any) *condition {
	before := len(r.problems)
	r.inCondition = 0
	v, err := strictjson.Parse(raw, strictjson.Limits{MaxBytes: MaxConditionBytes})
	var syntax *strictjson.SyntaxError
	switch {
	case errors.As(err, &syntax) && syntax.Reason == strictjson.ReasonSize:
		r.report(loc, typeTooLong, "Condition should have at most %d bytes", MaxConditionBytes)
	case err != nil:
		r.report(loc, typeValueError, "Condition is not valid JSON: %v", err)
	case v.Kind() != strictjson.Object:
		r.report(loc, typeDict, "Input should be a valid dictionary")
	default:
		var match *condition
		found := false
		for _, m := range v.Members() {
			if m.Name != "match" {
				r.report(below(loc, m.Name), typeExtra, "Extra inputs are not permitted")
				continue
			}
			found = true
			match = r.match(m.Value, below(loc, "match"), 0)
		}
		if !found {
			r.report(below(loc, "match"), typeMissing, "Field required")
		}
		if r.inCondition > MaxConditionExpressions {
			r.report(loc, typeTooLong, "Condition should have at most %d expressions", MaxConditionExpressions)
		}
		if len(r.problems) == before {
			return match
		}
	}
	return nil
}

var operatorWords = map[string]operator{"expr": opExpr, "all": opAll, "any": opAny, "none": opNone}

// match reads {"expr": text} or {"all"|"any"|"none": {"of": [...]}}.
func (r *conditionReader) match(v strictjson.Value, loc []any, depth int) *condition {
	if v.Kind() != strictjson.Object {
		r.report(loc, typeDict, "Input should be a valid dictionary")
		return nil
	}
	var out *condition
	known := 0
	for _, m := range v.Members() {
		at := below(loc, m.Name)
		op, ok := operatorWords[m.Name]
		switch {
		case !ok:
			r.report(at, typeExtra, "Extra inputs are not permitted")
			continue
		case op == opExpr:
			out = r.expression(m.Value, at)
		default:
			out = r.group(op, m.Value, at, depth)
		}
		known++
	}
	if known != 1 {
		r.report(loc, typeValueError, "needs exactly one of expr, all, any, none")
		return nil
	}
	return out
}

func (r *conditionReader) group(op operator, v strictjson.Value, loc []any, depth int) *condition {
	if depth == MaxConditionDepth {
		r.report(loc, typeValueError, "groups may stand in groups at most %d deep", MaxConditionDepth)
		return nil
	}
	if v.Kind() != strictjson.Object {
		r.report(loc, typeDict, "Input should be a valid dictionary")
		return nil
	}
	out := &condition{op: op}
	found := false
	for _, m := range v.Members() {
		at := below(loc, m.Name)
		if m.Name != "of" {
			r.report(at, typeExtra, "Extra inputs are not permitted")
			continue
		}
		found = true
		switch {
		case m.Value.Kind() != strictjson.Array:
			r.report(at, typeList, "Input should be a valid list")
		case m.Value.Len() == 0:
			// An empty "all" would be true, and an empty "any" false. The author meant neither.
			r.report(at, typeTooShort, "List should have at least 1 item")
		}
		for i, e := range m.Value.Elems() {
			out.of = append(out.of, r.match(e, below(at, i), depth+1))
		}
	}
	if !found {
		r.report(below(loc, "of"), typeMissing, "Field required")
	}
	return out
}

func (r *conditionReader) expression(v strictjson.Value, loc []any) *condition {
	if v.Kind() != strictjson.String {
		r.report(loc, typeString, "Input should be a valid string")
		return nil
	}
	r.inCondition++
	r.expressions++
	if r.inCondition > MaxConditionExpressions || r.expressions > MaxExpressions {
		return nil // reported once for all expressions
	}
	text := v.Str()
	c, ok := r.compiled[text]
	if !ok {
		c.expr, c.faults = r.compile(text)
		if r.compiled == nil {
			r.compiled = make(map[string]compilation)
		}
		r.compiled[text] = c
	}
	for _, f := range c.faults {
		r.problems = append(r.problems, Problem{Loc: loc, Message: f.message, Type: typeValueError, Input: shown(text), Line: f.line, Column: f.column})
	}
	if c.expr == nil {
		return nil
	}
	return &condition{op: opExpr, expr: c.expr}
}
