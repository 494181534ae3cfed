package scim

import "strings"

// path names what an operation changes: an attribute, its part, or the values that all of some terms match.
type path struct {
	name, part string
	filtered   bool
	terms      []term // with the name of a part each
}

// readPath reads a path (RFC 7644 section 3.5.2).
func readPath(text string) (p path, err error) {
	bad := func() (path, error) {
		return path{}, wrong(TypeInvalidPath, "The path %.100q cannot be read; write it as in emails[type eq \"work\"].value", text)
	}
	if len(text) > maxExpression {
		return bad()
	}
	s := &scanner{text}
	if p.name, p.part = attribute(s.word()); p.name == "" || strings.HasPrefix(p.name, ".") {
		return bad()
	}
	if strings.HasPrefix(s.rest, "[") {
		var ok bool
		p.filtered = true
		if p.terms, ok = s.bracket(); !ok || p.part != "" {
			return bad()
		}
		if strings.HasPrefix(s.rest, ".") {
			if p.part = strings.ToLower(strings.TrimPrefix(s.word(), ".")); p.part == "" {
				return bad()
			}
		}
	}
	if !s.ended() {
		return bad()
	}
	return p, nil
}
