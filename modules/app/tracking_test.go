package app

import (
	"net/http"
	"testing"

	"go.opentelemetry.io/otel/trace"
)

// TestTraceID: the trace is the one that Caddy's tracing says, else the client's; what is none is left out.
func TestTraceID(t *testing.T) {
	const caddys, clients = "0af7651916cd43dd8448eb211c80319c", "11111111111111111111111111111111"
	id, err := trace.TraceIDFromHex(caddys)
	if err != nil {
		t.Fatal(err)
	}
	traced := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: trace.SpanID{1}}))
	for name, c := range map[string]struct {
		traced bool
		header []string
		want   string
	}{
		"nothing":           {false, nil, ""},
		"Caddy's":           {true, []string{"00-" + caddys + "-b7ad6b7169203331-01"}, caddys},
		"both":              {true, []string{"00-" + clients + "-b7ad6b7169203331-01"}, caddys},
		"the client's":      {false, []string{"00-" + clients + "-b7ad6b7169203331-01"}, clients},
		"two of the client": {false, []string{"00-" + clients + "-b7ad6b7169203331-01", "00-" + clients + "-b7ad6b7169203331-01"}, ""},
		"zeros":             {false, []string{"00-00000000000000000000000000000000-b7ad6b7169203331-01"}, ""},
		"capitals":          {false, []string{"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01"}, ""},
		"a short header":    {false, []string{"00-" + clients}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, header := t.Context(), http.Header{}
			if c.traced {
				ctx = traced
			}
			if c.header != nil {
				header["Traceparent"] = c.header
			}
			if got := TraceID(ctx, header); got != c.want {
				t.Errorf("trace %q, want %q", got, c.want)
			}
		})
	}
	// Without the header Caddy's span counts where another one was configured.
	t.Run("another header", func(t *testing.T) {
		defer func(before bool) { tracingSetsHeader = before }(tracingSetsHeader)
		tracingSetsHeader = setsTraceparent("b3,jaeger")
		if got := TraceID(traced, http.Header{}); got != caddys {
			t.Errorf("trace %q, want %q", got, caddys)
		}
	})
	for propagators, want := range map[string]bool{"": true, "tracecontext": true, "b3,tracecontext": true, "b3": false, "none": false} {
		if got := setsTraceparent(propagators); got != want {
			t.Errorf("%q: %v", propagators, got)
		}
	}
}
