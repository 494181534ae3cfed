// Package canonical writes JSON in one form for each value, so that digests can be compared: RFC 8785 (JCS), except
// that numbers stay as they were written. RFC 8785 reads numbers as doubles, in which 9007199254740993 and
// 9007199254740992 are equal: an approval of one call would be valid for the other.
package canonical

import (
	"slices"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// JSON returns the canonical form of a text. Two texts have the same form when they differ only in blanks, in the
// order of members and in the spelling of strings. Errors are strictjson's.
func JSON(text []byte, limits strictjson.Limits) ([]byte, error) {
	v, err := strictjson.Parse(text, limits)
	if err != nil {
		return nil, err
	}
	return Append(make([]byte, 0, len(text)), v), nil
}

// Append appends the canonical form of a value; nothing for the zero Value.
func Append(dst []byte, v strictjson.Value) []byte {
	switch v.Kind() {
	case strictjson.Object:
		return appendObject(dst, v)
	case strictjson.Array:
		dst = append(dst, '[')
		for i, element := range v.Elems() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = Append(dst, element)
		}
		return append(dst, ']')
	case strictjson.String:
		return appendString(dst, v.Str())
	}
	return append(dst, v.Raw()...)
}

func appendObject(dst []byte, v strictjson.Value) []byte {
	members := v.Members()
	slices.SortFunc(members, func(a, b strictjson.Member) int { return compareUTF16(a.Name, b.Name) })
	dst = append(dst, '{')
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, m.Name), ':')
		dst = Append(dst, m.Value)
	}
	return append(dst, '}')
}

// compareUTF16 orders texts by their UTF-16 code units (RFC 8785 section 3.2.3). That differs from the order of their
// bytes where a surrogate pair meets a character from U+E000 to U+FFFF.
func compareUTF16(a, b string) int {
	for a != "" && b != "" {
		x, n := utf8.DecodeRuneInString(a)
		y, m := utf8.DecodeRuneInString(b)
		if x != y {
			return firstUnit(x, y)
		}
		a, b = a[n:], b[m:]
	}
	return len(a) - len(b)
}

// firstUnit compares two different characters by their first UTF-16 unit.
func firstUnit(x, y rune) int {
	x1, x2 := units(x)
	y1, y2 := units(y)
	if x1 != y1 {
		return int(x1) - int(y1)
	}
	return int(x2) - int(y2)
}

func units(r rune) (first, second rune) {
	if r < 0x10000 {
		return r, 0
	}
	return utf16.EncodeRune(r)
}

const hexDigits = "0123456789abcdef"

// appendString writes a string as RFC 8785 section 3.2.2.2 demands: only characters that need it are escaped, in the
// shortest way.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c >= 0x20:
			dst = append(dst, c)
		case c == '\b':
			dst = append(dst, '\\', 'b')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\f':
			dst = append(dst, '\\', 'f')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&0xf])
		}
	}
	return append(dst, '"')
}
