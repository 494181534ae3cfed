package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/proxy/sse"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
)

// Streams in the form of the public APIs.
const chunkHead = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1694268190,"model":"gpt-4o-mini","system_fingerprint":"fp_44709d6fcb",`

var (
	chatStart = chunkHead + `"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n"
	chatHello = chunkHead + `"choices":[{"index":0,"delta":{"content":"Hello \"you\""},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n"
	chatTool  = chunkHead + `"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_abc","type":"function","function":{"name":"look","arguments":""}}]},"finish_reason":null}]}` + "\n\n" +
		chunkHead + `"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"q\":"}}]},"finish_reason":null}]}` + "\n\n" +
		chunkHead + `"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]},"finish_reason":null}]}` + "\n\n"
	chatThink = chunkHead + `"choices":[{"index":0,"delta":{"reasoning":"think","reasoning_content":"think"},"finish_reason":null}]}` + "\n\n"
	chatStop  = chunkHead + `"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null}` + "\n\n"
	chatUsage = chunkHead + `"choices":[],"usage":{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":0}}}` + "\n\n"
	chatDone  = "data: [DONE]\n\n"
	chatError = `data: {"error":{"message":"The server had an error","type":"server_error","param":null,"code":null}}` + "\n\n"

	responsesStream = `event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","error":null,"output":[],"usage":null}}

event: response.output_item.added
data: {"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","sequence_number":2,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"Hi","obfuscation":"aX9"}

event: response.function_call_arguments.delta
data: {"type":"response.function_call_arguments.delta","sequence_number":3,"item_id":"fc_1","output_index":1,"delta":"{\"q\":1}"}

event: response.reasoning_summary_text.delta
data: {"type":"response.reasoning_summary_text.delta","sequence_number":4,"item_id":"rs_1","output_index":2,"summary_index":0,"delta":"So"}

event: response.audio.delta
data: {"type":"response.audio.delta","sequence_number":5,"delta":"AAAAAAAAAAAAAAAAAAAA"}

event: response.output_text.done
data: {"type":"response.output_text.done","sequence_number":6,"item_id":"msg_1","output_index":0,"content_index":0,"text":"Hi"}

`
	responsesEnd = `event: response.%[1]s
data: {"type":"response.%[1]s","sequence_number":7,"response":{"id":"resp_1","status":"%[1]s","error":%[2]s,"output":[{"type":"message","content":[{"type":"output_text","text":"Hi","usage":{"input_tokens":1}}]}],"usage":{"input_tokens":37,"input_tokens_details":{"cached_tokens":3},"output_tokens":11,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":48}}}

`
	messagesStart = `event: message_start
data: {"type":"message_start","message":{"id":"msg_014p7","type":"message","role":"assistant","content":[],"model":"claude-sonnet-4-5","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":472,"cache_creation_input_tokens":10,"cache_read_input_tokens":20,"output_tokens":2}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: ping
data: {"type": "ping"}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Let me"}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pkiMOYds"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Okay"}}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"toolu_01T1x","name":"look","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"q\":"}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"1}"}}

`
	messagesDelta = `event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":%d}}

`
	messagesStop = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
)

// wrote returns a usage that begins with messagesStart.
func wrote(u Usage) Usage {
	u.Written = 10
	return u
}

// outcome holds all results of a stream.
type outcome struct {
	Out         string
	Usage, Used Usage
	Output      int64
	Ended       bool
	Failed      bool
	As          string
	Err         error
}

func outcomeOf(r *Request, upstream io.Reader) outcome {
	s := NewStream(r, upstream)
	var b bytes.Buffer
	_, err := b.ReadFrom(s)
	as, failed := s.Failed()
	return outcome{b.String(), s.Usage(), s.Used(), s.OutputBytes(), s.Ended(), failed, as.Name, err}
}

const (
	streamed       = `{"model":"m","stream":true,"messages":[{"content":"12345678"}]}`
	streamedUsage  = `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"content":"12345678"}]}`
	streamedChoice = `{"model":"m","stream":true,"n":2}`
)

