package llm

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/llm/route"
	"github.com/durward-gateway/durward/internal/llm/wire"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/proxy/forward"
)

// reply is an answer of a target that goes to the client. The beginning of an event stream was read before, and any
// other answer of a model was read whole.
type reply struct {
	*forward.Response
	stream *wire.Stream // of an event stream
	body   []byte       // of JSON, and of a refusal that was inspected; nil: not read yet
	err    error        // of reading body
}

// announced is the time for which an event stream may announce its begin before the client hears of it. A proxy in
// between closes connections on which nothing comes for a minute.
const announced = 10 * time.Second

// judge decides whether an answer goes to the client. An answer about the gateway's own account never does. Nor does an
// error in place of an answer, whatever its status: as long as nothing was delivered another target can be asked.
func (x *run) judge(ctx context.Context, c candidate, answer *reply) (route.Result, failure) {
	if answer.Status >= http.StatusBadRequest {
		result, no := x.judgeStatus(c, answer, answer.Status)
		if no.refusal == nil && x.request.AsksForUsage() && !x.without {
			answer.body, answer.err = answer.ReadAll(maxWrong)
			if answer.err == nil && wire.RefusesStreamOptions(answer.body) {
				x.warn(c, "a provider does not know stream_options, and is asked without it", zap.Int("status", answer.Status))
				no = failure{refusal: refusedUpstream, again: true}
			}
		}
		return result, no
	}
	var told wire.Failure
	var failed bool
	switch answer.Kind {
	case forward.Events:
		began := x.handler.now()
		answer.stream = wire.NewStream(x.request, answer.Body)
		if x.call.Upstream.Recorded() {
			answer.stream.NoteModel()
		}
		if err := answer.stream.Begin(func() bool { return x.handler.now().Sub(began) > announced }); err != nil {
			return x.broken(ctx, c, err)
		}
		x.heard = x.handler.now()
		answer.Body = listener{answer.stream, x}
		told, failed = answer.stream.Failed()
		failed = failed && !answer.stream.Delivers()
	case forward.JSON:
		if answer.body, answer.err = answer.ReadAll(x.most); answer.err != nil {
			if errors.Is(answer.err, forward.ErrClientGone) {
				return route.Unknown, failure{}
			}
			return route.Fails, failure{}
		}
		told, failed = wire.AnswerFailure(x.request.Endpoint, answer.body)
	case forward.Empty, forward.Other:
	}
	if !failed {
		return route.Works, failure{}
	}
	x.warn(c, "a provider answers with an error and the status 200", zap.String("error", told.Name))
	result, no := x.judgeStatus(c, answer, told.Status)
	if result == route.Fails && !told.Own {
		result = route.Unknown // otherwise a user could cause five such errors and block the provider for everybody (attack T07)
	}
	if no.refusal == nil && answer.stream == nil {
		answer.Status = told.Status // the client may know what is wrong with its request
	}
	return result, no
}

// judgeStatus does the work of judge for an error that stands for a status.
func (x *run) judgeStatus(c candidate, answer *reply, status int) (route.Result, failure) {
	switch {
	case status == http.StatusTooManyRequests:
		x.warn(c, "a provider takes no more requests", zap.Int("status", status))
		return route.Unknown, failure{refusal: x.refusedBusy(answer.Response)}
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusPaymentRequired:
		x.handler.Logger.Error("a provider refuses the gateway's account: look at its key and its credit", x.fields(c, zap.Int("status", status))...)
		return route.Unknown, failure{refusal: refusedUpstream}
	case status == http.StatusServiceUnavailable, status == wire.StatusOverloaded:
		x.warn(c, "a provider is overloaded", zap.Int("status", status))
		return route.Fails, failure{refusal: x.refusedOverloaded(answer.Response, status)}
	case status >= http.StatusInternalServerError:
		x.warn(c, "a provider failed", zap.Int("status", status))
		return route.Fails, failure{refusal: refusedUpstream}
	}
	return route.Works, failure{}
}

// broken returns the result of a call whose event stream ended before it began.
func (x *run) broken(ctx context.Context, c candidate, err error) (route.Result, failure) {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	var known *forward.Error
	if !errors.As(err, &known) {
		err = &forward.Error{Class: forward.ErrUpstream, Cause: err}
	}
	if reason, ended := streams.EndedFor(ctx); ended {
		x.lose(ctx, err)
		return route.Unknown, failure{refusal: refusedEnded(reason), final: true}
	}
	return x.failed(ctx, c, err)
}
