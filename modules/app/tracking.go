package app

import (
	"context"
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.opentelemetry.io/otel/trace"
)

// maxTracking is the longest tracking tag, in bytes.
const maxTracking = 256

// TrackingTag returns the client's tracking tag, for the log: the value of a header whose name ends in -session-id,
// other than Mcp-Session-Id. ok is false when one is too long or not visible ASCII (CVE-2025-25294: logs are read by
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

// TraceID returns the id of the trace that a request belongs to; "" when it belongs to none. Without Caddy's own
// tracing it is the client's (W3C Trace Context, section 3.2), which goes on to the upstream too. It is a tag like the
// other, never an identity.
func TraceID(ctx context.Context, h http.Header) string {
	// Caddy's tracing sets this variable, too. Looking for the span itself would search all values of the connection,
	// mostly in vain.
	said, ok := caddyhttp.GetVar(ctx, "trace_id").(string)
	if !ok {
		values := h["Traceparent"]
		if len(values) != 1 || len(values[0]) < 55 || values[0][2] != '-' || values[0][35] != '-' {
			return ""
		}
		said = values[0][3:35]
	}
	id, err := trace.TraceIDFromHex(said) // in lower case, and not of zeros only
	if err != nil {
		return ""
	}
	return id.String()
}
