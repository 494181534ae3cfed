package scim

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// maxExpression bounds filters and paths in bytes.
const maxExpression = 2_000

// scanner reads the words of filters and paths (RFC 7644 section 3.4.2.2).
type scanner struct{ rest string }

func (s *scanner) blanks() { s.rest = strings.TrimLeft(s.rest, " ") }

// word reads the letters of a name or operator. A name of an attribute may have its schema before it.
func (s *scanner) word() string {
	s.blanks()
	n := 0
	for n < len(s.rest) {
		c := s.rest[n]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_-$:.", c) >= 0 {
			n++
			continue
		}
		break
	}
	word := s.rest[:n]
	s.rest = s.rest[n:]
	return word
}

// mark reads one character.
func (s *scanner) mark(c byte) bool {
	s.blanks()
	if s.rest == "" || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

func (s *scanner) ended() bool {
	s.blanks()
	return s.rest == ""
}

// value reads a value in JSON: a text, true or false.
func (s *scanner) value() (text string, ok bool) {
	s.blanks()
	if !strings.HasPrefix(s.rest, `"`) {
		switch word := s.word(); strings.ToLower(word) {
		case "true", "false":
			return strings.ToLower(word), true
		}
		return "", false
	}
	for i := 1; i < len(s.rest); i++ {
		switch s.rest[i] {
		case '\\':
			i++
		case '"':
			if json.Unmarshal([]byte(s.rest[:i+1]), &text) != nil || !utf8.ValidString(s.rest[:i+1]) {
				return "", false
			}
			s.rest = s.rest[i+1:]
			return text, true
		}
	}
	return "", false
}

// attribute splits the name of an attribute, in lower case, from its part. The schema of users or groups before it says nothing;
// another schema stays.
func attribute(word string) (name, part string) {
	word = strings.ToLower(word)
	for _, schema := range [...]string{SchemaUser, SchemaGroup} {
		word = strings.TrimPrefix(word, strings.ToLower(schema)+":")
	}
	if strings.HasPrefix(word, urnPrefix) {
		return word, ""
	}
	name, part, _ = strings.Cut(word, ".")
	return name, part
}
