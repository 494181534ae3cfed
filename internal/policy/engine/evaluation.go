package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// evaluation is the reusable state for evaluating the conditions of one call or list item. It holds the variables, the
// arguments once something needs them, and notes on the results. Expressions must not keep it.
type evaluation struct {
	ctx       context.Context
	began     time.Time       // start of the first evaluation that is not bounded; zero: none yet
	until     time.Time       // time limit; zero until something needs it
	spent     *time.Duration  // time already used for the items of a list; nil for a call
	limited   context.Context // ends at until; nil until a loop needs it
	cancel    context.CancelFunc
	principal *Principal
	arguments arguments
	unknown   []*cel.AttributePatternType // the unknown parts; empty: everything is known

	request, resource record
	kind              Kind
	name              string
	notes             []note
	memo              memo
	lacking           *Lacking // the unknown facts of a call that is judged afterwards; nil: none
	lacked            *Lacking // the unknown facts that something needed
}

// memo keeps the results of expressions that see the same for every item of one list, while the list is judged.
type memo map[*expression]outcome

// note is the result of an expression, for the decision's Values.
type note struct {
	rule    *rule
	expr    *expression
	outcome outcome
	err     error
}

var (
	requestNames  = []string{"action", "principal", "resource"}
	resourceNames = []string{"kind", "id", "attr"}
)

var evaluations = sync.Pool{New: func() any { return new(evaluation) }}

// newEvaluation starts with all facts except the item, see about.
func newEvaluation(ctx context.Context, s *Set, p *Principal) *evaluation {
	e := evaluations.Get().(*evaluation)
	e.ctx, e.principal = ctx, p
	e.request = record{names: requestNames, values: [3]ref.Val{nil, nil, &e.resource}}
	e.resource = record{names: resourceNames, values: [3]ref.Val{s.kind, s.id, nil}}
	return e
}

// about sets the call or item that the conditions judge, and its unknown parts.
func (e *evaluation) about(k Kind, name string, raw []byte, checked bool, unknown []*cel.AttributePatternType) {
	e.kind, e.name = k, name
	if k == ResourcesRead {
		e.arguments.fixed("uri", name)
	} else {
		e.arguments.reset(raw, checked)
	}
	e.request.values[0], e.request.whole = nil, nil
	e.resource.values[2], e.resource.whole = e.arguments.value, nil
	e.unknown = unknown
}

func (e *evaluation) release() {
	if e.cancel != nil {
		e.cancel()
	}
	if e.spent != nil && !e.began.IsZero() {
		*e.spent += time.Since(e.began) //nolint:forbidigo // a bound on processor time, see overdue
	}
	e.began, e.until, e.limited, e.cancel, e.spent = time.Time{}, time.Time{}, nil, nil, nil
	e.ctx, e.principal, e.unknown, e.memo, e.name, e.lacking, e.lacked = nil, nil, nil, nil, "", nil, nil
	e.request, e.resource = record{}, record{}
	e.arguments.forget()
	clear(e.notes)
	e.notes = e.notes[:0]
	evaluations.Put(e)
}

// ResolveName returns a variable to the interpreter.
func (e *evaluation) ResolveName(name string) (any, bool) {
	switch name {
	case "request":
		return &e.request, true
	case "R":
		return &e.resource, true
	case "P":
		return e.principal.seen().value, true
	case theEvaluation:
		return e, true
	}
	return nil, false
}

// Parent returns nil: there are no other variables.
func (e *evaluation) Parent() interpreter.Activation { return nil }

// partially is the evaluation together with its unknown parts.
type partially struct{ *evaluation }

// AsPartialActivation returns the evaluation with its unknown parts. Without this method the interpreter would take
// unknown parts for missing ones.
func (p partially) AsPartialActivation() (interpreter.PartialActivation, bool) { return p, true }

// UnknownAttributePatterns returns the paths that are unknown.
func (p partially) UnknownAttributePatterns() []*interpreter.AttributePattern { return p.unknown }

// action returns the value of request.action: the call, as a rule writes it.
func (e *evaluation) action() string {
	if e.kind == SSEStream {
		return e.kind.String()
	}
	return e.kind.String() + ":" + e.name
}

// matches returns the outcome of a rule's condition. It is yes for a rule without one.
func (e *evaluation) matches(r *rule) outcome {
	if r.condition == nil {
		return yes
	}
	return e.condition(r, r.condition)
}

// condition evaluates a condition. It stops as soon as the remaining parts cannot change the outcome.
func (e *evaluation) condition(r *rule, c *condition) outcome {
	if c.op == opExpr {
		out, err := e.expression(c.expr)
		e.notes = append(e.notes, note{r, c.expr, out, err})
		return out
	}
	out := yes
	for _, part := range c.of {
		one := e.condition(r, part)
		if c.op != opAll {
			one = one.not()
		}
		if out = out.and(one); out == no {
			break
		}
	}
	if c.op == opAny {
		return out.not()
	}
	return out
}

// Reasons, outside the expression itself, why it cannot be evaluated.
var (
	errArguments  = errors.New("the arguments are not an object")
	errSpelling   = errors.New("the arguments hold a name that some servers take for another")
	errNumber     = errors.New("the arguments hold a number that cannot be represented exactly")
	errClaims     = errors.New("the token holds a number that cannot be represented exactly")
	errFacts      = errors.New("the credential does not say what the condition asks of the caller")
	errNotBool    = errors.New("the value is not true or false")
	errCost       = errors.New("the cost limit was exceeded")
	errInterrupt  = errors.New("the evaluation was interrupted")
	errEvaluation = errors.New("the evaluation failed")
)

