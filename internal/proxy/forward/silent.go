package forward

import (
	"fmt"
	"io"
	"log/slog"
)

// Format writes the name of a request without its content, because its headers are the client's and include a token.
func (r *Request) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, r.named()) }

// LogValue returns the same name.
func (r *Request) LogValue() slog.Value { return slog.StringValue(r.named()) }

func (r *Request) named() string {
	if r.URL == nil {
		return r.Method
	}
	return r.Method + " " + r.URL.Host
}

// Format writes the name of the request. fmt calls no method of an unexported field.
func (o *outgoing) Format(f fmt.State, verb rune) { o.request.Format(f, verb) }
