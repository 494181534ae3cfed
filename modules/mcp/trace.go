package mcp

import (
	"time"

	"github.com/durward-gateway/durward/internal/gateway/tracing"
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/modules/app/metrics"
)

// trace begins the request to the upstream in the trace of the call, and marks its message with the place there. What
// policies and approvals judged is the client's own message: a trace is no part of what a server is asked to do.
func (x *exchange) trace() {
	x.sent, x.at = x.Body, tracing.Context{}
	if x.call.Trace == nil {
		return
	}
	server := x.Endpoint
	if server == nil {
		server, _ = x.call.ServerURL() // attempt reports the error
	}
	m := x.Single()
	if m == nil || m.Kind == jsonrpc.Response {
		// No message that is a call: a stream, the end of a session, a batch, an answer to the server.
		x.call.Upstream = x.call.Trace.Request(x.r.Method, server)
		x.at = x.call.Upstream.Context()
		return
	}
	message := tracing.Message{Method: m.Method, Name: m.Name, Version: x.Version(), Session: x.session().Forwarded(), Server: server}
	if m.Kind == jsonrpc.Request {
		message.ID = m.ID
	}
	x.call.Trace.Link(m)
	x.call.Upstream = x.call.Trace.Message(message)
	x.at = x.call.Upstream.Context()
	x.sent = x.at.Mark(x.Body)
}

// measured ends the request to the upstream in the trace and in the metrics. Streams that wait for events are no
// operations, and notifications have no answer.
func (x *exchange) measured(began time.Time) {
	x.call.Upstream.End(x.outcome, x.status)
	if m := x.Single(); m != nil && m.Kind == jsonrpc.Request && x.Kind() == streams.Call {
		metrics.ObserveMessage(m.Method, x.outcome, time.Since(began), x.call.Trace.Sampled())
	}
}

// noteFailure notes the error that a message of the server reports.
func (x *exchange) noteFailure(message []byte) {
	if !x.call.Upstream.Recorded() {
		return
	}
	code, tool := jsonrpc.FailureOf(message)
	if tool {
		code = tracing.ToolError
	}
	x.call.Upstream.Failed(code)
}
