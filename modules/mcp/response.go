package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/gateway/inbound"
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/mcp/legacysse"
	mcpsession "github.com/durward-gateway/durward/internal/mcp/session"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/proxy/forward"
)

// maxErrorBody is the limit for an error answer of an upstream that is passed on, in bytes. The answer is read whole
// first. A longer one, or one that breaks off, becomes an upstream error and not half an answer.
const maxErrorBody = 64 << 10

// relay passes the upstream's answer on.
func (x *exchange) relay(ctx context.Context, response *forward.Response) {
	switch {
	case x.acceptsReceipt(response):
		x.relayReceipt(ctx, response)
		return
	case x.refused(ctx, response):
		return
	case response.Status >= http.StatusBadRequest:
		x.relayRefusal(ctx, response)
		return
	}
	if err := x.recognize(response); err != nil {
		x.failed(ctx, err)
		return
	}
	if err := x.sealSession(response); err != nil {
		x.failed(ctx, err)
		return
	}
	if m := x.Single(); x.Modern() && m != nil && m.Kind == jsonrpc.Request && m.Method != "server/discover" && response.Status == http.StatusOK && x.call.Account().Led() {
		x.call.Core.Sightings.SpeaksModern(x.call.Server, x.call.Known.Sight())
	}
	response.CopyHeader(x.w.Header())
	x.label(response.Kind)
	if x.mayAnnounce(response) {
		x.replaceEndpoint(response)
	}
	if err := x.filter(response); err != nil {
		if failure := (*forward.Error)(nil); !errors.As(err, &failure) {
			err = &forward.Error{Class: forward.ErrUpstream, Cause: err}
		}
		x.interrupted(ctx, response, err)
		return
	}
	if x.Kind() == streams.Listen && response.Kind == forward.Events {
		x.call.Core.Admitter.MeterStream(ctx, x.call.Admission().Described(), response, x.call.Core.Sizes.MCPEvent())
	} else {
		defer x.call.Core.Admitter.MeterAnswer(ctx, x.call.Admission().Described(), response, x.call.Core.Sizes.MCPEvent())()
	}
	if x.box != nil {
		merged := x.box.Merge(response.Body, int(x.call.Core.Sizes.MCPEvent()))
		response.Body = merged
		defer func() {
			response.Close()
			merged.Close()
		}()
	}
	if response.Kind == forward.Events {
		response.Heartbeat = time.Duration(x.call.Core.StreamBounds.Heartbeat)
		gauge := x.call.Core.Metrics.Streams.WithLabelValues("mcp")
		gauge.Inc()
		defer gauge.Dec()
	}
	if err := response.Relay(x.w, x.call.Core.Sizes.MCPEvent()); err != nil {
		x.interrupted(ctx, response, err)
	}
}

// refused answers when an upstream refuses the gateway rather than its user, or has nothing at that address, and
// reports that it did.
func (x *exchange) refused(ctx context.Context, response *forward.Response) bool {
	if scope, asks := stepUp(response); asks {
		x.refuseScope(ctx, scope)
		x.outcome = "scope"
		return true
	}
	if name := x.refusingPage(response); name != "" {
		x.outcome = "refused"
		gateway.RefuseByUpstream(x.w, name)
		return true
	}
	return false
}

// relayRefusal passes on an error answer, whole.
func (x *exchange) relayRefusal(ctx context.Context, response *forward.Response) {
	refusal, err := response.ReadAll(maxErrorBody)
	kind := response.Kind
	if err == nil {
		refusal, kind, err = x.recognizeRefusal(response, refusal)
	}
	if err == nil {
		refusal, err = x.filtered(refusal) // some clients read an error's body like any other
	}
	if err == nil {
		err = x.sealSession(response)
	}
	if err != nil {
		x.failed(ctx, err)
		return
	}
	x.noteFailure(refusal)
	response.CopyHeader(x.w.Header())
	if kind != forward.Empty {
		x.label(kind)
	}
	x.call.Core.Admitter.MeterText(ctx, x.call.Admission().Described(), refusal)
	x.w.Header().Set("Content-Length", strconv.Itoa(len(refusal)))
	x.w.WriteHeader(response.Status)
	_, _ = x.w.Write(refusal)
}

// filter removes the parts of the answer that do not belong to its request, and those that policies hide from its
// caller.
func (x *exchange) filter(response *forward.Response) error {
	decision := x.call.Decision
	if decision.EditAnswer != nil {
		if err := decision.EditAnswer(response); err != nil {
			return err
		}
	}
	return x.hold(response)
}

// filtered returns a whole answer without its hidden parts.
func (x *exchange) filtered(body []byte) ([]byte, error) {
	filter := x.call.Decision.Filter
	if filter == nil {
		return body, nil
	}
	kept, err := filter.Message(body)
	if err != nil && filter.Refusal != nil {
		x.handler.Logger.Warn("filtering a list", zap.String("server", x.call.Server.Slug), zap.Error(err))
		return filter.Refusal(), nil
	}
	return kept, err
}

