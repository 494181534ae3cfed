package wire

import (
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/ratelimit/limit"
)

// Answers in the form of the public APIs.
const (
	chatAnswer = `{"id":"chatcmpl-B9MBs8","object":"chat.completion","created":1741569952,"model":"gpt-4.1-2025-04-14","choices":[{"index":0,"message":{"role":"assistant","content":"Hello! How can I \"assist\" you?","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":8,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}},"service_tier":"default"}`

	responsesAnswer = `{"id":"resp_67ccd2be","object":"response","created_at":1741476542,"status":"completed","error":null,"model":"gpt-4.1-2025-04-14","output":[{"type":"message","id":"msg_67","status":"completed","role":"assistant","content":[{"type":"output_text","text":"In a peaceful grove.","annotations":[]}]},{"type":"function_call","id":"fc_1","call_id":"call_1","name":"look","arguments":"{\"q\":1}","status":"completed"}],"usage":{"input_tokens":36,"input_tokens_details":{"cached_tokens":16},"output_tokens":87,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":123},"user":null,"metadata":{}}`

	embeddingsAnswer = `{"object":"list","data":[{"object":"embedding","embedding":[0.0023064255,-0.009327292,1e-5],"index":0}],"model":"text-embedding-ada-002","usage":{"prompt_tokens":8,"total_tokens":8}}`

	messagesAnswer = `{"id":"msg_013Zva","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"thinking","thinking":"Hm.","signature":"EqQBCgIYAhIM"},{"type":"text","text":"Hi!"},{"type":"tool_use","id":"toolu_01","name":"look","input":{"q":"sky"}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":21,"cache_creation_input_tokens":188,"cache_read_input_tokens":2000,"cache_creation":{"ephemeral_5m_input_tokens":188,"ephemeral_1h_input_tokens":0},"output_tokens":393,"service_tier":"standard"}}`
)

