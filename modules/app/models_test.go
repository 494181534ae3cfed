package app

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/durward-gateway/durward/internal/llm/smart"
	"github.com/durward-gateway/durward/modules/app/metrics"
)

// recorder is a span that keeps its attributes.
type recorder struct {
	noop.Span
	said string
}

func (*recorder) IsRecording() bool { return true }

func (r *recorder) SetAttributes(all ...attribute.KeyValue) {
	for _, a := range all {
		r.said += fmt.Sprintf("%s=%s ", a.Key, a.Value.AsString())
	}
}

// TestRouted checks that the target of a smart model's decision, and its reason, are in the log, in the trace and in
// the metrics.
func TestRouted(t *testing.T) {
	span := new(recorder)
	ctx := trace.ContextWithSpan(t.Context(), span)
	call := new(Call)
	call.Log.Asks(ctx, "smart")
	call.Log.Routed(ctx, smart.Decision{Alias: "large", Slot: 2, Reason: smart.ByFloor})
	for key, want := range map[string]string{"durward.model": "smart", "durward.routed_model": "large", "durward.route_reason": "floor"} {
		if got, ok := call.placeholder(key); !ok || got != want {
			t.Errorf("{%s} is %v", key, got)
		}
	}
	if want := "durward.model=smart durward.routed_model=large durward.route_reason=floor "; span.said != want {
		t.Errorf("the trace has %q", span.said)
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
