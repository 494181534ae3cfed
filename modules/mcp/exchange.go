package mcp

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/broker"
	"github.com/durward-gateway/durward/internal/forward"
	"github.com/durward-gateway/durward/internal/jsonrpc"
	"github.com/durward-gateway/durward/internal/mcpsession"
	"github.com/durward-gateway/durward/internal/streams"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/storage"
)

// exchange is one request on its way to the upstream and back.
type exchange struct {
	handler *Handler
	call    *app.Call
	w       http.ResponseWriter
	r       *http.Request

	session  mcpsession.Session // of the request; zero when it has none
	endpoint *url.URL           // where the message goes when it is not the server's own address: revision 2024-11-05
	body     []byte
	message  jsonrpc.Body
	outcome  string // for metrics
	abort    bool   // the answer broke off after its beginning: the client must not take what it has for the whole
}

func (x *exchange) serve() {
	switch x.r.Method {
	case http.MethodPost, http.MethodGet, http.MethodDelete:
	default:
		x.outcome = "refused"
		app.WriteMethodNotAllowed(x.w, "GET, POST, DELETE")
		return
	}
	if x.shed(x.r.Method == http.MethodGet) {
		return
	}
	if !x.readTracking() || !x.readBody() || !x.openSession() || !x.checkMessage() {
		x.outcome = "refused"
		return
	}
	if (x.kind() == streams.Listen || x.opensSession()) && x.shed(true) {
		return
	}
	x.forward()
}

// modern reports whether the request is of the revision 2026-07-28 or later, which has no sessions.
func (x *exchange) modern() bool {
	return jsonrpc.Modern(x.r.Header.Get(jsonrpc.HeaderProtocolVersion))
}

// single is the request's message when it has just one.
func (x *exchange) single() *jsonrpc.Message {
	if x.message.Batch || len(x.message.Messages) != 1 {
		return nil
	}
	return &x.message.Messages[0]
}

// forward opens the stream first and asks for the credential then: a connection that ends in between is seen by one of
// the two.
func (x *exchange) forward() {
	ctx, done := x.call.OpenStream(x.r.Context(), x.kind())
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
		x.writeRPC(http.StatusBadGateway, jsonrpc.CodeInternalError, "The server does not speak MCP; its events are at /sse", app.UpstreamError)
		return
	}
	response, err := app.SendWith(ctx, x.call.Credentials, credential, func(c broker.Credential) (*forward.Response, error) {
		return x.attempt(ctx, c)
	})
	if err != nil {
		x.failed(ctx, err)
		return
	}
	defer response.Close()
	x.relay(ctx, response)
}

// kind tells streams that stay open until somebody ends them: the GET stream, and the 2026 revision's subscription.
func (x *exchange) kind() streams.Kind {
	if x.r.Method == http.MethodGet {
		return streams.Listen
	}
	if m := x.single(); m != nil && m.Method == "subscriptions/listen" {
		return streams.Listen
	}
	return streams.Call
}

func (x *exchange) attempt(ctx context.Context, credential broker.Credential) (*forward.Response, error) {
	target := x.endpoint
	if target == nil {
		var err error
		if target, err = url.Parse(x.call.Server.Entry.URL); err != nil {
			return nil, err
		}
	}
	started := time.Now()
	response, err := x.handler.forwarder.Do(ctx, &forward.Request{
		Method: x.r.Method, URL: target, Header: x.r.Header, SessionID: x.session.Upstream, Body: x.body, Credential: credential,
	})
	x.call.Core.Metrics.UpstreamSeconds.WithLabelValues("mcp").Observe(time.Since(started).Seconds())
	return response, err
}

// failed answers for an upstream that gave no usable answer, or for a stream that the gateway ended.
func (x *exchange) failed(ctx context.Context, err error) {
	if errors.Is(err, broker.ErrNotConnected) || errors.Is(err, broker.ErrUnavailable) {
		x.refuseCredential(ctx, err)
		return
	}
	if reason, ended := streams.EndedFor(ctx); ended {
		x.ended(reason) //nolint:contextcheck // ctx is what ended; what is left to do goes with the request
		return
	}
	var header *forward.HeaderError
	switch {
	case errors.As(err, &header):
		x.outcome = "refused"
		x.writeRPC(http.StatusBadRequest, jsonrpc.CodeInvalidRequest, "The header "+header.Name+" cannot be forwarded", app.BadRequest)
	case errors.Is(err, forward.ErrClientGone):
		x.outcome = "client_gone"
	default:
		x.outcome = "upstream_error"
		x.handler.logger.Warn("forwarding", zap.String("server", x.call.Server.Slug), zap.Error(err))
		x.writeRPC(http.StatusBadGateway, jsonrpc.CodeInternalError, forward.PublicText, app.UpstreamError)
	}
}

// ended answers when the right to the call ended before its answer began, or there is no place for its stream.
func (x *exchange) ended(reason streams.Reason) {
	switch x.outcome = "ended"; reason {
	case streams.Disconnected:
		x.refuseCredential(x.r.Context(), &broker.NotConnectedError{})
		return
	case streams.UserFull:
		x.outcome = "limited"
		app.SetRetryAfter(x.w)
		x.writeRPC(http.StatusTooManyRequests, jsonrpc.CodeRateLimited, app.TextUserFull, app.RateLimitExceeded)
		return
	case streams.NodeFull:
		x.outcome = "unavailable"
	}
	x.call.WriteEnded(x.w, x.r, reason)
}

// shed refuses the request when memory is too short for it, and reports whether it did.
func (x *exchange) shed(lasting bool) bool {
	refused := x.call.Shed(x.w, x.r, lasting)
	if refused {
		x.outcome = "unavailable"
	}
	return refused
}

// opensSession reports whether the message begins a session.
func (x *exchange) opensSession() bool {
	m := x.single()
	return m != nil && m.Method == "initialize"
}

// writeRPC answers with a JSON-RPC error whose data is the service error of that name.
func (x *exchange) writeRPC(status, code int, message string, name app.ErrorName) {
	x.writeRPCError(status, code, message, &app.ServiceError{Name: name, Message: message})
}

func (x *exchange) writeRPCError(status, code int, message string, data any) {
	var id []byte
	if m := x.single(); m != nil && m.Kind == jsonrpc.Request {
		id = m.ID
	}
	x.writeBody(status, jsonrpc.ErrorResponse(id, code, message, data))
}

func (x *exchange) writeBody(status int, body []byte) {
	header := x.w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	x.w.WriteHeader(status)
	_, _ = x.w.Write(body)
}
