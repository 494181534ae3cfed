package listfilter

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// List names a kind of list.
type List uint8

// The lists of MCP.
const (
	Tools     List = iota + 1 // entries are named by `name`
	Resources                 // by `uri`
	Templates                 // by `uriTemplate`
	Prompts                   // by `name`
	Tasks                     // by `taskId`
)

// lists describes the members of a result that hold a list, and the member that names the list's entries.
var lists = [...]struct {
	member, name string
	list         List
}{
	{"tools", "name", Tools},
	{"resources", "uri", Resources},
	{"resourceTemplates", "uriTemplate", Templates},
	{"prompts", "name", Prompts},
	{"tasks", "taskId", Tasks},
}

// Keep decides on one entry of a list: by its name, and by its text as the server wrote it. Both are valid during the
// call only.
type Keep func(list List, name string, definition []byte) bool

// ErrUnreadable says that the text may hold a list whose contents readers of JSON would understand differently.
var ErrUnreadable = errors.New("the list cannot be read")

// Bounds of the scanner: they protect it from endless nesting, and are wide enough for any list.
const (
	maxDepth   = 256
	maxMembers = 1 << 17
)

// Filter holds the rules for filtering lists.
type Filter struct {
	// View returns the present rule. It is called once for each message that holds a list, so that a stream that
	// stays open follows changes. An error is answered like an unreadable list.
	View func() (Keep, error)
	// Seen is called when all of a text was read whose lists View decided on, before any of it is passed on. On true
	// View decides on the text once more. An error is answered like one of View; nil means no such call.
	Seen func() (again bool, err error)
	// Created is called for each task that an answer says to have created; nil means no such call.
	Created func(Task)
	// Cursor returns the replacement for a list's nextCursor, which reveals hidden entries: servers make it from the
	// name of a page's last entry. An error is answered like an unreadable list; nil keeps the cursor.
	Cursor func(list List, cursor string) (string, error)
	// Private marks a list without cacheScope as one for its reader alone. From 2026-07-28 on clients may give a list
	// without cacheScope to others.
	Private bool
	// Refusal returns the replacement for an answer that cannot be read; nil withholds the answer.
	Refusal func() []byte
	// Stray says that no list was asked for: one is there only because the server mistook the request for another
	// one. Lists in a form that servers do not write pass unchanged.
	Stray bool
}

// Message returns the JSON text of an answer, or of several in an array, without the entries that its reader may not
// see. It returns text itself when nothing has to change, nil when nothing is left of it. The error is ErrUnreadable,
// or View's, Seen's or Cursor's.
func (f *Filter) Message(text []byte) ([]byte, error) {
	if f.Stray && !namesList(text) && !mayBeNews(text) {
		return text, nil
	}
	e := editor{filter: f, text: text}
	s := strictjson.NewScanner(text, strictjson.Limits{MaxBytes: len(text) + 1, MaxDepth: maxDepth, MaxMembers: maxMembers})
	defer s.Release()
	e.s = s
	shown := true
	if s.Kind() == strictjson.Array {
		e.elements(e.message)
	} else {
		shown = e.message()
	}
	if s.End() != nil {
		return f.malformed(text)
	}
	switch {
	case f.Stray && !e.listed && errors.Is(e.err, ErrUnreadable):
		return text, nil
	case e.err != nil:
		return nil, e.err
	case e.keep != nil && f.Seen != nil:
		if again, err := f.Seen(); err != nil {
			return nil, err
		} else if again {
			return f.Message(text)
		}
	}
	for _, task := range e.created {
		f.Created(task)
	}
	if !shown {
		return nil, nil
	}
	return e.result(), nil
}

// malformed returns what is passed on of a text that is no JSON.
func (f *Filter) malformed(text []byte) ([]byte, error) {
	if f.Stray && namesList(text) || !f.Stray && mayHoldList(text) {
		return nil, ErrUnreadable
	}
	return text, nil // no reader takes it for a list
}

// editor collects the cuts in one text.
type editor struct {
	filter  *Filter
	s       *strictjson.Scanner
	text    []byte
	keep    Keep // View's result, once it was called
	listed  bool // there is a list in the form that servers write
	cuts    []cut
	created []Task
	err     error
}