// expression evaluates an expression, or returns the remembered outcome.
func (e *evaluation) expression(x *expression) (outcome, error) {
	if e.lacking != nil {
		return e.foreseen(x)
	}
	sameForAll := e.memo != nil && !x.reads.action && (len(e.unknown) > 0 || !x.reads.anyArgument())
	if !sameForAll {
		return e.evaluate(x)
	}
	out, known := e.memo[x]
	if !known {
		out, _ = e.evaluate(x)
		e.memo[x] = out
	}
	return out, nil
}

func (e *evaluation) evaluate(x *expression) (outcome, error) {
	if x.reads.action && e.request.values[0] == nil {
		e.request.values[0] = types.String(e.action())
	}
	if x.reads.principal && e.request.values[1] == nil {
		e.request.values[1] = e.principal.seen().value
	}
	program := x.program
	var input interpreter.Activation = e
	switch {
	case x.reads.roles && e.principal.unknown.names(), x.reads.claims && e.principal.unknown.Claims:
		return broken, errFacts
	case x.reads.claims && e.principal.seen().unreadable:
		return broken, errClaims
	case len(e.unknown) > 0 && x.partial != nil:
		program, input = x.partial, partially{e}
	case x.reads.anyArgument():
		if err := e.arguments.provide(&x.reads); err != nil {
			return broken, err
		}
	}
	return e.outcomeOf(e.run(x, program, input))
}

// outcomeOf returns the outcome of an evaluation, which is broken by a value other than true or false.
func (e *evaluation) outcomeOf(value ref.Val, err error) (outcome, error) {
	switch v := value.(type) {
	case types.Bool:
		if v {
			return yes, nil
		}
		return no, nil
	case *types.Unknown:
		return anything, nil
	case nil:
		// The evaluation was cancelled. With unknown parts this says nothing about a call, which may never reach the
		// costly part.
		if len(e.unknown) > 0 {
			return anything, err
		}
		return broken, err
	case *types.Err:
		if len(e.unknown) > 0 && errors.Is(err, errInterrupt) {
			return anything, err
		}
		return broken, err
	}
	return broken, errNotBool
}

// overdue reports whether evaluating for the call has taken too long, or nobody waits for the result any more. The
// first call of overdue starts the clock. Bounded expressions never start it.
func (e *evaluation) overdue() bool {
	if e.until.IsZero() {
		e.began = time.Now() //nolint:forbidigo // a bound on processor time: no clock of anybody's takes part in a decision
		e.until = e.began.Add(e.allowed())
		return false
	}
	return e.ctx.Err() != nil || !time.Now().Before(e.until) //nolint:forbidigo // as above
}

// allowed returns the time that the conditions may take. The items of a list share one time limit. Without it, a policy
// of one organization could take minutes of the processor time of all organizations for one list.
func (e *evaluation) allowed() time.Duration {
	if e.spent == nil {
		return evaluationTime
	}
	return min(evaluationTime, max(0, listTime-*e.spent))
}

// limit sets the context that stops loops.
func (e *evaluation) limit() {
	if e.limited == nil {
		e.limited, e.cancel = context.WithDeadline(e.ctx, e.until)
	}
}

// run evaluates an expression and returns the reason when it could not. The value is then an error, or nil when the
// evaluation was cancelled.
func (e *evaluation) run(x *expression, program cel.Program, input interpreter.Activation) (ref.Val, error) {
	var value ref.Val
	var err error
	if e.ctx.Err() != nil || !x.bounded && e.overdue() {
		return nil, errInterrupt
	}
	if x.reads.loops {
		e.limit()
		value, _, err = program.ContextEval(e.limited, input)
	} else {
		value, _, err = program.Eval(input)
	}
	if err == nil {
		return value, nil
	}
	var cancelled interpreter.EvalCancelledError
	switch {
	case errors.As(err, &cancelled) && cancelled.Cause == interpreter.CostLimitExceeded:
		return nil, errCost
	case errors.As(err, &cancelled):
		return nil, errInterrupt
	case errors.Is(err, interpreter.InterruptError{}):
		return value, errInterrupt
	}
	return value, reasonOf(err, x.text)
}

// harmless lists the beginnings of interpreter messages that hold no value.
var harmless = []string{"no such overload", "division by zero", "modulus by zero", "integer overflow", "unsigned integer overflow"}

// reasonOf returns an error without values. The error goes to places where arguments may not go (the audit log may be
// set to keep none). The name of a missing member is included if the expression contains it.
func reasonOf(err error, expr string) error {
	if errors.Is(err, errWork) {
		return errWork
	}
	text := err.Error()
	for _, prefix := range []string{"no such key: ", "no such attribute(s): "} {
		if name, ok := strings.CutPrefix(text, prefix); ok && name != "" && strings.Contains(expr, name) {
			return fmt.Errorf("no such member: %s", name)
		} else if ok {
			return errors.New("no such member")
		}
	}
	for _, prefix := range harmless {
		if strings.HasPrefix(text, prefix) {
			return errors.New(prefix)
		}
	}
	return errEvaluation
}
