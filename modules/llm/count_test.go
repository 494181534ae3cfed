package llm_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

const countTokens = base + "/v1/messages/count_tokens"

// TestCountTokens checks that the length of a prompt is asked where that can be asked, and estimated elsewhere (W44).
// It counts as a request, and as nothing else.
func TestCountTokens(t *testing.T) {
	ask := func(model string) string {
		return `{"model":"` + model + `","messages":[{"role":"user","content":"abcd"}],"tools":[]}`
	}
	for _, tc := range []struct {
		name, model string
		serve       func(w http.ResponseWriter)
		status      int
		body, tried string
	}{
		{"forwarded", "claude", func(w http.ResponseWriter) { reply(w, 200, `{"input_tokens":7}`) }, 200, `{"input_tokens":7}`, "real-claude"},
		{"not there", "claude", func(w http.ResponseWriter) { reply(w, 404, `{"type":"error"}`) }, 200, `{"input_tokens":2}`, "real-claude"},
		{"busy", "claude", func(w http.ResponseWriter) { reply(w, 429, `{"type":"error"}`) }, 200, `{"input_tokens":2}`, "real-claude"},
		{"broken off", "claude", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, 200, `{"input_tokens":2}`, "real-claude"},
		{"a wrong request", "claude", func(w http.ResponseWriter) { reply(w, 400, `{"type":"error"}`) }, 400, `{"type":"error"}`, "real-claude"},
		{"not for this model, as Bedrock says", "claude", func(w http.ResponseWriter) {
			reply(w, 400, `{"message":"The provided model doesn't support counting tokens."}`)
		}, 200, `{"input_tokens":2}`, "real-claude"},
		{"of OpenAI's", "small", func(w http.ResponseWriter) { reply(w, 200, `{}`) }, 200, `{"input_tokens":2}`, ""},
		{"unknown", "nope", func(w http.ResponseWriter) { reply(w, 200, `{}`) }, 404, `"not_found_error"`, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var path atomic.Value // of the last call
			p := newProvider(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
				path.Store(r.URL.Path)
				tc.serve(w)
			})
			g := newGateway(t, p.URL, nil)
			g.limited()
			g.make("/admin/budgets", object{"name": "none", "scope_type": "org", "period": "day", "amount": 0})
			got := g.send(http.MethodPost, countTokens+"?beta=true", ask(tc.model)).want(tc.status)
			if !strings.Contains(got.body, tc.body) {
				t.Errorf("%s", got.body)
			}
			calls := p.calls()
			at, _ := path.Load().(string)
			if (tc.tried == "") != (len(calls) == 0) || len(calls) > 0 && (at != "/v1/messages/count_tokens" || !strings.Contains(calls[0], tc.tried)) {
				t.Errorf("%s %q", at, calls)
			}
			requests, tokens := g.used()
			if want := int64(1); tokens != 0 || tc.status != 404 && requests != want {
				t.Errorf("%d requests, %d tokens", requests, tokens)
			}
			if usage := g.send(http.MethodGet, base+"/admin/usage", "").want(200); strings.Contains(usage.body, `"requests":1`) {
				t.Errorf("%s", usage.body)
			}
		})
	}
}

// TestCountTokensIsLimited checks that a caller who may not ask a model may not have prompts counted (W44).
func TestCountTokensIsLimited(t *testing.T) {
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) { reply(w, 200, `{"input_tokens":7}`) })
	g := newGateway(t, p.URL, nil)
	g.make("/admin/rate-limits", object{"name": "one", "scope_type": "org", "requests_per_minute": 1})
	body := `{"model":"claude","messages":[]}`
	g.send(http.MethodPost, countTokens, body).want(200)
	if got := g.send(http.MethodPost, countTokens, body).want(429); !strings.Contains(got.body, "rate_limit_error") {
		t.Errorf("%s", got.body)
	}
	g.token = "dw-nobody"
	g.send(http.MethodPost, countTokens, body).want(401)
	if n := len(p.calls()); n != 1 {
		t.Errorf("%d calls", n)
	}
}

// TestCountTokensOfTarget checks that having a prompt counted is a request to the provider and the model that count it,
// and no tokens: where a limit on them is full the next target is asked (T10).
func TestCountTokensOfTarget(t *testing.T) {
	const body = `{"model":"claude","messages":[{"role":"user","content":"abcd"}]}`
	for _, scope := range []object{
		{"scope_type": "llm_provider", "scope_value": "claude"}, {"scope_type": "model", "scope_value": "real-claude"},
	} {
		p := newProvider(t, func(w http.ResponseWriter, _ *http.Request, body []byte) {
			if strings.Contains(string(body), "real-gone") {
				reply(w, 404, `{}`)
				return
			}
			reply(w, 200, `{"input_tokens":7}`)
		})
		g := newGateway(t, p.URL, object{"provider": []any{
			object{"kind": "anthropic", "name": "claude", "base_url": p.URL}, object{"kind": "anthropic", "name": "other", "base_url": p.URL},
		}, "alias": []any{
			object{"name": "claude", "targets": []any{object{"provider": "claude", "model": "real-claude"}}},
			object{"name": "gone", "targets": []any{object{"provider": "other", "model": "real-gone"}, object{"provider": "claude", "model": "real-claude"}}},
			object{"name": "two", "targets": []any{object{"provider": "claude", "model": "real-claude"}, object{"provider": "other", "model": "real-other"}}},
		}})
		scope["name"], scope["requests_per_minute"], scope["tokens_per_minute"] = "target", 2, 1_000_000
		g.make("/admin/rate-limits", scope)
		g.make("/admin/rate-limits", object{"name": "all", "scope_type": "org", "requests_per_minute": 100, "tokens_per_minute": 1_000_000})
		for _, step := range []struct {
			model       string
			status      int
			says, tried string
			ofTarget    int64
		}{
			{"claude", 200, `{"input_tokens":7}`, "real-claude", 1},
			{"gone", 200, `{"input_tokens":7}`, "real-gone real-claude", 2},
			{"claude", 429, "rate_limit_error", "", 2},
			{"two", 200, `{"input_tokens":7}`, "real-other", 2},
			{"gone", 200, `{"input_tokens":2}`, "real-gone", 2},
		} {
			before := g.status()["all"].Requests
			got := g.send(http.MethodPost, countTokens, strings.Replace(body, "claude", step.model, 1)).want(step.status)
			var tried []string
			for _, call := range p.calls() {
				for _, model := range []string{"real-claude", "real-other", "real-gone"} {
					if strings.Contains(call, model) {
						tried = append(tried, model)
					}
				}
			}
			if !strings.Contains(got.body, step.says) || strings.Join(tried, " ") != step.tried {
				t.Errorf("%v, %s: %s, tried %q", scope, step.model, got.body, tried)
			}
			if step.status != 429 { // a refused count is not counted as a request
				before++
			}
			now := g.status()
			if one := now["target"]; one.Requests != step.ofTarget || one.Tokens != 0 || now["all"].Requests != before || now["all"].Tokens != 0 {
				t.Errorf("%v, %s: %+v", scope, step.model, now)
			}
		}
	}
}
