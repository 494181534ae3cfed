package app

import (
	"regexp"
	"strings"
)

// reference is what a secret in a configuration may be: one placeholder of Caddy's for a variable or a file.
var reference = regexp.MustCompile(`\A\{(env\.[A-Za-z_][A-Za-z0-9_]*|file\.[^{}]+)\}\z`)

// IsReference reports whether text is a reference, {env.NAME} or {file./path}, and nothing else.
func IsReference(text string) bool { return reference.MatchString(text) }

// trimNewline drops the line end that editors and `echo` put behind a secret in a file.
func trimNewline(text string) string {
	return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
}
