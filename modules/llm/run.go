package llm

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/gateway/tracing"
	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/internal/llm/metering"
	"github.com/durward-gateway/durward/internal/llm/route"
	"github.com/durward-gateway/durward/internal/llm/wire"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/metrics"
	"github.com/durward-gateway/durward/storage"
)

// maxTries is the number of targets to which one call is sent at most.
const maxTries = 16

// run is a request on its way through the targets of a model, with its reservations.
type run struct {
	handler  *Handler
	call     *app.Call
	catalog  *accounts.Catalog
	request  *wire.Request
	model    *accounts.Model
	via      string      // the alias of the smart model that chose model; "" for none
	header   http.Header // the client's
	requests int64       // number of requests that it counts as: 1, or 0 for one that the gateway makes for itself
	most     int64       // bytes of an answer that is read whole, at most

	without bool // of stream_options: the target does not know them

	to      candidate // the target that answers, or was tried last
	tried   int
	entered *limit.Permit // the part of it that is counted already, before its first target; nil: nothing
	permit  *limit.Permit
	hold    *metering.Hold

	reserved int64      // tokens, for to
	sent     time.Time  // when to was asked
	heard    time.Time  // when something of its stream came last
	unknown  bool       // to may have done work that it will not report
	taken    wire.Usage // the estimated usage in that case
}

// candidate is a target, and the alias that led to it.
type candidate struct {
	*accounts.Target
	alias string
	url   *url.URL // of the request's endpoint
}

// candidates returns the targets that serve an endpoint, in the order in which they are tried.
func (x *run) candidates(endpoint limit.Endpoint) []candidate {
	found := make([]candidate, 0, len(x.model.Targets))
	for i := -1; i < len(x.model.Fallbacks); i++ {
		model := x.model
		if i >= 0 {
			model = x.model.Fallbacks[i]
		}
		first := len(found)
		for j := range model.Targets {
			t := &model.Targets[j]
			if u := t.Account.URL(endpoint); u != nil {
				found = append(found, candidate{t, model.Alias, u})
			}
		}
		if len(found) > first+1 {
			shuffle(found[first:])
		}
	}
	return found[:min(len(found), maxTries)]
}

// shuffle orders the targets of one model by their weights.
func shuffle(of []candidate) {
	serving, weights := slices.Clone(of), make([]int, len(of))
	for i := range serving {
		weights[i] = serving[i].Weight
	}
	for i, j := range route.Order(weights, rand.Int64N) {
		of[i] = serving[j]
	}
}

// send sends the request to one target after another, until one gives an answer for the client. Exactly one of its
// results is not nil.
func (x *run) send(ctx context.Context) (*reply, *refusal) {
	candidates := x.candidates(x.request.Endpoint)
	if len(candidates) == 0 {
		return nil, &refusal{status: http.StatusBadRequest, code: codeEndpoint, message: "No provider of this model serves this address" + x.elsewhere()}
	}
	refused := refusedUpstream
	for _, c := range candidates {
		account := c.Account
		pass, ok := x.catalog.Breakers().Enter(route.Key{Organization: x.call.Caller.OrganizationID, Provider: account.ID})
		if !ok {
			continue // its circuit breaker is open
		}
		known := route.RefusalKey{Key: route.Key{Organization: x.call.Caller.OrganizationID, Provider: account.ID}, Model: c.Model}
		x.without = x.request.AsksForUsage() && (account.NoStreamOptions || x.catalog.NoStreamOptions().Has(known))
		answer, result, no := x.attempt(ctx, c)
		if no.again {
			x.without = true
			if answer, result, no = x.attempt(ctx, c); answer != nil && answer.Status < http.StatusBadRequest {
				x.catalog.NoStreamOptions().Add(known)
			}
		}
		pass.Done(result)
		if answer != nil {
			return answer, nil
		}
		if no.final {
			return nil, no.refusal
		}
		refused = no.refusal
	}
	return nil, refused
}

