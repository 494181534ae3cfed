package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// llmProvider is a provider of models that speaks as OpenAI and Anthropic do. A test sets its handler.
type llmProvider struct {
	*httptest.Server
	mu   sync.Mutex
	seen []llmCall
}

type llmCall struct {
	path   string
	header http.Header
	body   string
}

func newLLMProvider(t *testing.T, serve func(w http.ResponseWriter, r *http.Request, body string)) *llmProvider {
	t.Helper()
	p := new(llmProvider)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.seen = append(p.seen, llmCall{r.URL.Path, r.Header, string(body)})
		p.mu.Unlock()
		serve(w, r, string(body))
	}))
	t.Cleanup(p.Close)
	return p
}

// calls returns the received calls, and forgets them.
func (p *llmProvider) calls() []llmCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := p.seen
	p.seen = nil
	return seen
}

func (p *llmProvider) last(t *testing.T) llmCall {
	t.Helper()
	calls := p.calls()
	if len(calls) != 1 {
		t.Fatalf("%d calls came", len(calls))
	}
	return calls[0]
}

const (
	llmBase    = "/api/llm-gateway"
	chatPath   = llmBase + "/v1/chat/completions"
	chatAnswer = `{"id":"c1","object":"chat.completion","model":"gpt-real","choices":[{"index":0,"message":{"role":"assistant","content":"Hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}`
	chatAsked  = `{"model":"small", "messages":[{"role":"user","content":"Hi"}], "x_unknown": [1.0, 2e3]}`
)

