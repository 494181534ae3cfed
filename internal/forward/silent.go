package forward

import (
	"fmt"
	"io"
	"log/slog"
)

// Format names a request without what it carries: its headers are the client's, its token among them.
func (r *Request) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, r.named()) }

// LogValue names it in the same way.
func (r *Request) LogValue() slog.Value { return slog.StringValue(r.named()) }

func (r *Request) named() string {
	if r.URL == nil {
		return r.Method
	}
	return r.Method + " " + r.URL.Host
}

// Format names the request. fmt calls no method of a member that is not exported.
func (o *outgoing) Format(f fmt.State, verb rune) { o.request.Format(f, verb) }
