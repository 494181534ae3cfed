package toolpin

import (
	"slices"
	"strings"
	"unicode"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// suspicions lists characters that models read and people do not see (attack M14), each with its name.
var suspicions = []struct {
	name string
	is   func(rune) bool
}{
	{"tag characters", func(r rune) bool { return r >= 0xE0000 && r <= 0xE007F }},
	{"bidirectional controls", func(r rune) bool { return unicode.Is(unicode.Bidi_Control, r) }},
	{"control characters", func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' }},
	{"variation selectors", func(r rune) bool { return unicode.Is(unicode.Variation_Selector, r) && r != 0xFE0E && r != 0xFE0F }},
	{"invisible characters", func(r rune) bool {
		return r == 0x2800 || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) || unicode.Is(unicode.Cf, r) || r == 0xFEFF
	}},
	{"private or unassigned characters", func(r rune) bool {
		return unicode.Is(unicode.Co, r) || !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Z, unicode.C)
	}},
}

// Suspicious names the hidden characters in a definition, such as `tag characters in description`, in the order of its
// members.
func Suspicious(definition []byte) []string {
	text, _, cut := beginning(definition)
	if cut {
		return hiding(nil, text, "definition")
	}
	v, err := strictjson.Parse(definition, strictjson.Limits{MaxBytes: len(definition) + 1, MaxDepth: len(definition) + 1, MaxMembers: len(definition) + 1})
	if err != nil {
		return nil
	}
	var found []string
	for _, m := range v.Members() {
		found = inside(found, m.Value, m.Name)
	}
	return found
}

// inside checks every string below a member, names too.
func inside(found []string, v strictjson.Value, member string) []string {
	switch v.Kind() {
	case strictjson.String:
		return hiding(found, v.Str(), member)
	case strictjson.Object:
		for _, m := range v.Members() {
			found = inside(hiding(found, m.Name, member), m.Value, member)
		}
	case strictjson.Array:
		for _, element := range v.Elems() {
			found = inside(found, element, member)
		}
	}
	return found
}

func hiding(found []string, text, member string) []string {
	if !strings.ContainsFunc(text, odd) {
		return found
	}
	for _, r := range text {
		for _, s := range suspicions {
			if !s.is(r) {
				continue
			}
			if what := s.name + " in " + member; !slices.Contains(found, what) {
				found = append(found, what)
			}
			break
		}
	}
	return found
}

// odd reports whether a character may be suspicious. It is a quick first check.
func odd(r rune) bool { return r < ' ' || r >= 0x7F }
