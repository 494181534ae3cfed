package llm_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

// TestM27Aliases checks that an alias is compared exactly and once, and is the caller's to use; a stream is refused
// like a whole answer.
func TestM27Aliases(t *testing.T) {
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) { reply(w, 200, whole) })
	g := newGateway(t, p.URL, nil)
	g.make("/admin/smart-models", object{
		"model_alias": "smart", "determiner_model_alias": "small", "default_slot_on_failure": 0, "slots": []any{object{"model_alias": "large"}, object{"model_alias": "small"}},
	})
	narrow := g.make("/admin/api-keys", object{"name": "narrow", "scopes": []string{"llm", "model:small"}})["key"].(string)
	ask := func(token, body string) (int, string) {
		t.Helper()
		response := g.open(t.Context(), http.MethodPost, chat, token, body)
		defer response.Body.Close()
		content, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(content)
	}
	_, unknown := ask(narrow, `{"model":"nothing","messages":[]}`)
	for _, model := range []string{
		`"Small"`, `"SMALL"`, `" small"`, `"small "`, `"small\n"`, `"small\u0000"`, `"\u017fmall"`, `"sma\u006c\u006c\u200b"`, `"../small"`, `"./small"`, `"small/../small"`,
		`"small/"`, `"%73mall"`, `"small,large"`, `""`, `"large"`, `"claude"`, `"smart"`, `"real"`, `"up/real"`,
	} {
		for _, more := range []string{``, `,"stream":true`, `,"stream":false`} {
			if status, body := ask(narrow, `{"model":`+model+`,"messages":[]`+more+`}`); status != http.StatusNotFound || body != unknown {
				t.Errorf("M27 %s%s: %d %s", model, more, status, body)
			}
		}
		var text string
		if err := json.Unmarshal([]byte(model), &text); err != nil || strings.ContainsAny(text, "\n\x00") || text == "" || strings.Contains(text, "..") || text == "./small" {
			continue // nobody's address
		}
		response := g.open(t.Context(), http.MethodGet, base+"/v1/models/"+url.PathEscape(text), narrow, "")
		_ = response.Body.Close()
		if response.StatusCode < 400 {
			t.Errorf("M27 models/%q: %d", text, response.StatusCode)
		}
	}
	for _, body := range []string{
		`{"model":"small","model":"large"%s}`, `{"model":"small","mod\u0065l":"large"%s}`, `{"model":"small","Model":"large"%s}`, `{"MODEL":"small"%s}`,
		`{"model":["small"]%s}`, `{"model":{"id":"small"}%s}`,
	} {
		for _, more := range []string{``, `,"stream":true`} {
			if status, said := ask(narrow, fmt.Sprintf(body, more)); status != http.StatusBadRequest {
				t.Errorf("M27 %s: %d %s", body, status, said)
			}
		}
	}
	if n := len(p.calls()); n != 0 {
		t.Errorf("M27 %d calls left", n)
	}
	if status, body := ask(narrow, asked); status != http.StatusOK {
		t.Errorf("%d %s", status, body)
	}
}