func TestAnswerUsage(t *testing.T) {
	chat := func(usage string) string { return `{"choices":[],"usage":` + usage + `}` }
	for name, test := range map[string]struct {
		endpoint limit.Endpoint
		body     string
		want     Usage
	}{
		"chat":            {limit.ChatCompletions, chatAnswer, usage(19, 10, 8, true)},
		"responses":       {limit.Responses, responsesAnswer, usage(36, 87, 16, true)},
		"embeddings":      {limit.Embeddings, embeddingsAnswer, usage(8, 0, 0, true)},
		"messages":        {limit.Messages, messagesAnswer, Usage{Input: 2209, Output: 393, Cached: 2000, Known: true, Written: 188}},
		"messages, short": {limit.Messages, `{"usage":{"input_tokens":3,"cache_read_input_tokens":null,"output_tokens":4}}`, usage(3, 4, 0, true)},

		"W43 an hour": {limit.Messages, `{"usage":{"input_tokens":1,"cache_creation_input_tokens":300,"cache_creation":{"ephemeral_5m_input_tokens":100,"ephemeral_1h_input_tokens":200},"output_tokens":4}}`,
			Usage{Input: 301, Output: 4, Known: true, Written: 300, Written1h: 200}},
		"W43 the parts alone": {limit.Messages, `{"usage":{"input_tokens":1,"cache_creation":{"ephemeral_5m_input_tokens":100,"ephemeral_1h_input_tokens":200},"output_tokens":4}}`,
			Usage{Input: 301, Output: 4, Known: true, Written: 300, Written1h: 200}},
		"W43 parts that are 0": {limit.Messages, `{"usage":{"input_tokens":1,"cache_creation_input_tokens":300,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0},"output_tokens":4}}`,
			Usage{Input: 301, Output: 4, Known: true, Written: 300}},
		"W43 cache_creation null": {limit.Messages, `{"usage":{"input_tokens":1,"cache_creation":null,"output_tokens":4}}`, usage(1, 4, 0, true)},
		"W43 DeepSeek":            {limit.ChatCompletions, chat(`{"prompt_tokens":100,"completion_tokens":1,"total_tokens":101,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36}`), usage(100, 1, 64, true)},
		"W43 two names":           {limit.ChatCompletions, chat(`{"prompt_tokens":100,"completion_tokens":1,"prompt_cache_hit_tokens":64,"prompt_tokens_details":{"cached_tokens":0}}`), usage(100, 1, 64, true)},
		"W43 Moonshot":            {limit.ChatCompletions, chat(`{"prompt_tokens":100,"completion_tokens":1,"cached_tokens":64}`), usage(100, 1, 64, true)},
		"W43 LiteLLM": {limit.ChatCompletions, chat(`{"prompt_tokens":100,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":60,"cache_creation_tokens":30},"cache_read_input_tokens":60,"cache_creation_input_tokens":30}`),
			Usage{Input: 100, Output: 1, Cached: 60, Known: true, Written: 30}},
		"W43 OpenRouter": {limit.ChatCompletions, chat(`{"prompt_tokens":100,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":0,"cache_write_tokens":90}}`),
			Usage{Input: 100, Output: 1, Known: true, Written: 90}},
		"W43 OpenAI, GPT-5.6": {limit.Responses, `{"usage":{"input_tokens":2600,"input_tokens_details":{"cached_tokens":2000,"cache_write_tokens":400},"output_tokens":1}}`,
			Usage{Input: 2600, Output: 1, Cached: 2000, Known: true, Written: 400}},
		"W43 more written than there are": {limit.ChatCompletions, chat(`{"prompt_tokens":100,"completion_tokens":1,"cached_tokens":60,"cache_creation_input_tokens":90}`),
			Usage{Input: 100, Output: 1, Cached: 60, Known: true, Written: 40}},
		"T07 a wild part": {limit.Messages, `{"usage":{"input_tokens":1,"cache_creation":{"ephemeral_1h_input_tokens":-1},"output_tokens":4}}`, Usage{}},

		"usage first":      {limit.ChatCompletions, `{"usage":{"completion_tokens":1,"prompt_tokens":2},"choices":[{}]}`, usage(2, 1, 0, true)},
		"blanks":           {limit.ChatCompletions, "\n{ \"usage\" : { \"prompt_tokens\" : 2 ,\n\"completion_tokens\":\t1 } }\n", usage(2, 1, 0, true)},
		"no output":        {limit.ChatCompletions, chat(`{"prompt_tokens":2}`), usage(2, 0, 0, true)},
		"more cached":      {limit.ChatCompletions, chat(`{"prompt_tokens":2,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":9}}`), usage(2, 1, 2, true)},
		"details null":     {limit.ChatCompletions, chat(`{"prompt_tokens_details":null,"prompt_tokens":2,"completion_tokens":1}`), usage(2, 1, 0, true)},
		"not its own":      {limit.ChatCompletions, `{"choices":[{"usage":{"prompt_tokens":2}}],"x":{"usage":{"prompt_tokens":2}}}`, Usage{}},
		"in a string":      {limit.ChatCompletions, `{"choices":"\",\"usage\":{\"prompt_tokens\":2}","x":"\\"}`, Usage{}},
		"a lone surrogate": {limit.ChatCompletions, `{"choices":[{"message":{"content":"\ud83d"}}],"usage":{"prompt_tokens":2,"completion_tokens":1}}`, usage(2, 1, 0, true)},
		"bad UTF-8":        {limit.ChatCompletions, "{\"choices\":[\"\xff\x01\"],\"usage\":{\"prompt_tokens\":2}}", usage(2, 0, 0, true)},

		"T07 none":            {limit.ChatCompletions, `{"choices":[]}`, Usage{}},
		"T07 null":            {limit.ChatCompletions, chat(`null`), Usage{}},
		"T07 zeros":           {limit.ChatCompletions, chat(`{"prompt_tokens":0,"completion_tokens":0}`), Usage{}},
		"T07 negative":        {limit.ChatCompletions, chat(`{"prompt_tokens":2,"completion_tokens":-100}`), Usage{}},
		"T07 negative cached": {limit.ChatCompletions, chat(`{"prompt_tokens":2,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":-1}}`), Usage{}},
		"T07 fraction":        {limit.ChatCompletions, chat(`{"prompt_tokens":2.5,"completion_tokens":1}`), Usage{}},
		"T07 exponent":        {limit.ChatCompletions, chat(`{"prompt_tokens":2e3,"completion_tokens":1}`), Usage{}},
		"T07 absurd":          {limit.ChatCompletions, chat(`{"prompt_tokens":2,"completion_tokens":9999999999}`), Usage{}},
		"T07 overflow":        {limit.ChatCompletions, chat(`{"prompt_tokens":18446744073709551617,"completion_tokens":1}`), Usage{}},
		"T07 text":            {limit.ChatCompletions, chat(`{"prompt_tokens":"2","completion_tokens":1}`), Usage{}},
		"T07 a list":          {limit.ChatCompletions, chat(`[2,1]`), Usage{}},

		"nothing":        {limit.ChatCompletions, ``, Usage{}},
		"text":           {limit.ChatCompletions, `<html>"usage":{"prompt_tokens":2}`, Usage{}},
		"a list at last": {limit.ChatCompletions, `[{"usage":{"prompt_tokens":2}}]`, Usage{}},
		"no colon":       {limit.ChatCompletions, `{"x" 1,"usage":{"prompt_tokens":2}}`, Usage{}},
		"no value":       {limit.ChatCompletions, `{"x":,"usage":{"prompt_tokens":2}}`, Usage{}},
		"a stray end":    {limit.ChatCompletions, `{"x":[1}],"usage":{"prompt_tokens":2}}`, Usage{}},
		"an open string": {limit.ChatCompletions, `{"usage":{"prompt_tokens":2},"x":"`, usage(2, 0, 0, true)},
		"cut off":        {limit.ChatCompletions, `{"usage":{"prompt_tokens":2,"completion`, usage(2, 0, 0, true)},
		"deep":           {limit.ChatCompletions, `{"x":` + strings.Repeat("[", 100_000), Usage{}},
	} {
		if got := AnswerUsage(test.endpoint, []byte(test.body)); got != test.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestEstimateUsed(t *testing.T) {
	withoutUsage := func(answer string) string { return strings.ReplaceAll(answer, `"usage"`, `"used"`) }
	chat := `{"model":"m","messages":[{"content":"12345678"}]}`
	for name, test := range map[string]struct {
		endpoint      limit.Endpoint
		request, body string
		want          Usage
	}{
		"known":         {limit.ChatCompletions, chat, chatAnswer, usage(19, 10, 8, true)},
		"T07 chat":      {limit.ChatCompletions, chat, withoutUsage(chatAnswer), usage(2, 8, 0, false)},                                         // 30
		"T07 responses": {limit.Responses, `{"model":"m","input":"1234"}`, withoutUsage(responsesAnswer), usage(1, 8, 0, false)},                // 20 + 4 + 7
		"T07 messages":  {limit.Messages, `{"model":"m","messages":[{"content":"1234"}]}`, withoutUsage(messagesAnswer), usage(1, 4, 0, false)}, // 3 + 3 + 4 + 3
		"T07 no output": {limit.ChatCompletions, chat, `{"choices":[{"message":{"content":"12345678"}}],"usage":{"prompt_tokens":19,"completion_tokens":0,"prompt_tokens_details":{"cached_tokens":8}}}`,
			usage(19, 2, 8, false)},
		"no output and no text": {limit.ChatCompletions, chat, `{"choices":[{"message":{"content":""}}],"usage":{"prompt_tokens":19,"completion_tokens":0}}`, usage(19, 0, 0, true)},
		"T07 embeddings":        {limit.Embeddings, `{"model":"m","input":["1234"]}`, withoutUsage(embeddingsAnswer), usage(1, 0, 0, false)},
		"T07 junk":              {limit.ChatCompletions, chat, `oh no`, usage(2, 0, 0, false)},
	} {
		r := parse(t, test.endpoint, test.request)
		if got := AnswerUsed(r, []byte(test.body)); got != test.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
	r := parse(t, limit.ChatCompletions, `{"model":"m","n":3}`)
	for output, want := range map[int64]int64{-5: 0, 0: 0, 1: 1, 9: 3, 10: 4, 1<<63 - 1: (1<<63-1)/3 + 1} {
		if got := r.PerChoice(output); got != want {
			t.Errorf("%d for each of 3 choices of %d", got, output)
		}
	}
}

func TestLengthOf(t *testing.T) {
	for inside, want := range map[string]int64{
		``: 0, `abc`: 3, `é`: 2, `\n\"`: 2, `\u00e9`: 2, `\u00E9\u20ac`: 5, `\ud83d\ude00`: 4, `\ud83d`: 2, `\u12`: 3, `\`: 1, `a\\u00e9`: 7,
	} {
		if got := lengthOf([]byte(inside)); got != want {
			t.Errorf("%s: %d, want %d", inside, got, want)
		}
	}
}

func usage(input, output, cached int64, known bool) Usage {
	return Usage{Input: input, Output: output, Cached: cached, Known: known}
}