func TestStream(t *testing.T) {
	told := usage(19, 10, 8, true)
	hello := chatStart + chatHello + chatStop
	for name, test := range map[string]struct {
		endpoint limit.Endpoint
		request  string
		in       string
		want     outcome // an empty Out is in
	}{
		"chat, injected":       {limit.ChatCompletions, streamed, hello + chatUsage + chatDone, outcome{Out: hello + chatDone, Usage: told, Used: told, Output: 11, Ended: true}},
		"chat, wanted":         {limit.ChatCompletions, streamedUsage, hello + chatUsage + chatDone, outcome{Usage: told, Used: told, Output: 11, Ended: true}},
		"chat, tools":          {limit.ChatCompletions, streamed, chatStart + chatTool + chatDone, outcome{Used: usage(2, 3, 0, false), Output: 11, Ended: true}},
		"chat, reasoning":      {limit.ChatCompletions, streamed, chatThink, outcome{Used: usage(2, 2, 0, false), Output: 5}},
		"T07 chat, no usage":   {limit.ChatCompletions, streamed, hello + chatDone, outcome{Used: usage(2, 3, 0, false), Output: 11, Ended: true}},
		"T07 chat, broken off": {limit.ChatCompletions, streamed, chatStart + chatHello, outcome{Used: usage(2, 3, 0, false), Output: 11}},
		"T07 chat, zeros":      {limit.ChatCompletions, streamed, hello + chunkHead + `"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}` + "\n\n" + chatDone, outcome{Out: hello + chatDone, Used: usage(2, 3, 0, false), Output: 11, Ended: true}},
		"T07 chat, no output":  {limit.ChatCompletions, streamed, hello + chunkHead + `"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":0}}` + "\n\n", outcome{Out: hello, Usage: usage(7, 0, 0, true), Used: usage(7, 3, 0, false), Output: 11, Ended: true}},
		"T07 chat, wild":       {limit.ChatCompletions, streamed, chatHello + chunkHead + `"choices":[],"usage":{"prompt_tokens":-7,"completion_tokens":1e9}}` + "\n\n", outcome{Out: chatHello, Used: usage(2, 3, 0, false), Output: 11}},
		"chat, not marked":     {limit.ChatCompletions, streamed, hello, outcome{Used: usage(2, 3, 0, false), Output: 11, Ended: true}},
		"chat, one of two":     {limit.ChatCompletions, streamedChoice, hello, outcome{Used: usage(0, 3, 0, false), Output: 11}},
		"chat, counted on": {limit.ChatCompletions, streamed, strings.ReplaceAll(chatHello, `"usage":null`, `"usage":{"prompt_tokens":5,"completion_tokens":3}`) + chatError,
			outcome{Usage: usage(5, 3, 0, true), Used: usage(5, 3, 0, true), Output: 11, Failed: true, As: "server_error"}},
		"chat, injected, choices null": {limit.ChatCompletions, streamed, hello + chunkHead + `"choices":null,"usage":{"prompt_tokens":19,"completion_tokens":10}}` + "\n\n" + chatDone,
			outcome{Out: hello + chatDone, Usage: usage(19, 10, 0, true), Used: usage(19, 10, 0, true), Output: 11, Ended: true}},
		"chat, injected, no choices": {limit.ChatCompletions, streamed, hello + chunkHead + `"error":null,"usage":{"prompt_tokens":19,"completion_tokens":10}}` + "\n\n" + chatDone,
			outcome{Out: hello + chatDone, Usage: usage(19, 10, 0, true), Used: usage(19, 10, 0, true), Output: 11, Ended: true}},
		"chat, wanted, choices null": {limit.ChatCompletions, streamedUsage, hello + chunkHead + `"choices":null,"usage":{"prompt_tokens":19,"completion_tokens":10}}` + "\n\n" + chatDone,
			outcome{Usage: usage(19, 10, 0, true), Used: usage(19, 10, 0, true), Output: 11, Ended: true}},
		"chat, injected, an error with usage": {limit.ChatCompletions, streamed, chatHello + `data: {"error":{"code":502},"choices":[],"usage":{"prompt_tokens":19,"completion_tokens":10}}` + "\n\n",
			outcome{Usage: usage(19, 10, 0, true), Used: usage(19, 10, 0, true), Output: 11, Failed: true, As: "502"}},
		"chat, usage beside the end, as Gemini's": {limit.ChatCompletions, streamed, chatHello + strings.Replace(chatStop, `"usage":null`, `"usage":{"prompt_tokens":19,"completion_tokens":10}`, 1) + chatDone,
			outcome{Usage: usage(19, 10, 0, true), Used: usage(19, 10, 0, true), Output: 11, Ended: true}},
		"chat, usage beside an empty choice": {limit.ChatCompletions, streamed, hello + chunkHead + `"choices":[{"index":0,"delta":{}}],"usage":{"prompt_tokens":19,"completion_tokens":10}}` + "\n\n" + chatDone,
			outcome{Usage: usage(19, 10, 0, true), Used: usage(19, 10, 0, true), Output: 11, Ended: true}},
		"chat, two chunks on one line": {limit.ChatCompletions, streamed, `data: {"id":"1","object":"chat.completion.cdata: {"choices":[{"delta":{"content":"I"}}]}` + "\n\n" + chatHello + chatStop + "data:[DONE]\n\n",
			outcome{Used: usage(2, 3, 0, false), Output: 11, Ended: true}},
		"chat, a chunk without delta, as Azure's": {limit.ChatCompletions, streamed, hello + `data: {"id":"","choices":[{"finish_reason":null,"index":0,"content_filter_offsets":{"check_offset":1}}],"created":0}` + "\n\n" + chatDone,
			outcome{Used: usage(2, 3, 0, false), Output: 11, Ended: true}},
		"chat, empty choices":   {limit.ChatCompletions, streamed, chunkHead + `"choices":[],"prompt_filter_results":[{}]}` + "\n\n" + chatDone, outcome{Used: Usage{Input: 2}, Ended: true}},
		"chat, error alone":     {limit.ChatCompletions, streamed, "event: error\ndata: {\"message\":\"x\"}\n\n", outcome{Used: Usage{Input: 2}, Failed: true}},
		"chat, a code":          {limit.ChatCompletions, streamed, "data: {\"error\":\"overloaded\"}\n\n", outcome{Used: Usage{Input: 2}, Failed: true, As: "overloaded"}},
		"chat, error a number":  {limit.ChatCompletions, streamed, "data: {\"error\":500,\"choices\":[1,{\"text\":\"1234\"},:\n\n", outcome{Used: usage(2, 1, 0, false), Output: 4, Failed: true}},
		"chat, a long code":     {limit.ChatCompletions, streamed, "data: {\"error\":\"" + strings.Repeat("x", 65) + "\"}\n\n", outcome{Used: Usage{Input: 2}, Failed: true}},
		"chat, error null":      {limit.ChatCompletions, streamed, "data: {\"error\":null}\n\n", outcome{Used: Usage{Input: 2}}},
		"comments, ids, junk":   {limit.ChatCompletions, streamed, ": PROCESSING\n\nid: 1\nretry: 5\ndata: {]\n\ndata:\n\n\n\ndata: x\ndata: y\n\n" + chatDone, outcome{Used: Usage{Input: 2}, Ended: true}},
		"CRLF, byte order mark": {limit.ChatCompletions, streamed, "\ufeff" + strings.ReplaceAll(hello+chatUsage+chatDone, "\n", "\r\n"), outcome{Out: "\ufeff" + strings.ReplaceAll(hello+chatDone, "\n", "\r\n"), Usage: told, Used: told, Output: 11, Ended: true}},
		"no last line end":      {limit.ChatCompletions, streamed, hello + chatUsage + "data: [DONE]", outcome{Out: hello + "data: [DONE]", Usage: told, Used: told, Output: 11, Ended: true}},
		"cut off in an event":   {limit.ChatCompletions, streamed, chatHello + chatHello[:len(chatHello)-20], outcome{Out: chatHello, Used: usage(2, 3, 0, false), Output: 11}},

		"responses": {limit.Responses, `{"model":"m","stream":true,"input":"1234"}`, responsesStream + fmt.Sprintf(responsesEnd, "completed", "null"),
			outcome{Usage: usage(37, 11, 3, true), Used: usage(37, 11, 3, true), Output: 11, Ended: true}},
		"responses, incomplete": {limit.Responses, `{"model":"m","stream":true}`, fmt.Sprintf(responsesEnd, "incomplete", "null"),
			outcome{Usage: usage(37, 11, 3, true), Used: usage(37, 11, 3, true), Ended: true}},
		"responses, failed": {limit.Responses, `{"model":"m","stream":true}`, fmt.Sprintf(responsesEnd, "failed", `{"code":"server_error","message":"x"}`),
			outcome{Usage: usage(37, 11, 3, true), Used: usage(37, 11, 3, true), Ended: true, Failed: true, As: "server_error"}},
		"T07 responses, broken off": {limit.Responses, `{"model":"m","stream":true,"input":"1234"}`, responsesStream, outcome{Used: usage(1, 3, 0, false), Output: 11}},
		"responses, error": {limit.Responses, `{"model":"m","stream":true}`, "event: error\ndata: {\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"x\",\"param\":null,\"sequence_number\":1}\n\n",
			outcome{Failed: true, As: "rate_limit_exceeded"}},
		"responses, error, no code": {limit.Responses, `{"model":"m","stream":true}`, "data: {\"type\":\"error\",\"code\":null,\"message\":\"x\"}\n\n", outcome{Failed: true}},

		"messages": {limit.Messages, streamed, messagesStart + fmt.Sprintf(messagesDelta, 50) + fmt.Sprintf(messagesDelta, 89) + messagesStop,
			outcome{Usage: wrote(usage(502, 89, 20, true)), Used: wrote(usage(502, 89, 20, true)), Output: 21, Ended: true}},
		"messages, input at the end": {limit.Messages, streamed, `data: {"type":"message_start","message":{"usage":{"input_tokens":0,"output_tokens":0}}}` + "\n\n" +
			`data: {"type":"message_delta","usage":{"input_tokens":7,"output_tokens":8}}` + "\n\n", outcome{Usage: usage(7, 8, 0, true), Used: usage(7, 8, 0, true)}},
		"T07 messages, less at the end": {limit.Messages, streamed, messagesStart + fmt.Sprintf(messagesDelta, 89) +
			`data: {"type":"message_delta","usage":{"input_tokens":0,"cache_read_input_tokens":0,"cache_creation_input_tokens":0,"output_tokens":1}}` + "\n\n" + messagesStop,
			outcome{Usage: wrote(usage(502, 89, 20, true)), Used: wrote(usage(502, 89, 20, true)), Output: 21, Ended: true}},
		"T07 messages, less was written at the end": {limit.Messages, streamed,
			`data: {"type":"message_start","message":{"usage":{"input_tokens":4,"cache_creation":{"ephemeral_5m_input_tokens":5,"ephemeral_1h_input_tokens":6}}}}` + "\n\n" +
				`data: {"type":"message_delta","usage":{"output_tokens":8,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0}}}` + "\n\n",
			outcome{Usage: Usage{Input: 15, Output: 8, Written: 11, Written1h: 6, Known: true}, Used: Usage{Input: 15, Output: 8, Written: 11, Written1h: 6, Known: true}}},
		"T07 messages, broken off": {limit.Messages, streamed, messagesStart, outcome{Usage: wrote(usage(502, 2, 20, false)), Used: wrote(usage(502, 6, 20, false)), Output: 21}},
		"messages, error": {limit.Messages, streamed, "event: error\ndata: {\"type\": \"error\", \"error\": {\"type\": \"overloaded_error\", \"message\": \"Overloaded\"}}\n\n",
			outcome{Used: Usage{Input: 2}, Failed: true, As: "overloaded_error"}},
		"messages, a mark of others": {limit.Messages, streamed, chatDone, outcome{Used: Usage{Input: 2}}},
		"a code that is none":        {limit.Messages, streamed, "data: {\"type\":\"error\",\"error\":{\"type\":\"a\\nb\"}}\n\n", outcome{Used: Usage{Input: 2}, Failed: true}},
	} {
		if test.want.Out == "" {
			test.want.Out = test.in
		}
		for way, through := range map[string]func(io.Reader) io.Reader{
			"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader, "with its end": iotest.DataErrReader,
		} {
			got := outcomeOf(parse(t, test.endpoint, test.request), through(strings.NewReader(test.in)))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", name, way, diff)
			}
		}
	}
}

