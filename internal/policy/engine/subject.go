package engine

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

type subjectKind uint8

const (
	subjectAll subjectKind = iota
	subjectRole
	subjectGroup
	subjectEither
)

// MaxSubject is the maximum length of a role's or group's name in a rule, in characters.
const MaxSubject = 256

// subjectOf reads an entry of roles_groups: *, role:<name>, group:<name>, or a bare name that means either. It does not
// trim, split or fold the name, because names may hold blanks and commas (attack M21).
func subjectOf(entry string) (kind subjectKind, name string) {
	if entry == wildcard {
		return subjectAll, ""
	}
	if name, ok := strings.CutPrefix(entry, "role:"); ok {
		return subjectRole, name
	}
	if name, ok := strings.CutPrefix(entry, "group:"); ok {
		return subjectGroup, name
	}
	return subjectEither, entry
}

// wrongSubject returns the mistake in an entry of roles_groups, or nil. It refuses a * inside a name. Read as a
// character, the * in a deny would match nobody, and the rule would look as if it did.
func wrongSubject(entry string) error {
	kind, name := subjectOf(entry)
	switch {
	case kind == subjectAll:
		return nil
	case name == "":
		return fmt.Errorf("names no role or group")
	case utf8.RuneCountInString(name) > MaxSubject:
		return fmt.Errorf("the name of a role or group has at most %d characters", MaxSubject)
	case strings.Contains(name, wildcard):
		return fmt.Errorf("a * matches everybody and stands alone; names have none")
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("the name of a role or group has no control characters")
	}
	return nil
}
