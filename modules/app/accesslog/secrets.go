package accesslog

import (
	"net/url"
	"slices"
	"strings"
)

// secrets lists the values that were hidden in a request and its answer. The configuration may write them elsewhere:
// log_append and error take placeholders.
type secrets []string

// shortest is the least length, in bytes, of values that are also searched for in other fields: shorter ones occur
// there by chance.
const shortest = 8

func (s *secrets) learn(value string) {
	if len(value) >= shortest && !slices.Contains(*s, value) {
		*s = append(*s, value)
	}
}

// learnParameter learns a parameter of an address, in the ways in which placeholders write it.
func (s *secrets) learnParameter(value string) {
	s.learn(value)
	s.learn(url.QueryEscape(value))
	if plain, err := url.QueryUnescape(value); err == nil {
		s.learn(plain)
	}
}

// learnHeader learns the value of a header, the part of it after a scheme, and the value of each cookie in it.
func (s *secrets) learnHeader(name, value string) {
	s.learn(value)
	if name == "Set-Cookie" {
		value, _, _ = strings.Cut(value, ";") // the rest says where and how long
	}
	for part := range strings.FieldsFuncSeq(value, func(c rune) bool { return c == ' ' || c == ';' }) {
		s.learn(part)
		_, of, _ := strings.Cut(part, "=")
		s.learn(strings.Trim(of, `"`))
	}
}

// within reports whether a text contains a secret.
func (s *secrets) within(text string) bool {
	return slices.ContainsFunc(*s, func(secret string) bool { return strings.Contains(text, secret) })
}

// hide returns a text without the secrets.
func (s *secrets) hide(text string) string {
	if !s.within(text) {
		return text
	}
	longestFirst := slices.SortedFunc(slices.Values(*s), func(a, b string) int { return len(b) - len(a) })
	for _, secret := range longestFirst {
		text = strings.ReplaceAll(text, secret, hidden)
	}
	return text
}
