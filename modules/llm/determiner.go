package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/gateway/tracing"
	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/internal/llm/smart"
	"github.com/durward-gateway/durward/internal/llm/wire"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/storage"
)

// router chooses the slots of smart models. Its memory of conversations outlives configurations.
var router = smart.New(nil)

// route returns the model that answers: for a smart model it is the model of the chosen slot.
func (x *exchange) route(ctx context.Context, request *wire.Request, model *accounts.Model) (*accounts.Model, *refusal) {
	if model.Smart == nil {
		return model, nil
	}
	who := x.call.Caller
	question := smart.Request{Estimate: request.Estimate.Prompt, LastUser: request.LastUser(), Caller: who.Issuer + "\n" + who.Subject}
	if who.Key != nil {
		question.Caller = "api key\n" + who.Key.ID
	}
	if model.Smart.Sticky {
		question.FirstUser = request.FirstUser()
	}
	if refused := x.enter(ctx, model); refused != nil {
		return nil, refused
	}
	decision, err := router.Route(ctx, who.OrganizationID, model.Smart, question, func(ctx context.Context, alias string, prompt smart.Prompt) (string, error) {
		x.determined = true
		return x.handler.askFor(ctx, x.call, alias, model.Alias, prompt)
	})
	switch {
	case ctx.Err() != nil:
		if reason, ended := streams.EndedFor(ctx); ended {
			return nil, refusedEnded(reason)
		}
		return nil, gone
	case err != nil:
		x.handler.Logger.Error("routing a smart model", zap.String("organization", who.OrganizationID), zap.String("alias", model.Alias), zap.Error(err))
		return nil, refusedUnknown
	case decision.Err != nil:
		x.handler.Logger.Warn("the determiner of a smart model failed, its default slot answers", zap.String("organization", who.OrganizationID),
			zap.String("alias", model.Alias), zap.Error(decision.Err))
	}
	x.w.Header().Set("X-Durward-Route-Reason", string(decision.Reason))
	x.call.Log.Routed(x.call.Trace, decision)
	known, err := x.catalog.Models(ctx, who.OrganizationID)
	if err != nil {
		return nil, refusedStore
	}
	chosen, ok := known.Find(decision.Alias)
	if !ok || chosen.Smart != nil {
		return nil, refusedUnknown // it was deleted after the decision
	}
	return chosen, nil
}

// enter counts the request for a smart model before its determiner is asked, which costs money. When a caller has one
// request left, the determiner is asked only once, however many requests come at once or leave while it thinks (attacks
// T01, T07). run.admit takes the call on to its target.
func (x *exchange) enter(ctx context.Context, model *accounts.Model) *refusal {
	admitter := x.call.Core.Admitter
	subject := x.call.Admission().LimitSubject(storage.TrafficLLM)
	subject.Alias = model.Alias
	matched, err := admitter.MatchModels(ctx, x.call.Admission().Described(), &subject)
	var over *limit.Refusal
	if err == nil {
		step := x.call.Trace.Limit()
		x.entered, over, err = admitter.Engine().Charge(ctx, matched, limit.Cost{Requests: 1})
		step.Limited(tracing.Charge, over != nil, err)
	}
	switch {
	case err != nil:
		x.call.Core.LogFailure(x.handler.Logger, "counting a call to a smart model", err)
		return refusedStore
	case over != nil:
		admitter.ModelRefused(over)
		return refusedLimit(over)
	}
	return nil
}

// leave takes back what enter charged for a call that was refused before it reached a target: always when a limit or a
// budget refused it, otherwise only if its determiner was not asked. Otherwise a caller could have determiners asked
// again and again, free of charge, by leaving early or by calling a model without targets.
func (x *exchange) leave(refused *refusal) {
	if x.entered != nil && (!x.determined || refused.status == http.StatusTooManyRequests) {
		x.entered.Cancel()
	}
}

// maxDetermined is the limit for the answer of a determiner, in bytes.
const maxDetermined = 1 << 20

