package http1

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
)

// String describes a request without its contents: its fields, and the query of its address, carry credentials.
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
