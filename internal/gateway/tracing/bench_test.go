package tracing

import (
	"context"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// nowhere takes spans as an exporter does.
type nowhere struct{}

func (nowhere) ExportSpans(context.Context, []sdk.ReadOnlySpan) error { return nil }
func (nowhere) Shutdown(context.Context) error                        { return nil }

// BenchmarkCall measures what the spans and the context of a tools/call cost, without Caddy's span of the request.
func BenchmarkCall(b *testing.B) {
	body := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"priority":1,"text":"0123456789012345678901234567890123456789"}}}`)
	server := mustURL(b, "https://mcp.example/")
	provider := sdk.NewTracerProvider(sdk.WithBatcher(nowhere{}), sdk.WithSampler(sdk.ParentBased(sdk.NeverSample())))
	b.Cleanup(func() { _ = provider.Shutdown(context.Background()) }) //nolint:usetesting // the test's own context has ended
	for _, tc := range []struct {
		name  string
		flags trace.TraceFlags
		begun bool
	}{{"off", 0, false}, {"unrecorded", 0, true}, {"recorded", trace.FlagsSampled, true}} {
		b.Run(tc.name, func(b *testing.B) {
			ctx := b.Context()
			if tc.begun {
				ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: tc.flags}))
				var span trace.Span
				ctx, span = provider.Tracer("caddy").Start(ctx, "handler")
				defer span.End()
			}
			b.ReportAllocs()
			for b.Loop() {
				x := Of(ctx)
				x.Authenticate().Authenticated("token", "ok")
				x.Limit().Limited(Look, false, nil)
				x.Policy().Decided("allow", "policy", 1, "rule")
				x.Limit().Limited(Charge, false, nil)
				x.Credential().Got("bearer_token", false, "ok")
				request := x.Message(Message{Method: "tools/call", Name: "echo", ID: body[22:23], Version: "2025-11-25", Server: server})
				request.Context().Mark(body)
				request.End("ok", 200)
				x.Describe(Call{Server: "s", Method: "tools/call", Tool: "echo", Outcome: "ok"})
			}
		})
	}
}
