package llm_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

const countTokens = base + "/v1/messages/count_tokens"

// TestCountTokens: W44, the length of a prompt is asked where that can be asked, and estimated elsewhere. It counts as a request, and
// as nothing else.
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

// TestCountTokensIsLimited: W44, whoever may not ask a model may not have prompts counted.
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
