package mcp

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/gateway/inbound"
	"github.com/durward-gateway/durward/internal/gateway/tracing"
	"github.com/durward-gateway/durward/internal/mcp/answer"
	"github.com/durward-gateway/durward/internal/mcp/legacysse"
	"github.com/durward-gateway/durward/internal/mcp/param"
	"github.com/durward-gateway/durward/internal/mcp/session"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/outbound"
	"github.com/durward-gateway/durward/storage"
)

// exchange is one request on its way to the upstream and back.
type exchange struct {
	*inbound.Request
	handler *Handler
	call    *app.Call
	w       http.ResponseWriter
	r       *http.Request

	sent    []byte          // the body as the upstream gets it
	at      tracing.Context // the place in a trace from which it goes out
	opened  string          // the session that the answer begins: its Upstream
	mirrors []param.Field   // headers that repeat parts of the message

	joined *session.Session // the upstream's session of a conversation that the gateway began
	waits  atomic.Bool      // the stream waits for its user to connect
	scope  bool             // the upstream wants a wider scope than the connection has
	again  bool             // the user has connected: the stream goes on with the upstream

	box       *legacysse.Box // for a stream that may be one of 2024-11-05
	outcome   string         // for metrics and the audit log
	status    int            // of the upstream's answer; 0: there was none
	answers   answer.Answers
	inSession bool // the upstream knows the client by a session id
	// droppedAny reports whether a part of the answer was dropped.
	droppedAny bool
	abort      bool // the answer broke off after its beginning: the client must not take the received part for the whole
}

// endsOwnSession answers a DELETE of a session that the upstream does not know. There is nothing to delete: only the
// client kept it.
func (x *exchange) endsOwnSession() bool {
	if x.r.Method != http.MethodDelete || !x.Session.Own {
		return false
	}
	x.w.WriteHeader(http.StatusNoContent)
	return true
}

// forward carries the request, and a stream a second time when its user has connected.
func (x *exchange) forward() {
	if x.withheld() || !x.mirror() {
		return
	}
	x.watchConnection()
	x.carry()
	for x.again {
		x.again, x.outcome = false, "ok"
		x.carry()
	}
	x.keepBegun()
}

// carry opens the stream first and asks for the credential afterwards: if the connection ends in between, one of the
// two notices.
func (x *exchange) carry() {
	ctx, done := x.call.Streams().Open(x.r.Context(), x.Kind())
	defer done()
	if reason, ended := streams.EndedFor(ctx); ended {
		x.ended(reason)
		return
	}
	credential, err := x.call.Credentials.Credential(ctx)
	if err != nil {
		x.refuseCredential(ctx, err)
		return
	}
	if x.call.Server.Entry.Protocol != storage.ProtocolMCP {
		x.outcome = "upstream_error"
		gateway.RefuseNoMCP(x.w, x.ID())
		return
	}
	if x.call.Decision.GuideOnly {
		x.onlyLed()
		return
	}
	if err := x.call.Records().Intent(ctx); err != nil {
		x.unrecorded(err)
		return
	}
	if !x.join(ctx, credential) {
		return
	}
	x.call.Streams().EndTakenBack()
	x.trace()
	defer x.measured(time.Now())
	response, err := outbound.SendWith(ctx, x.call.Credentials.Rejected, credential, func(c connection.Credential) (*forward.Response, error) {
		return x.attempt(ctx, c)
	})
	if err != nil {
		x.failed(ctx, err)
		return
	}
	defer response.Close()
	x.status = response.Status
	x.call.Core.Sightings.Answered(x.call.Server, x.call.Known.Sight(), response.Status)
	x.relay(ctx, response)
}

func (x *exchange) attempt(ctx context.Context, credential connection.Credential) (*forward.Response, error) {
	target := x.Endpoint
	if target == nil {
		var err error
		if target, err = x.call.ServerURL(); err != nil {
			return nil, err
		}
	}
	forwarder, err := x.handler.ForwarderOf(&x.call.Server.Entry)
	if err != nil {
		return nil, err
	}
	started := time.Now()
	response, err := forwarder.Do(ctx, &forward.Request{
		Method: x.r.Method, URL: target, Header: x.header(), SessionID: x.session().Forwarded(), Body: x.sent, Credential: credential,
		TraceParent: x.at.Parent, TraceState: x.at.State,
		HTTP1: x.r.ProtoMajor == 1, Cancel: streams.Cancel(ctx), Idle: x.idle(),
	})
	x.call.Core.Metrics.ObserveMCP(time.Since(started), x.call.Trace.Sampled())
	return response, err
}

// quietFor is the time for which streams may be silent that wait for events: a server is not at fault when no event
// happens. TCP keep-alive finds a server that is gone.
const quietFor = 10 * 365 * 24 * time.Hour

// idle returns how long the upstream may be silent; 0: as long as in any answer.
func (x *exchange) idle() time.Duration {
	if x.Kind() == streams.Listen {
		return quietFor
	}
	return 0
}

// unrecorded answers a call that the audit log cannot record.
func (x *exchange) unrecorded(err error) {
	x.outcome = "unavailable"
	x.call.Core.LogFailure(x.handler.Logger, "recording a call", err)
	gateway.RefuseUnrecorded(x.w)
}

// failed answers when an upstream gave no usable answer, or when the gateway ended the stream.
func (x *exchange) failed(ctx context.Context, err error) {
	if errors.Is(err, connection.ErrNotConnected) || errors.Is(err, connection.ErrUnavailable) {
		x.refuseCredential(ctx, err)
		return
	}
	if reason, ended := streams.EndedFor(ctx); ended {
		x.ended(reason) //nolint:contextcheck // ctx has ended; the rest of the work goes with the request
		return
	}
	var header *forward.HeaderError
	switch {
	case errors.As(err, &header):
		x.outcome = "refused"
		gateway.RefuseHeader(x.w, gateway.RPC(x.ID()), header.Name)
	case errors.Is(err, forward.ErrClientGone):
		x.outcome = "client_gone"
	case errors.Is(err, connection.ErrCredentialWanted):
		x.outcome = "upstream_error"
		x.call.WantsCredential(x.handler.Logger)
		gateway.RefuseCredentialWanted(x.w, gateway.RPC(x.ID()))
	default:
		x.outcome = "upstream_error"
		x.handler.Logger.Warn("forwarding", zap.String("server", x.call.Server.Slug), zap.Error(err), zap.String("advice", netguard.Advice(err)))
		x.call.Core.Sightings.Failed(x.call.Server, x.call.Known.Sight(), err)
		gateway.RefuseUpstream(x.w, gateway.RPC(x.ID()))
	}
}

// ended answers when the right to the call ended before its answer began, or there is no place for its stream.
func (x *exchange) ended(reason streams.Reason) {
	switch x.outcome = "ended"; reason {
	case streams.Disconnected:
		x.refuseCredential(x.r.Context(), &connection.NotConnectedError{})
		return
	case streams.Cancelled:
		x.unanswered()
		return
	case streams.UserFull:
		x.outcome = "limited"
		gateway.RefuseUserFull(x.w, gateway.RPC(x.ID()))
		return
	case streams.NodeFull:
		x.outcome = "unavailable"
	}
	x.call.Streams().WriteEnded(x.w, x.r, reason)
}

// unanswered ends a request that its client has cancelled, and that has no answer: with a stream without events.
func (x *exchange) unanswered() {
	x.outcome = "cancelled"
	x.label(forward.Events)
	x.w.WriteHeader(http.StatusOK)
}
