package llm_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

const determined = `{"choices":[{"message":{"role":"assistant","content":"0"}}],"usage":{"prompt_tokens":5,"completion_tokens":1}}`

// TestDeterminersStopAtLimits checks that a caller of whom a limit or a budget on a smart model is full has no
// determiner asked (T10).
func TestDeterminersStopAtLimits(t *testing.T) {
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request, body []byte) {
		if strings.Contains(string(body), `"real"`) {
			reply(w, 200, determined)
			return
		}
		reply(w, 200, whole)
	})
	g := newGateway(t, p.URL, object{"prices": prices(t, "real", "real-large")})
	g.make("/admin/smart-models", object{
		"model_alias": "smart", "determiner_model_alias": "small", "default_slot_on_failure": 0,
		"slots": []any{object{"model_alias": "large", "label": "easy"}, object{"model_alias": "claude", "label": "hard"}},
	})
	askSmart := func() answer { t.Helper(); return g.ask(strings.Replace(asked, "small", "smart", 1)) }
	full := g.make("/admin/rate-limits", object{"name": "smart", "scope_type": "model_alias", "scope_value": "smart", "requests_per_minute": 1})
	askSmart().want(200)
	if n := len(p.calls()); n != 2 {
		t.Fatalf("%d calls left", n)
	}
	got := askSmart().refused(http.StatusTooManyRequests, "rate_limit_exceeded")
	if n := len(p.calls()); n != 0 || got.header.Get("Retry-After") == "" {
		t.Errorf("%d determiners were asked behind a limit that is full: %v", n, got.header)
	}
	g.send(http.MethodDelete, base+"/admin/rate-limits/"+full["id"].(string), "").want(200)

	first := g.make("/admin/rate-limits", object{"name": "first", "scope_type": "model", "scope_value": "real-large", "requests_per_minute": 0})
	all := g.make("/admin/rate-limits", object{"name": "all", "scope_type": "org", "requests_per_minute": 1})
	for range 2 { // a call that a limit on the target refuses counts as nothing
		askSmart().refused(http.StatusTooManyRequests, "rate_limit_exceeded")
	}
	for _, limit := range []object{first, all} {
		g.send(http.MethodDelete, base+"/admin/rate-limits/"+limit["id"].(string), "").want(200)
	}
	if n := len(p.calls()); n != 2 {
		t.Errorf("%d determiners were asked", n)
	}

	spent := g.make("/admin/budgets", object{"name": "none", "scope_type": "model_alias", "scope_value": "smart", "period": "day", "amount": 0, "hard_stop": true})
	askSmart().refused(http.StatusTooManyRequests, "budget_exceeded")
	if n := len(p.calls()); n != 0 {
		t.Errorf("%d determiners were asked on a budget that is spent", n)
	}
	g.send(http.MethodDelete, base+"/admin/budgets/"+spent["id"].(string), "").want(200)

	g.make("/admin/rate-limits", object{"name": "tokens", "scope_type": "model_alias", "scope_value": "smart", "tokens_per_minute": 100_000})
	askSmart().want(200)
	if _, tokens := g.used(); tokens != 6+42 {
		t.Errorf("%d tokens count for the smart model, its determiner's too", tokens)
	}
}

// TestBackgroundResponses checks that a response that nobody would learn the usage of does not leave (T07).
func TestBackgroundResponses(t *testing.T) {
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		reply(w, 200, `{"id":"r","status":"queued","output":[]}`)
	})
	g := newGateway(t, p.URL, nil)
	g.send(http.MethodPost, base+"/v1/responses", `{"model":"small","input":"x","background":true}`).refused(http.StatusBadRequest, "unsupported_parameter")
	if n := len(p.calls()); n != 0 {
		t.Errorf("%d calls left", n)
	}
}

// TestLeavingADeterminer checks that a caller who leaves while the determiner thinks has made a request (T07).
func TestLeavingADeterminer(t *testing.T) {
	reached := make(chan struct{})
	p := newProvider(t, func(_ http.ResponseWriter, r *http.Request, _ []byte) {
		close(reached)
		<-r.Context().Done()
	})
	g := newGateway(t, p.URL, nil)
	g.limited()
	g.make("/admin/smart-models", object{
		"model_alias": "smart", "determiner_model_alias": "small", "default_slot_on_failure": 0,
		"slots": []any{object{"model_alias": "large", "label": "easy"}, object{"model_alias": "claude", "label": "hard"}},
	})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+chat, strings.NewReader(strings.Replace(asked, "small", "smart", 1)))
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "gate.example.com"
	r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + g.token}}
	go func() {
		<-reached
		leave()
	}()
	if response, err := g.client.Do(r); err == nil {
		_ = response.Body.Close()
		t.Fatal("an answer")
	}
	soon(t, "the request to count", func() bool { requests, tokens := g.used(); return requests == 1 && tokens > 0 })
	if n := len(p.calls()); n != 1 {
		t.Errorf("%d calls left", n)
	}
}

// TestParallelDeterminers checks that of many calls at once no more have a determiner asked than a limit has room for
// (T01).
func TestParallelDeterminers(t *testing.T) {
	asking, answer := make(chan struct{}, 20), make(chan struct{})
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request, body []byte) {
		if strings.Contains(string(body), `"real"`) {
			asking <- struct{}{}
			<-answer
			reply(w, 200, determined)
			return
		}
		reply(w, 200, whole)
	})
	g := newGateway(t, p.URL, nil)
	g.make("/admin/rate-limits", object{"name": "all", "scope_type": "org", "requests_per_minute": 3, "tokens_per_minute": 1_000_000})
	g.make("/admin/smart-models", object{
		"model_alias": "smart", "determiner_model_alias": "small", "default_slot_on_failure": 0,
		"slots": []any{object{"model_alias": "large", "label": "easy"}, object{"model_alias": "claude", "label": "hard"}},
	})
	const calls = 20
	statuses := make(chan int, calls)
	for range calls {
		go func() {
			response := g.open(t.Context(), http.MethodPost, chat, g.token, strings.Replace(asked, "small", "smart", 1))
			_ = response.Body.Close()
			statuses <- response.StatusCode
		}()
	}
	for range 3 {
		<-asking
	}
	for range calls - 3 {
		if status := <-statuses; status != http.StatusTooManyRequests {
			t.Errorf("%d", status)
		}
	}
	close(answer)
	for range 3 {
		if status := <-statuses; status != http.StatusOK {
			t.Errorf("%d", status)
		}
	}
	if len(asking) != 0 {
		t.Errorf("%d more determiners were asked", len(asking))
	}
	if requests, tokens := g.used(); requests != 3 || tokens != 3*(6+42) {
		t.Errorf("%d requests, %d tokens", requests, tokens)
	}
}
