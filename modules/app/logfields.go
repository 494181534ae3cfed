package app

import (
	"context"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/audit/record"
	"github.com/durward-gateway/durward/internal/gateway/tracing"
	"github.com/durward-gateway/durward/internal/identity/authn"
)

// Annotate shows the call to the access log and to placeholders: {durward.org}, {durward.user}, {durward.agent},
// {durward.api_key} (its id), {durward.server}, {durward.method}, {durward.tool}, {durward.model},
// {durward.routed_model}, {durward.route_reason} and {http.auth.user.id}. They hold ids and names, never a body, an
// argument or a secret. It is called once; values that later steps add to the call are seen too.
func (c *Call) Annotate(r *http.Request) {
	if replacer, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		replacer.Map(c.placeholder)
	}
}

func (c *Call) placeholder(key string) (any, bool) {
	switch key {
	case "durward.org":
		return c.caller().OrganizationID, true
	case "durward.user", "http.auth.user.id":
		return c.caller().UserID, true
	case "durward.agent":
		return c.caller().Agent, true
	case "durward.api_key":
		return c.keyID(), true
	case "durward.server":
		return c.serverSlug(), true
	case "durward.method":
		return record.Clip(c.Log.Method, record.MaxMethod), true
	case "durward.model":
		return c.Log.Model, true
	case "durward.routed_model":
		return c.Log.RoutedModel, true
	case "durward.route_reason":
		return c.Log.RouteReason, true
	case "durward.tool":
		return record.Clip(c.Log.Tool, record.MaxName), true
	}
	return nil, false
}

// FollowTrace joins a call to the trace that Caddy's tracing has begun, if it has, and shows the ids of the trace and of
// the request's span to the access log.
func FollowTrace(r *http.Request, c *Call) {
	// Caddy's tracing sets this variable. Looking for the span itself would search all values of the connection, mostly in
	// vain.
	if caddyhttp.GetVar(r.Context(), traceVariable) == nil {
		return
	}
	c.Trace = tracing.Of(r.Context())
	fields, ok := r.Context().Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields)
	if c.Trace == nil || !ok {
		return
	}
	traceID, spanID := c.Trace.IDs()
	fields.Add(zap.String("trace_id", traceID))
	fields.Add(zap.String("span_id", spanID))
}

// WriteLogFields adds the call's fields to the request's line in the access log, if there is such a log. durward_auth
// calls it when the request is done.
func (c *Call) WriteLogFields(r *http.Request) {
	if c.Trace != nil {
		c.Trace.Describe(tracing.Call{Server: c.serverSlug(), Method: c.Log.Method, Tool: c.Log.Tool, Outcome: c.outcome()})
	}
	if server, ok := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server); ok && server.Logs == nil {
		return
	}
	fields, ok := r.Context().Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields)
	if !ok || c.Caller == nil {
		return
	}
	for _, field := range []struct{ name, value string }{
		{"org", c.Caller.OrganizationID}, {"user", c.Caller.UserID}, {"agent", c.Caller.Agent}, {"api_key", c.keyID()}, {"server", c.serverSlug()},
		{"method", record.Clip(c.Log.Method, record.MaxMethod)}, {"tool", record.Clip(c.Log.Tool, record.MaxName)}, {"model", c.Log.Model},
		{"routed_model", c.Log.RoutedModel}, {"route_reason", c.Log.RouteReason}, {"session", c.Log.Session},
	} {
		if field.value != "" {
			fields.Add(zap.String(field.name, field.value))
		}
	}
}

func (c *Call) caller() authn.Caller {
	if c.Caller == nil {
		return authn.Caller{}
	}
	return *c.Caller
}

func (c *Call) keyID() string {
	if c.Caller == nil || c.Caller.Key == nil {
		return ""
	}
	return c.Caller.Key.ID
}

func (c *Call) serverSlug() string {
	if c.Server == nil {
		return ""
	}
	return c.Server.Slug
}

// traceVariable is the variable of a request in which Caddy's tracing notes the id of its trace.
const traceVariable = "trace_id"

// TraceID returns the id of the trace that a request belongs to; "" when it belongs to none. Without Caddy's own
// tracing it is the client's (W3C Trace Context, section 3.2), which goes on to the upstream too. It is a tag like the
// other, never an identity.
func TraceID(ctx context.Context, h http.Header) string {
	said, ok := caddyhttp.GetVar(ctx, traceVariable).(string)
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