// elsewhere returns the addresses at which the model is served instead, as the end of a sentence.
func (x *run) elsewhere() string {
	var paths []string
	for path, endpoint := range endpoints {
		if len(x.candidates(endpoint)) > 0 {
			paths = append(paths, "/"+path)
		}
	}
	if len(paths) == 0 {
		return "."
	}
	slices.Sort(paths)
	return "; call it at " + strings.Join(paths, ", ") + "."
}

// failure is an attempt that gave no answer for the client.
type failure struct {
	*refusal
	final bool // another target would not help, or must not be tried
	again bool // the same one may answer without stream_options
}

// attempt sends the request to one target.
func (x *run) attempt(ctx context.Context, c candidate) (*reply, route.Result, failure) {
	step := x.call.Trace.Limit()
	refused, err := x.admit(ctx, c)
	step.Limited(tracing.Charge, refused != nil, err)
	if refused != nil || err != nil {
		if err != nil {
			x.call.Core.LogFailure(x.handler.Logger, "counting a call to a model", err)
			return nil, route.Unknown, failure{refusal: refusedStore, final: true}
		}
		return nil, route.Unknown, failure{refusal: refused, final: x.tried == 0 && !refused.here}
	}
	x.to = c
	x.tried++
	if err := x.call.Records().ModelIntent(ctx, x.asked(c)); err != nil {
		x.call.Core.LogFailure(x.handler.Logger, "recording a call to a model", err)
		return nil, route.Unknown, failure{refusal: refusedRecord, final: true}
	}
	core, started := x.call.Core, x.handler.now()
	x.sent = started
	at := x.call.Upstream.Context()
	response, err := x.handler.Forwarder.Do(accounts.WithConnectTimeout(ctx, c.Timeouts.Connect), &forward.Request{
		Method: http.MethodPost, URL: c.url, Header: x.header, Body: x.body(c.Model),
		Credential: x.catalog.Credential(c.Account),
		Rules:      c.Account.Protocol.Headers(), HeaderTimeout: c.Timeouts.Response, Idle: c.Timeouts.Idle,
		TraceParent: at.Parent, TraceState: at.State,
	})
	core.Metrics.ObserveUpstream(family, x.handler.now().Sub(started), x.call.Trace.Sampled())
	if err != nil {
		result, no := x.failed(ctx, c, err)
		x.call.Records().ModelOutcome(no.result(), 0, wire.Usage{})
		return nil, result, no
	}
	answer := &reply{Response: response}
	result, no := x.judge(ctx, c, answer)
	if no.refusal == nil {
		return answer, result, no
	}
	response.Discard()
	x.call.Records().ModelOutcome(no.result(), response.Status, wire.Usage{})
	return nil, result, no
}

// asked describes the call to a target.
func (x *run) asked(c candidate) app.ModelCall {
	return app.ModelCall{Account: c.Account, Alias: c.alias, Model: c.Model, Operation: operations[x.request.Endpoint], URL: c.url}
}

// operations maps the endpoints to gen_ai.operation.name. The conventions have no word for the last.
var operations = map[limit.Endpoint]string{
	limit.ChatCompletions: "chat", limit.Responses: "chat", limit.Messages: "chat", limit.Embeddings: "embeddings", limit.CountTokens: "count_tokens",
}

// body returns the request for a model of the target that is tried.
func (x *run) body(model string) []byte {
	if x.without {
		return x.request.BodyWithout(model)
	}
	return x.request.Body(model)
}

// failed returns the result of a call whose target gave no answer.
func (x *run) failed(ctx context.Context, c candidate, err error) (route.Result, failure) {
	if !errors.Is(err, forward.ErrConnect) {
		x.lose(ctx, err)
	}
	if reason, ended := streams.EndedFor(ctx); ended {
		return route.Unknown, failure{refusal: refusedEnded(reason), final: true}
	}
	var header *forward.HeaderError
	switch {
	case errors.As(err, &header):
		x.unknown = false
		return route.Unknown, failure{refusal: &refusal{
			status: http.StatusBadRequest, message: "The header " + header.Name + " cannot be forwarded.",
		}, final: true}
	case errors.Is(err, forward.ErrClientGone):
		return route.Unknown, failure{refusal: gone, final: true}
	}
	x.warn(c, "calling a provider", zap.Error(err))
	return route.Fails, failure{refusal: refusedUpstream}
}