func answerJSON(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// llmError returns the code or type of an error in OpenAI's or Anthropic's format.
func llmError(t *testing.T, a answer) string {
	t.Helper()
	var body struct {
		Error struct {
			Type, Message string
			Code          *string
		}
	}
	a.decode(t, &body)
	if body.Error.Message == "" || body.Error.Type == "" {
		t.Errorf("no envelope: %s", a.body)
	}
	if body.Error.Code != nil {
		return *body.Error.Code
	}
	return body.Error.Type
}

// TestLLMGateway lets the built binary carry calls to models: configured and stored ones, whole and streamed, by token
// and by key. It checks that calls are counted and recorded, and that no secret is in the wrong place.
func TestLLMGateway(t *testing.T) {
	t.Parallel()
	next, sent := make(chan struct{}), make(chan struct{}, 8)
	provider := newLLMProvider(t, func(w http.ResponseWriter, r *http.Request, body string) {
		h := w.Header()
		h.Set("X-Request-Id", "req-1")
		h.Set("X-Ratelimit-Limit-Requests", "77")
		h.Set("Openai-Organization", "org-of-the-account")
		h.Set("Set-Cookie", "a=b")
		switch {
		case strings.Contains(body, `"stream":true`):
			h.Set("Content-Type", "text/event-stream")
			for i, chunk := range []string{
				`{"choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}]}`, `{"choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":"stop"}]}`,
				`{"choices":[],"usage":{"prompt_tokens":20,"completion_tokens":5}}`, "[DONE]",
			} {
				if i == 1 {
					<-next // the client has the first one by now
				}
				_, _ = fmt.Fprintf(w, "data: %s\n\n", chunk)
				_ = http.NewResponseController(w).Flush()
				sent <- struct{}{}
			}
		case r.URL.Path == "/v1/messages":
			answerJSON(w, http.StatusOK, `{"id":"m1","type":"message","role":"assistant","content":[{"type":"text","text":"Hello"}],"stop_reason":"end_turn","usage":{"input_tokens":10,"output_tokens":2}}`)
		default:
			answerJSON(w, http.StatusOK, chatAnswer)
		}
	})
	g := startGateway(t, settings{
		env: []string{"PROVIDER_KEY=sk-configured"},
		option: `provider openai house {
			base_url ` + provider.URL + `/v1
			key {env.PROVIDER_KEY}
		}
		alias small {
			target house gpt-real
		}`,
	})
	boss, user, rival := g.token(admin), g.token(alice), g.token(eve)
	stored := g.object(boss, http.MethodPost, llmBase+"/admin/providers", members{
		"name": "Claude", "kind": "anthropic", "base_url": provider.URL, "api_key": "sk-stored",
	})
	g.object(boss, http.MethodPost, llmBase+"/admin/model-mappings", members{"model_alias": "claude", "targets": []any{members{"provider_id": stored["id"], "model": "claude-real"}}})
	limit := g.object(boss, http.MethodPost, llmBase+"/admin/rate-limits", members{"name": "All", "scope_type": "org", "tokens_per_minute": 100000, "requests_per_minute": 1000, "traffic_type": "llm"})
	key := g.object(boss, http.MethodPost, llmBase+"/admin/api-keys", members{"name": "Narrow", "scopes": []string{"model:small"}})["key"].(string)

	// A whole answer has the same bytes except for the model, and no secret where it does not belong.
	got := g.send(http.MethodPost, chatPath, user, chatAsked, "X-Api-Key", "", "OpenAI-Organization", "org-mine", "Cookie", "c=d").want(t, http.StatusOK)
	if string(got.body) != chatAnswer {
		t.Errorf("body %s", got.body)
	}
	call := provider.last(t)
	if call.path != "/v1/chat/completions" || call.body != strings.Replace(chatAsked, "small", "gpt-real", 1) {
		t.Errorf("%s %s", call.path, call.body)
	}
	if call.header.Get("Authorization") != "Bearer sk-configured" || call.header.Get("Cookie") != "" || call.header.Get("OpenAI-Organization") != "" {
		t.Errorf("headers to the provider: %v", call.header)
	}
	if got.header.Get("X-Request-Id") != "req-1" || got.header.Get("X-Ratelimit-Limit-Requests") != "" || got.header.Get("Openai-Organization") != "" ||
		got.header.Get("Set-Cookie") != "" || got.header.Get("X-Durward-Model") != "small" {
		t.Errorf("headers to the client: %v", got.header)
	}

	// A stream: each event as it comes, the usage that was asked for hidden again.
	response := g.open(context.Background(), http.MethodPost, chatPath, key, `{"model":"small","stream":true,"messages":[{"role":"user","content":"Hi"}]}`)
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%d %v", response.StatusCode, response.Header)
	}
	<-sent
	reader := bufio.NewReader(response.Body)
	first, err := reader.ReadString('\n')
	if err != nil || !strings.Contains(first, `"Hel"`) {
		t.Fatalf("%q %v", first, err)
	}
	close(next)
	rest, err := io.ReadAll(reader)
	if err != nil || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") || strings.Contains(string(rest), "usage") || !strings.Contains(string(rest), `"lo"`) {
		t.Errorf("%q %v", rest, err)
	}
	if call := provider.last(t); !strings.Contains(call.body, `"stream_options":{"include_usage":true}`) || strings.Contains(fmt.Sprint(call.header), key) {
		t.Errorf("%s %v", call.body, call.header)
	}

	// Anthropic's way, with its own header for the key.
	got = g.send(http.MethodPost, llmBase+"/v1/messages", user, `{"model":"claude","max_tokens":50,"messages":[{"role":"user","content":"Hi"}]}`, "Anthropic-Beta", "x").want(t, http.StatusOK)
	call = provider.last(t)
	if call.path != "/v1/messages" || call.header.Get("X-Api-Key") != "sk-stored" || call.header.Get("Authorization") != "" ||
		call.header.Get("Anthropic-Version") == "" || call.header.Get("Anthropic-Beta") != "x" || !strings.Contains(call.body, `"claude-real"`) {
		t.Errorf("%s %v %s", call.path, call.header, call.body)
	}

	// These objects do not exist, are not the caller's, or are not at that address.
	if code := llmError(t, g.send(http.MethodPost, llmBase+"/v1/messages", user, `{"model":"small","max_tokens":5,"messages":[]}`).want(t, http.StatusBadRequest)); code != "invalid_request_error" {
		t.Errorf("/messages with a model of OpenAI's: %s", code)
	}
	for name, send := range map[string]func() answer{
		"unknown": func() answer { return g.send(http.MethodPost, chatPath, user, `{"model":"nope","messages":[]}`) },
		"another organization's": func() answer {
			return g.send(http.MethodPost, llmBase+"/v1/embeddings", rival, `{"model":"claude","input":"x"}`)
		},
		"not in the key's scopes": func() answer { return g.send(http.MethodPost, chatPath, key, `{"model":"claude","messages":[]}`) },
		"one model":               func() answer { return g.send(http.MethodGet, llmBase+"/v1/models/claude", key, nil) },
	} {
		if code := llmError(t, send().want(t, http.StatusNotFound)); code != "model_not_found" {
			t.Errorf("%s: %s", name, code)
		}
	}
	for path, status := range map[string]int{"/v1/completions": 404, "/v1": 404, "/v1/": 404, "/v1/messages/batches": 404} {
		llmError(t, g.send(http.MethodPost, llmBase+path, user, `{}`).want(t, status))
	}
	if got := g.send(http.MethodGet, chatPath, user, nil).want(t, http.StatusMethodNotAllowed); got.header.Get("Allow") != "POST" {
		t.Errorf("%v", got.header)
	}
	llmError(t, g.send(http.MethodPost, chatPath, "", chatAsked).want(t, http.StatusUnauthorized))
	llmError(t, g.send(http.MethodPost, chatPath, user, chatAsked, "Content-Type", "text/plain").want(t, http.StatusUnsupportedMediaType))
	llmError(t, g.send(http.MethodPost, chatPath, user, `{"model":"small","model":"claude"}`).want(t, http.StatusBadRequest))
	if n := len(provider.calls()); n != 0 {
		t.Errorf("%d refused calls left", n)
	}

	// Lists show the aliases that the caller may use.
	for token, want := range map[string]string{user: "claude small", key: "small", rival: "small"} {
		var list struct{ Data []struct{ ID string } }
		g.send(http.MethodGet, llmBase+"/v1/models", token, nil).want(t, http.StatusOK).decode(t, &list)
		var ids []string
		for _, m := range list.Data {
			ids = append(ids, m.ID)
		}
		if strings.Join(ids, " ") != want {
			t.Errorf("models %v, want %s", ids, want)
		}
	}
	g.send(http.MethodGet, llmBase+"/v1/models/small", key, nil).want(t, http.StatusOK)

	// The usage is the provider's: 12 + 25 + 12, in three calls that left.
	var status []struct {
		Policy members `json:"policy"`
		RPM    int     `json:"rpm_used"`
		TPM    int     `json:"tpm_used"`
	}
	raw := g.send(http.MethodGet, llmBase+"/admin/rate-limits/status", boss, nil).want(t, http.StatusOK)
	raw.decode(t, &status)
	if len(status) != 1 || status[0].Policy["id"] != limit["id"] || !strings.Contains(string(raw.body), "49") {
		t.Errorf("status %s", raw.body)
	}

	// Calls are recorded with their usage, and without a secret.
	log := g.send(http.MethodGet, "/api/audit?kind=call&limit=100", boss, nil).want(t, http.StatusOK)
	var page struct {
		Data []struct {
			Event, Tool, Outcome string
			Detail               members
		}
	}
	log.decode(t, &page)
	models := 0
	for _, r := range page.Data {
		if r.Event == "model.call" && r.Outcome == "ok" && r.Detail["model"] != nil {
			models++
		}
	}
	if models != 3 {
		t.Errorf("%d calls are recorded: %s", models, log.body)
	}
	for _, secret := range []string{"sk-configured", "sk-stored", key} {
		if strings.Contains(string(log.body), secret) || strings.Contains(g.output.String(), secret) {
			t.Error("a secret is recorded")
		}
	}
}

