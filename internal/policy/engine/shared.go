package engine

import (
	"runtime"
	"sync"
	"weak"
)

// shared holds the expressions that compiled policies use, under their [sharedKey]. Policies are often copies of each
// other. A compiled expression is some forty objects, and the garbage collector visits them as long as its policy is
// kept.
var shared sync.Map // to weak.Pointer[expression]

// sharedKey identifies an expression of an organization. Organizations do not share expressions: the time that
// compiling takes would tell one organization which expressions another has written.
type sharedKey struct{ organization, text string }

// compile calls compileExpression, unless the organization already uses exactly that expression.
func (r *conditionReader) compile(text string) (*expression, []fault) {
	if r.organization == "" {
		return compileExpression(text)
	}
	k := sharedKey{r.organization, text}
	if found, ok := shared.Load(k); ok {
		if e := found.(weak.Pointer[expression]).Value(); e != nil {
			return e, nil
		}
	}
	e, faults := compileExpression(text)
	if faults != nil {
		return nil, faults
	}
	p := weak.Make(e)
	shared.Store(k, p)
	// The key may hold another pointer by then: another caller may have compiled the same text at the same time.
	runtime.AddCleanup(e, func(k sharedKey) { shared.CompareAndDelete(k, p) }, k)
	return e, nil
}
