package engine

import (
	"bytes"
	"slices"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// arguments holds the arguments of one call, as request.resource.attr. Nothing is read before a condition needs it.
// Then the text is checked, unless the strict reader has accepted it before. Only members that some condition names are
// made into values. A large document beside such a member is skipped, not read.
type arguments struct {
	raw     []byte
	checked bool  // the strict reader has accepted raw
	err     error // for the whole text: it is not an object

	index   []member // all members, in the order of the text; filled when one is first needed
	indexed bool
	looked  []look // names that were looked up

	members map[string]any // members needed so far, for conditions
	value   ref.Val        // a view of members
	unfit   []unfit        // needed members that conditions cannot judge
	below   map[string]spellings
	whole   bool      // all members were needed
	names   spellings // names in the whole text; set with whole
	twins   bool      // two members of one object fold to one name
}

// member is one member of the arguments, as the text has it.
type member struct{ name, value []byte }

// look is the result of one search for a member. It lists the members that some readers could take for that member.
type look struct {
	name   string
	others []string
}

// unfit holds the reason why conditions cannot judge a member.
type unfit struct {
	name string
	err  error
}

// reset starts with the arguments of another call. nil means {}.
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

// fixed sets one known member for a call that has no arguments.
func (a *arguments) fixed(name, text string) {
	a.reset(nil, true)
	a.members[name] = types.String(text)
}

// forget drops all that belongs to a call. It also drops a map that one call made large.
func (a *arguments) forget() {
	const keep = 64
	members, value := a.members, a.value
	if len(members) > keep {
		members, value = nil, nil
	}
	clear(members)
	clear(a.index)
	clear(a.looked)
	index, looked := a.index[:0], a.looked[:0]
	if cap(index) > keep || cap(looked) > keep {
		index, looked = nil, nil
	}
	*a = arguments{members: members, value: value, index: index, looked: looked, unfit: a.unfit[:0]}
}

// provide makes the members that an expression reads. Its error makes that expression impossible to evaluate. A number
// that no double holds spoils its member, and every expression that could look at that member. So does a name that some
// reader takes for another name. Expressions that look only at other members are not affected.
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
		switch a.all(); {
		case a.err != nil:
			return a.err
		case a.twins || a.names.other(r.names):
			return errSpelling
		case len(a.unfit) > 0:
			return a.unfit[0].err
		}
		return nil
	}
	for _, name := range r.members {
		if err := a.one(name, r); err != nil {
			return err
		}
	}
	return a.err
}

// all makes values of all members.
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
	var ok bool
	if a.names, ok = spelled(object); !ok {
		a.twins = true
	}
	for _, m := range object.Members() {
		a.make(m.Name, m.Value)
	}
}

// one makes the value of the member with that name, if there is one.
func (a *arguments) one(name string, r *reads) error {
	at := slices.IndexFunc(a.looked, func(l look) bool { return l.name == name })
	if at < 0 {
		at = len(a.looked)
		a.looked = append(a.looked, a.find(name))
	}
	for _, other := range a.looked[at].others {
		if !slices.Contains(r.members, other) {
			return errSpelling
		}
	}
	for i := range a.unfit {
		if a.unfit[i].name == name {
			return a.unfit[i].err
		}
	}
	if len(r.names) > 0 && a.below[name].other(r.names) {
		return errSpelling
	}
	return nil
}

// find looks up a member and makes its value. It also finds the members that some readers could take for it.
func (a *arguments) find(name string) look {
	if !a.indexed {
		a.indexed = true
		for name, value := range strictjson.Each(a.raw) {
			a.index = append(a.index, member{name, value})
		}
	}
	found := look{name: name}
	for i := range a.index {
		m := &a.index[i]
		switch {
		case string(m.name) == name:
			v, err := strictjson.Parse(m.value, strictjson.Limits{MaxBytes: len(m.value)})
			if err != nil {
				a.err = errArguments
				break
			}
			a.make(name, v)
		case foldsTo(m.name, name):
			found.others = append(found.others, string(m.name))
		}
	}
	return found
}

func (a *arguments) make(name string, v strictjson.Value) {
	if _, done := a.members[name]; done {
		return
	}
	value, ok := fromJSON(v)
	if !ok {
		a.unfit = append(a.unfit, unfit{name, errNumber})
		value = types.NullValue
	}
	a.members[name] = value
	names, ok := spelled(v)
	switch {
	case !ok:
		a.unfit = append(a.unfit, unfit{name, errSpelling})
	case names != nil:
		if a.below == nil {
			a.below = make(map[string]spellings)
		}
		a.below[name] = names
	}
}
