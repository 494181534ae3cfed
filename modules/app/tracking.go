package app

import (
	"context"
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.opentelemetry.io/otel/trace"
)

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