// ask lets the model of an alias answer a prompt of the gateway's own, on the account of the call's caller. It does not
// count as a request of the caller.
func (h *Handler) ask(ctx context.Context, call *app.Call, alias string, prompt smart.Prompt) (string, error) {
	return h.askFor(ctx, call, alias, "", prompt)
}

// askFor does the work of ask for a call to the smart model via: limits for that alias count the tokens of its
// determiner.
func (h *Handler) askFor(ctx context.Context, call *app.Call, alias, via string, prompt smart.Prompt) (string, error) {
	catalog := call.Core.Accounts
	known, err := catalog.Models(ctx, call.Caller.OrganizationID)
	if err != nil {
		return "", err
	}
	model, ok := known.Find(alias)
	if !ok || model.Smart != nil {
		return "", errors.New("there is no such alias, or it is a smart model's")
	}
	endpoint := limit.Messages
	for _, t := range model.Targets {
		if t.Account.URL(limit.ChatCompletions) != nil {
			endpoint = limit.ChatCompletions
			break
		}
	}
	body, err := question(endpoint, alias, prompt)
	if err != nil {
		return "", err
	}
	request, err := wire.ParseRequest(endpoint, body, len(body))
	if err != nil {
		return "", err
	}
	run := &run{handler: h, call: call, catalog: catalog, request: request, model: model, via: via, most: maxDetermined, header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}}
	defer run.end()
	reply, refused := run.send(ctx)
	if refused != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", fmt.Errorf("the determiner was not reached: %s", refused.result())
	}
	defer reply.Close()
	if reply.err != nil {
		run.lose(ctx, reply.err)
		call.Records().ModelOutcome(outcomeUpstream, reply.Status, wire.Usage{})
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		return "", reply.err
	}
	if reply.Status != http.StatusOK || reply.Kind != forward.JSON {
		if reply.Status < http.StatusBadRequest {
			run.lose(ctx, nil)
		}
		call.Records().ModelOutcome(outcomeUpstream, reply.Status, wire.Usage{})
		return "", fmt.Errorf("the determiner answered with status %d", reply.Status)
	}
	used := wire.AnswerUsed(request, reply.body)
	run.used(used)
	call.Records().ModelOutcome(outcomeOK, reply.Status, used)
	return answerText(endpoint, reply.body)
}

// question returns a prompt as a request.
func question(endpoint limit.Endpoint, alias string, prompt smart.Prompt) ([]byte, error) {
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	if endpoint == limit.Messages {
		return json.Marshal(struct {
			Model     string    `json:"model"`
			System    string    `json:"system"`
			Messages  []message `json:"messages"`
			MaxTokens int       `json:"max_tokens"`
		}{alias, prompt.System, []message{{"user", prompt.User}}, smart.AnswerTokens})
	}
	return json.Marshal(struct {
		Model     string    `json:"model"`
		Messages  []message `json:"messages"`
		MaxTokens int       `json:"max_completion_tokens"` // some models refuse the older max_tokens
	}{alias, []message{{"system", prompt.System}, {"user", prompt.User}}, smart.AnswerTokens})
}

var errNoText = errors.New("the determiner's answer has no text")

// answerText returns the text of an answer, read strictly: it decides the slot.
func answerText(endpoint limit.Endpoint, body []byte) (string, error) {
	answer, err := strictjson.Parse(body, strictjson.Limits{MaxBytes: maxDetermined})
	if err != nil {
		return "", fmt.Errorf("reading the determiner's answer: %w", err)
	}
	if endpoint == limit.Messages {
		content, _ := answer.Get("content")
		var text strings.Builder
		for _, part := range content.Elems() {
			if kind, _ := part.Get("type"); kind.Str() == "text" {
				said, _ := part.Get("text")
				text.WriteString(said.Str())
			}
		}
		return text.String(), nil
	}
	choices, _ := answer.Get("choices")
	if all := choices.Elems(); len(all) > 0 {
		message, _ := all[0].Get("message")
		if content, ok := message.Get("content"); ok && content.Kind() == strictjson.String {
			return content.Str(), nil
		}
	}
	return "", errNoText
}
