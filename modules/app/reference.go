package app

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/caddyserver/caddy/v2"
)

// reference is the pattern of a secret in a configuration: one placeholder of Caddy for a variable or a file.
var reference = regexp.MustCompile(`\A\{(env\.[A-Za-z_][A-Za-z0-9_]*|file\.[^{}]+)\}\z`)

// IsReference reports whether text is a reference, {env.NAME} or {file./path}, and nothing else.
func IsReference(text string) bool { return reference.MatchString(text) }

// resolve returns the value of a reference, which is never empty, without the line end of a file.
func resolve(reference string) (string, error) {
	value, err := caddy.NewReplacer().ReplaceOrErr(reference, true, true)
	if value = trimNewline(value); err == nil && value != "" {
		return value, nil
	}
	// Caddy's error says only that the value is empty, whatever the reason.
	reason := "the file is missing or empty, or may not be read"
	if strings.HasPrefix(reference, "{env.") {
		reason = "the variable is not set, or is empty"
	}
	return "", fmt.Errorf("%s does not resolve to anything: %s", reference, reason)
}

// trimNewline removes the line end that editors and `echo` put behind a secret in a file.
func trimNewline(text string) string {
	return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
}
