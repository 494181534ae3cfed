package engine

import (
	"bytes"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// Some readers fold case, such as Go's encoding/json. They take "REPO" for "repo", and "toKen" with a Kelvin sign for
// "token". Such an upstream would read another value than the condition did (attack M04).

// foldsTo reports whether such a reader takes one name for the other.
func foldsTo(a []byte, b string) bool {
	// A letter, and each letter that it folds to, has one to three bytes.
	return len(a) <= 3*len(b) && len(b) <= 3*len(a) && bytes.EqualFold(a, []byte(b))
}

// folded returns the one name that stands for all names that fold to each other. It is nearly always name itself.
func folded(name []byte) []byte {
	plain := true
	for _, c := range name {
		plain = plain && c < utf8.RuneSelf && (c < 'A' || c > 'Z')
	}
	if plain {
		return name
	}
	return bytes.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		if least >= 'A' && least <= 'Z' {
			least += 'a' - 'A'
		}
		return least
	}, name)
}

// spellings holds the names of all members in a value, at every depth, under the name that they fold to.
type spellings map[string][]string

// spelled collects the names in a value. It returns false when an object has two members that fold to one name. Nobody
// can say then which value the object holds.
func spelled(v strictjson.Value) (spellings, bool) {
	if bytes.IndexByte(v.Raw(), '{') < 0 {
		return nil, true
	}
	s := make(spellings)
	return s, s.collect(v)
}

func (s spellings) collect(v strictjson.Value) bool {
	switch v.Kind() {
	case strictjson.Array:
		for _, e := range v.Elems() {
			if !s.collect(e) {
				return false
			}
		}
	case strictjson.Object:
		if twins(v) {
			return false
		}
		for name, value := range v.EachMember() {
			key := folded(name)
			if known := s[string(key)]; !slices.Contains(known, string(name)) {
				s[string(key)] = append(known, string(name))
			}
			if !s.collect(value) {
				return false
			}
		}
	}
	return true
}

// twins reports whether two members of an object fold to one name.
func twins(object strictjson.Value) bool {
	const few = 12 // from here on a map is faster
	if object.Len() <= few {
		var names [few][]byte
		n := 0
		for name := range object.EachMember() {
			for _, other := range names[:n] {
				if len(name) <= 3*len(other) && len(other) <= 3*len(name) && bytes.EqualFold(name, other) {
					return true
				}
			}
			names[n] = name
			n++
		}
		return false
	}
	seen := make(map[string]struct{}, object.Len())
	for name := range object.EachMember() {
		seen[string(folded(name))] = struct{}{}
	}
	return len(seen) < object.Len()
}

// other reports whether one of the names occurs in a spelling that is not among the names.
func (s spellings) other(names []readName) bool {
	for i := range names {
		for _, spelling := range s[names[i].folded] {
			if spelling != names[i].name && !slices.ContainsFunc(names, func(n readName) bool { return n.name == spelling }) {
				return true
			}
		}
	}
	return false
}

// readName is the name of a member below the arguments. An expression looks at that member.
type readName struct{ name, folded string }
