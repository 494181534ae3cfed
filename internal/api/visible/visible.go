// Package visible writes untrusted texts so that people who decide by them see everything in them (attack M17): on
// pages, in questions that clients show, in descriptions of tools.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns a text in which misleading characters are spelled out as ⟨U+202E⟩, and bytes that are no UTF-8 as
// ⟨0xFF⟩. Misleading characters show nothing, move others about or could be taken for a line's end.
func Text(text string) string {
	if !strings.ContainsFunc(text, hidden) && utf8.ValidString(text) {
		return text
	}
	shown, _ := Beginning(text, 16*len(text)) // no character is spelled out in more bytes
	return shown
}

// Beginning returns at most limit bytes of Text, which never end within a character or its spelled-out form. whole
// reports whether nothing was left out.
func Beginning(text string, limit int) (shown string, whole bool) {
	shown, left := Cut(text, limit)
	return shown, left == 0
}

// Cut returns the same text as Beginning, and the number of bytes that are left out.
func Cut(text string, limit int) (shown string, left int) {
	var out strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		piece := text[i : i+size]
		switch {
		case r == utf8.RuneError && size == 1:
			piece = fmt.Sprintf("⟨0x%02X⟩", text[i])
		case hidden(r):
			piece = fmt.Sprintf("⟨U+%04X⟩", r)
		}
		if out.Len()+len(piece) > limit {
			return out.String(), len(text) - i
		}
		out.WriteString(piece)
		i += size
	}
	return out.String(), 0
}

// hidden reports whether a character is spelled out: control characters (ANSI sequences begin with one), the marks
// that turn the direction of text, blanks of other widths, private and unassigned characters, and those that Unicode
// allows to leave out when text is shown.
func hidden(r rune) bool {
	return !unicode.IsPrint(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) || r == '\u2800'
}