// TestLLMFallbacks checks that a call that fails before its answer began is tried elsewhere, in order; a call with an
// error of the client's is not.
func TestLLMFallbacks(t *testing.T) {
	t.Parallel()
	status := make(map[string]int) // by model
	var mu sync.Mutex
	set := func(model string, code int) { mu.Lock(); status[model] = code; mu.Unlock() }
	provider := newLLMProvider(t, func(w http.ResponseWriter, _ *http.Request, body string) {
		var asked struct{ Model string }
		_ = json.Unmarshal([]byte(body), &asked)
		mu.Lock()
		code := status[asked.Model]
		mu.Unlock()
		switch code {
		case 0:
			answerJSON(w, http.StatusOK, chatAnswer)
		case 1:
			panic(http.ErrAbortHandler)
		default:
			answerJSON(w, code, `{"error":{"message":"org-of-the-account: `+asked.Model+`","type":"x"}}`)
		}
	})
	g := startGateway(t, settings{option: `provider openai {
			base_url ` + provider.URL + `/v1
		}
		provider openai dead {
			base_url http://127.0.0.1:1/v1
		}
		alias first {
			target dead none
			target openai a
			target openai b
			fallback second
		}
		alias second {
			target openai c
		}`})
	user := g.token(alice)
	ask := func() answer { return g.send(http.MethodPost, chatPath, user, `{"model":"first","messages":[]}`) }
	models := func() (names []string) {
		for _, c := range provider.calls() {
			var asked struct{ Model string }
			_ = json.Unmarshal([]byte(c.body), &asked)
			names = append(names, asked.Model)
		}
		return names
	}
	for _, tc := range []struct {
		name     string
		a, b, c  int
		want     int
		tried    string
		answered string
	}{
		{"a closed port", 0, 0, 0, 200, "a", "first"},
		{"busy", 429, 0, 0, 200, "a b", "first"},
		{"a fault", 503, 500, 0, 200, "a b c", "second"},
		{"a broken connection", 1, 0, 0, 200, "a b", "first"},
		{"the account is refused", 401, 403, 0, 200, "a b c", "second"},
		{"the request is wrong", 422, 0, 0, 422, "a", "first"},
		{"everything fails", 500, 429, 502, 502, "a b c", ""},
		{"everybody is busy", 429, 429, 429, 429, "a b c", ""},
		{"no account is good", 401, 401, 401, 502, "a b c", ""},
	} {
		set("a", tc.a)
		set("b", tc.b)
		set("c", tc.c)
		got := ask().want(t, tc.want)
		if tried := strings.Join(models(), " "); tried != tc.tried || got.header.Get("X-Durward-Model") != tc.answered {
			t.Errorf("%s: tried %s, answered by %q", tc.name, tried, got.header.Get("X-Durward-Model"))
		}
		if tc.answered == "" {
			llmError(t, got)
			if strings.Contains(string(got.body), "org-of-the-account") {
				t.Errorf("%s: %s", tc.name, got.body)
			}
		}
	}
	if !strings.Contains(g.output.String(), "refuses the gateway's account") {
		t.Error("nobody is told that the account is refused")
	}
}
