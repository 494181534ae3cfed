package rules

import (
	"runtime"
	"sync"
	"weak"
)

// shared has the expressions that compiled policies use, under their [sharedKey]. Policies are often copies of each other, and
// a compiled expression is some forty objects that the garbage collector goes through for as long as its policy is kept.
var shared sync.Map // to weak.Pointer[expression]

// sharedKey is an expression of an organization. Organizations share none: how long compiling takes would tell one of them
// what the others have written.
type sharedKey struct{ organization, text string }

// compile is compileExpression, unless the organization uses that very expression already.
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
	// By then the key may be somebody else's, who compiled the same at the same time.
	runtime.AddCleanup(e, func(k sharedKey) { shared.CompareAndDelete(k, p) }, k)
	return e, nil
}