// cut describes a part of the text, and its replacement.
type cut struct {
	from, to int
	with     string
}

func (e *editor) result() []byte {
	if len(e.cuts) == 0 {
		return e.text
	}
	out := make([]byte, 0, len(e.text)+16)
	at := 0
	for _, c := range e.cuts {
		out = append(append(out, e.text[at:c.from]...), c.with...)
		at = c.to
	}
	return append(out, e.text[at:]...)
}

func (e *editor) unreadable() {
	if e.err == nil {
		e.err = ErrUnreadable
	}
}

// message reads one JSON-RPC message, and reports whether it is shown. Only a result can hold a list.
func (e *editor) message() bool {
	s := e.s
	if s.Kind() != strictjson.Object {
		s.Skip()
		return true
	}
	var o strictjson.ObjectFrame
	var params []byte
	news := false
	for s.OpenObject(&o); s.NextMember(&o); {
		switch {
		case string(o.Name()) == "result" && s.Kind() == strictjson.Object:
			e.object()
		case folds(o.Name(), "result"):
			if mayHoldList(s.Skip()) {
				e.unreadable() // a reader that folds case takes it for the result
			}
		case string(o.Name()) == "method" && s.Kind() == strictjson.String:
			news = text(s) == updated
		case string(o.Name()) == "params":
			params = s.Skip()
		default:
			s.Skip()
		}
	}
	return !news || s.Failed() || e.tells(params)
}

// updated is the notification that a resource has changed. It comes as long as its subscription lasts: in a session
// that may be longer than the right to the resource.
const updated = "notifications/resources/updated"

// tells reports whether the reader may see the resource of a notification.
func (e *editor) tells(params []byte) bool {
	if e.keep == nil && e.err == nil {
		e.keep, e.err = e.filter.View()
	}
	v, err := strictjson.Parse(params, strictjson.Limits{MaxBytes: len(params) + 1, MaxDepth: maxDepth, MaxMembers: maxMembers})
	uri, _ := v.Get("uri")
	return e.err == nil && err == nil && uri.Kind() == strictjson.String && e.keep(Resources, uri.Str(), nil)
}

// result holds the members of a result that decide about its cuts.
type result struct {
	list   List   // the last of it
	begin  int    // of the members
	scope  cut    // the value of cacheScope; from -1: there is none
	next   cut    // the value of nextCursor; from -1: there is none
	cursor string // the text of nextCursor
	odd    bool   // a cursor that is no string, or that only some readers see
	kind   string
	made   Task
}

// object reads a result.
func (e *editor) object() {
	s := e.s
	var o strictjson.ObjectFrame
	edits := len(e.cuts)
	r := result{begin: s.Offset() + 1, scope: cut{from: -1}, next: cut{from: -1}, made: newTask()}
	for s.OpenObject(&o); s.NextMember(&o); {
		e.member(&r, o.Name())
	}
	if r.kind == "task" { // the extension for tasks of 2026-07-28
		e.creates(r.made)
	}
	if r.list == 0 || s.Failed() || e.err != nil {
		return
	}
	if r.odd && e.filter.Cursor != nil {
		e.unreadable()
		return
	}
	e.narrowScope(&r)
	e.replaceCursor(&r)
	slices.SortFunc(e.cuts[edits:], func(a, b cut) int { return cmp.Compare(a.from, b.from) })
}

// member reads one member of a result, and filters the list in it.
func (e *editor) member(r *result, name []byte) {
	s, at := e.s, listOf(name)
	switch {
	case at >= 0 && string(name) == lists[at].member && s.Kind() == strictjson.Array:
		r.list = lists[at].list
		e.entries(r.list, lists[at].name)
	case at >= 0:
		// A list of another type, or under a name that only some readers take for the list's.
		r.list = lists[at].list
		e.unreadable()
		s.Skip()
	case string(name) == "cacheScope":
		r.scope.from = s.Offset()
		s.Skip()
		r.scope.to, r.scope.with = s.Offset(), private
	case string(name) == "nextCursor" && s.Kind() == strictjson.String:
		r.next.from = s.Offset()
		r.cursor = text(s)
		r.next.to = s.Offset()
	case folds(name, "nextCursor"):
		r.odd = r.odd || string(name) != "nextCursor" || s.Kind() != strictjson.Null
		s.Skip()
	case string(name) == "task":
		e.task(s.Skip())
	case r.made.read(name, s):
	case string(name) == "resultType" && s.Kind() == strictjson.String:
		r.kind = text(s)
	default:
		s.Skip()
	}
}