func (x *run) warn(c candidate, text string, what zap.Field) {
	x.handler.Logger.Warn(text, x.fields(c, what)...)
}

func (x *run) fields(c candidate, what zap.Field) []zap.Field {
	return []zap.Field{
		zap.String("organization", x.call.Caller.OrganizationID), zap.String("provider", c.Account.Name), zap.String("model", c.Model), what,
	}
}

// admit charges the call to target c and refunds the previous target first, because a small budget may have room for
// one call only. The work that the previous target may have done stays counted (attack T07).
func (x *run) admit(ctx context.Context, c candidate) (*refusal, error) {
	x.endHold()
	core, organization := x.call.Core, x.call.Caller.OrganizationID
	subject := x.subject(c)
	matched, err := core.Admitter.MatchModels(ctx, x.call.Admission().Described(), &subject)
	if err != nil {
		return nil, err
	}
	estimate := x.request.Estimate
	smallest, limited := matched.SmallestTokens()
	tokens := estimate.Reserve(core.Admitter.Means().Of(organization, x.model.Alias), x.model.MostOutput(), smallest, limited)
	hold, full, err := core.Usage.Reserve(ctx, metering.Call{
		Organization: organization, Subject: subject, Kind: c.Account.Kind, Input: estimate.Prompt, Output: tokens - estimate.Prompt, Uncounted: x.requests == 0,
	})
	if err != nil {
		return nil, err
	}
	if full != nil {
		return refusedBudget(full), nil
	}
	var over *limit.Refusal
	switch {
	case x.permit != nil && x.unknown:
		over, err = x.permit.Again(ctx, matched, x.taken.Total())
	case x.permit != nil:
		over, err = x.permit.Move(ctx, matched)
	case x.entered != nil:
		if over, err = x.entered.Extend(ctx, matched, tokens); over == nil && err == nil {
			x.permit = x.entered
		}
	default:
		x.permit, over, err = core.Admitter.Engine().Charge(ctx, matched, limit.Cost{Requests: x.requests, Tokens: tokens})
	}
	if err != nil || over != nil {
		hold.Release()
		if over != nil {
			core.Admitter.ModelRefused(over)
			return refusedLimit(over), nil
		}
		return nil, err
	}
	x.hold, x.unknown, x.reserved = hold, false, min(tokens, x.permit.Reserved())
	return nil, nil
}

// subject returns all properties of the call to target c that limits may be for.
func (x *run) subject(c candidate) limit.Subject {
	subject := x.call.Admission().LimitSubject(storage.TrafficLLM)
	subject.ProviderID, subject.ProviderName, subject.Model, subject.Alias = c.Account.ID, c.Account.Name, c.Model, x.model.Alias
	subject.Via = x.via
	return subject
}

// endHold ends the budgets' reservation for the target that was tried last.
func (x *run) endHold() {
	if x.unknown {
		x.hold.Settle(spent(x.taken))
	} else {
		x.hold.Release()
	}
	x.hold = nil
}

// spent returns usage in the form of budgets.
func spent(u wire.Usage) metering.Tokens {
	return metering.Tokens{Input: u.Input, Output: u.Output, Cached: u.Cached, Written: u.Written, Written1h: u.Written1h}
}

// used settles the call's usage, once.
func (x *run) used(u wire.Usage) {
	x.settle(u)
	if u.Output > 0 {
		x.call.Core.Admitter.Means().Add(x.call.Caller.OrganizationID, x.model.Alias, x.request.PerChoice(u.Output), x.handler.now().Sub(x.sent))
	}
}

// settle settles an estimated usage: the alias's means do not learn from it.
func (x *run) settle(u wire.Usage) {
	if x.permit != nil {
		x.permit.Settle(u.Total())
	}
	x.hold.Settle(spent(u))
	metrics.CountModelTokens(u.Input, u.Output, u.Cached)
}

// end settles a call that is not settled yet: a call without a result used nothing, unless that is unknown.
func (x *run) end() {
	switch {
	case x.permit == nil:
	case x.unknown:
		x.permit.Settle(x.taken.Total())
	default:
		x.permit.Settle(0)
	}
	x.endHold()
}
