package app

import (
	"context"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/durward-gateway/durward/internal/llm/smart"
)

// Asks notes the alias that a call to a model asks for, for the access log and the request's trace.
func (c *Call) Asks(ctx context.Context, alias string) {
	c.Log.Model = alias
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(attribute.String("durward.model", alias))
	}
}

// Routed notes the model to which a smart model sends the call, for the access log, the request's trace and the
// metrics.
func (c *Call) Routed(ctx context.Context, d smart.Decision) {
	c.Log.RoutedModel, c.Log.RouteReason = d.Alias, string(d.Reason)
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(attribute.String("durward.routed_model", d.Alias), attribute.String("durward.route_reason", string(d.Reason)))
	}
	modelRoutes.WithLabelValues(string(d.Reason), strconv.Itoa(d.Slot)).Inc()
}