const private = `"private"`

// narrowScope marks a list as one for its reader alone. Only a filtered list is for one reader.
func (e *editor) narrowScope(r *result) {
	switch {
	case r.scope.from >= 0 && string(e.text[r.scope.from:r.scope.to]) != private:
		e.cuts = append(e.cuts, r.scope)
	case r.scope.from < 0 && e.filter.Private:
		e.cuts = append(e.cuts, cut{r.begin, r.begin, `"cacheScope":` + private + `,`})
	}
}

// replaceCursor replaces a list's cursor.
func (e *editor) replaceCursor(r *result) {
	if r.next.from >= 0 && r.cursor != "" && e.filter.Cursor != nil {
		sealed, err := e.filter.Cursor(r.list, r.cursor)
		if e.err = err; err != nil {
			return
		}
		r.next.with = `"` + sealed + `"`
		e.cuts = append(e.cuts, r.next)
	}
}

// entries reads a list and cuts out the entries that are not kept.
func (e *editor) entries(list List, named string) {
	e.listed = true
	if e.keep == nil && e.err == nil {
		e.keep, e.err = e.filter.View()
	}
	e.elements(func() bool { return e.entry(list, named) })
}

// elements reads an array and cuts out the elements for which keep, which reads one element, returns false.
func (e *editor) elements(keep func() bool) {
	s := e.s
	var a strictjson.ArrayFrame
	opened := s.Offset() + 1
	previous := opened // the end of the last kept element, or of the bracket
	kept := 0
	from := -1 // the beginning of the present cut
	for s.OpenArray(&a); s.NextElement(&a); {
		start, inside := s.Offset(), len(e.cuts)
		if keep() {
			if from >= 0 {
				e.cuts = slices.Insert(e.cuts, inside, between(from, start, kept > 0))
				from = -1
			}
			kept++
			previous = s.Offset()
			continue
		}
		e.cuts = e.cuts[:inside]
		if from < 0 {
			from = previous
		}
		previous = s.Offset()
	}
	if from >= 0 && !s.Failed() {
		e.cuts = append(e.cuts, cut{from, previous, ""})
	}
}

// between cuts out the text between a kept element, or the bracket, and the next kept one.
func between(from, to int, comma bool) cut {
	if comma {
		return cut{from, to, ","}
	}
	return cut{from, to, ""}
}

// entry reads one entry and reports whether it stays.
func (e *editor) entry(list List, named string) bool {
	s := e.s
	if s.Kind() != strictjson.Object {
		s.Skip()
		return false
	}
	var o strictjson.ObjectFrame
	start, name, known, torn := s.Offset(), "", false, false
	for s.OpenObject(&o); s.NextMember(&o); {
		switch {
		case string(o.Name()) == named && s.Kind() == strictjson.String:
			name, known = text(s), true
		case folds(o.Name(), named):
			s.Skip()
			torn = true // two readers see two names: the entry is dropped
		default:
			s.Skip()
		}
	}
	if !known || torn || s.Failed() || e.err != nil {
		return false
	}
	return e.keep(list, name, e.text[start:s.Offset():s.Offset()])
}

// text reads a string.
func text(s *strictjson.Scanner) string {
	raw, escaped := s.String()
	if len(raw) < 2 {
		return ""
	}
	raw = raw[1 : len(raw)-1]
	if escaped {
		raw = strictjson.AppendUnescaped(nil, raw)
	}
	return string(raw)
}

// listOf returns the index in lists of a name that any reader could take for a list's, -1 for none.
func listOf(name []byte) int {
	for i := range lists {
		if folds(name, lists[i].member) {
			return i
		}
	}
	return -1
}

// folds reports whether a reader that folds case, as Go's encoding/json does, takes name for want.
func folds(name []byte, want string) bool {
	// The letters s and k have a third form, of two and three bytes.
	return len(name) >= len(want) && len(name) <= 3*len(want) && bytes.EqualFold(name, []byte(want))
}
