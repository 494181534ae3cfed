package gatewayapi

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/llm/smart"
	"github.com/durward-gateway/durward/modules/app"
)

// determiner answers in place of the runtime.
type determiner struct {
	says  string
	err   error
	asked int
	of    *app.Call
	alias string
	shown smart.Prompt
}

func (d *determiner) ask(_ context.Context, call *app.Call, alias string, prompt smart.Prompt) (string, error) {
	d.asked++
	d.of, d.alias, d.shown = call, alias, prompt
	return d.says, d.err
}

const preview = "/admin/smart-models/preview"

// previews returns an API with the smart model "smart" of adam's organization, and the answerer for its determiner.
func previews(t *testing.T) (a *api, d *determiner, id string) {
	t.Helper()
	a, d = newAPI(t), &determiner{says: "0"}
	a.core.Runtime.Provide(d.ask)
	a.models(a.adam, "small", "large", "judge")
	id = a.make(a.adam, "/admin/smart-models", object{
		"model_alias": "smart", "determiner_model_alias": "judge", "slots": slotsOf("small", "large"), "context_breakpoints": []int{8000},
		"determiner_input_max_chars": 10, "default_slot_on_failure": 1, "enabled": false, "sticky": true,
	})
	return a, d, id
}

func slotsOf(aliases ...string) (slots []object) {
	for _, alias := range aliases {
		slots = append(slots, object{"model_alias": alias, "label": "for " + alias})
	}
	return slots
}

func said(text string) []object { return []object{{"role": "user", "content": text}} }

func TestPreview(t *testing.T) {
	a, d, id := previews(t)
	const decided = `{"target_model_alias":"small","decision":{"slot":0,"label":"for small","floor":0,"answer":0,"reason":"determiner","estimated_tokens":5,"prompt_version":"1"}}`
	for name, body := range map[string]object{
		"by id":                     {"policy_id": id, "messages": said("hello, hello!")},
		"by id, in capitals":        {"policy_id": strings.ToUpper(id), "messages": said("hello, hello!")},
		"by alias":                  {"model_alias": "smart", "messages": said("hello, hello!")},
		"as it would be sent":       {"model": "smart", "stream": true, "max_tokens": 99, "messages": said("hello, hello!"), "x": nil},
		"another model in the body": {"model": "large", "policy_id": id, "messages": said("hello, hello!")},
	} {
		t.Run(name, func(t *testing.T) {
			a.t, d.asked = t, 0
			a.do(a.adam, http.MethodPost, preview, body).wantBody(decided)
			if d.asked != 1 || d.alias != "judge" || d.of.Caller != a.adam || !strings.HasSuffix(d.shown.User, "\n\"hello, hel\"") {
				t.Errorf("%+v", d)
			}
		})
	}
	a.t = t
	a.do(a.adam, http.MethodPost, preview, object{"policy_id": id, "input": "hello"}).wantBody(strings.Replace(decided, "5,", "2,", 1))
	d.says = "1"
	a.do(a.adam, http.MethodPost, preview, object{"policy_id": id, "messages": said("hello, hello!")}).
		wantBody(`{"target_model_alias":"large","decision":{"slot":1,"label":"for large","floor":0,"answer":1,"reason":"determiner","estimated_tokens":5,"prompt_version":"1"}}`)
	d.says = "slot 1"
	a.do(a.adam, http.MethodPost, preview, object{"policy_id": id, "messages": said("hello, hello!")}).
		wantBody(`{"target_model_alias":"large","decision":{"slot":1,"label":"for large","floor":0,"answer":null,"reason":"default:garbage","estimated_tokens":5,"prompt_version":"1"}}`)
	d.err = errors.New("secret cause")
	a.do(a.adam, http.MethodPost, preview, object{"policy_id": id, "messages": said("hello, hello!")}).
		wantBody(`{"target_model_alias":"large","decision":{"slot":1,"label":"for large","floor":0,"answer":null,"reason":"default:error","estimated_tokens":5,"prompt_version":"1"}}`)
	d.asked = 0
	// The same text fills the floor as at the runtime: the system prompt and tools too.
	long := strings.Repeat("x", 32_000)
	for _, body := range []object{{"messages": said(long)}, {"messages": said("x"), "system": long}, {"input": "x", "instructions": long}, {"input": "x", "tools": []object{{"description": long}}}} {
		body["policy_id"] = id
		got := a.do(a.adam, http.MethodPost, preview, body).want(200)
		if decision := got["decision"].(object); got["target_model_alias"] != "large" || decision["reason"] != "floor" || decision["prompt_version"] != nil || d.asked != 0 {
			t.Errorf("%v", got)
		}
	}
}

