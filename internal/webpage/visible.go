package webpage

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible returns text as people must see it who decide by it: every character that shows nothing, moves others about or
// could be taken for a line's end is spelled out as ⟨U+202E⟩, and bytes that are no UTF-8 as ⟨0xFF⟩ (M17).
func Visible(text string) string {
	if !strings.ContainsFunc(text, hidden) && utf8.ValidString(text) {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, "⟨0x%02X⟩", text[i])
		case hidden(r):
			fmt.Fprintf(&out, "⟨U+%04X⟩", r)
		default:
			out.WriteString(text[i : i+size])
		}
		i += size
	}
	return out.String()
}

// hidden: control characters (ANSI sequences begin with one), the marks that turn the direction of text, blanks of other
// widths, private and unassigned characters, and those that Unicode says may be left out when text is shown.
func hidden(r rune) bool {
	return !unicode.IsPrint(r) || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) || r == '\u2800'
}
