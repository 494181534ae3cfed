package sse

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/gateway/eventstream"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/internal/proxy/sse"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/outbound"
)

// stream is one request.
type stream struct {
	handler *Handler
	call    *app.Call
	w       http.ResponseWriter
	r       *http.Request

	options options
	out     *output
	outcome string // for metrics and the audit log
	status  int    // of the upstream's answer; 0: there was none
}

func (s *stream) serve() {
	ctx, done := s.call.Streams().Open(s.r.Context(), streams.Listen)
	defer done()
	if reason, ended := streams.EndedFor(ctx); ended {
		s.ended(reason)
		return
	}
	response := s.open(ctx)
	if response == nil {
		return
	}
	defer response.Close()
	s.run(ctx, response)
}

// open opens the upstream's stream with the caller's credential, or answers the refusal and returns nil.
func (s *stream) open(ctx context.Context) *forward.Response {
	credential, err := s.call.Credentials.Credential(ctx)
	if err != nil {
		s.refuse(ctx, fmt.Errorf("%w: %w", errUnread, err))
		return nil
	}
	if s.call.Server.Entry.EventsURL == "" {
		s.outcome = "upstream_error"
		gateway.RefuseNoStream(s.w)
		return nil
	}
	if err := s.call.Records().Intent(ctx); err != nil {
		s.unrecorded(err)
		return nil
	}
	s.trace()
	response, err := outbound.SendWith(ctx, s.call.Credentials.Rejected, credential, func(c connection.Credential) (*forward.Response, error) {
		return s.attempt(ctx, c)
	})
	if err != nil {
		s.refuse(ctx, err)
		return nil
	}
	s.status = response.Status
	if response.Status != http.StatusOK || response.Kind != forward.Events {
		s.handler.Logger.Warn("upstream's answer is not an event stream", zap.String("server", s.call.Server.Slug), zap.Int("status", response.Status))
		response.Discard()
		s.refuse(ctx, forward.ErrUpstream)
		return nil
	}
	return response
}

// trace begins the request to the upstream in the trace of the call.
func (s *stream) trace() {
	if s.call.Trace != nil {
		target, _ := url.Parse(s.call.Server.Entry.EventsURL) // attempt reports the error
		s.call.Upstream = s.call.Trace.Request(http.MethodGet, target)
	}
}

func (s *stream) attempt(ctx context.Context, credential connection.Credential) (*forward.Response, error) {
	target, err := url.Parse(s.call.Server.Entry.EventsURL)
	if err != nil {
		return nil, err
	}
	forwarder, err := s.handler.ForwarderOf(&s.call.Server.Entry)
	if err != nil {
		return nil, err
	}
	started, at := time.Now(), s.call.Upstream.Context()
	response, err := forwarder.Do(ctx, &forward.Request{
		Method: http.MethodGet, URL: target, Query: s.options.query(), Header: s.r.Header, EventsOnly: true, Credential: credential,
		HTTP1: s.r.ProtoMajor == 1, TraceParent: at.Parent, TraceState: at.State,
	})
	s.call.Core.Metrics.ObserveUpstream("sse", time.Since(started), s.call.Trace.Sampled())
	return response, err
}

// unrecorded answers for a stream that the audit log cannot record.
func (s *stream) unrecorded(err error) {
	s.outcome = "unavailable"
	s.call.Core.LogFailure(s.handler.Logger, "recording the opening of a stream", err)
	gateway.RefuseUnrecorded(s.w)
}

// errUnread: the credential was not to be had. Its cause may be one for the user, or the store's.
var errUnread = errors.New("getting the credential")

// refuse answers before the stream has begun.
func (s *stream) refuse(ctx context.Context, err error) {
	var lost *connection.NotConnectedError
	var unavailable *connection.UnavailableError
	var header *forward.HeaderError
	reason, ended := streams.EndedFor(ctx)
	if gone := (*streams.Ended)(nil); errors.As(err, &gone) {
		reason, ended = gone.Reason, true
	}
	switch {
	case errors.As(err, &lost) && lost.NoStep:
		s.outcome = "not_connected"
		gateway.Unvouched(lost.Reason).Write(s.w)
	case errors.As(err, &lost):
		s.outcome = "not_connected"
		gateway.RefuseNotConnected(s.w, s.call.Core.ConnectAddress(s.call.Server), lost.Reason)
	case errors.As(err, &unavailable):
		s.outcome = "unavailable"
		gateway.RefuseProviderAway(s.w, unavailable.RetryAfter)
	case errors.As(err, &header):
		s.outcome = "refused"
		gateway.RefuseHeader(s.w, gateway.Plain, header.Name)
	case s.r.Context().Err() != nil, !ended && s.left(ctx):
		s.outcome = "client_gone"
	case ended:
		s.ended(reason)
	case errors.Is(err, errUnread): // the upstream was not asked
		s.outcome = "error"
		s.call.Core.LogFailure(s.handler.Logger, "opening a stream", err)
		gateway.RefuseConnectionUnread(s.w)
	case errors.Is(err, connection.ErrCredentialWanted):
		s.outcome = "upstream_error"
		s.call.WantsCredential(s.handler.Logger)
		gateway.RefuseCredentialWanted(s.w, gateway.Plain)
	default:
		s.outcome = "upstream_error"
		s.handler.Logger.Warn("opening the upstream's stream", zap.String("server", s.call.Server.Slug), zap.Error(err), zap.String("advice", netguard.Advice(err)))
		gateway.RefuseUpstream(s.w, gateway.Plain)
	}
}

