package wire

import (
	"bytes"
	"unicode/utf8"
)

// cursor reads JSON that is only counted. It is lenient: it accepts text that follows the grammar roughly, at any
// depth, without allocation and without recursion. Where it cannot go on it moves to the end of its text. It must not
// be used for decisions.
type cursor struct {
	b []byte
	i int
}

// class is the kind of a byte outside of strings.
type class uint8

const (
	plain class = iota
	quote
	opens
	closes
	between
)

var classOf = [256]class{
	'"': quote, '{': opens, '[': opens, '}': closes, ']': closes,
	',': between, ':': between, ' ': between, '\t': between, '\n': between, '\r': between,
}

// next moves to the next byte that is not white space and returns it, or 0 at the end.
func (c *cursor) next() byte {
	for c.i < len(c.b) {
		switch ch := c.b[c.i]; ch {
		case ' ', '\t', '\n', '\r':
			c.i++
		default:
			return ch
		}
	}
	return 0
}

func (c *cursor) fail() { c.i = len(c.b) }

// enter goes into the next value when it starts with open, '{' or '['. Otherwise it skips the value and reports false.
func (c *cursor) enter(open byte) bool {
	if c.next() == open {
		c.i++
		return true
	}
	c.skip()
	return false
}

// members yields the names of the next value's members, as they are spelled; none when the value is not an object. Each
// member's value must be read before the next one.
func (c *cursor) members(yield func(name []byte) bool) {
	if !c.enter('{') {
		return
	}
	for {
		if c.next() == ',' {
			c.i++
		}
		if c.next() != '"' {
			c.leave('}')
			return
		}
		name := c.str()
		if c.next() != ':' {
			c.fail()
			return
		}
		c.i++
		if !yield(name) {
			return
		}
	}
}

// elements yields the indexes of the next value's elements; none when the value is not an array. Each element must be
// read before the next.
func (c *cursor) elements(yield func(int) bool) {
	if !c.enter('[') {
		return
	}
	for i := 0; ; i++ {
		if c.next() == ',' {
			c.i++
		}
		switch c.next() {
		case ']', '}', ':', ',', 0:
			c.leave(']')
			return
		}
		if !yield(i) {
			return
		}
	}
}

func (c *cursor) leave(end byte) {
	if c.next() == end {
		c.i++
		return
	}
	c.fail()
}

// str reads the string at the cursor and returns its content without quotation marks; nil when the string does not end.
func (c *cursor) str() []byte {
	from := c.i + 1
	for to := from; ; to++ {
		n := bytes.IndexByte(c.b[min(to, len(c.b)):], '"')
		if n < 0 {
			c.fail()
			return nil
		}
		to += n
		slashes := 0
		for to-slashes > from && c.b[to-slashes-1] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			c.i = to + 1
			return c.b[from:to:to]
		}
	}
}

// skip reads the next value of any kind and returns its text.
func (c *cursor) skip() []byte {
	first := c.next()
	from := c.i
	switch first {
	case '"':
		c.str()
	case '{', '[':
		b, depth := c.b, 0
		for i := from; i < len(b); i++ {
			switch classOf[b[i]] {
			case quote:
				c.i = i
				c.str()
				i = c.i - 1
			case opens:
				depth++
			case closes:
				if depth--; depth == 0 {
					c.i = i + 1
					return b[from:c.i:c.i]
				}
			}
		}
		c.fail()
	default:
		b, i := c.b, from
		for i < len(b) && classOf[b[i]] == plain {
			i++
		}
		if c.i = i; i == from { // no value
			c.fail()
		}
	}
	return c.b[from:c.i:c.i]
}

// text skips the next value. When it is a string, text returns its content without quotation marks, else nil.
func (c *cursor) text() []byte {
	if c.next() == '"' {
		return c.str()
	}
	c.skip()
	return nil
}

// textBytes skips the next value and counts the UTF-8 bytes of its decoded strings. It leaves out the strings of
// members that only mark things (see marks).
func (c *cursor) textBytes() (n int64) {
	switch c.next() {
	case '"':
		return lengthOf(c.str())
	case '{', '[':
	default:
		c.skip()
		return 0
	}
	v := cursor{b: c.skip()}
	name := false // the string read last may be a member's name
	var last []byte
	for v.i < len(v.b) {
		switch v.b[v.i] {
		case '"':
			last, name = v.str(), true
			continue
		case ':':
			v.i++
			if name && marks[string(last)] {
				v.skip()
			} else if v.next() == '"' {
				n += lengthOf(v.str())
			}
			name = false
			continue
		case ',', ']':
			if name {
				n += lengthOf(last)
			}
			name = false
		}
		v.i++
	}
	return n
}

// marks lists the members of answers whose strings are not text that a model wrote.
var marks = map[string]bool{
	"id": true, "type": true, "role": true, "index": true, "status": true, "call_id": true, "data": true, "signature": true,
	"finish_reason": true, "encrypted_content": true, "annotations": true, "logprobs": true, "caller": true,
}

// lengthOf returns the UTF-8 length of a string after its escapes are resolved. inside is the string without its
// quotation marks.
func lengthOf(inside []byte) int64 {
	if bytes.IndexByte(inside, '\\') < 0 {
		return int64(len(inside))
	}
	n := 0
	for i := 0; i < len(inside); {
		switch {
		case inside[i] != '\\':
			i, n = i+1, n+1
		case i+6 <= len(inside) && inside[i+1] == 'u':
			var r rune
			for _, d := range inside[i+2 : i+6] {
				r = r<<4 | rune(d&0xF)
				if d > '9' {
					r += 9
				}
			}
			i += 6
			if r >= 0xD800 && r < 0xE000 {
				n += 2 // half of a surrogate pair
			} else {
				n += max(utf8.RuneLen(r), 1)
			}
		default:
			i, n = i+2, n+1
		}
	}
	return int64(n)
}
