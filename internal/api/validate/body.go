package validate

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/api/schema"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// Field holds the content of one field of a body. Value is the zero value unless Set; it is also the zero value of an
// invalid field, and a list is without its invalid elements: ask Err before using any.
type Field[T any] struct {
	Present bool // the member is present, null or not
	Null    bool // it is null, and null is allowed
	Value   T
}

// Set reports whether the field has a value.
func (f Field[T]) Set() bool { return f.Present && !f.Null }

// Or returns the value, or def when the field is absent or null.
func (f Field[T]) Or(def T) T {
	if f.Set() {
		return f.Value
	}
	return def
}

// Ptr returns the value, or nil when the field is absent or null.
func (f Field[T]) Ptr() *T {
	if !f.Set() {
		return nil
	}
	return &f.Value
}

// Object is an object of a body. Its readers take a member's name and rule and note the problems; all objects of one
// body note them in the same place.
type Object struct {
	value    strictjson.Value
	loc      []any
	secret   bool // its problems are shown without values
	asked    []string
	problems *Problems

	described *schema.Schema // the object is described instead of being read, see Describe
}

// ParseBody reads a body that must be an object. Its error is of type Problems: bad JSON (with the byte offset as
// location), an empty body, or a value of another kind. Such a problem never shows input, which may hold secrets.
func ParseBody(b []byte, l strictjson.Limits) (*Object, error) {
	if len(bytes.Trim(b, " \t\r\n")) == 0 {
		return nil, Problems{{Loc: []any{"body"}, Msg: msgMissing, Type: Missing}}
	}
	v, err := strictjson.Parse(b, l)
	if err != nil {
		var syntax *strictjson.SyntaxError
		if !errors.As(err, &syntax) {
			return nil, err
		}
		return nil, Problems{{Loc: []any{"body", syntax.Offset}, Msg: "JSON decode error: " + syntax.Reason, Type: JSONInvalid,
			Ctx: map[string]any{"error": syntax.Reason}}}
	}
	if v.Kind() != strictjson.Object {
		return nil, Problems{{Loc: []any{"body"}, Msg: msgDict, Type: DictType}}
	}
	return &Object{value: v, loc: []any{"body"}, secret: holdsSecret(v), problems: new(Problems)}, nil
}

// Err returns all problems noted about the whole body so far, as type Problems, or nil when there are none.
func (o *Object) Err() error { return o.problems.Err() }

// Report notes a problem that no rule covers, at a place below the object, as in Report(ValueError, "...", "rules", 2).
func (o *Object) Report(kind, msg string, place ...any) {
	o.problems.add(Problem{Loc: o.at(place...), Msg: msg, Type: kind})
}

// Note notes a problem that no rule covers, with all its details; its Loc is a place below the object.
func (o *Object) Note(p Problem) {
	p.Loc = o.at(p.Loc...)
	o.problems.add(p)
}

// Wrong reports whether a problem is noted about a place below the object, or about a value that contains it.
func (o *Object) Wrong(place ...any) bool {
	loc := o.at(place...)
	return slices.ContainsFunc(*o.problems, func(p Problem) bool {
		return len(p.Loc) <= len(loc) && len(p.Loc) > len(o.loc) && slices.Equal(p.Loc, loc[:len(p.Loc)])
	})
}

// Has reports whether the object has the member, null or not.
func (o *Object) Has(name string) bool {
	if o.described != nil {
		return true
	}
	_, ok := o.value.Get(name)
	return ok
}