// TestStreamInTime checks that an event is returned before the next one begins, and that all available events are
// returned together.
func TestStreamInTime(t *testing.T) {
	from, to := io.Pipe()
	defer from.Close()
	s := NewStream(parse(t, limit.ChatCompletions, streamed), from)
	p := make([]byte, 1<<16)
	for _, step := range []struct{ in, want string }{
		{chatStart, chatStart},
		{chatHello + chatTool, chatHello + chatTool},
		{chatUsage + chatStop, chatStop},
		{": \n", ": \n"},
		{chatStop + chatUsage + chatDone, chatStop + chatDone},
		{chatHello + chatHello[:10], chatHello},
	} {
		go io.WriteString(to, step.in)
		for got := ""; got != step.want; {
			n, err := s.Read(p)
			if got += string(p[:n]); err != nil || !strings.HasPrefix(step.want, got) {
				t.Fatalf("%q, %v; want %q", got, err, step.want)
			}
		}
	}
}

func TestStreamBreaks(t *testing.T) {
	broken := errors.New("broken")
	r := parse(t, limit.ChatCompletions, streamed)
	got := outcomeOf(r, io.MultiReader(strings.NewReader(chatHello+chatHello[:30]), iotest.ErrReader(broken)))
	if !errors.Is(got.Err, broken) || got.Out != chatHello || got.Ended {
		t.Errorf("%+v", got)
	}
	// Events without an end, in lines or in none.
	for _, endless := range []string{"x", "data: x\n"} {
		got = outcomeOf(r, io.MultiReader(strings.NewReader(chatHello), &repeated{text: endless}))
		if !errors.Is(got.Err, sse.ErrTooLarge) || got.Out != chatHello || got.Output != 11 {
			t.Errorf("%q: %d bytes, %v", endless, len(got.Out), got.Err)
		}
	}
	// An event of almost the cap passes.
	big := "data: \"" + strings.Repeat("x", MaxEvent-10) + "\"\n\n"
	if got = outcomeOf(r, strings.NewReader(big)); got.Err != nil || got.Out != big {
		t.Errorf("%d bytes, %v", len(got.Out), got.Err)
	}
}

