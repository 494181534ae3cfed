package http1

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
)

// String names a request without what it carries: credentials travel in its fields, and in the query of its address.
func (r Request) String() string {
	if r.URL == nil {
		return r.Method
	}
	return r.Method + " " + r.URL.Host
}

// Format writes String for every verb.
func (r Request) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, r.String()) }

// MarshalJSON returns String.
func (r Request) MarshalJSON() ([]byte, error) { return json.Marshal(r.String()) }

// LogValue returns String.
func (r Request) LogValue() slog.Value { return slog.StringValue(r.String()) }
