package app

import (
	"context"
	"net/http"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// TestTraceID checks that the trace is the one of Caddy's tracing, otherwise the client's; an invalid one is left out.
func TestTraceID(t *testing.T) {
	const caddys, clients = "0af7651916cd43dd8448eb211c80319c", "11111111111111111111111111111111"
	traced := context.WithValue(t.Context(), caddyhttp.VarsCtxKey, map[string]any{"trace_id": caddys})
	for name, c := range map[string]struct {
		traced bool
		header []string
		want   string
	}{
		"nothing":                      {false, nil, ""},
		"Caddy's":                      {true, []string{"00-" + caddys + "-b7ad6b7169203331-01"}, caddys},
		"Caddy's, with another header": {true, nil, caddys},
		"both":                         {true, []string{"00-" + clients + "-b7ad6b7169203331-01"}, caddys},
		"the client's":                 {false, []string{"00-" + clients + "-b7ad6b7169203331-01"}, clients},
		"two of the client":            {false, []string{"00-" + clients + "-b7ad6b7169203331-01", "00-" + clients + "-b7ad6b7169203331-01"}, ""},
		"zeros":                        {false, []string{"00-00000000000000000000000000000000-b7ad6b7169203331-01"}, ""},
		"capitals":                     {false, []string{"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01"}, ""},
		"a short header":               {false, []string{"00-" + clients}, ""},
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
}
