package approval

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Excerpt is the beginning of a text for a human's eyes: at most limit bytes of it, in which nothing can hide, reorder or
// overwrite (attack M17). Control and format characters, blanks other than the plain one, and what no font shows are
// written as escapes. whole reports whether nothing was left out.
func Excerpt(text string, limit int) (shown string, whole bool) {
	var b strings.Builder
	for _, r := range text {
		piece := visible(r)
		if b.Len()+len(piece) > limit {
			return b.String(), false
		}
		b.WriteString(piece)
	}
	return b.String(), true
}

func visible(r rune) string {
	switch {
	case r == ' ', r != utf8.RuneError && !hidden(r) && unicode.IsGraphic(r) && !unicode.Is(unicode.Zs, r):
		return string(r)
	case r < 0x10000:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

// hidden are graphic characters that show nothing or only change others: variation selectors, fillers, combining marks
// that are ignored by default.
func hidden(r rune) bool {
	return unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) || unicode.Is(unicode.Variation_Selector, r)
}
