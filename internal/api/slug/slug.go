// Package slug makes and checks slugs: the names of servers in paths.
package slug

import (
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
)

// MaxLength is the maximum length of a slug, in bytes and characters.
const MaxLength = 63

// Pattern is the pattern of slugs, for the API's errors. Valid makes the decision.
const Pattern = "^[a-z0-9-]+$"

const (
	suffixLength = 8
	fallback     = "server" // for names with nothing that a slug could keep
)

// reserved lists words that would shadow routes, present or future (attack P04).
var reserved = []string{"by-slug", "admin", "api", "health", "healthz", "readyz", "metrics", "well-known", "dev", "console", "oauth"}

// Valid reports whether s has the form of a slug: 1 to 63 of a-z, 0-9 and '-', and nothing else, also no line feed at
// the end (attack P03). A reserved slug has the form too.
func Valid(s string) bool {
	if s == "" || len(s) > MaxLength {
		return false
	}
	for i := range len(s) {
		if !allowed(rune(s[i])) {
			return false
		}
	}
	return true
}

// Reserved reports whether a slug must not be used. These are words that routes need, and texts that some reader
// takes for a uuid, with dashes anywhere or nowhere, because an id and a slug stand in the same place of a path.
func Reserved(s string) bool {
	if slices.Contains(reserved, s) {
		return true
	}
	digits := strings.ReplaceAll(s, "-", "")
	if len(digits) != 32 {
		return false
	}
	_, err := hex.DecodeString(digits)
	return err == nil
}

// FromName makes a slug of a server's name: letters of ASCII in lower case, blanks as dashes, other characters dropped,
// dashes collapsed and none at the ends. It is always Valid but may be Reserved or taken; see WithSuffix.
func FromName(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case r >= 'A' && r <= 'Z':
			r += 'a' - 'A'
		case unicode.IsSpace(r):
			r = '-'
		case !allowed(r):
			continue
		}
		if r == '-' && (b.Len() == 0 || b.String()[b.Len()-1] == '-') {
			continue
		}
		if b.Len() == MaxLength {
			break
		}
		b.WriteRune(r)
	}
	s := strings.TrimRight(b.String(), "-")
	if s == "" {
		return fallback
	}
	return s
}

// WithSuffix appends a dash and 8 random hex digits to a slug, cut where needed, so that it no longer equals the slug
// with which it clashed, nor a reserved word.
func WithSuffix(s string, random io.Reader) (string, error) {
	var b [suffixLength / 2]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", fmt.Errorf("making a slug's suffix: %w", err)
	}
	suffixed := func(base string) string {
		base = strings.TrimRight(base[:min(len(base), MaxLength-suffixLength-1)], "-")
		return base + "-" + hex.EncodeToString(b[:])
	}
	out := suffixed(s)
	if !Valid(s) || out[0] == '-' || Reserved(out) {
		// A base of 24 hex digits would make a uuid with any suffix; one that starts with a word cannot.
		out = suffixed(fallback + "-" + FromName(s))
	}
	return out, nil
}

func allowed(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' }
