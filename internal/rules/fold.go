package rules

import (
	"bytes"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// A reader that folds case, as Go's encoding/json does, takes "REPO" for "repo", and "toKen" with a Kelvin sign for
// "token". What such an upstream reads, and what a condition reads, would be two things (attack M04).

// foldsTo reports whether such a reader takes one name for the other.
func foldsTo(a []byte, b string) bool {
	// A letter and what it folds to have one to three bytes.
	return len(a) <= 3*len(b) && len(b) <= 3*len(a) && bytes.EqualFold(a, []byte(b))
}

// folded is the one name that stands for all that fold to each other; nearly always name itself.
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

// spellings are the names of members that stand in a value, however deep, by what they fold to.
type spellings map[string][]string

// spelled collects the names in a value. It reports false when an object has two members that fold to one name: then it
// is no one's to say what the object holds.
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

// other reports whether one of the names stands there in another spelling than any of them.
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

// readName is the name of a member below the arguments that an expression looks at.
type readName struct{ name, folded string }
