package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/durward-gateway/durward/internal/audit/record"
)

// Trace makes the spans of one request.
type Trace struct {
	whole  trace.Span // of the request
	inside context.Context
	tracer trace.Tracer // nil: the request is part of a trace, and is not recorded
}

// Of returns the trace of the span in a request's context; nil when there is none. It looks through all values of the
// context.
func Of(ctx context.Context) *Trace {
	whole := trace.SpanFromContext(ctx)
	if !whole.SpanContext().IsValid() {
		return nil
	}
	t := &Trace{whole: whole}
	if whole.IsRecording() {
		t.inside, t.tracer = ctx, whole.TracerProvider().Tracer(scope)
	}
	return t
}

// Recorded reports whether spans are recorded.
func (t *Trace) Recorded() bool { return t != nil && t.tracer != nil }

// IDs returns the ids of the trace and of the request's span; "" for a request that is not traced.
func (t *Trace) IDs() (traceID, spanID string) {
	if t == nil {
		return "", ""
	}
	at := t.whole.SpanContext()
	return at.TraceID().String(), at.SpanID().String()
}

// Sampled returns the id of a trace that a collector gets; "" for others.
func (t *Trace) Sampled() string {
	if !t.Recorded() || !t.whole.SpanContext().IsSampled() {
		return ""
	}
	return t.whole.SpanContext().TraceID().String()
}

// Call describes a request in the words of the access log.
type Call struct {
	Server, Method, Tool string
	Outcome              string
}

// Describe notes what is known of the request at its end. Empty texts are left out.
func (t *Trace) Describe(c Call) {
	if !t.Recorded() {
		return
	}
	for _, a := range [...]struct{ name, value string }{
		{attrServer, c.Server}, {attrMCPMethod, c.Method}, {attrToolName, c.Tool}, {attrOutcome, c.Outcome},
	} {
		if a.value != "" {
			t.whole.SetAttributes(attribute.String(a.name, record.Short(a.value)))
		}
	}
}

// Asks notes the alias that a request for a model asks for.
func (t *Trace) Asks(alias string) {
	if t.Recorded() {
		t.whole.SetAttributes(attribute.String(attrModel, record.Short(alias)))
	}
}

// Routed notes the alias to which a smart model sends the request, and why.
func (t *Trace) Routed(alias, reason string) {
	if t.Recorded() {
		t.whole.SetAttributes(attribute.String(attrRoutedModel, alias), attribute.String(attrRouteReason, reason))
	}
}

// Step is the span of one of the gateway's steps. The zero value is that of a request that is not recorded. A step ends
// once: with the first of the methods that end it.
type Step struct{ span trace.Span }

func (t *Trace) begin(name string) Step {
	if !t.Recorded() {
		return Step{}
	}
	_, span := t.tracer.Start(t.inside, name)
	return Step{span}
}

// end ends the step. A step that failed for a reason of the gateway's own has an error's status; a refusal has not.
func (s Step) end(failed bool, attributes ...attribute.KeyValue) {
	s.span.SetAttributes(attributes...)
	if failed {
		s.span.SetStatus(codes.Error, "")
	}
	s.span.End()
}

// Unavailable is the result of a step that could not be done.
const Unavailable = "Unavailable"

// Authenticate begins the proof of the request's bearer.
func (t *Trace) Authenticate() Step { return t.begin(spanAuthenticate) }

// Authenticated ends a proof: kind is that of the credential, and result the one that metrics count.
func (s Step) Authenticated(kind, result string) {
	if s.span != nil {
		s.end(result == Unavailable, attribute.String(attrAuthKind, kind), attribute.String(attrAuthResult, result))
	}
}

// Limit begins a look at rate limits, or their charge.
func (t *Trace) Limit() Step { return t.begin(spanLimit) }

// These are the places at which limits are asked.
const (
	Look   = "look"   // whether one is full already
	Charge = "charge" // when the call counts
)

// Limited ends it.
func (s Step) Limited(where string, refused bool, err error) {
	if s.span == nil {
		return
	}
	result := "ok"
	switch {
	case err != nil:
		result = Unavailable
	case refused:
		result = "limited"
	}
	s.end(err != nil, attribute.String(attrLimitWhere, where), attribute.String(attrLimitResult, result))
}

// Policy begins a decision of the policies.
func (t *Trace) Policy() Step { return t.begin(spanPolicy) }

// Decided ends the decision.
func (s Step) Decided(result, policyID string, revision int, rule string) {
	if s.span == nil {
		return
	}
	attributes := append(make([]attribute.KeyValue, 0, 4), attribute.String(attrPolicyResult, result))
	if policyID != "" {
		attributes = append(attributes, attribute.String(attrPolicyID, policyID), attribute.Int(attrPolicyRevision, revision))
	}
	if rule != "" {
		attributes = append(attributes, attribute.String(attrPolicyRule, rule))
	}
	s.end(result == Unavailable, attributes...)
}

// Approval begins the wait of a call that needs an approval.
func (t *Trace) Approval() Step { return t.begin(spanApproval) }

// About notes the approval that a call waits for.
func (s Step) About(approvalID string) {
	if s.span != nil {
		s.span.SetAttributes(attribute.String(attrApprovalID, approvalID))
	}
}

// Waited ends the wait.
func (s Step) Waited(result string) {
	if s.span != nil {
		s.end(result == Unavailable, attribute.String(attrApprovalResult, result))
	}
}

// Credential begins the search for the caller's credential.
func (t *Trace) Credential() Step { return t.begin(spanCredential) }

// Got ends it. kind is that of the server's connections, and refreshed reports whether the call waited for a new token.
func (s Step) Got(kind string, refreshed bool, result string) {
	if s.span != nil {
		s.end(result == Unavailable, attribute.String(attrCredentialKind, kind), attribute.Bool(attrCredentialNew, refreshed), attribute.String(attrCredentialResult, result))
	}
}