type repeated struct{ text string }

func (r *repeated) Read(p []byte) (n int, err error) {
	for n < len(p) {
		n += copy(p[n:], r.text)
	}
	return n, nil
}

func TestBreak(t *testing.T) {
	for name, test := range map[string]struct {
		endpoint limit.Endpoint
		in, want string
	}{
		"chat":      {limit.ChatCompletions, chatHello, "data: {\"error\":{\"message\":\"Gone.\",\"type\":\"server_error\",\"param\":null,\"code\":\"upstream_error\"}}\n\n"},
		"no end":    {limit.ChatCompletions, strings.TrimSpace(chatHello), "\n\ndata: {\"error\":{\"message\":\"Gone.\",\"type\":\"server_error\",\"param\":null,\"code\":\"upstream_error\"}}\n\n"},
		"cut":       {limit.ChatCompletions, chatHello[:30], "data: {\"error\":{\"message\":\"Gone.\",\"type\":\"server_error\",\"param\":null,\"code\":\"upstream_error\"}}\n\n"},
		"responses": {limit.Responses, responsesStream, "event: error\ndata: {\"type\":\"error\",\"code\":\"upstream_error\",\"message\":\"Gone.\",\"param\":null,\"sequence_number\":7}\n\n"},
		"messages":  {limit.Messages, messagesStart, "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"Gone.\"}}\n\n"},
	} {
		s := NewStream(parse(t, test.endpoint, `{"model":"m","stream":true}`), strings.NewReader(test.in))
		out, err := io.ReadAll(s)
		if err != nil {
			t.Fatal(err)
		}
		end := s.Break(502, CodeUpstream, "Gone.")
		if string(end) != test.want {
			t.Errorf("%s: %q", name, end)
		}
		again := outcomeOf(parse(t, test.endpoint, `{"model":"m","stream":true}`), bytes.NewReader(append(out, end...)))
		if !again.Failed {
			t.Errorf("%s: a client sees %+v", name, again)
		}
	}
}