// Sent lists the members that readers were called for and that are present, null or not.
func (o *Object) Sent() []string {
	var names []string
	for _, name := range o.asked {
		if o.Has(name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Only notes extra_forbidden for each member that no reader was called for, except those named.
func (o *Object) Only(ignored ...string) {
	for _, m := range o.value.Members() {
		if !slices.Contains(o.asked, m.Name) && !slices.Contains(ignored, m.Name) {
			o.note(m.Value, 0, &fault{ExtraForbidden, "Extra inputs are not permitted", nil}, m.Name)
		}
	}
}

// Text reads a string.
func (o *Object) Text(name string, r Text) Field[string] {
	if o.describe(name, r.Flags, r.schema()) {
		return Field[string]{Present: true}
	}
	return read(o, name, r.Flags, StringType, msgString, func(v strictjson.Value) (string, bool) { return o.text(v, r, name) })
}

// Secret reads a string that is never part of a problem.
func (o *Object) Secret(name string, r Text) Field[seal.Secret] {
	r.Flags |= Secret
	f := o.Text(name, r)
	return Field[seal.Secret]{Present: f.Present, Null: f.Null, Value: seal.NewSecret(f.Value)}
}

// UUID reads a uuid, in lower case. A value that is no string, null included, is string_type; a string that is no
// uuid is uuid_parsing.
func (o *Object) UUID(name string, f Flags) Field[string] {
	if o.describe(name, f, ofUUID()) {
		return Field[string]{Present: true}
	}
	return read(o, name, f, StringType, msgString, func(v strictjson.Value) (string, bool) { return o.uuid(v, f, name) })
}

// Int reads an integer. A value that is no number, null included, is int_parsing; so are 1.0, 1e2 and -0.
func (o *Object) Int(name string, r Integer) Field[int64] {
	if o.describe(name, r.Flags, r.schema()) {
		return Field[int64]{Present: true}
	}
	return read(o, name, r.Flags, IntParsing, msgInt, func(v strictjson.Value) (int64, bool) { return o.int(v, r, name) })
}

// Bool reads true or false.
func (o *Object) Bool(name string, f Flags) Field[bool] {
	if o.describe(name, f, ofBool()) {
		return Field[bool]{Present: true}
	}
	return read(o, name, f, BoolType, msgBool, func(v strictjson.Value) (bool, bool) {
		return v.Bool(), v.Kind() == strictjson.Bool || o.note(v, f, &fault{BoolType, msgBool, nil}, name)
	})
}

// Time reads a time in the format of RFC 3339, in UTC.
func (o *Object) Time(name string, f Flags) Field[time.Time] {
	if o.describe(name, f, ofTime()) {
		return Field[time.Time]{Present: true}
	}
	return read(o, name, f, StringType, msgString, func(v strictjson.Value) (time.Time, bool) {
		s, ok := o.text(v, Text{Flags: f, Max: 64}, name)
		if !ok {
			return time.Time{}, false
		}
		t, err := time.Parse(time.RFC3339, s)
		return t.UTC(), err == nil || o.note(v, f, &fault{ValueError, msgTime, nil}, name)
	})
}

// Object reads an object. With the flag Secret nothing below it is shown either.
func (o *Object) Object(name string, f Flags) Field[*Object] {
	if inner := describing(); o.describe(name, f, inner.described) {
		return Field[*Object]{Present: true, Value: inner}
	}
	return read(o, name, f, DictType, msgDict, func(v strictjson.Value) (*Object, bool) { return o.object(v, f, name) })
}

// Value reads a value of any kind but null, unchanged. Strings anywhere in it must not contain NUL.
func (o *Object) Value(name string, f Flags) Field[strictjson.Value] {
	if o.describe(name, f, &schema.Schema{}) {
		return Field[strictjson.Value]{Present: true}
	}
	return read(o, name, f, DictType, msgDict, func(v strictjson.Value) (strictjson.Value, bool) {
		return v, !hasNUL(v) || o.note(v, f, &fault{ValueError, msgNUL, nil}, name)
	})
}

// Document reads an object of at most maxBytes, as it was written, to be stored and given back (attack B13).
func (o *Object) Document(name string, f Flags, maxBytes int) Field[json.RawMessage] {
	if o.describe(name, f, &schema.Schema{Type: schema.Types{schema.Object}}) {
		return Field[json.RawMessage]{Present: true}
	}
	return read(o, name, f, DictType, msgDict, func(v strictjson.Value) (json.RawMessage, bool) {
		var wrong *fault
		switch raw := v.Raw(); {
		case v.Kind() != strictjson.Object:
			wrong = &fault{DictType, msgDict, nil}
		case len(raw) > maxBytes:
			wrong = &fault{TooLong, "Object should have at most " + count(maxBytes, "byte"), map[string]any{"max_length": maxBytes, "actual_length": len(raw)}}
		case hasNUL(v):
			wrong = &fault{ValueError, msgNUL, nil}
		default:
			return slices.Clone(raw), true
		}
		return nil, o.note(v, f, wrong, name)
	})
}

// Texts reads an array of strings.
func (o *Object) Texts(name string, l List, r Text) Field[[]string] {
	if o.describe(name, l.Flags, l.schema(r.schema())) {
		return Field[[]string]{Present: true}
	}
	return list(o, name, l, func(v strictjson.Value, i int) (string, bool) { return o.text(v, r, name, i) })
}

// UUIDs reads an array of uuids.
func (o *Object) UUIDs(name string, l List) Field[[]string] {
	if o.describe(name, l.Flags, l.schema(ofUUID())) {
		return Field[[]string]{Present: true}
	}
	return list(o, name, l, func(v strictjson.Value, i int) (string, bool) { return o.uuid(v, l.Flags, name, i) })
}

// Ints reads an array of integers.
func (o *Object) Ints(name string, l List, r Integer) Field[[]int64] {
	if o.describe(name, l.Flags, l.schema(r.schema())) {
		return Field[[]int64]{Present: true}
	}
	return list(o, name, l, func(v strictjson.Value, i int) (int64, bool) { return o.int(v, r, name, i) })
}

// Objects reads an array of objects. It returns the objects even when other elements are not, so that all problems
// are found; each knows its own place.
func (o *Object) Objects(name string, l List) Field[[]*Object] {
	if inner := describing(); o.describe(name, l.Flags, l.schema(inner.described)) {
		return Field[[]*Object]{Present: true, Value: []*Object{inner}}
	}
	return list(o, name, l, func(v strictjson.Value, i int) (*Object, bool) { return o.object(v, l.Flags, name, i) })
}

// read finds the member, handles absent and null, and leaves the rest to one.
func read[T any](o *Object, name string, f Flags, kind, msg string, one func(strictjson.Value) (T, bool)) Field[T] {
	o.asked = append(o.asked, name)
	v, present := o.value.Get(name)
	switch {
	case !present:
		if f.has(Required) {
			o.Report(Missing, msgMissing, name)
		}
		return Field[T]{}
	case v.Kind() == strictjson.Null:
		if !f.has(Nullable) {
			o.note(v, f, &fault{kind, msg, nil}, name)
			return Field[T]{Present: true}
		}
		return Field[T]{Present: true, Null: true}
	}
	out := Field[T]{Present: true}
	if value, ok := one(v); ok {
		out.Value = value
	}
	return out
}

func list[T any](o *Object, name string, l List, one func(strictjson.Value, int) (T, bool)) Field[[]T] {
	return read(o, name, l.Flags, ListType, msgList, func(v strictjson.Value) ([]T, bool) {
		if v.Kind() != strictjson.Array {
			return nil, o.note(v, l.Flags, &fault{ListType, msgList, nil}, name)
		}
		if wrong := l.check(v.Len()); wrong != nil {
			return nil, o.note(v, l.Flags, wrong, name)
		}
		out := make([]T, 0, v.Len())
		for i, e := range v.Elems() {
			if value, ok := one(e, i); ok || l.Hold {
				out = append(out, value)
			}
		}
		return out, true
	})
}

func (o *Object) text(v strictjson.Value, r Text, place ...any) (string, bool) {
	if v.Kind() != strictjson.String {
		return "", o.note(v, r.Flags, &fault{StringType, msgString, nil}, place...)
	}
	s := v.Str()
	if wrong := r.check(s); wrong != nil {
		return "", o.note(v, r.Flags, wrong, place...)
	}
	return s, true
}

func (o *Object) uuid(v strictjson.Value, f Flags, place ...any) (string, bool) {
	if v.Kind() != strictjson.String {
		return "", o.note(v, f, &fault{StringType, msgString, nil}, place...)
	}
	id, ok := UUID(v.Str())
	return id, ok || o.note(v, f, &fault{UUIDParsing, msgUUID, nil}, place...)
}

func (o *Object) int(v strictjson.Value, r Integer, place ...any) (int64, bool) {
	// The lexeme of another kind is empty, which is no integer.
	n, wrong := r.parse(v.Num())
	return n, wrong == nil || o.note(v, r.Flags, wrong, place...)
}

func (o *Object) object(v strictjson.Value, f Flags, place ...any) (*Object, bool) {
	if v.Kind() != strictjson.Object {
		return nil, o.note(v, f, &fault{DictType, msgDict, nil}, place...)
	}
	return &Object{value: v, loc: o.at(place...), secret: o.secret || f.has(Secret) || holdsSecret(v), problems: o.problems}, true
}

// note notes a problem of v. It includes v itself, unless v is long, may hold a secret, or stands beside one. It
// returns false.
func (o *Object) note(v strictjson.Value, f Flags, wrong *fault, place ...any) bool {
	p := Problem{Loc: o.at(place...), Msg: wrong.msg, Type: wrong.kind, Ctx: wrong.ctx}
	if !o.secret && !f.has(Secret) && showable(v) {
		p.Input = json.RawMessage(slices.Clone(v.Raw()))
	}
	o.problems.add(p)
	return false
}

func (o *Object) at(place ...any) []any { return slices.Concat(o.loc, place) }

// hasNUL looks for the character NUL in all strings and names of v. It can only have been written as an escape.
func hasNUL(v strictjson.Value) bool {
	if !bytes.Contains(v.Raw(), []byte(`\u0000`)) {
		return false
	}
	if strings.IndexByte(v.Str(), 0) >= 0 || slices.ContainsFunc(v.Elems(), hasNUL) {
		return true
	}
	return slices.ContainsFunc(v.Members(), func(m strictjson.Member) bool {
		return strings.IndexByte(m.Name, 0) >= 0 || hasNUL(m.Value)
	})
}