// interrupted handles an answer that ended before its end.
func (x *exchange) interrupted(ctx context.Context, response *forward.Response, err error) {
	var failure *forward.Error
	if errors.As(err, &failure) && !failure.Committed {
		x.uncopy(response)
		x.failed(ctx, err)
		return
	}
	if reason, ended := streams.EndedFor(ctx); ended && response.Kind == forward.Events {
		if x.outcome = "ended"; reason == streams.Cancelled {
			x.outcome = "cancelled"
		}
		// The answer may end anywhere between events: the client opens another one.
		x.sayWhy(response, reason)
		return
	}
	x.abort = errors.Is(err, forward.ErrClientGone) || response.Kind != forward.Events || !x.giveUp(response)
	if errors.Is(err, legacysse.ErrEndpoint) || errors.Is(err, errUnanswered) {
		x.handler.Logger.Warn("forwarding", zap.String("server", x.call.Server.Slug), zap.Error(err))
	}
	if x.outcome = "cut"; errors.Is(err, forward.ErrClientGone) {
		x.outcome = "client_gone"
	}
}

// sayWhy answers the request of a subscription (2026-07-28) that the gateway ended: its stream belongs to one request,
// and without an answer a client takes the end for a broken connection, and begins anew.
func (x *exchange) sayWhy(response *forward.Response, reason streams.Reason) {
	if x.Kind() != streams.Listen || x.r.Method != http.MethodPost {
		return
	}
	text := "The gateway has ended this subscription: " + string(reason)
	body := jsonrpc.ErrorResponse(x.Single().ID, jsonrpc.CodeForbidden, text, map[string]string{"error": string(gateway.Forbidden), "message": text, "reason": string(reason)})
	// The empty lines are for an event that was cut off.
	_, _ = response.Client(x.w).WriteLast(fmt.Appendf(nil, "\n\nevent: message\ndata: %s\n\n", body))
}

// uncopy removes the headers of an answer that will not come. Those of CORS stay.
func (x *exchange) uncopy(response *forward.Response) {
	copied := make(http.Header)
	response.CopyHeader(copied)
	header := x.w.Header()
	for name := range copied {
		header.Del(name)
	}
	header.Del("Content-Length")
	header.Del(jsonrpc.HeaderSessionID)
}

// sealSession gives the client a sealed session id in place of the upstream's. A client that can ask its user gets one
// even when the upstream has no sessions. Its declaration at initialize is found nowhere else (up to 2025-11-25), and
// held calls need it.
func (x *exchange) sealSession(response *forward.Response) error {
	if x.Modern() {
		return nil
	}
	if x.Session.Guided {
		x.w.Header()[jsonrpc.HeaderSessionID] = slices.Clip(x.r.Header[jsonrpc.HeaderSessionID])
		return nil
	}
	var client jsonrpc.Client
	begins := x.OpensSession()
	if begins {
		client = x.Single().Client()
	}
	session := mcpsession.Session{Upstream: response.SessionID()}
	switch {
	case session.Upstream == "" && (client.ElicitForm || client.ElicitURL) && response.Status == http.StatusOK && x.Endpoint == nil && !x.call.Decision.Off:
		session = mcpsession.Begin()
	case session.Upstream == "":
		return nil
	case session.Upstream == x.Session.Forwarded():
		x.w.Header()[jsonrpc.HeaderSessionID] = slices.Clip(x.r.Header[jsonrpc.HeaderSessionID])
		return nil
	}
	if begins {
		session.ElicitForm, session.ElicitURL = client.ElicitForm, client.ElicitURL
		if len(client.ProtocolVersion) == len(inbound.LastBatchVersion) {
			session.ProtocolVersion = client.ProtocolVersion
		}
	}
	sealed, err := x.call.Core.Sessions.Seal(session, x.call.Binding())
	if err != nil {
		return err
	}
	x.opened = session.Upstream
	x.w.Header().Set(jsonrpc.HeaderSessionID, sealed)
	return nil
}

// refusingPage returns the error for a page of status 404 or 405, which web frameworks send around servers of another
// revision; "" when the answer is none. Clients find out by these statuses which transport to speak (2025-03-26,
// basic/transports, "Backwards Compatibility"), and get them with the gateway's text. When a server answers a GET with
// anything but a stream, it has no stream there.
func (x *exchange) refusingPage(response *forward.Response) gateway.ErrorName {
	if x.r.Method == http.MethodGet && response.Status < http.StatusBadRequest && !isEvents(response) {
		return gateway.MethodNotAllowed
	}
	if response.Kind != forward.Other || isText(response) {
		return ""
	}
	return map[int]gateway.ErrorName{http.StatusNotFound: gateway.NotFound, http.StatusMethodNotAllowed: gateway.MethodNotAllowed}[response.Status]
}

func isEvents(response *forward.Response) bool {
	return strings.HasPrefix(contentType(response), "text/event-stream")
}

func isText(response *forward.Response) bool {
	kind := contentType(response)
	return kind == "" || strings.HasPrefix(kind, "text/plain")
}

func contentType(response *forward.Response) string {
	return strings.ToLower(response.Header("Content-Type"))
}

// stepUp reports whether the upstream asks for a wider scope, and for which, blank-separated, when it says so (RFC 6750
// section 3.1). Servers of the Go SDK name the scope and no error.
func stepUp(response *forward.Response) (scope string, asks bool) {
	if response.Status != http.StatusForbidden {
		return "", false
	}
	challenges := response.Challenges()
	challenge, _ := oauth.BearerChallenge(http.Header{"Www-Authenticate": challenges})
	if challenge.Error == insufficientScope || challenge.Error == "" && challenge.Scope != "" {
		return challenge.Scope, true
	}
	return "", slices.ContainsFunc(challenges, func(c string) bool { return strings.Contains(c, insufficientScope) })
}

const insufficientScope = "insufficient_scope"
