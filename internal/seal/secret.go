package seal

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
)

const redacted = "REDACTED"

// Secret holds a string that only Reveal returns. Printing it with any verb, logging it and encoding it give
// REDACTED. The zero value is an empty secret.
type Secret struct {
	// p is a pointer because fmt prints a field of another type's unexported struct member without calling our
	// methods: then it prints an address.
	p *string
}

// NewSecret wraps s.
func NewSecret(s string) Secret {
	if s == "" {
		return Secret{}
	}
	return Secret{p: &s}
}

// Reveal returns the text itself. Callers use it at the place where it is needed and nowhere else.
func (s Secret) Reveal() string {
	if s.p == nil {
		return ""
	}
	return *s.p
}

// Empty reports whether the secret is the empty string.
func (s Secret) Empty() bool { return s.p == nil || *s.p == "" }

// Equal compares in constant time, whatever the lengths are.
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
