package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// FuzzParseRequest checks that encoding/json reads an accepted request in the same way, and that nothing else is
// changed in it.
func FuzzParseRequest(f *testing.F) {
	for _, body := range []string{
		streamed, streamedUsage, streamedChoice, `{"model":"m","stream":true,"stream_options":null,"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}]}`,
		`{"stream_options":{"x":1,"include_usage":false},"model":"\u0061","stream":true}`, `{"model":"m","input":["a",[1]]}`, `{"model":"a","Model":"b"}`,
	} {
		for e := range limit.Messages + 1 {
			f.Add(byte(e), []byte(body), "gpt")
		}
	}
	f.Fuzz(func(t *testing.T, e byte, body []byte, model string) {
		endpoint := limit.Endpoint(e % byte(limit.Messages+1))
		kept := bytes.Clone(body)
		r, err := ParseRequest(endpoint, body, large)
		if err != nil {
			var refused *RequestError
			if !errors.As(err, &refused) || refused.Status < 400 || refused.Message == "" || r != nil {
				t.Fatalf("%v with %v", r, err)
			}
			return
		}
		var plain struct {
			Model  string
			Stream *bool
		}
		if err := json.Unmarshal(body, &plain); err != nil || plain.Model != r.Alias || (plain.Stream != nil && *plain.Stream) != r.Stream {
			t.Fatalf("%+v, encoding/json %+v, %v", r, plain, err)
		}
		reference, err := limit.EstimateRequest(endpoint, body, strictjson.Limits{})
		if err != nil || reference != r.Estimate {
			t.Fatalf("estimate %+v, alone %+v, %v", r.Estimate, reference, err)
		}
		checkBody(t, r, string([]rune(model))) // without bytes that JSON cannot hold
		if first, last := r.FirstUser(), r.LastUser(); len(first) > len(body) || len(last) > len(body) {
			t.Fatal("text from nowhere")
		}
		if !bytes.Equal(body, kept) {
			t.Fatal("the client's body was changed")
		}
	})
}

// FuzzStream checks that the outcome does not depend on how the stream is cut, and that the bytes are unchanged without
// a chunk to hide.
func FuzzStream(f *testing.F) {
	for endpoint, streams := range map[limit.Endpoint][]string{ // short streams: long seeds only make a fuzzer slow
		limit.ChatCompletions: {
			`data: {"choices":[{"delta":{"content":"a\n"}}],"usage":null}` + "\n\n" + `data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}` + "\n\ndata: [DONE]\n\n",
			`data: {"choices":[{"delta":{"tool_calls":[{"id":"x","function":{"arguments":"{"}}]},"finish_reason":"stop"}]}` + "\n\n" + `data: {"error":{"type":"x"}}` + "\n\n",
			"\ufeffdata: {\r\ndata: }\r\n\r\n:\r\rdata", "data: [DONE]",
		},
		limit.Responses: {
			`data: {"type":"response.output_text.delta","sequence_number":2,"delta":"a"}` + "\n\n",
			"event: response.completed\n" + `data: {"response":{"usage":{"input_tokens":1,"input_tokens_details":{"cached_tokens":3},"output_tokens":2}}}` + "\n\n",
		},
		limit.Messages: {
			`data: {"type":"message_start","message":{"usage":{"input_tokens":1,"cache_read_input_tokens":3}}}` + "\n\n" + `data: {"type":"message_delta","usage":{"output_tokens":2}}` + "\n\n",
			`data: {"type":"content_block_delta","delta":{"text":"a"}}` + "\n\n" + `data: {"type":"error","error":{"type":"x"}}` + "\n\n",
		},
	} {
		for _, stream := range streams {
			f.Add(byte(endpoint), []byte(stream), uint8(7))
			f.Add(128+byte(endpoint), []byte(stream), uint8(1))
		}
	}
	f.Fuzz(func(t *testing.T, e byte, stream []byte, step uint8) {
		endpoint := limit.Endpoint(e % byte(limit.Messages+1))
		r := parse(t, endpoint, streamedUsage)
		if e >= 128 {
			r = parse(t, endpoint, streamed)
		}
		whole := outcomeOf(r, bytes.NewReader(stream))
		pieces := outcomeOf(r, &stepReader{stream, int(step)%31 + 1})
		if !r.Injects() && (!bytes.HasPrefix(stream, []byte(whole.Out)) || !bytes.HasPrefix(stream, []byte(pieces.Out))) {
			t.Fatalf("bytes were changed: %q, in pieces %q", whole.Out, pieces.Out)
		}
		// An LF that arrives after its CR was passed on belongs to the next event, and is dropped with it.
		whole.Out, pieces.Out = withoutEnds(whole.Out), withoutEnds(pieces.Out)
		if diff := cmp.Diff(whole, pieces); diff != "" {
			t.Fatalf("in pieces of %d (-whole +pieces):\n%s", int(step)%31+1, diff)
		}
		if u := whole.Used; whole.Err != nil || u.Input < 0 || u.Output < 0 || u.Cached < 0 || u.Cached > u.Input || u.Total() > 4*mostTokens || whole.Output > int64(len(stream)) {
			t.Fatalf("%+v", whole)
		}
	})
}

