package llm

import (
	"context"
	"net/http"
	"strconv"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/gateway/tracing"
	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/internal/llm/route"
	"github.com/durward-gateway/durward/internal/llm/wire"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/modules/app"
)

// maxCount is the limit for an answer of a provider that counts tokens, in bytes.
const maxCount = 64 << 10

// serveCount answers the number of tokens of a request. It counts as a request, of its target too, so that it is
// limited. It counts as nothing else: no model works for it, and no provider charges for it.
func (h *Handler) serveCount(a *answerer, call *app.Call) {
	x := h.exchange(a, call)
	x.count()
	call.Records().Outcome(x.outcome, 0)
	call.Core.Metrics.Calls.WithLabelValues(family, x.outcome).Inc()
}

func (x *exchange) count() {
	request, model, ok := x.read()
	if !ok {
		return
	}
	x.call.Records().TokenCount()
	ctx, done := x.call.Streams().Open(x.r.Context(), streams.Call)
	defer done()
	if reason, ended := streams.EndedFor(ctx); ended {
		x.no(refusedEnded(reason))
		return
	}
	if refused := x.enter(ctx, model); refused != nil {
		x.no(refused)
		x.call.Records().ModelRefused(ctx, model.Alias, x.outcome)
		return
	}
	defer x.entered.Close()
	run := &run{handler: x.handler, call: x.call, catalog: x.catalog, request: request, model: model, header: x.r.Header, entered: x.entered}
	var full *refusal
	for _, c := range run.candidates(limit.CountTokens) {
		answer, refused := run.counted(ctx, c)
		if refused != nil && refused.here {
			full = refused
			continue
		}
		if refused != nil {
			x.no(refused)
			return
		}
		if answer != nil {
			x.w.Header().Set("X-Durward-Model", c.alias)
			if answer.Status >= http.StatusBadRequest {
				x.outcome = outcomeRefused
			}
			x.writeWhole(answer.Response, answer.body)
			answer.Close()
			return
		}
	}
	if full != nil && run.tried == 0 {
		x.leave(full)
		x.no(full)
		x.call.Records().ModelRefused(ctx, model.Alias, x.outcome)
		return
	}
	x.write(http.StatusOK, []byte(`{"input_tokens":`+strconv.FormatInt(request.Estimate.Prompt, 10)+`}`))
}

// counted asks one target. Both results are nil when another target can be asked, or the estimate can be given: with
// every provider the count is only an estimate, so a missing answer does no harm.
func (x *run) counted(ctx context.Context, c candidate) (*reply, *refusal) {
	pass, ok := x.catalog.Breakers().Enter(route.Key{Organization: x.call.Caller.OrganizationID, Provider: c.Account.ID})
	if !ok {
		return nil, nil
	}
	result := route.Unknown
	defer func() { pass.Done(result) }()
	if refused := x.extend(ctx, c); refused != nil {
		return nil, refused
	}
	x.tried++
	if err := x.call.Records().ModelIntent(ctx, x.asked(c)); err != nil {
		x.call.Core.LogFailure(x.handler.Logger, "recording a call to a model", err)
		return nil, refusedRecord
	}
	at := x.call.Upstream.Context()
	response, err := x.handler.Forwarder.Do(accounts.WithConnectTimeout(ctx, c.Timeouts.Connect), &forward.Request{
		Method: http.MethodPost, URL: c.url, Header: x.header, Body: x.request.Body(c.Model), Credential: x.catalog.Credential(c.Account),
		Rules: c.Account.Protocol.Headers(), HeaderTimeout: c.Timeouts.Response, Idle: c.Timeouts.Idle,
		TraceParent: at.Parent, TraceState: at.State,
	})
	if err != nil {
		var no failure
		result, no = x.failed(ctx, c, err)
		x.call.Records().ModelOutcome(no.result(), 0, wire.Usage{})
		if no.final {
			return nil, no.refusal
		}
		return nil, nil
	}
	answer := &reply{Response: response}
	if response.Kind == forward.JSON {
		answer.body, answer.err = response.ReadAll(maxCount)
	}
	read := answer.body != nil && answer.err == nil
	switch s := response.Status; {
	case read && s == http.StatusBadRequest && wire.RefusesCounting(answer.body):
		result = route.Works // and the estimate follows: clients that measure their context this way stop at an error
	case read && s < http.StatusBadRequest:
		result = route.Works
		x.call.Records().ModelOutcome(outcomeOK, s, wire.Usage{})
		return answer, nil
	case read && (s == http.StatusBadRequest || s == http.StatusRequestEntityTooLarge || s == http.StatusUnprocessableEntity):
		result = route.Works
		x.call.Records().ModelOutcome(outcomeRefused, s, wire.Usage{})
		return answer, nil
	}
	x.warn(c, "a provider does not count tokens, which are estimated", zap.Int("status", response.Status))
	x.call.Records().ModelOutcome(outcomeUpstream, response.Status, wire.Usage{})
	response.Discard()
	return nil, nil
}

// extend charges the request to target c as well: a client that counts without end would use up the provider's limit
// for the gateway's account, for everybody (attack T10).
func (x *run) extend(ctx context.Context, c candidate) *refusal {
	admitter, subject := x.call.Core.Admitter, x.subject(c)
	matched, err := admitter.MatchModels(ctx, x.call.Admission().Described(), &subject)
	var over *limit.Refusal
	if err == nil {
		step := x.call.Trace.Limit()
		over, err = x.entered.Extend(ctx, matched, 0)
		step.Limited(tracing.Charge, over != nil, err)
	}
	switch {
	case err != nil:
		x.call.Core.LogFailure(x.handler.Logger, "counting a request for a number of tokens", err)
		return refusedStore
	case over != nil:
		admitter.ModelRefused(over)
		return refusedLimit(over)
	}
	return nil
}
