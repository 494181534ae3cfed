package gatewayapi

import (
	"bytes"
	"context"
	"errors"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/llm/llmedit"
	"github.com/durward-gateway/durward/internal/llm/smart"
	"github.com/durward-gateway/durward/internal/llm/wire"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

const (
	textOnePolicy  = "Value error, say which smart model with one of policy_id, model_alias (or the request's own model) and policy"
	textMessages   = "Input should be a valid list"
	textOneRequest = "Value error, the request has either messages or input"
)

var errNoRuntime = routes.Refused(gateway.Unavailable, "No site of this gateway serves models (durward_llm), so there is nobody to ask the determiner")

// previewView is the target that a request would have.
type previewView struct {
	Alias    string       `json:"target_model_alias"`
	Decision decisionView `json:"decision"`
}

// decisionView explains the decision for that target.
type decisionView struct {
	Slot   int    `json:"slot"`
	Label  string `json:"label"`
	Floor  int    `json:"floor"`
	Answer *int   `json:"answer"` // null: the determiner was not asked, or failed
	// Reason is the reason that the runtime gives in x-durward-route-reason. It is never "sticky".
	Reason        smart.Reason `json:"reason"`
	Estimate      int64        `json:"estimated_tokens"`
	PromptVersion *string      `json:"prompt_version"` // null: the determiner was not asked
}

// previewBody is the body of a request for a preview: the policy, and the deciding members of a request to the runtime.
type previewBody struct {
	policyID, model string
	inline          *storage.SmartModel
	request         *wire.Request
}

// read reads the body. It holds a request in the form of the runtime, of which members that decide nothing are ignored,
// and the smart model that it is for. A smart model that is not saved yet is given as policy, in the form in which it
// is created.
func (p *previewBody) read(q *request, o *validate.Object) {
	id := o.UUID("policy_id", 0)
	name := o.Text("model_alias", llmedit.Alias)
	model := o.Text("model", llmedit.Alias)
	policy := o.Object("policy", 0)
	named := 0
	for _, given := range []bool{id.Present, name.Present, policy.Present} {
		if given {
			named++
		}
	}
	if named > 1 || named == 0 && !model.Present {
		o.Report(validate.ValueError, textOnePolicy, "policy_id")
	}
	p.policyID, p.model = id.Value, name.Or(model.Value)
	if policy.Set() && policy.Value != nil {
		m := llmedit.NewSmart(q.Organization(), q.now())
		for _, problem := range llmedit.NotWrong(policy.Value, llmedit.ReadSmart(policy.Value, true).Apply(&m)) {
			policy.Value.Report(problem.Type, problem.Msg, problem.Loc[1:]...)
		}
		p.inline = &m
	}
	p.readRequest(q, o)
}

// readRequest lets the runtime's own reader read the deciding members, so that both see the same.
func (p *previewBody) readRequest(q *request, o *validate.Object) {
	endpoint := limit.ChatCompletions
	if o.Has("input") {
		endpoint = limit.Responses
	}
	if o.Has("input") == o.Has("messages") {
		o.Report(validate.ValueError, textOneRequest, "messages")
		return
	}
	body := bytes.NewBufferString(`{"model":"preview"`)
	for _, member := range []string{"messages", "input", "system", "instructions", "tools"} {
		decides := member == "messages" || member == "input"
		flags := validate.Nullable
		if decides {
			flags = 0
		}
		v := o.Value(member, flags)
		kind := v.Value.Kind()
		if kind == strictjson.Invalid {
			continue
		}
		if decides && kind != strictjson.Array && (member != "input" || kind != strictjson.String) {
			o.Report(validate.ListType, textMessages, member)
		}
		body.WriteString(`,"` + member + `":`)
		body.Write(v.Value.Raw())
	}
	body.WriteByte('}')
	var err error
	p.request, err = wire.ParseRequest(endpoint, body.Bytes(), body.Len())
	q.Note(err) // a fault of the gateway, if any: all of it was read before
}

// smartModel returns the smart model of the preview.
func (p *previewBody) smartModel(q *request) (storage.SmartModel, error) {
	if p.policyID != "" {
		m, err := q.Core.Store.SmartModel(q.Context(), q.Organization(), p.policyID)
		return m, routes.Missing(err, errNoSmart)
	}
	all, err := q.Core.Store.ModelSet(q.Context(), q.Organization())
	if err != nil {
		return storage.SmartModel{}, err
	}
	if p.inline != nil {
		if wrong := llmedit.AliasesOf(&all, q.configured()).CheckSmart(p.inline); wrong != nil {
			return *p.inline, llmedit.TargetProblems(wrong)
		}
		return *p.inline, nil
	}
	for _, m := range all.Smart {
		if m.Alias == p.model {
			return m, nil
		}
	}
	return storage.SmartModel{}, errNoSmart
}

// previewSmart decides about a request as the runtime would, with the determiner, and sends it nowhere. The
// determiner's tokens count for the administrator. Nothing is remembered for conversations. Disabled smart models have
// previews too: they are tried before they are enabled.
func previewSmart(q *request) (any, error) {
	var body previewBody
	if err := q.Read(false, func(o *validate.Object) { body.read(q, o) }); err != nil {
		return nil, err
	}
	m, err := body.smartModel(q)
	if err != nil {
		return nil, err
	}
	tokens := body.request.Estimate.Prompt
	decision, err := q.handler.router.Route(q.Context(), q.Organization(), &m, smart.Request{Estimate: tokens, LastUser: body.request.LastUser()},
		func(ctx context.Context, alias string, prompt smart.Prompt) (string, error) {
			return q.Core.Runtime.Ask(ctx, q.Call, alias, prompt)
		})
	switch {
	case err != nil:
		return nil, err
	case errors.Is(decision.Err, app.ErrNoRuntime):
		return nil, errNoRuntime
	case decision.Err != nil:
		q.handler.logger.Warn("the determiner failed in a preview", zap.String("reason", string(decision.Reason)), zap.Error(decision.Err))
	}
	view := decisionView{
		Slot: decision.Slot, Label: m.Slots[decision.Slot].Label, Floor: decision.Floor, Reason: decision.Reason,
		Estimate: tokens, PromptVersion: routes.Optional(decision.PromptVersion),
	}
	if decision.Answer != smart.NoAnswer {
		view.Answer = &decision.Answer
	}
	return previewView{decision.Alias, view}, nil
}