func withoutEnds(s string) string {
	return string(bytes.ReplaceAll(bytes.ReplaceAll([]byte(s), []byte("\r"), nil), []byte("\n"), nil))
}

type stepReader struct {
	b    []byte
	step int
}

func (r *stepReader) Read(p []byte) (int, error) {
	if len(r.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.b[:min(r.step, len(r.b))])
	r.b = r.b[n:]
	return n, nil
}

// FuzzAnswerUsage compares the lenient reader with encoding/json wherever that one accepts, and with its bounds
// everywhere.
func FuzzAnswerUsage(f *testing.F) {
	for _, answer := range []string{embeddingsAnswer, `{"usage":{"input_tokens":1,"cache_creation_input_tokens":2,"output_tokens":3},"content":[{"text":"a"}]}`, `{"usage":{"prompt_tokens":1,"prompt_tokens_details":{"cached_tokens":-1}}}`, `{"usage":[1],"x":"\\\"","usage":null}`} {
		f.Add([]byte(answer))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for endpoint := range limit.Messages + 1 {
			u := AnswerUsage(endpoint, body)
			if u.Known != (u != Usage{}) || u.Input < 0 || u.Output < 0 || u.Cached < 0 || u.Cached+u.Written > u.Input || u.Written1h < 0 || u.Written1h > u.Written || u.Total() > 5*mostTokens {
				t.Fatalf("%+v", u)
			}
			r := &Request{Endpoint: endpoint, Estimate: limit.Estimate{Choices: 1, Output: true}}
			if used := AnswerUsed(r, body); used.Output < 0 || !used.Known && used.Output > int64(len(body)) {
				t.Fatalf("%+v", used)
			}
		}
		if strictjson.Check(body, strictjson.Limits{}) != nil || bytes.Contains(body, []byte(`\u`)) {
			return // names are compared in their raw spelling
		}
		var answer struct{ Usage map[string]any }
		var all map[string]json.RawMessage
		if json.Unmarshal(body, &all) != nil {
			return
		}
		d := json.NewDecoder(bytes.NewReader(all["usage"]))
		d.UseNumber()
		if all["usage"] == nil || d.Decode(&answer.Usage) != nil {
			if u := AnswerUsage(limit.Messages, body); u.Known {
				t.Fatalf("%+v of nothing", u)
			}
			return
		}
		want, sound := int64(0), true
		for _, name := range []string{"input_tokens", "prompt_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"} {
			n, ok := answer.Usage[name].(json.Number)
			v, err := n.Int64()
			if answer.Usage[name] == nil || name == "prompt_tokens" && answer.Usage["input_tokens"] != nil {
				continue
			}
			if sound = sound && ok && err == nil; sound {
				want += v
			}
		}
		_, both := answer.Usage["prompt_tokens"]
		_, details := answer.Usage["prompt_tokens_details"]
		_, more := answer.Usage["input_tokens_details"]
		other := false
		for _, name := range []string{"cached_tokens", "prompt_cache_hit_tokens", "cache_creation"} {
			other = other || answer.Usage[name] != nil
		}
		if u := AnswerUsage(limit.Messages, body); u.Known && !both && !details && !more && !other && (!sound || u.Input != want) {
			t.Fatalf("%+v, encoding/json %d", u, want)
		}
	})
}