func TestPreviewOfWhatIsNotSaved(t *testing.T) {
	a, d, _ := previews(t)
	ask := func(policy object) answer {
		return a.do(a.adam, http.MethodPost, preview, object{"policy": policy, "messages": said("hello äöü, world")})
	}
	draft := func(change object) object {
		policy := object{"model_alias": "draft", "determiner_model_alias": "judge", "slots": slotsOf("small", "large"), "default_slot_on_failure": 0}
		for name, value := range change {
			policy[name] = value
		}
		return policy
	}
	d.says = "1"
	if got := ask(draft(nil)).want(200); got["target_model_alias"] != "large" {
		t.Errorf("%v", got)
	}
	ask(draft(object{"determiner_input_max_chars": 7})).want(200)
	if !strings.HasSuffix(d.shown.User, "\n\"hello ä\"") || !utf8.ValidString(d.shown.User) {
		t.Errorf("%q", d.shown.User)
	}
	if all := a.do(a.adam, http.MethodGet, "/admin/smart-models", nil).all(); len(all) != 1 {
		t.Errorf("it was saved: %v", all)
	}
	d.asked = 0
	for name, tt := range map[string]struct {
		change object
		want   []string
	}{
		"no slots":             {object{"slots": []object{}}, []string{"policy.slots: "}},
		"default slot":         {object{"default_slot_on_failure": 2}, []string{"policy.default_slot_on_failure: Value error, there is no slot"}},
		"two things":           {object{"default_slot_on_failure": "0", "context_breakpoints": []int{2, 1}}, []string{"policy.default_slot_on_failure", "policy.context_breakpoints[1]", "policy.context_breakpoints"}},
		"no determiner":        {object{"determiner_model_alias": nil}, []string{"policy.determiner_model_alias"}},
		"unknown slot":         {object{"slots": slotsOf("small", "gone")}, []string{"slots[1].model_alias: Value error, there is no such alias"}},
		"unknown determiner":   {object{"determiner_model_alias": "gone"}, []string{"determiner_model_alias: Value error, there is no such alias"}},
		"a smart slot":         {object{"slots": slotsOf("smart", "small")}, []string{"slots[0].model_alias: Value error, this must be another"}},
		"itself as determiner": {object{"determiner_model_alias": "draft"}, []string{"determiner_model_alias: Value error, this must be another"}},
		"a smart determiner":   {object{"determiner_model_alias": "smart"}, []string{"determiner_model_alias: Value error, this must be another"}},
		"an odd alias":         {object{"model_alias": " "}, []string{"policy.model_alias"}},
	} {
		t.Run(name, func(t *testing.T) {
			a.t = t
			ask(draft(tt.change)).wantBad(tt.want...)
		})
	}
	if d.asked != 0 {
		t.Error("the determiner was asked")
	}
}

func TestPreviewRefuses(t *testing.T) {
	a, d, id := previews(t)
	for name, tt := range map[string]struct {
		body any
		want []string
	}{
		"no policy":          {object{"messages": said("x")}, []string{"policy_id: Value error, say which"}},
		"two policies":       {object{"policy_id": id, "model_alias": "smart", "messages": said("x")}, []string{"policy_id: Value error, say which"}},
		"no request":         {object{"policy_id": id}, []string{"messages: Value error, the request has"}},
		"both requests":      {object{"policy_id": id, "messages": said("x"), "input": "x"}, []string{"messages: Value error, the request has"}},
		"messages as text":   {object{"policy_id": id, "messages": "x"}, []string{"messages: "}},
		"null messages":      {object{"policy_id": id, "messages": nil}, []string{"messages: "}},
		"input as object":    {object{"policy_id": id, "input": object{}}, []string{"input: "}},
		"an id that is none": {object{"policy_id": "smart", "messages": said("x")}, []string{"policy_id: "}},
		"null policy":        {object{"policy": nil, "messages": said("x")}, []string{"policy: "}},
		"no JSON":            {`{"policy_id":`, []string{"JSON decode error: unexpected end"}},
		"duplicate members":  {`{"model":"smart","messages":[],"messages":[]}`, []string{"JSON decode error: duplicate member"}},
	} {
		t.Run(name, func(t *testing.T) {
			a.t = t
			w := a.do(a.adam, http.MethodPost, preview, tt.body).wantError(400, gateway.BadRequest)
			for _, part := range tt.want {
				if !strings.Contains(w["message"].(string), part) {
					t.Errorf("%v has no %q", w["message"], part)
				}
			}
		})
	}
	a.t = t
	a.models(a.eve, "small")
	unknown := a.do(a.adam, http.MethodPost, preview, object{"policy_id": uuid.NewString(), "messages": said("x")})
	unknown.wantError(404, gateway.NotFound)
	// O01: the smart model of another organization is an unknown one.
	for _, body := range []object{{"policy_id": id}, {"model_alias": "smart"}, {"model_alias": "small"}} {
		body["messages"] = said("x")
		if got := a.do(a.eve, http.MethodPost, preview, body); got.status != 404 || got.body != unknown.body {
			t.Errorf("%v: %d %s", body, got.status, got.body)
		}
	}
	a.do(a.alice, http.MethodPost, preview, object{"policy_id": id, "messages": said("x")}).wantError(403, gateway.Forbidden)
	if d.asked != 0 {
		t.Error("the determiner was asked")
	}
}

func TestPreviewWithoutRuntime(t *testing.T) {
	a := newAPI(t)
	a.models(a.adam, "small", "large", "judge")
	policy := object{"model_alias": "draft", "determiner_model_alias": "judge", "slots": slotsOf("small", "large")}
	w := a.do(a.adam, http.MethodPost, preview, object{"policy": policy, "messages": said("x")})
	if got := w.wantError(503, gateway.Unavailable); !strings.Contains(got["message"].(string), "durward_llm") {
		t.Errorf("%v", got)
	}
	// Where nobody has to be asked, nobody is missed.
	policy["slots"] = slotsOf("small")
	if got := a.do(a.adam, http.MethodPost, preview, object{"policy": policy, "messages": said("x")}).want(200); got["target_model_alias"] != "small" {
		t.Errorf("%v", got)
	}
}
