package routes

import (
	"time"

	"github.com/durward-gateway/durward/internal/api/schema"
)

// Instant is a time in the form of the API: RFC 3339 in UTC, always with six digits of a second.
type Instant time.Time

// MarshalJSON implements json.Marshaler.
func (i Instant) MarshalJSON() ([]byte, error) {
	return []byte(time.Time(i).UTC().Format(`"2006-01-02T15:04:05.000000Z"`)), nil
}

// JSONSchema implements schema.Described.
func (Instant) JSONSchema() *schema.Schema {
	return &schema.Schema{Type: schema.Types{schema.String}, Format: "date-time"}
}

// List keeps an empty list from being null.
func List[T any](values []T) []T {
	if values == nil {
		return []T{}
	}
	return values
}

// Optional returns a text, or null when it is empty.
func Optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// OptionalInstant returns a time, or null when it is zero.
func OptionalInstant(t time.Time) *Instant {
	if t.IsZero() {
		return nil
	}
	return (*Instant)(&t)
}
