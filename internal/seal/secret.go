package seal

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
)

const redacted = "REDACTED"

// Secret is a string that shows itself only to Reveal. Printing it with any verb, logging it and encoding it give
// REDACTED. The zero value is an empty secret.
type Secret struct {
	// A pointer, because fmt prints a field of somebody's unexported struct member without calling any method of ours:
	// then it shows an address.
	p *string
}

// NewSecret wraps s.
func NewSecret(s string) Secret {
	if s == "" {
		return Secret{}
	}
	return Secret{p: &s}
}

// Reveal returns the text itself. Callers put it where it is used and nowhere else.
func (s Secret) Reveal() string {
	if s.p == nil {
		return ""
	}
	return *s.p
}

// Empty reports whether there is nothing to keep secret.
func (s Secret) Empty() bool { return s.p == nil || *s.p == "" }

// Equal compares in constant time, whatever the lengths.
func (s Secret) Equal(other Secret) bool {
	a, b := sha256.Sum256([]byte(s.Reveal())), sha256.Sum256([]byte(other.Reveal()))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// String returns REDACTED.
func (Secret) String() string { return redacted }

// GoString returns REDACTED.
func (Secret) GoString() string { return redacted }

// Format writes REDACTED for every verb; %x of a type without it would print the text in hexadecimal.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalJSON returns "REDACTED".
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalText returns REDACTED.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue returns REDACTED.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }
