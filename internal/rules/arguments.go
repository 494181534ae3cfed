package rules

import (
	"bytes"
	"slices"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// arguments are those of one call, as request.resource.attr. Nothing is read before a condition needs it; then the text is
// checked, unless the strict reader has accepted it before, and only those members are made into values that some condition names. A large
// document beside the member that a condition asks about is skipped, not read.
type arguments struct {
	raw     []byte
	checked bool  // the strict reader has accepted raw
	err     error // of the whole: it is not an object

	members map[string]any // those that were needed so far
	value   ref.Val        // a view of members
	unfit   []string       // needed members that hold a number which cannot be judged
	whole   bool           // all members were needed
}

// reset takes the arguments of another call; nil is {}.
func (a *arguments) reset(raw []byte, checked bool) {
	a.forget()
	a.checked = checked
	a.raw = bytes.TrimLeft(raw, " \t\r\n")
	switch {
	case len(raw) == 0:
		a.whole = true
	case !bytes.HasPrefix(a.raw, []byte{'{'}):
		a.err = errArguments
	}
	if a.members == nil {
		a.members = make(map[string]any)
		a.value = types.NewStringInterfaceMap(adapter, a.members)
	}
}

// fixed takes one member that is known, for what has no arguments.
func (a *arguments) fixed(name, text string) {
	a.reset(nil, true)
	a.members[name] = types.String(text)
}

// forget lets go of what belongs to a call. A map that one call made large goes too.
func (a *arguments) forget() {
	const keep = 64
	members, value := a.members, a.value
	if len(members) > keep {
		members, value = nil, nil
	}
	clear(members)
	*a = arguments{members: members, value: value, unfit: a.unfit[:0]}
}

// provide makes the members that an expression reads. Its error makes that expression unevaluable: a number that no
// double holds spoils the member that it is in, and with it every expression that could look at that member. What looks
// at other members only is not touched by it.
func (a *arguments) provide(r *reads) error {
	if !a.checked && !a.whole && a.err == nil {
		a.checked = true
		if strictjson.Check(a.raw, strictjson.Limits{MaxBytes: len(a.raw)}) != nil {
			a.err = errArguments
		}
	}
	if a.err != nil {
		return a.err
	}
	if r.arguments {
		if a.all(); a.err == nil && len(a.unfit) > 0 {
			return errNumber
		}
		return a.err
	}
	for _, name := range r.members {
		if !a.whole {
			a.one(name)
		}
		if slices.Contains(a.unfit, name) {
			return errNumber
		}
	}
	return a.err
}

// all makes all members.
func (a *arguments) all() {
	if a.whole {
		return
	}
	a.whole = true
	object, err := strictjson.Parse(a.raw, strictjson.Limits{MaxBytes: len(a.raw)})
	if err != nil {
		a.err = errArguments
		return
	}
	for _, m := range object.Members() {
		a.make(m.Name, m.Value)
	}
}

// one makes the member of that name, if there is one.
func (a *arguments) one(name string) {
	if _, done := a.members[name]; done {
		return
	}
	text := strictjson.Find(a.raw, name)
	if text == nil {
		return
	}
	v, err := strictjson.Parse(text, strictjson.Limits{MaxBytes: len(text)})
	if err != nil {
		a.err = errArguments
		return
	}
	a.make(name, v)
}

func (a *arguments) make(name string, v strictjson.Value) {
	if _, done := a.members[name]; done {
		return
	}
	value, ok := fromJSON(v)
	if !ok {
		a.unfit = append(a.unfit, name)
		value = types.NullValue
	}
	a.members[name] = value
}