// left reports whether the client has left, for a stream that the gateway has not ended. The stream's context shows it;
// the request's may not.
func (s *stream) left(ctx context.Context) bool {
	return errors.Is(ctx.Err(), context.Canceled) || s.r.Context().Err() != nil
}

// ended answers when the right to the stream ended before it began, or there is no place for it.
func (s *stream) ended(reason streams.Reason) {
	switch s.outcome = "ended"; reason {
	case streams.UserFull:
		s.outcome = "limited"
	case streams.NodeFull:
		s.outcome = "unavailable"
	}
	s.call.Streams().WriteEnded(s.w, s.r, reason)
}

// run carries events until the stream ends.
func (s *stream) run(ctx context.Context, response *forward.Response) {
	gauge := s.call.Core.Metrics.Streams.WithLabelValues("sse")
	gauge.Inc()
	defer gauge.Dec()
	header := s.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache, no-transform")
	header.Set("X-Accel-Buffering", "no")
	s.w.WriteHeader(http.StatusOK)
	client := response.Client(s.w)
	defer client.Finish()
	s.out = newOutput(client, time.Duration(s.call.Core.StreamBounds.Heartbeat))
	defer s.out.close()
	s.out.event(eventstream.EventConnected, map[string]string{"status": "ready", "timestamp": time.Now().UTC().Format("2006-01-02T15:04:05.000000Z07:00")})
	s.end(ctx, s.carry(ctx, response))
}

var byteOrderMark = []byte("\xef\xbb\xbf")

var (
	errLimit      = errors.New("the client has all the events it asked for")
	errRateLimit  = errors.New("a rate limit is reached")
	errUncounted  = errors.New("counting an event")
	errClientGone = errors.New("writing to the client")
	errHalf       = errors.New("the upstream's stream has ended inside of an event")
)

// carry passes events on and returns why it stopped; io.EOF is the upstream's end.
func (s *stream) carry(ctx context.Context, response *forward.Response) error {
	reader := sse.NewReader(response.Body, int(s.call.Core.Sizes.Event))
	remaining := s.options.Limit
	for first := true; ; first = false {
		event, err := reader.Next()
		if err != nil {
			return err
		}
		if event.Incomplete && event.HasData {
			return errHalf
		}
		renamed := rename(event)
		if event.Incomplete || !event.HasData || !s.options.passes(event) {
			continue
		}
		if first {
			event.Raw = bytes.TrimPrefix(event.Raw, byteOrderMark) // a BOM here is no longer at the start of a stream
		}
		passed, err := frame(event, renamed)
		if err != nil {
			return err
		}
		if err := s.charge(ctx, event.Data); err != nil {
			return err
		}
		if !s.out.raw(passed) {
			return errClientGone
		}
		if event.Name == eventstream.EventDataUpdate && remaining > 0 {
			if remaining--; remaining == 0 {
				return errLimit
			}
		}
	}
}

// charge counts an event before it is passed on.
func (s *stream) charge(ctx context.Context, data []byte) error {
	refused, err := s.call.Core.Admitter.ChargeDelivered(ctx, s.call.Admission().Described(), data)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", errUncounted, err)
	case refused != nil:
		return errRateLimit
	}
	return nil
}

// end tells the client why its stream ends.
func (s *stream) end(ctx context.Context, err error) {
	if reason, ended := streams.EndedFor(ctx); ended {
		s.outcome = "ended"
		s.out.disconnected(reason)
		return
	}
	switch {
	case errors.Is(err, errClientGone), s.left(ctx):
		s.outcome = "client_gone"
	case errors.Is(err, errLimit):
		s.out.disconnected(streams.LimitReached)
	case errors.Is(err, errRateLimit):
		s.outcome = "limited"
		s.out.event(eventstream.EventError, gateway.RateLimitedEvent())
		s.out.disconnected(streams.LimitReached)
	case errors.Is(err, errUncounted):
		s.outcome = "unavailable"
		s.handler.Logger.Error("counting what a stream delivers", zap.String("server", s.call.Server.Slug), zap.Error(err))
		s.out.event(eventstream.EventError, gateway.UncountedEvent())
		s.out.disconnected(streams.LimitReached)
	case errors.Is(err, errHalf):
		s.outcome = "upstream_error"
		s.out.failed("The upstream server's stream has ended inside of an event, which was left out")
		s.out.disconnected(streams.UpstreamClosed)
	case errors.Is(err, io.EOF):
		s.out.disconnected(streams.UpstreamClosed)
	case errors.Is(err, forward.ErrIdle):
		s.outcome = "upstream_error"
		s.out.failed("The upstream server has been silent for too long")
		s.out.disconnected(streams.Timeout)
	default:
		s.outcome = "upstream_error"
		s.handler.Logger.Warn("carrying the upstream's stream", zap.String("server", s.call.Server.Slug), zap.Error(err))
		s.out.failed(gateway.TextUpstream)
	}
}

// marshal encodes a value that cannot fail to encode.
func marshal(v any) []byte {
	encoded, err := json.Marshal(v)
	if err != nil {
		return []byte(strconv.Quote(err.Error()))
	}
	return encoded
}
