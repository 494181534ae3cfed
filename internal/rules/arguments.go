package rules

import (
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// arguments are those of one call, as request.resource.attr. Nothing is read before a condition needs it; then the text
// is scanned once, and of its members only those are made into values that some condition names. A large document
// beside the member that a condition asks about costs its scan, not its copy.
type arguments struct {
	raw     []byte
	scanned bool
	object  strictjson.Value
	err     error // of the whole: it is not an object

	members map[string]any // those that were needed so far
	value   ref.Val        // a view of members
	unfit   []string       // needed members that hold a number which cannot be judged
	whole   bool           // all members were needed
}

// reset takes the arguments of another call; nil is {}.
func (a *arguments) reset(raw []byte) {
	a.forget()
	a.raw = raw
	if len(raw) == 0 {
		a.scanned, a.whole = true, true
	}
	if a.members == nil {
		a.members = make(map[string]any)
		a.value = types.NewStringInterfaceMap(adapter, a.members)
	}
}

// fixed takes one member that is known, for what has no arguments.
func (a *arguments) fixed(name, text string) {
	a.reset(nil)
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
	if !a.scanned {
		a.scanned = true
		var err error
		if a.object, err = strictjson.Parse(a.raw, strictjson.Limits{MaxBytes: len(a.raw)}); err != nil || a.object.Kind() != strictjson.Object {
			a.err = errArguments
		}
	}
	if a.err != nil {
		return a.err
	}
	if r.arguments {
		if !a.whole {
			a.whole = true
			for _, m := range a.object.Members() {
				a.make(m.Name, m.Value)
			}
		}
		if len(a.unfit) > 0 {
			return errNumber
		}
		return nil
	}
	for _, name := range r.members {
		if !a.whole {
			if v, ok := a.object.Get(name); ok {
				a.make(name, v)
			}
		}
		for _, unfit := range a.unfit {
			if unfit == name {
				return errNumber
			}
		}
	}
	return nil
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
