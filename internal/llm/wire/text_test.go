package wire

import (
	"testing"

	"github.com/durward-gateway/durward/internal/ratelimit/limit"
)

func TestUserText(t *testing.T) {
	for name, test := range map[string]struct {
		endpoint          limit.Endpoint
		body, first, last string
	}{
		"nothing":           {limit.ChatCompletions, `{"model":"m"}`, "", ""},
		"no list":           {limit.ChatCompletions, `{"model":"m","messages":{"role":"user","content":"x"}}`, "", ""},
		"nobody":            {limit.ChatCompletions, `{"model":"m","messages":[1,"x",null,{"role":"system","content":"s"},{"content":"x"},{"role":["user"],"content":"x"}]}`, "", ""},
		"one":               {limit.ChatCompletions, `{"model":"m","messages":[{"role":"system","content":"s"},{"content":"h\u00e9","role":"\u0075ser"}]}`, "hé", "hé"},
		"a conversation":    {limit.ChatCompletions, `{"model":"m","messages":[{"role":"user","content":"one"},{"role":"assistant","content":"a"},{"role":"user","content":"two"},{"role":"assistant","tool_calls":[]},{"role":"tool","content":"t"}]}`, "one", "two"},
		"parts":             {limit.ChatCompletions, `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:x"}},{"text":"b","type":"text"}]}]}`, "a\nb", "a\nb"},
		"an image alone":    {limit.ChatCompletions, `{"model":"m","messages":[{"role":"user","content":[ {"type":"image_url"}]},{"role":"user","content":"q"},{"role":"user","content":[{"type":"image_url"}]}]}`, `[ {"type":"image_url"}]`, "q"},
		"odd content":       {limit.ChatCompletions, `{"model":"m","messages":[{"role":"user","content":null},{"role":"user","content":[1,{"type":1,"text":2}]}]}`, "null", ""},
		"responses, text":   {limit.Responses, `{"model":"m","input":"a\nb"}`, "a\nb", "a\nb"},
		"responses, items":  {limit.Responses, `{"model":"m","input":[{"role":"developer","content":"d"},{"type":"message","role":"user","content":[{"type":"input_text","text":"one"}]},{"type":"function_call_output","output":"o"},{"role":"user","content":"two"},{"type":"reasoning"}]}`, "one", "two"},
		"embeddings":        {limit.Embeddings, `{"model":"m","input":"e"}`, "e", "e"},
		"embeddings, list":  {limit.Embeddings, `{"model":"m","input":["one","two"]}`, "one", "two"},
		"tokens":            {limit.Embeddings, `{"model":"m","input":[[1,2],[3]]}`, "", ""},
		"messages":          {limit.Messages, `{"model":"m","system":"s","messages":[{"role":"user","content":"one"},{"role":"assistant","content":"a"},{"role":"user","content":[{"type":"text","text":"two","cache_control":{"type":"ephemeral"}}]}]}`, "one", "two"},
		"results of a tool": {limit.Messages, `{"model":"m","messages":[{"role":"user","content":"one"},{"role":"assistant","content":[]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"r"}]}]}]}`, "one", "one"},
		"another's members": {limit.Messages, `{"model":"m","input":"x"}`, "", ""},
	} {
		r := parse(t, test.endpoint, test.body)
		if got := r.FirstUser(); got != test.first {
			t.Errorf("%s: first %q", name, got)
		}
		if got := r.LastUser(); got != test.last {
			t.Errorf("%s: last %q", name, got)
		}
	}
}

// TestForget checks that settling a call needs no body.
func TestForget(t *testing.T) {
	r := parse(t, limit.ChatCompletions, `{"model":"m","n":2,"messages":[{"role":"user","content":"12345678"}]}`)
	r.Forget()
	if r.LastUser() != "" || r.FirstUser() != "" || r.Alias != "m" || r.PerChoice(3) != 2 || EstimateUsed(r, 5) != (usage(3, 2, 0, false)) {
		t.Errorf("%+v", r)
	}
}
