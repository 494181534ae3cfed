package settings

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/durward-gateway/durward/internal/seal"
)

// reference is the pattern of a secret in a configuration: one placeholder of Caddy for a variable or a file.
var reference = regexp.MustCompile(`\A\{(env\.[A-Za-z_][A-Za-z0-9_]*|file\.[^{}]+)\}\z`)

// IsReference reports whether text is a reference, {env.NAME} or {file./path}, and nothing else.
func IsReference(text string) bool { return reference.MatchString(text) }

// Resolve returns the value of a reference, which is never empty, without the line end of a file.
func Resolve(reference string) (string, error) {
	value, err := caddy.NewReplacer().ReplaceOrErr(reference, true, true)
	if value = TrimNewline(value); err == nil && value != "" {
		return value, nil
	}
	// Caddy's error says only that the value is empty, whatever the reason.
	reason := "the file is missing or empty, or may not be read"
	if strings.HasPrefix(reference, "{env.") {
		reason = "the variable is not set, or is empty"
	}
	return "", fmt.Errorf("%s does not resolve to anything: %s", reference, reason)
}

// ResolveSecret resolves a reference such as {env.NAME} or {file./path}. A literal is refused: Caddy serves its
// configuration on the admin endpoint and saves it to disk.
func ResolveSecret(reference string) (seal.Secret, error) {
	if !IsReference(reference) {
		return seal.Secret{}, errors.New("a secret must be a reference such as {env.NAME} or {file./path}, not the secret itself")
	}
	value, err := Resolve(reference)
	if err != nil {
		return seal.Secret{}, err
	}
	return seal.NewSecret(value), nil
}

// TrimNewline removes the line end that editors and `echo` put behind a secret in a file.
func TrimNewline(text string) string {
	return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
}
