package app

import (
	"context"
	"net/http"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/gateway/eventstream"
	"github.com/durward-gateway/durward/internal/gateway/inbound"
	"github.com/durward-gateway/durward/internal/gateway/tracing"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/policy/evaluator"
	"github.com/durward-gateway/durward/internal/ratelimit/admission"
	"github.com/durward-gateway/durward/storage"
)

// Call is one request on its way through the pipeline. durward_auth makes it; each step adds the facts that it
// establishes. Only the call carries identity between the gateway's handlers, never a header.
type Call struct {
	Core *Core
	// Caller is nil on the few public paths that need no token.
	Caller *authn.Caller
	bearer authn.Bearer // source of Caller
	notes  *bearerNotes // about Caller; nil: there are none
	// Server is set on /mcp/{name} and /sse/{name}. Other requests share it: it must not be changed.
	Server *storage.Server
	// Known is Server with the rules for calls to it, as the evaluator found it.
	Known evaluator.Known
	// Agent is the registered agent that holds the token; nil for none. Other requests share it: it must not be changed.
	Agent *storage.Agent
	// Inbound is the request on /mcp after it was read, see ReadInbound.
	Inbound *inbound.Request
	// Events is the request on /sse after it was read, see ReadEvents.
	Events *eventstream.Request
	// Decision is set by durward_policy, on calls that may go on.
	Decision *Decision
	// Judged holds the verdicts of the policies on each message that they were asked about, also of refused calls.
	Judged []evaluator.Judged
	// Credentials is set by durward_credential.
	Credentials CredentialSource
	connected   uint32 // 1: see Account.Use; accessed atomically, because a call can be copied
	// Limits holds the call's limits and its charge.
	Limits admission.State
	// Trace is that of Caddy's tracing; nil: the request is not traced.
	Trace *tracing.Trace
	// Upstream is the trace's request to an upstream that is under way.
	Upstream tracing.Client
	// Log collects the access log's fields about the call.
	Log CallLog

	audit        callAudit
	modelIntent  modelIntent
	modelRequest modelRequest
	// These are the targets of Inbound, Decision and Judged in most calls: a call needs no extra memory for them.
	inbound  inbound.Request
	decision Decision
	judged   [1]evaluator.Judged
}

// CallLog holds the facts of a call that the access log, placeholders and metrics may show: never a body, an argument
// or a secret.
type CallLog struct {
	Method  string // MCP method
	Tool    string
	Session string // the client's tracking tag, not the MCP session
	Model   string // the alias in the request of an LLM call
	// RoutedModel is the alias of the slot that a smart model chose, and RouteReason is the reason; "" for other models.
	RoutedModel, RouteReason string
}

type callKey struct{}

// callContext is a request's context with its call. It takes half the memory of one of package context.
type callContext struct {
	context.Context
	call *Call
}

// Value implements context.Context.
func (c *callContext) Value(key any) any {
	if key == (callKey{}) {
		return c.call
	}
	return c.Context.Value(key)
}

// WithCall returns the request with its call. It is done once per request.
func WithCall(r *http.Request, call *Call) *http.Request {
	return r.WithContext(&callContext{r.Context(), call}) //nolint:contextcheck // it is the request's own
}

// CallOf returns the call of a request. It reports false when the Caddyfile has the gateway's handlers in the wrong
// order; the request must then be refused.
func CallOf(r *http.Request) (*Call, bool) {
	call, ok := r.Context().Value(callKey{}).(*Call)
	return call, ok
}

// RequireCall returns the call of a request, or answers the refusal.
func RequireCall(w http.ResponseWriter, r *http.Request) (*Call, bool) {
	call, ok := CallOf(r)
	if !ok {
		gateway.RefuseNoCaller(w)
	}
	return call, ok
}

// AuthenticatedCall returns the call of a request that has a proven caller, or answers the refusal.
func AuthenticatedCall(w http.ResponseWriter, r *http.Request) (*Call, bool) {
	call, ok := CallOf(r)
	if !ok || call.Caller == nil {
		gateway.RefuseNoCaller(w)
		return nil, false
	}
	return call, true
}

// ProxiedCall returns the call of a request to a server, which has a proven caller, the server, a decision about it and a
// source of the caller's credential, or answers the refusal.
func ProxiedCall(w http.ResponseWriter, r *http.Request) (*Call, bool) {
	call, ok := AuthenticatedCall(w, r)
	if !ok {
		return nil, false
	}
	if call.Server == nil || call.Credentials == nil {
		gateway.RefuseNoCredential(w)
		return nil, false
	}
	if call.Decision == nil {
		gateway.RefuseNoDecision(w)
		return nil, false
	}
	if !call.Limits.Seen() {
		gateway.RefuseNoLimit(w)
		return nil, false
	}
	return call, true
}
