package routes

import (
	"strconv"
	"strings"
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

// AmountDigits is the number of decimals of an amount.
const AmountDigits = 9

// Amount is an amount of money in billionths of the price table's currency unit, shown as a decimal number.
type Amount int64

// MarshalJSON implements json.Marshaler.
func (a Amount) MarshalJSON() ([]byte, error) {
	text := strconv.FormatInt(int64(a), 10)
	if missing := AmountDigits + 1 - len(text); missing > 0 {
		text = strings.Repeat("0", missing) + text
	}
	at := len(text) - AmountDigits
	return []byte(strings.TrimSuffix(strings.TrimRight(text[:at]+"."+text[at:], "0"), ".")), nil
}

// JSONSchema implements schema.Described.
func (Amount) JSONSchema() *schema.Schema { return &schema.Schema{Type: schema.Types{schema.Number}} }

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
