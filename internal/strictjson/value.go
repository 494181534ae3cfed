package strictjson

import (
	"iter"
	"slices"
)

// Check reads the whole of b and returns a *SyntaxError, or nil when b is one valid value. It allocates nothing for
// valid texts.
func Check(b []byte, l Limits) error {
	s := NewScanner(b, l)
	s.Skip()
	err := s.End()
	s.Release()
	return err
}

// Parse reads the whole of b like Check and returns its value, which keeps a reference to b: b must not change
// afterwards.
func Parse(b []byte, l Limits) (Value, error) {
	s := NewScanner(b, l)
	defer s.Release()
	s.record = true
	if s.nodes = s.room[:0]; len(b) > 32*len(s.room) {
		s.nodes = make([]node, 0, min(len(b)/32+16, 1<<12))
	}
	s.Skip()
	if err := s.End(); err != nil {
		return Value{}, err
	}
	nodes := s.nodes
	if cap(nodes) == len(s.room) { // the scanner's own
		nodes = slices.Clone(nodes)
	}
	return Value{doc: &document{src: b, nodes: nodes}}, nil
}

// document holds a checked text and its values in the order of the text. An object's children are name, value, name,
// ... The list is flat, with twenty bytes per value, so that a text of many small values does not take many times its
// size.
type document struct {
	src   []byte
	nodes []node
}

type node struct {
	start, end uint32 // in src
	next       uint32 // index of the node after this one and all below it
	count      uint32 // elements or members
	kind       Kind
	escaped    bool
}

// Value is one value of a parsed text. The zero Value is of kind Invalid.
type Value struct {
	doc *document
	at  uint32
}

// Member is one member of an object.
type Member struct {
	Name  string
	Value Value
}

func (v Value) node() *node {
	if v.doc == nil {
		return &node{}
	}
	return &v.doc.nodes[v.at]
}

// Kind returns the value's type.
func (v Value) Kind() Kind { return v.node().kind }

// Offset returns the position at which the value starts in the parsed text, in bytes.
func (v Value) Offset() int { return int(v.node().start) }

// Raw returns the value's text as it was written, a view of the text that was parsed.
func (v Value) Raw() []byte {
	if v.doc == nil {
		return nil
	}
	n := v.node()
	return v.doc.src[n.start:n.end:n.end]
}

// Str returns the decoded string, a copy; "" for other kinds.
func (v Value) Str() string {
	if v.Kind() != String {
		return ""
	}
	return v.doc.text(v.node())
}

// View returns the same text as Str, without a copy where the string was written without escapes. It must not be
// changed.
func (v Value) View() []byte {
	if v.Kind() != String {
		return nil
	}
	return v.doc.view(v.node())
}

// view decodes a string's node, without a copy where it has no escapes.
func (d *document) view(n *node) []byte {
	inside := d.src[n.start+1 : n.end-1 : n.end-1]
	if n.escaped {
		return AppendUnescaped(make([]byte, 0, len(inside)), inside)
	}
	return inside
}

// text decodes a string's node.
func (d *document) text(n *node) string { return string(d.view(n)) }

// Is reports whether the value is a string equal to text, without making a copy.
func (v Value) Is(text string) bool {
	if v.Kind() != String {
		return false
	}
	return string(v.doc.view(v.node())) == text
}

// Num returns a number as it was written; "" for other kinds.
func (v Value) Num() string {
	if v.Kind() != Number {
		return ""
	}
	return string(v.Raw())
}

// Bool reports whether the value is the literal true.
func (v Value) Bool() bool { return v.Kind() == Bool && v.doc.src[v.node().start] == 't' }

// Len returns the number of elements of an array or members of an object.
func (v Value) Len() int { return int(v.node().count) }

// Elems returns an array's elements in order; nil for other kinds.
func (v Value) Elems() []Value {
	if v.Kind() != Array {
		return nil
	}
	out := make([]Value, 0, v.Len())
	for i := v.at + 1; i < v.node().next; i = v.doc.nodes[i].next {
		out = append(out, Value{v.doc, i})
	}
	return out
}

// Members returns an object's members in the order of the text; nil for other kinds.
func (v Value) Members() []Member {
	if v.Kind() != Object {
		return nil
	}
	out := make([]Member, 0, v.Len())
	for i := v.at + 1; i < v.node().next; i = v.doc.nodes[i+1].next {
		out = append(out, Member{v.doc.text(&v.doc.nodes[i]), Value{v.doc, i + 1}})
	}
	return out
}

// EachMember iterates over an object's members in the order of the text, without copying their names, which must not
// be changed. Other kinds have none.
func (v Value) EachMember() iter.Seq2[[]byte, Value] {
	return func(yield func([]byte, Value) bool) {
		if v.Kind() != Object {
			return
		}
		for i := v.at + 1; i < v.node().next; i = v.doc.nodes[i+1].next {
			if !yield(v.doc.view(&v.doc.nodes[i]), Value{v.doc, i + 1}) {
				return
			}
		}
	}
}

// AppendWithout appends the text of an object without the members for whose name leave returns true. Nothing is
// between the others, which are as they were written. For other kinds it appends an object without members.
func (v Value) AppendWithout(out []byte, leave func(name []byte) bool) []byte {
	out = append(out, '{')
	if v.Kind() == Object {
		for i := v.at + 1; i < v.node().next; i = v.doc.nodes[i+1].next {
			name := &v.doc.nodes[i]
			if leave(v.doc.view(name)) {
				continue
			}
			if out[len(out)-1] != '{' {
				out = append(out, ',')
			}
			out = append(append(out, v.doc.src[name.start:name.end]...), ':')
			out = append(out, Value{v.doc, i + 1}.Raw()...)
		}
	}
	return append(out, '}')
}

// Get returns the member of exactly that name. Other kinds than objects have none.
func (v Value) Get(name string) (Value, bool) {
	if v.Kind() != Object {
		return Value{}, false
	}
	for i := v.at + 1; i < v.node().next; i = v.doc.nodes[i+1].next {
		if string(v.doc.view(&v.doc.nodes[i])) == name {
			return Value{v.doc, i + 1}, true
		}
	}
	return Value{}, false
}

// Any returns the value as encoding/json would decode it into an any, but number decides what the lexeme of a number becomes.
func (v Value) Any(number func(lexeme string) any) any {
	switch v.Kind() {
	case Bool:
		return v.Bool()
	case Number:
		return number(v.Num())
	case String:
		return v.Str()
	case Array:
		out := make([]any, 0, v.Len())
		for _, e := range v.Elems() {
			out = append(out, e.Any(number))
		}
		return out
	case Object:
		out := make(map[string]any, v.Len())
		for _, m := range v.Members() {
			out[m.Name] = m.Value.Any(number)
		}
		return out
	}
	return nil
}

// Clone returns the value with its own copy of its text, for keeping it longer than the parsed text. Offsets of a
// clone count from its own start.
func (v Value) Clone() Value {
	if v.doc == nil {
		return v
	}
	n := v.node()
	nodes := slices.Clone(v.doc.nodes[v.at:n.next])
	for i := range nodes {
		nodes[i].start -= n.start
		nodes[i].end -= n.start
		nodes[i].next -= v.at
	}
	return Value{doc: &document{src: slices.Clone(v.Raw()), nodes: nodes}}
}
