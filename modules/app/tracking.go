package app

import (
	"context"
	"net/http"
	"os"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// maxTracking is the longest tracking tag, in bytes.
const maxTracking = 256

// TrackingTag returns the client's tracking tag, for the log: the value of a header whose name ends in -session-id, other
// than Mcp-Session-Id. ok is false when one is too long or not visible ASCII (CVE-2025-25294: what is logged is read by
// programs). It is never forwarded and never an identity.
func TrackingTag(h http.Header) (tag string, ok bool) {
	for name, values := range h {
		// Mcp-Param-* mirrors an argument of a tool (SEP-2243), whatever the argument is called: it is not for the log.
		if name == "Mcp-Session-Id" || !strings.HasSuffix(name, "-Session-Id") || strings.HasPrefix(name, "Mcp-Param-") {
			continue
		}
		for _, value := range values {
			if len(value) > maxTracking || strings.ContainsFunc(value, func(r rune) bool { return r < '!' || r > '~' }) {
				return "", false
			}
			if tag == "" || name == "X-Mcp-Session-Id" {
				tag = value
			}
		}
	}
	return tag, true
}

// tracingSetsHeader: Caddy's tracing gives the request a header of its span, unless its environment names other headers only.
var tracingSetsHeader = setsTraceparent(os.Getenv("OTEL_PROPAGATORS"))

func setsTraceparent(propagators string) bool {
	return propagators == "" || slices.Contains(strings.Split(propagators, ","), "tracecontext")
}

// TraceID is the id of the trace that a request is a part of; "" when it is of none. Without Caddy's own tracing it is what
// the client says (W3C Trace Context, section 3.2), which goes on to the upstream too: a tag like the other, never an identity.
func TraceID(ctx context.Context, h http.Header) string {
	values := h["Traceparent"]
	if len(values) == 0 && tracingSetsHeader {
		return "" // a span is looked for through all that the connection knows
	}
	if span := trace.SpanContextFromContext(ctx); span.HasTraceID() {
		return span.TraceID().String()
	}
	if len(values) != 1 || len(values[0]) < 55 || values[0][2] != '-' || values[0][35] != '-' {
		return ""
	}
	id, err := trace.TraceIDFromHex(values[0][3:35]) // in lower case, and not of zeros only
	if err != nil {
		return ""
	}
	return id.String()
}
