package strictjson

import (
	"bytes"
	"iter"
)

// Each iterates over the members of b, the text of one object: their names, and the texts of their values.
//
// b must have been accepted by a Scanner, as a text or as a part of one. Each looks only at quotation marks and
// brackets and checks nothing, which costs a tenth of reading it again. Of another text it may return any part.
func Each(b []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		f := finder{b: b}
		if !f.enter() {
			return
		}
		for f.member() {
			name := f.name
			if bytes.IndexByte(name, '\\') >= 0 {
				name = AppendUnescaped(nil, name)
			}
			if value := f.value(); !yield(name, value) {
				return
			}
		}
	}
}

// finder walks over one object without looking into its values.
type finder struct {
	b    []byte
	pos  int
	name []byte // of the present member, as written between quotation marks
}

func (f *finder) enter() bool {
	f.blanks()
	if f.pos >= len(f.b) || f.b[f.pos] != '{' {
		return false
	}
	f.pos++
	return true
}

func (f *finder) blanks() {
	for f.pos < len(f.b) && (f.b[f.pos] == ' ' || f.b[f.pos] == '\t' || f.b[f.pos] == '\n' || f.b[f.pos] == '\r') {
		f.pos++
	}
}

// member goes to the next member's value. It returns false at the object's end.
func (f *finder) member() bool {
	f.blanks()
	if f.pos < len(f.b) && f.b[f.pos] == ',' {
		f.pos++
		f.blanks()
	}
	if f.pos >= len(f.b) || f.b[f.pos] != '"' {
		return false
	}
	start := f.pos + 1
	f.text()
	f.name = f.b[start:max(start, f.pos-1)]
	f.blanks()
	if f.pos >= len(f.b) || f.b[f.pos] != ':' {
		return false
	}
	f.pos++
	f.blanks()
	return true
}

// text moves past a string: to the first quotation mark with an even number of backslashes before it.
func (f *finder) text() {
	for f.pos++; ; f.pos++ {
		i := bytes.IndexByte(f.b[f.pos:], '"')
		if i < 0 {
			f.pos = len(f.b)
			return
		}
		slashes := 0
		for slashes < i && f.b[f.pos+i-1-slashes] == '\\' {
			slashes++
		}
		if f.pos += i; slashes%2 == 0 {
			f.pos++
			return
		}
	}
}

// value moves past the present value and returns it.
func (f *finder) value() []byte {
	start, depth := f.pos, 0
	for f.pos < len(f.b) {
		switch f.b[f.pos] {
		case '"':
			f.text()
		case '{', '[':
			depth++
			f.pos++
		case '}', ']':
			if depth == 0 {
				return bytes.TrimRight(f.b[start:f.pos:f.pos], " \t\r\n") // the end of the object around it
			}
			depth--
			f.pos++
		case ',':
			if depth == 0 {
				return bytes.TrimRight(f.b[start:f.pos:f.pos], " \t\r\n")
			}
			f.pos++
		default:
			f.pos++
		}
	}
	return f.b[start:f.pos:f.pos]
}
