package strictjson

import "sync"

// Kind is the type of a JSON value.
type Kind uint8

// Kinds of values. Invalid is the kind of the zero Value and of text that is no value.
const (
	Invalid Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// String names the kind as RFC 8259 does.
func (k Kind) String() string {
	return [...]string{"invalid", "null", "boolean", "number", "string", "array", "object"}[min(k, Object)]
}

// kindOf maps the first byte of a value to its kind.
var kindOf = func() (t [256]Kind) {
	t['n'], t['t'], t['f'], t['"'], t['['], t['{'], t['-'] = Null, Bool, Bool, String, Array, Object, Number
	for c := '0'; c <= '9'; c++ {
		t[c] = Number
	}
	return t
}()

// Scanner reads one text from its start to its end, a value at a time:
//
//	s := strictjson.NewScanner(text, limits)
//	defer s.Release()
//	var o strictjson.ObjectFrame
//	for s.OpenObject(&o); s.NextMember(&o); {
//		if string(o.Name()) == "id" { id = s.Skip() } else { s.Skip() }
//	}
//	err := s.End()
//
// Between NextMember (or NextElement) and the next call of it exactly one value must be read, with Skip, String,
// OpenObject or OpenArray to its end. The first error sticks: every later call does nothing and reports false.
type Scanner struct {
	src    []byte
	pos    int
	depth  int
	limits Limits
	err    *SyntaxError
	nodes  []node // filled when record is set
	record bool
	room   [64]node // for the nodes of a small text, until it is known how many there are
	nameSet
}

var scanners = sync.Pool{New: func() any { return new(Scanner) }}

// NewScanner starts to read b, which must not change until Release. The scanner stands at the first value.
func NewScanner(b []byte, l Limits) *Scanner {
	s := scanners.Get().(*Scanner)
	s.src, s.pos, s.depth, s.err, s.limits = b, 0, 0, nil, l.withDefaults()
	switch {
	case len(b) > s.limits.MaxBytes:
		s.failAt(s.limits.MaxBytes, ReasonSize)
	case len(b) >= 3 && b[0] == 0xEF && b[1] == 0xBB && b[2] == 0xBF:
		s.failAt(0, ReasonBOM)
	default:
		s.blanks()
	}
	return s
}

// Release frees the scanner for reuse; it must not be used afterwards. The results of Skip stay valid.
func (s *Scanner) Release() {
	s.src, s.nodes, s.record, s.err = nil, nil, false, nil
	s.nameSet.reset()
	scanners.Put(s)
}

// End checks that the text was one valid value and nothing else. It returns a *SyntaxError or nil.
func (s *Scanner) End() error {
	if s.err == nil {
		s.blanks()
		if s.pos < len(s.src) {
			s.failAt(s.pos, ReasonTrailing)
		}
	}
	if s.err != nil {
		return s.err
	}
	return nil
}

// Failed reports whether an error was found.
func (s *Scanner) Failed() bool { return s.err != nil }

// Offset returns the position of the next value, in bytes.
func (s *Scanner) Offset() int { return s.pos }

// Kind returns the kind of the next value by its first byte; Invalid when none can start here.
func (s *Scanner) Kind() Kind {
	if s.err != nil || s.pos >= len(s.src) {
		return Invalid
	}
	return kindOf[s.src[s.pos]]
}

// Skip checks the whole next value and returns its text, a view of the source. It returns nil on an error.
func (s *Scanner) Skip() []byte {
	if s.err != nil {
		return nil
	}
	start := s.pos
	if !s.value() {
		return nil
	}
	return s.src[start:s.pos:s.pos]
}

// String checks the next value, which must be a string (see Kind), and returns its text with the quotation marks, a
// view of the source, and whether it holds escapes.
func (s *Scanner) String() (raw []byte, escaped bool) {
	if s.Kind() != String {
		s.unexpected()
		return nil, false
	}
	start := s.pos
	escaped, ok := s.str()
	if !ok {
		return nil, false
	}
	return s.src[start:s.pos:s.pos], escaped
}

// ObjectFrame holds the state of one object that is being read. Its zero value is ready for OpenObject.
type ObjectFrame struct {
	name  []byte
	names nameFrame
}

// Name returns the decoded name of the present member: a view that is valid until the next NextMember of the same object.
func (o *ObjectFrame) Name() []byte { return o.name }

// OpenObject enters the next value, which must be an object.
func (s *Scanner) OpenObject(o *ObjectFrame) bool {
	if s.err != nil {
		return false
	}
	if s.pos >= len(s.src) || s.src[s.pos] != '{' {
		return s.unexpected()
	}
	if s.depth >= s.limits.MaxDepth {
		return s.failAt(s.pos, ReasonDepth)
	}
	s.depth++
	s.pos++
	o.names = s.nameSet.open()
	return true
}

// NextMember goes to the value of the next member. It returns false at the end of the object and on an error.
func (s *Scanner) NextMember(o *ObjectFrame) bool {
	if s.err != nil {
		return false
	}
	s.blanks()
	if s.pos >= len(s.src) {
		return s.failAt(s.pos, ReasonEnd)
	}
	c := s.src[s.pos]
	if c == '}' {
		s.pos++
		s.depth--
		s.nameSet.close(&o.names)
		return false
	}
	if o.names.count > 0 {
		if c != ',' {
			return s.failAt(s.pos, reasonCommaObject)
		}
		s.pos++
		s.blanks()
	}
	if s.pos >= len(s.src) {
		return s.failAt(s.pos, ReasonEnd)
	}
	if s.src[s.pos] != '"' {
		return s.failAt(s.pos, reasonNameExpected)
	}
	start := s.pos
	escaped, ok := s.str()
	if !ok {
		return false
	}
	if s.record {
		s.nodes = append(s.nodes, node{start: uint32(start), end: uint32(s.pos), next: uint32(len(s.nodes) + 1), kind: String, escaped: escaped})
	}
	if o.names.count == s.limits.MaxMembers {
		return s.failAt(start, ReasonMembers)
	}
	name, fresh := s.nameSet.add(&o.names, s.src, start+1, s.pos-1, escaped)
	if !fresh {
		return s.failAt(start, ReasonDuplicate)
	}
	o.name = name
	s.blanks()
	if s.pos >= len(s.src) {
		return s.failAt(s.pos, ReasonEnd)
	}
	if s.src[s.pos] != ':' {
		return s.failAt(s.pos, reasonColonExpected)
	}
	s.pos++
	s.blanks()
	return true
}

// ArrayFrame holds the state of one array that is being read. Its zero value is ready for OpenArray.
type ArrayFrame struct{ started bool }

// OpenArray enters the next value, which must be an array.
func (s *Scanner) OpenArray(a *ArrayFrame) bool {
	if s.err != nil {
		return false
	}
	if s.pos >= len(s.src) || s.src[s.pos] != '[' {
		return s.unexpected()
	}
	if s.depth >= s.limits.MaxDepth {
		return s.failAt(s.pos, ReasonDepth)
	}
	s.depth++
	s.pos++
	a.started = false
	return true
}

// NextElement goes to the next element. It returns false at the end of the array and on an error.
func (s *Scanner) NextElement(a *ArrayFrame) bool {
	if s.err != nil {
		return false
	}
	s.blanks()
	if s.pos >= len(s.src) {
		return s.failAt(s.pos, ReasonEnd)
	}
	c := s.src[s.pos]
	if c == ']' {
		s.pos++
		s.depth--
		return false
	}
	if a.started {
		if c != ',' {
			return s.failAt(s.pos, reasonCommaArray)
		}
		s.pos++
		s.blanks()
	}
	a.started = true
	return true
}

// value reads one value of any kind. It recurses at most MaxDepth deep.
func (s *Scanner) value() bool {
	if s.pos >= len(s.src) {
		return s.failAt(s.pos, ReasonEnd)
	}
	kind := kindOf[s.src[s.pos]]
	self := len(s.nodes)
	if s.record {
		s.nodes = append(s.nodes, node{start: uint32(s.pos), kind: kind})
	}
	ok, escaped, children := false, false, 0
	switch kind {
	case String:
		escaped, ok = s.str()
	case Number:
		ok = s.number()
	case Null:
		ok = s.word("null")
	case Bool:
		if s.src[s.pos] == 't' {
			ok = s.word("true")
		} else {
			ok = s.word("false")
		}
	case Object:
		var o ObjectFrame
		if s.OpenObject(&o) {
			for s.NextMember(&o) && s.value() {
			}
		}
		ok, children = s.err == nil, o.names.count
	case Array:
		var a ArrayFrame
		if s.OpenArray(&a) {
			for s.NextElement(&a) && s.value() {
				children++
			}
		}
		ok = s.err == nil
	default:
		return s.unexpected()
	}
	if s.record {
		n := &s.nodes[self]
		n.end, n.next, n.count, n.escaped = uint32(s.pos), uint32(len(s.nodes)), uint32(children), escaped
	}
	return ok
}

// unexpected refuses the text at the place where a value must start.
func (s *Scanner) unexpected() bool {
	switch {
	case s.err != nil:
		return false
	case s.pos >= len(s.src):
		return s.failAt(s.pos, ReasonEnd)
	case s.src[s.pos] >= 0x80:
		return s.failAt(s.pos, ReasonUTF8)
	}
	return s.failAt(s.pos, ReasonUnexpected)
}

func (s *Scanner) failAt(offset int, reason string) bool {
	if s.err == nil {
		s.err = &SyntaxError{Offset: offset, Reason: reason}
	}
	return false
}
