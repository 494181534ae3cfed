package app

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/durward-gateway/durward/internal/gateway/tracing"
	"github.com/durward-gateway/durward/internal/llm/smart"
	"github.com/durward-gateway/durward/modules/app/metrics"
)

// TestRouted checks that the target of a smart model's decision, and its reason, are in the log, in the trace and in
// the metrics.
func TestRouted(t *testing.T) {
	seen := tracetest.NewSpanRecorder()
	ctx, span := sdk.NewTracerProvider(sdk.WithSpanProcessor(seen)).Tracer("caddy").Start(t.Context(), "handler")
	call := &Call{Trace: tracing.Of(ctx)}
	call.Log.Asks(call.Trace, "smart")
	call.Log.Routed(call.Trace, smart.Decision{Alias: "large", Slot: 2, Reason: smart.ByFloor})
	span.End()
	for key, want := range map[string]string{"durward.model": "smart", "durward.routed_model": "large", "durward.route_reason": "floor"} {
		if got, ok := call.placeholder(key); !ok || got != want {
			t.Errorf("{%s} is %v", key, got)
		}
	}
	said := ""
	for _, a := range seen.Ended()[0].Attributes() {
		said += fmt.Sprintf("%s=%s ", a.Key, a.Value.AsString())
	}
	if want := "durward.model=smart durward.routed_model=large durward.route_reason=floor "; said != want {
		t.Errorf("the trace has %q", said)
	}
	registry := prometheus.NewRegistry()
	if _, err := metrics.Register(registry); err != nil {
		t.Fatal(err)
	}
	found, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := ""
	for _, family := range found {
		if family.GetName() == "durward_llm_routes_total" {
			counted = family.String()
		}
	}
	if !strings.Contains(counted, `value:"floor"`) || !strings.Contains(counted, `value:"2"`) {
		t.Errorf("counted as %q", counted)
	}
}
