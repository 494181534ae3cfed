package tracing

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
)

// Context is a place in a trace, in the form of W3C Trace Context. The zero value is none.
type Context struct{ Parent, State string }

// These are the names of a context's parts, in headers and in params._meta alike.
const (
	nameParent = "traceparent"
	nameState  = "tracestate"
)

// Set implements propagation.TextMapCarrier.
func (c *Context) Set(name, value string) {
	switch name {
	case nameParent:
		c.Parent = value
	case nameState:
		c.State = value
	}
}

// Get implements propagation.TextMapCarrier.
func (c *Context) Get(name string) string {
	switch name {
	case nameParent:
		return c.Parent
	case nameState:
		return c.State
	}
	return ""
}

// Keys implements propagation.TextMapCarrier.
func (*Context) Keys() []string { return []string{nameParent, nameState} }

// Context returns the place of the request in the trace: that of its span, or, when it is not recorded, that of the
// whole request, so that the upstream does not record it either.
func (c Client) Context() Context {
	switch {
	case c.whole == nil:
		return Context{}
	case c.span == nil:
		return contextOf(c.whole)
	}
	return contextOf(c.span)
}

func contextOf(span trace.Span) Context {
	at := span.SpanContext()
	traceID, spanID := at.TraceID(), at.SpanID()
	// W3C Trace Context, section 3.2, with the flags that it defines.
	parent := append(make([]byte, 0, 55), "00-"...)
	parent = append(hex.AppendEncode(parent, traceID[:]), '-')
	parent = append(hex.AppendEncode(parent, spanID[:]), '-')
	parent = hex.AppendEncode(parent, []byte{byte(at.TraceFlags() & (trace.FlagsSampled | trace.FlagsRandom))})
	return Context{string(parent), at.TraceState().String()}
}

// Mark returns a message with the context in its params._meta, where the conventions for MCP have it. It takes the place
// of the client's own there. Everything else stays as it was written. A text that is not one message stays unchanged.
func (at Context) Mark(message []byte) []byte {
	if at.Parent == "" {
		return message
	}
	// The state stands beside the parent that it belongs to: an empty one takes the place of the client's.
	marked, ok := jsonrpc.SetMeta(message, []jsonrpc.Member{{Name: nameParent, Value: quoted(at.Parent)}, {Name: nameState, Value: quoted(at.State)}})
	if !ok {
		return message
	}
	return marked
}

// quoted writes a JSON string. A state may hold quotes and backslashes.
func quoted(s string) []byte {
	if !strings.ContainsAny(s, `"\<>&`) { // nor does it hold characters of control, as headers do not
		return append(append(append(make([]byte, 0, len(s)+2), '"'), s...), '"')
	}
	text, _ := json.Marshal(s) // encoding a string cannot fail
	return text
}

// Link links the request's span to the place in a trace that a message names in its params._meta: the client's span of
// this message, where the header names that of its HTTP request.
func (t *Trace) Link(m *jsonrpc.Message) {
	if !t.Recorded() || m.Meta == nil {
		return
	}
	var said Context
	for _, name := range said.Keys() {
		if value, ok := jsonrpc.Text(m.Meta, name); ok {
			said.Set(name, value)
		}
	}
	at := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), &said))
	if at.IsValid() {
		t.whole.AddLink(trace.Link{SpanContext: at})
	}
}
