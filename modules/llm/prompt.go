package llm

import (
	"errors"
	"net/http"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/internal/llm/wire"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/internal/ratelimit/overload"
	"github.com/durward-gateway/durward/modules/app"
)

// servePrompt answers a request for a model.
func (h *Handler) servePrompt(a *answerer, call *app.Call) {
	x := h.exchange(a, call)
	x.serve()
	call.Records().Outcome(x.outcome, 0)
	call.Core.Metrics.Calls.WithLabelValues(family, x.outcome).Inc()
	if x.abort {
		panic(http.ErrAbortHandler)
	}
}

// family is the name of the LLM runtime in metrics.
const family = "llm"

// exchange is one request for a model, from its body to the end of its answer.
type exchange struct {
	*answerer
	handler *Handler
	call    *app.Call
	catalog *accounts.Catalog
	outcome string
	entered *limit.Permit // of a call to a smart model, until its target is known
	// determined reports whether a determiner was asked for it.
	determined bool
	abort      bool // the answer broke off after its beginning: the client must not take the received part for the whole
}

func (h *Handler) exchange(a *answerer, call *app.Call) *exchange {
	return &exchange{answerer: a, handler: h, call: call, catalog: call.Core.Accounts, outcome: outcomeOK}
}

func (x *exchange) serve() {
	request, model, ok := x.read()
	if !ok {
		return
	}
	ctx, done := x.call.Streams().Open(x.r.Context(), streams.Call)
	defer done()
	if reason, ended := streams.EndedFor(ctx); ended {
		x.no(refusedEnded(reason))
		return
	}
	answers, refused := x.route(ctx, request, model)
	if refused != nil {
		x.leave(refused)
		x.no(refused)
		x.call.Records().ModelRefused(ctx, model.Alias, x.outcome)
		return
	}
	run := &run{handler: x.handler, call: x.call, catalog: x.catalog, request: request, model: answers, header: x.r.Header, requests: 1, most: maxAnswer, entered: x.entered}
	if answers != model {
		run.via = model.Alias
	}
	defer run.end()
	answer, refused := run.send(ctx)
	if refused != nil {
		if run.permit == nil {
			x.leave(refused)
		}
		x.no(refused)
		if run.tried == 0 { // else the tries are recorded
			x.call.Records().ModelRefused(ctx, model.Alias, x.outcome)
		}
		return
	}
	defer answer.Close()
	x.relay(ctx, run, answer)
}

// no refuses the request.
func (x *exchange) no(refused *refusal) {
	x.outcome = refused.result()
	x.refuse(refused)
}

// read reads the request and finds the requested model, or answers why it cannot.
func (x *exchange) read() (request *wire.Request, model *accounts.Model, ok bool) {
	most := x.call.Core.Sizes.LLM
	if x.call.Core.Overload.Refuses(x.r.Context(), overload.Work{Body: x.r.ContentLength, Most: most}) {
		x.outcome = outcomeUnavailable
		x.refuseUnread(refusedMemory)
		return nil, nil, false
	}
	x.outcome = outcomeRefused
	if err := validate.CheckMedia(x.r.Header); err != nil {
		x.refuseUnread(&refusal{status: http.StatusUnsupportedMediaType, message: "The body must be JSON, in UTF-8 and not encoded, with the content type application/json."})
		return nil, nil, false
	}
	body, err := forward.ReadBody(x.r, most)
	if err != nil {
		x.refuseBody(err)
		return nil, nil, false
	}
	request, err = wire.ParseRequest(x.endpoint, body, int(most))
	var wrong *wire.RequestError
	switch {
	case errors.As(err, &wrong):
		x.refuse(&refusal{status: wrong.Status, code: wrong.Code, message: wrong.Message})
		return nil, nil, false
	case err != nil:
		x.refuse(&refusal{status: http.StatusBadRequest, message: "The request cannot be read."})
		return nil, nil, false
	}
	x.call.Records().ModelRequest(x.r.Context(), x.r.Header, body)
	known, err := x.catalog.Models(x.r.Context(), x.call.Caller.OrganizationID)
	if err != nil {
		x.call.Core.LogFailure(x.handler.Logger, "reading models", err)
		x.no(refusedStore)
		return nil, nil, false
	}
	model, found := known.Find(request.Alias)
	if !found || !mayUse(x.call.Caller, request.Alias) {
		x.refuse(refusedUnknown)
		x.call.Records().ModelRefused(x.r.Context(), request.Alias, x.outcome)
		return nil, nil, false
	}
	x.call.Log.Asks(x.call.Trace, model.Alias)
	x.outcome = outcomeOK
	return request, model, true
}

func (x *exchange) refuseBody(err error) {
	wrong := new(forward.BodyError) // answered like one that is incomplete
	_ = errors.As(err, &wrong)
	refused := &refusal{status: http.StatusBadRequest, message: "The body is incomplete."}
	switch wrong.Status {
	case http.StatusRequestEntityTooLarge:
		refused = &refusal{status: wrong.Status, message: "The request is too large."}
	case http.StatusRequestTimeout:
		refused = &refusal{status: wrong.Status, message: "The request came too slowly."}
	case http.StatusUnsupportedMediaType:
		refused = &refusal{status: wrong.Status, message: "The body must not be encoded."}
	}
	wrong.Answer(x.w, func() { x.refuse(refused) })
}
