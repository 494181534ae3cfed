package webpage

import (
	"strings"

	"github.com/durward-gateway/durward/internal/api/visible"
)

// Piece is a part of a JSON text as a page shows it.
type Piece struct {
	Text string
	// Quoted marks a string of the JSON, which is shown apart from the text around it. Text that runs from right to
	// left would pull its neighbours along, and a member's value would seem to be another one's.
	Quoted bool
	// Omitted is the number of bytes of the JSON that are left out after the text.
	Omitted int
}

const (
	// maxIndent bounds the indentation of deep values.
	maxIndent = 16
	// stringShare bounds the share of a layout that one string may take: a long one must not push the following text
	// out of sight.
	stringShare = 4
)

// JSON lays a valid JSON text out for people, one member a line, with everything visible: numbers and strings stay as
// they are written. Long strings are cut, and the layout stops after about limit bytes; whole reports whether nothing
// is left out.
func JSON(text []byte, limit int) (pieces []Piece, whole bool) {
	l := layouter{limit: limit}
	for i := 0; i < len(text); {
		if l.size >= limit {
			l.flush()
			return append(l.pieces, Piece{Omitted: len(text) - i}), false
		}
		i += l.token(text[i:])
	}
	l.flush()
	return l.pieces, !l.cut
}

type layouter struct {
	pieces []Piece
	plain  strings.Builder
	depth  int
	size   int
	limit  int
	cut    bool // a string is not shown to its end
}

// token lays out the first token of the text and returns its length.
func (l *layouter) token(text []byte) int {
	switch c := text[0]; c {
	case '"':
		return l.quoted(text)
	case '{', '[':
		n := 1 + blanks(text[1:])
		if n < len(text) && text[n] == c+2 { // } and ] are two after { and [
			l.write(string(c) + string(c+2))
			return n + 1
		}
		l.depth++
		l.write(string(c))
		l.line()
	case '}', ']':
		l.depth--
		l.line()
		l.write(string(c))
	case ',':
		l.write(",")
		l.line()
	case ':':
		l.write(": ")
	case ' ', '\t', '\r', '\n':
	default:
		l.write(visible.Text(string(text[:1])))
	}
	return 1
}

func (l *layouter) quoted(text []byte) int {
	end := 1
	for end < len(text) && text[end] != '"' {
		if text[end] == '\\' {
			end++
		}
		end++
	}
	end = min(end+1, len(text))
	piece, omitted := visible.Cut(string(text[:end]), min(l.limit-l.size, l.limit/stringShare))
	l.cut = l.cut || omitted > 0
	l.flush()
	l.pieces = append(l.pieces, Piece{Text: piece, Quoted: true, Omitted: omitted})
	l.size += len(piece)
	return end
}

func (l *layouter) write(text string) {
	l.plain.WriteString(text)
	l.size += len(text)
}

func (l *layouter) line() { l.write("\n" + strings.Repeat("  ", min(max(l.depth, 0), maxIndent))) }

func (l *layouter) flush() {
	if l.plain.Len() > 0 {
		l.pieces = append(l.pieces, Piece{Text: l.plain.String()})
		l.plain.Reset()
	}
}

func blanks(text []byte) int {
	for i, c := range text {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return i
		}
	}
	return len(text)
}
