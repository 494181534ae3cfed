package strictjson

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// blanks skips the four characters that RFC 8259 section 2 calls whitespace.
func (s *Scanner) blanks() {
	for s.pos < len(s.src) {
		switch s.src[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special marks, in the high bit of each byte of x, the bytes that a string scan must look at: a quotation mark, a
// backslash, a control character, a byte beyond ASCII. Marks above the lowest one may be false (borrows run upwards),
// the lowest is exact.
func special(x uint64) uint64 {
	quote := (x ^ '"'*ones) - ones
	slash := (x ^ '\\'*ones) - ones
	control := x - 0x20*ones
	return (quote | slash | control | x) & highs
}

// plain returns how many bytes of b a string scan can skip, counted in steps of 32: the branch for each eight costs
// more than the marks do.
func plain(b []byte) int {
	rest := b
	for len(rest) >= 32 {
		m := special(binary.LittleEndian.Uint64(rest)) | special(binary.LittleEndian.Uint64(rest[8:])) |
			special(binary.LittleEndian.Uint64(rest[16:])) | special(binary.LittleEndian.Uint64(rest[24:]))
		if m != 0 {
			break
		}
		rest = rest[32:]
	}
	return len(b) - len(rest)
}

// str reads the string that starts at pos (RFC 8259 section 7) and reports whether it holds escapes. The bytes between
// special ones are passed eight at a time.
func (s *Scanner) str() (escaped, ok bool) {
	src, i := s.src, s.pos+1
	for {
		for long := i + 32; i+8 <= len(src); {
			if m := special(binary.LittleEndian.Uint64(src[i:])); m != 0 {
				i += bits.TrailingZeros64(m) / 8
				break
			}
			if i += 8; i == long {
				i += plain(src[i:])
			}
		}
		if i >= len(src) {
			return false, s.failAt(len(src), ReasonEnd)
		}
		switch c := src[i]; {
		case c == '"':
			s.pos = i + 1
			return escaped, true
		case c == '\\':
			n, reason := escapeLength(src[i:])
			if n == 0 {
				return false, s.failAt(i, reason)
			}
			escaped = true
			i += n
		case c < 0x20:
			return false, s.failAt(i, ReasonControl)
		case c < utf8.RuneSelf:
			i++
		default:
			for i < len(src) && src[i] >= utf8.RuneSelf {
				r, n := utf8.DecodeRune(src[i:])
				if r == utf8.RuneError && n == 1 {
					return false, s.failAt(i, ReasonUTF8)
				}
				i += n
			}
		}
	}
}

// escapeLength returns the length of the escape that b starts with; a surrogate pair is one escape. It returns 0 and
// the reason when the escape is invalid. Lone surrogates are refused: readers turn them into U+FFFD, an error, or
// invalid UTF-8.
func escapeLength(b []byte) (int, string) {
	if len(b) < 2 {
		return 0, ReasonEscape
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, ""
	case 'u':
	default:
		return 0, ReasonEscape
	}
	r, ok := hex4(b)
	switch {
	case !ok:
		return 0, ReasonEscape
	case !utf16.IsSurrogate(r):
		return 6, ""
	case len(b) < 12 || b[6] != '\\' || b[7] != 'u':
		return 0, ReasonSurrogate
	}
	low, ok := hex4(b[6:])
	if !ok || utf16.DecodeRune(r, low) == utf8.RuneError {
		return 0, ReasonSurrogate
	}
	return 12, ""
}

// hex4 reads the four digits of the \uXXXX that b starts with.
func hex4(b []byte) (rune, bool) {
	if len(b) < 6 {
		return 0, false
	}
	var r rune
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// AppendUnescaped appends to dst the decoded form of the inside of a checked string (without its quotation marks).
func AppendUnescaped(dst, inside []byte) []byte {
	for i := 0; i < len(inside); {
		c := inside[i]
		if c != '\\' {
			dst = append(dst, c)
			i++
			continue
		}
		switch e := inside[i+1]; e {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, _ := hex4(inside[i:])
			if utf16.IsSurrogate(r) {
				low, _ := hex4(inside[i+6:])
				r = utf16.DecodeRune(r, low)
				i += 6
			}
			dst = utf8.AppendRune(dst, r)
			i += 4
		default:
			dst = append(dst, e)
		}
		i += 2
	}
	return dst
}

// number reads a number (RFC 8259 section 6).
func (s *Scanner) number() bool {
	src, start, i := s.src, s.pos, s.pos
	if src[i] == '-' {
		i++
	}
	switch {
	case i >= len(src):
		return s.failAt(i, ReasonEnd)
	case src[i] == '0':
		i++
	case src[i] >= '1' && src[i] <= '9':
		i = digits(src, i)
	default:
		return s.failAt(i, ReasonNumber)
	}
	if i < len(src) && src[i] == '.' {
		from := i + 1
		if i = digits(src, from); i == from {
			return s.failAt(i, ReasonNumber)
		}
	}
	if i < len(src) && src[i]|0x20 == 'e' {
		from := pastSign(src, i+1)
		if i = digits(src, from); i == from {
			return s.failAt(i, ReasonNumber)
		}
	}
	if i-start > MaxNumberLength {
		return s.failAt(start, ReasonNumberLength)
	}
	// "01" and "1.2.3" are one bad number rather than a missing comma.
	if i < len(src) && (src[i] >= '0' && src[i] <= '9' || src[i] == '.') {
		return s.failAt(i, ReasonNumber)
	}
	s.pos = i
	return true
}

// pastSign returns the place after the sign that may be at i.
func pastSign(src []byte, i int) int {
	if i < len(src) && (src[i] == '+' || src[i] == '-') {
		i++
	}
	return i
}

func digits(src []byte, i int) int {
	for i < len(src) && src[i] >= '0' && src[i] <= '9' {
		i++
	}
	return i
}

// word reads one of the three literal names.
func (s *Scanner) word(w string) bool {
	if len(s.src)-s.pos < len(w) || string(s.src[s.pos:s.pos+len(w)]) != w {
		return s.failAt(s.pos, ReasonUnexpected)
	}
	s.pos += len(w)
	return true
}
