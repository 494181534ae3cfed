package llm

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/gateway/tracing"
	"github.com/durward-gateway/durward/internal/llm/wire"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/proxy/forward"
)

// These are the bounds of answers that are read whole, in bytes.
const (
	maxAnswer = 64 << 20 // some thousand embeddings
	maxWrong  = 1 << 20  // of an answer that describes an error
)

// relay passes an answer on to the client.
func (x *exchange) relay(ctx context.Context, run *run, answer *reply) {
	header := x.w.Header()
	header.Set("X-Durward-Model", run.to.alias)
	switch {
	case answer.stream != nil:
		x.relayStream(ctx, run, answer)
	case answer.Status >= http.StatusBadRequest:
		x.relayWrong(ctx, run, answer)
	case answer.Kind == forward.JSON:
		x.relayWhole(ctx, run, answer)
	default:
		run.lose(ctx, nil)
		x.handler.Logger.Warn("a provider's answer is neither JSON nor an event stream", run.fields(run.to, zap.Int("status", answer.Status))...)
		x.finish(run, outcomeUpstream, answer.Status, wire.Usage{})
		x.refuse(refusedUpstream)
	}
}

// finish records the result of the call.
func (x *exchange) finish(run *run, outcome string, status int, used wire.Usage) {
	x.outcome = outcome
	x.call.Records().ModelOutcome(outcome, status, used)
}

// relayWrong passes on a provider's complaint about the request. The provider used no tokens for it.
func (x *exchange) relayWrong(ctx context.Context, run *run, answer *reply) {
	body, err := answer.body, answer.err
	if body == nil && err == nil {
		body, err = answer.ReadAll(maxWrong)
	}
	if err != nil && !errors.Is(err, forward.ErrTooLarge) {
		x.brokeOff(ctx, run, answer.Response, err)
		return
	}
	x.finish(run, outcomeRefused, answer.Status, wire.Usage{})
	if err != nil || answer.Kind != forward.JSON {
		x.refuse(&refusal{status: answer.Status, message: "The provider of the model refuses the request."})
		return
	}
	x.writeWhole(answer.Response, body)
}

// relayWhole passes on an answer in one piece.
func (x *exchange) relayWhole(ctx context.Context, run *run, answer *reply) {
	if answer.err != nil {
		x.brokeOff(ctx, run, answer.Response, answer.err)
		return
	}
	used := wire.AnswerUsed(run.request, answer.body)
	run.used(used)
	if x.call.Upstream.Recorded() {
		x.call.Upstream.Used(tracing.Usage{Model: wire.AnswerModel(answer.body)})
	}
	x.finish(run, outcomeOK, answer.Status, used)
	x.writeWhole(answer.Response, answer.body)
}

// brokeOff answers when an answer broke off before any of it has reached the client.
func (x *exchange) brokeOff(ctx context.Context, run *run, response *forward.Response, err error) {
	run.lose(ctx, err)
	refused := refusedUpstream
	reason, ended := streams.EndedFor(ctx)
	switch {
	case ended:
		refused = refusedEnded(reason)
	case errors.Is(err, forward.ErrClientGone):
		refused = gone
	default:
		run.warn(run.to, "reading a provider's answer", zap.Error(err))
	}
	x.finish(run, refused.result(), response.Status, wire.Usage{})
	x.refuse(refused)
}

func (x *exchange) writeWhole(response *forward.Response, body []byte) {
	header := x.w.Header()
	response.CopyHeader(header)
	own := [...]string{strconv.Itoa(len(body)), "no-store", "nosniff"} // one piece of memory for all
	header["Content-Length"], header["Cache-Control"], header["X-Content-Type-Options"] = own[0:1:1], own[1:2:2], own[2:3:3]
	x.w.WriteHeader(response.Status)
	if _, err := response.Client(x.w).WriteLast(body); err != nil {
		x.outcome = outcomeClientGone
	}
}

// relayStream passes on an event stream, event by event.
func (x *exchange) relayStream(ctx context.Context, run *run, answer *reply) {
	stream, response := answer.stream, answer.Response
	run.request.Forget() // of its body, for as long as the stream takes
	header := x.w.Header()
	response.CopyHeader(header)
	header.Set("X-Content-Type-Options", "nosniff")
	err := response.Relay(x.w, x.call.Core.Sizes.MCPEvent())
	x.call.Upstream.Used(tracing.Usage{Model: stream.Model()})
	if stream.Ended() {
		err = nil // complete, even if an error followed
	}
	told, known := stream.Failed()
	switch {
	case err == nil && !stream.Ended() && !known:
		err = &forward.Error{Class: forward.ErrUpstream, Cause: io.ErrUnexpectedEOF}
		fallthrough
	case err != nil:
		outcome := x.cutOff(ctx, run, response, stream, err)
		run.cut(ctx, stream, err)
		x.finish(run, outcome, response.Status, stream.Used())
	case known && !stream.Delivers(): // no tokens were used for it
		outcome := outcomeRefused
		if told.Status >= http.StatusInternalServerError || told.Status == http.StatusTooManyRequests {
			outcome = outcomeUpstream
		}
		x.finish(run, outcome, response.Status, wire.Usage{})
	case known:
		x.settleStream(ctx, run, stream)
		x.finish(run, outcomeUpstream, response.Status, stream.Used())
	default:
		x.settleStream(ctx, run, stream)
		x.finish(run, outcomeOK, response.Status, stream.Used())
	}
}

// settleStream settles a stream that came to its end, or to an error that its provider reported. When an administrator
// has set that a provider reports no usage, the text is counted instead.
func (x *exchange) settleStream(ctx context.Context, run *run, stream *wire.Stream) {
	if stream.Usage().Known || run.without && run.to.Account.NoStreamOptions {
		run.used(stream.Used())
		return
	}
	run.untold(ctx, stream)
}

// cutOff ends a stream that broke off after its beginning, with an error event where a client is left to read it.
func (x *exchange) cutOff(ctx context.Context, run *run, response *forward.Response, stream *wire.Stream, err error) (outcome string) {
	text, code := textUpstream, wire.CodeUpstream
	reason, ended := streams.EndedFor(ctx)
	switch {
	case ended:
		outcome, text, code = outcomeEnded, endedText(reason), string(reason)
	case errors.Is(err, forward.ErrClientGone):
		x.abort = true
		return outcomeClientGone
	default:
		outcome = outcomeCut
		run.warn(run.to, "a provider's stream broke off", zap.Error(err))
	}
	client := response.Client(x.w)
	if _, err := client.Write(stream.Break(http.StatusBadGateway, code, text)); err != nil || client.Flush() != nil {
		x.abort = true
	}
	return outcome
}
