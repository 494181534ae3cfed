package llm

import (
	"net/http"
	"strconv"
	"time"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/llm/metering"
	"github.com/durward-gateway/durward/internal/llm/wire"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/storage"
)

// These are codes of OpenAI's error format that wire does not know.
const (
	codeInvalidKey  = wire.CodeInvalidKey
	codeUnavailable = "unavailable"
	codeEndpoint    = "unsupported_endpoint"
)

// These are the outcomes of calls, for metrics and the audit log.
const (
	outcomeOK          = "ok"
	outcomeRefused     = "refused"
	outcomeLimited     = "limited"
	outcomeUnavailable = "unavailable"
	outcomeUpstream    = "upstream_error"
	outcomeClientGone  = "client_gone"
	outcomeEnded       = "ended"
	outcomeCut         = "cut"
)

const (
	textNoAuth     = "This request was not authenticated; durward_auth must come before durward_llm in the configuration."
	textUpstream   = "The provider of the model did not give a usable answer."
	textBusy       = "The provider of the model takes no more requests at the moment."
	textOverloaded = "The provider of the model is overloaded; try again later."
	textAway       = gateway.TextStoreAway + "."
	textMemory     = gateway.TextMemory + "."
	textRecord     = gateway.TextUnrecorded + "."
)

// refusal is an answer of the gateway's own.
type refusal struct {
	status  int
	code    string
	message string
	outcome string            // "": refused
	header  func(http.Header) // adds the headers that belong to it; may be nil
	here    bool              // it is for this target: others may have room
}

func (e *refusal) result() string {
	if e.outcome == "" {
		return outcomeRefused
	}
	return e.outcome
}

var (
	refusedUnknown  = &refusal{status: http.StatusNotFound, code: wire.CodeModelNotFound, message: wire.NoSuchModel}
	refusedUpstream = &refusal{status: http.StatusBadGateway, code: wire.CodeUpstream, message: textUpstream, outcome: outcomeUpstream}
	refusedStore    = &refusal{status: http.StatusServiceUnavailable, code: codeUnavailable, message: textAway, outcome: outcomeUnavailable}
	refusedMemory   = &refusal{status: http.StatusServiceUnavailable, code: codeUnavailable, message: textMemory, outcome: outcomeUnavailable}
	refusedRecord   = &refusal{status: http.StatusServiceUnavailable, code: codeUnavailable, message: textRecord, outcome: outcomeUnavailable}
	// gone is the outcome for a client that has left and cannot be answered.
	gone = &refusal{outcome: outcomeClientGone}
)

func refusedLimit(e *limit.Refusal) *refusal {
	return &refusal{
		status: http.StatusTooManyRequests, code: wire.CodeRateLimit, message: wire.Limited, outcome: outcomeLimited, header: e.SetHeader,
		here: ofTarget(e.Limit.Scope),
	}
}

func refusedBudget(e *metering.Refusal) *refusal {
	return &refusal{
		status: http.StatusTooManyRequests, code: wire.CodeBudget, message: e.Message(), outcome: outcomeLimited, header: e.SetHeader,
		here: ofTarget(e.Budget.Scope),
	}
}

// ofTarget reports whether a limit or budget is for the provider or the model of a call, rather than for its caller.
func ofTarget(s storage.Scope) bool {
	return s.Type == storage.ScopeLLMProvider || s.Type == storage.ScopeModel
}

// refusedBusy passes on the time after which a busy provider may be asked again. It passes on nothing else: the rest of
// the provider's answer is about the gateway's account.
func (x *run) refusedBusy(response *forward.Response) *refusal {
	return &refusal{
		status: http.StatusTooManyRequests, code: wire.CodeRateLimit, message: textBusy, outcome: outcomeUpstream, header: x.retryAfter(response),
	}
}

// refusedOverloaded does the work of refusedBusy for an overloaded provider. Anthropic's clients know its own status
// for that, others the standard one.
func (x *run) refusedOverloaded(response *forward.Response, status int) *refusal {
	if x.request.Endpoint != limit.Messages {
		status = http.StatusServiceUnavailable
	}
	return &refusal{status: status, code: wire.CodeOverloaded, message: textOverloaded, outcome: outcomeUpstream, header: x.retryAfter(response)}
}

// retryAfter sets Retry-After to the provider's value.
func (x *run) retryAfter(response *forward.Response) func(http.Header) {
	after, ok := wire.RetryAfter(response.Header, x.handler.now())
	return func(h http.Header) {
		if ok {
			h.Set("Retry-After", strconv.FormatInt(int64((after+time.Second-1)/time.Second), 10))
		}
	}
}

// refusedEnded returns the refusal of a call whose right ended before its answer began.
func refusedEnded(reason streams.Reason) *refusal {
	switch reason {
	case streams.TokenExpired, streams.Revoked:
		return &refusal{status: http.StatusUnauthorized, code: codeInvalidKey, message: endedText(reason), outcome: outcomeEnded}
	}
	return &refusal{status: http.StatusServiceUnavailable, code: codeUnavailable, message: endedText(reason), outcome: outcomeEnded}
}

func endedText(reason streams.Reason) string {
	switch reason {
	case streams.TokenExpired:
		return "The credential of this call has expired."
	case streams.Revoked:
		return "The credential of this call is not good any more."
	case streams.Shutdown:
		return "The gateway is about to exit."
	}
	return "The gateway has ended this call."
}

// answerer answers one request in the error format of its address.
type answerer struct {
	w         http.ResponseWriter
	r         *http.Request
	endpoint  limit.Endpoint
	anthropic bool // the client is one of Anthropic's
}

// refuse answers with a refusal, unless the client has left.
func (a *answerer) refuse(e *refusal) {
	if e.status == 0 {
		return
	}
	if e.header != nil {
		e.header(a.w.Header())
	}
	switch e.status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests, wire.StatusOverloaded:
		gateway.SetRetryAfter(a.w)
	}
	a.write(e.status, wire.ErrorBody(a.envelope(), e.status, e.code, e.message))
}

// refuseUnread does the work of refuse for a request whose body was not read.
func (a *answerer) refuseUnread(e *refusal) {
	forward.AnswerUnread(a.w, a.r, func() { a.refuse(e) })
}

func (a *answerer) envelope() limit.Endpoint {
	if a.anthropic {
		return limit.Messages
	}
	return a.endpoint
}

func (a *answerer) wrongMethod(allow string) {
	a.w.Header().Set("Allow", allow)
	a.refuseUnread(&refusal{status: http.StatusMethodNotAllowed, code: "method_not_allowed", message: "This address does not take that method; see Allow."})
}

// write answers with JSON of the gateway's own.
func (a *answerer) write(status int, body []byte) { gateway.WriteBody(a.w, status, body) }