// TestM27Determiners checks that every answer of a determiner gives one of the slots, or the default; no text brings a
// request past the limits of the slot that was chosen, streamed or whole. What may have cost something is counted.
func TestM27Determiners(t *testing.T) {
	content := func(said string) string {
		return `{"choices":[{"message":{"role":"assistant","content":` + said + `}}],"usage":{"prompt_tokens":5,"completion_tokens":1}}`
	}
	said := func(said string) func(w http.ResponseWriter) {
		return func(w http.ResponseWriter) { reply(w, 200, content(said)) }
	}
	const unread = 100 // at least: its prompt
	var judge func(w http.ResponseWriter)
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request, body []byte) {
		if strings.Contains(string(body), "You sort requests.") {
			judge(w)
			return
		}
		reply(w, 200, whole)
	})
	g := newGateway(t, p.URL, nil)
	g.make("/admin/smart-models", object{
		"model_alias": "smart", "determiner_model_alias": "small", "default_slot_on_failure": 0,
		"slots": []any{object{"model_alias": "large", "label": "easy"}, object{"model_alias": "claude", "label": "hard"}},
	})
	for _, tc := range []struct {
		name   string
		judge  func(w http.ResponseWriter)
		reason string
		tokens int // of the determiner; -1: what it may have used
	}{
		{"no slot", said(`"2"`), "default:range", 6},
		{"a long number", said(`"18446744073709551616"`), "default:range", 6},
		{"below the first", said(`"-1"`), "default:garbage", 6},
		{"a sentence", said(`"1, as the text demands"`), "default:garbage", 6},
		{"a number of JSON", said(`1`), "default:error", 6},
		{"parts", said(`[{"type":"text","text":"1"}]`), "default:error", 6},
		{"nothing", said(`null`), "default:error", 6},
		{"content twice", said(`"0","content":"1"`), "default:error", 6},
		{"no choice", func(w http.ResponseWriter) {
			reply(w, 200, `{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1}}`)
		}, "default:error", 6},
		{"no JSON", func(w http.ResponseWriter) { reply(w, 200, `1`) }, "default:error", -2},
		{"a page", func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "1")
		}, "default:error", -1},
		{"a stream", func(w http.ResponseWriter) { events(w)(content(`"1"`)) }, "default:error", -1},
		{"more than is read", func(w http.ResponseWriter) { reply(w, 200, content(`"`+strings.Repeat("1", 2<<20)+`"`)) }, "default:error", -1},
		{"a redirect", func(w http.ResponseWriter) { w.Header().Set("Location", "/"); reply(w, 307, content(`"1"`)) }, "default:error", -1},
		{"the request is wrong", func(w http.ResponseWriter) { reply(w, 400, content(`"1"`)) }, "default:error", 0},
		{"a fault", func(w http.ResponseWriter) { reply(w, 500, content(`"1"`)) }, "default:error", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g.t = t
			judge = tc.judge
			limit := g.make("/admin/rate-limits", object{"name": "all", "scope_type": "org", "tokens_per_minute": 10_000_000})
			got := g.ask(strings.Replace(asked, "small", "smart", 1)).want(200)
			if got.body != whole || got.header.Get("X-Durward-Model") != "large" || got.header.Get("X-Durward-Route-Reason") != tc.reason {
				t.Errorf("%v %s", got.header, got.body)
			}
			_, tokens := g.used()
			switch determiner := tokens - 42; {
			case tc.tokens >= 0 && determiner != int64(tc.tokens):
				t.Errorf("%d tokens of the determiner, not %d", determiner, tc.tokens)
			case tc.tokens == -1 && determiner < unread:
				t.Errorf("%d tokens of a determiner of which nobody knows", determiner)
			}
			g.send(http.MethodDelete, base+"/admin/rate-limits/"+limit["id"].(string), "").want(200)
		})
	}
	g.t = t
	// The text has its way: what it chose is closed to it all the same.
	judge = said(`"0"`)
	g.make("/admin/rate-limits", object{"name": "closed", "scope_type": "model_alias", "scope_value": "large", "requests_per_minute": 0})
	p.calls()
	for _, body := range []string{asked, askedStream} {
		g.ask(strings.Replace(body, "small", "smart", 1)).refused(http.StatusTooManyRequests, "rate_limit_exceeded")
	}
	for _, body := range p.calls() {
		if strings.Contains(body, "real-large") {
			t.Errorf("M27 %s", body)
		}
	}
}

// TestStickyConversations checks that a conversation is its caller, its alias and its first user message.
func TestStickyConversations(t *testing.T) {
	says := "0"
	var determiners atomic.Int64
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request, body []byte) {
		if strings.Contains(string(body), "You sort requests.") {
			determiners.Add(1)
			reply(w, 200, `{"choices":[{"message":{"role":"assistant","content":"`+says+`"}}]}`)
			return
		}
		reply(w, 200, whole)
	})
	g := newGateway(t, p.URL, nil)
	g.make("/admin/smart-models", object{
		"model_alias": "smart", "determiner_model_alias": "small", "default_slot_on_failure": 0, "sticky": true,
		"slots": []any{object{"model_alias": "large", "label": "easy"}, object{"model_alias": "small", "label": "hard"}},
	})
	key := g.make("/user/api-keys", object{"name": "k"})["key"].(string)
	other := g.issuer.Token(public, object{"sub": "somebody else"})
	user := func(text string) string { return `{"role":"user","content":"` + text + `"}` }
	again := user("hi") + `,{"role":"assistant","content":"Hello"},` + user("and now something else")
	for i, tc := range []struct{ token, messages, says, model, reason string }{
		{g.token, user("hi"), "0", "large", "determiner"},
		{g.token, again, "1", "large", "sticky"},
		{g.token, `{"role":"system","content":"x"},` + again, "1", "large", "sticky"},
		{other, user("hi"), "1", "small", "determiner"},
		{key, user("hi"), "1", "small", "determiner"},
		{g.token, user("hi!"), "1", "small", "determiner"},
		{g.token, again, "1", "large", "sticky"},
		{key, again, "0", "small", "sticky"},
	} {
		says = tc.says
		before := determiners.Load()
		response := g.open(t.Context(), http.MethodPost, chat, tc.token, `{"model":"smart","max_tokens":5,"messages":[`+tc.messages+`]}`)
		_ = response.Body.Close()
		if h := response.Header; h.Get("X-Durward-Model") != tc.model || h.Get("X-Durward-Route-Reason") != tc.reason || (determiners.Load() > before) != (tc.reason == "determiner") {
			t.Errorf("%d: %d %v", i, response.StatusCode, h)
		}
	}
}
