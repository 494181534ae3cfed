package wire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/durward-gateway/durward/internal/ratelimit/limit"
)

const processing = ": OPENROUTER PROCESSING\n\n"

// TestBegin covers W42: an error before the answer is told apart from one in the middle of it, whatever announces the
// answer before. No byte of the stream is lost by the look-ahead.
func TestBegin(t *testing.T) {
	created := "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"error\":null,\"output\":[],\"usage\":null}}\n\n"
	start, _, _ := strings.Cut(messagesStart, "event: content_block_start")
	ping := "event: ping\ndata: {\"type\": \"ping\"}\n\n"
	overloaded := "event: error\ndata: {\"type\": \"error\", \"error\": {\"type\": \"overloaded_error\", \"message\": \"Overloaded\"}}\n\n"
	openrouter := `data: {"id":"gen-1","provider":"x","error":{"code":502,"message":"Provider returned error"},"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"error"}]}` + "\n\n"
	for name, test := range map[string]struct {
		endpoint limit.Endpoint
		in       string
		status   int // status of the failure; 0: none
		delivers bool
	}{
		"an answer":                          {limit.ChatCompletions, chatStart + chatHello + chatStop, 0, true},
		"an answer after comments":           {limit.ChatCompletions, processing + processing + chatHello, 0, true},
		"a tool":                             {limit.ChatCompletions, chatTool, 0, true},
		"an empty answer":                    {limit.ChatCompletions, chatStart + chatStop, 0, true},
		"an answer of images":                {limit.ChatCompletions, `data: {"choices":[{"delta":{"content":null,"images":[{"image_url":{}}]}}]}` + "\n\n", 0, true},
		"only its end":                       {limit.ChatCompletions, chatDone, 0, true},
		"OpenAI's error":                     {limit.ChatCompletions, chatError, 500, false},
		"an error after a role":              {limit.ChatCompletions, chatStart + chatError, 500, false},
		"an error in the middle":             {limit.ChatCompletions, chatHello + chatError, 0, true},
		"an error with CRLF":                 {limit.ChatCompletions, strings.ReplaceAll(processing+chatError, "\n", "\r\n"), 500, false},
		"OpenRouter's error":                 {limit.ChatCompletions, processing + openrouter, 502, false},
		"an error in a choice":               {limit.ChatCompletions, `data: {"choices":[{"error":{"code":429,"message":"x"},"delta":{"content":""},"finish_reason":"error"}]}` + "\n\n", 429, false},
		"a choice that failed":               {limit.ChatCompletions, `data: {"choices":[{"delta":{"content":""},"finish_reason":"error","native_finish_reason":"error"}]}` + "\n\n", 500, false},
		"a code as text":                     {limit.ChatCompletions, `data: {"error":{"code":"429","message":"x"}}` + "\n\n", 429, false},
		"a code of Google's":                 {limit.ChatCompletions, `data: {"error":{"code":"x","type":"RESOURCE_EXHAUSTED"}}` + "\n\n", 429, false},
		"an error that is a sentence":        {limit.ChatCompletions, `data: {"error":"model is loading"}` + "\n\n", 500, false},
		"an event error without description": {limit.ChatCompletions, "event: error\ndata: {\"message\":\"x\"}\n\n", 500, false},
		"vLLM's":                             {limit.ChatCompletions, `data: {"error":{"object":"error","message":"The model is not multimodal.","type":"BadRequestError","param":null,"code":400}}` + "\n\n", 400, false},
		"SGLang's full queue":                {limit.ChatCompletions, `data: {"error":{"object":"error","message":"The request queue is full.","type":"SERVICE_UNAVAILABLE","param":null,"code":503}}` + "\n\n", 503, false},
		"an error without choices":           {limit.ChatCompletions, processing + `data: {"id":"gen-1","choices":[],"error":{"code":502,"message":"Worker local total request limit reached (33/32)"}}` + "\n\n", 502, false},
		"a status that is none":              {limit.ChatCompletions, `data: {"error":{"code":200}}` + "\n\n", 500, false},
		"credit":                             {limit.ChatCompletions, `data: {"error":{"type":"insufficient_quota","code":"insufficient_quota"}}` + "\n\n", 402, false},
		"a wrong request":                    {limit.ChatCompletions, `data: {"error":{"type":"invalid_request_error","code":"context_length_exceeded"}}` + "\n\n", 400, false},
		"a wrong key":                        {limit.ChatCompletions, `data: {"error":{"type":"invalid_request_error","code":"invalid_api_key"}}` + "\n\n", 401, false},
		"Anthropic's answer":                 {limit.Messages, messagesStart, 0, true},
		"Anthropic's error":                  {limit.Messages, overloaded, 529, false},
		"Anthropic's error after its start":  {limit.Messages, start + ping + overloaded, 529, false},
		"Anthropic's error in the middle":    {limit.Messages, messagesStart + overloaded, 0, true},
		"a response":                         {limit.Responses, responsesStream, 0, true},
		"a response that fails":              {limit.Responses, created + "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"x\"},\"usage\":null}}\n\n", 429, false},
		"a response that fails after work":   {limit.Responses, created + "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"server_error\"},\"usage\":{\"input_tokens\":3,\"output_tokens\":5}}}\n\n", 500, true},
		"an error of the Responses API":      {limit.Responses, "event: error\ndata: {\"type\":\"error\",\"code\":\"server_is_overloaded\",\"message\":\"x\"}\n\n", 503, false},
	} {
		for way, through := range map[string]func(io.Reader) io.Reader{"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader} {
			s := NewStream(parse(t, test.endpoint, `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`), through(strings.NewReader(test.in)))
			if err := s.Begin(func() bool { return false }); err != nil {
				t.Errorf("%s, %s: %v", name, way, err)
			}
			f, failed := s.Failed()
			if failed != (test.status != 0) || f.Status != test.status || s.Delivers() != test.delivers {
				t.Errorf("%s, %s: %+v %v, delivers %v", name, way, f, failed, s.Delivers())
			}
			if rest, err := io.ReadAll(s); err != nil || string(rest) != test.in {
				t.Errorf("%s, %s: %q %v", name, way, rest, err)
			}
		}
	}
}

// TestBeginEnds checks that the search for the beginning ends with the stream, with patience, and when an upstream
// sends much without content.
func TestBeginEnds(t *testing.T) {
	request := parse(t, limit.ChatCompletions, streamed)
	never := func() bool { return false }
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		upstream io.Reader
		want     error
	}{
		"nothing":    {strings.NewReader(""), io.EOF},
		"comments":   {strings.NewReader(processing), io.EOF},
		"half a one": {strings.NewReader(chatHello[:30]), io.EOF},
		"a break":    {io.MultiReader(strings.NewReader(chatStart), iotest.ErrReader(broken)), broken},
	} {
		if err := NewStream(request, test.upstream).Begin(never); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	asked := 0
	s := NewStream(request, io.MultiReader(strings.NewReader(strings.Repeat(processing, 3)), iotest.ErrReader(broken)))
	if err := s.Begin(func() bool { asked++; return asked == 2 }); err != nil || s.Delivers() {
		t.Errorf("patience: %v", err)
	}
	if got := outcomeOf(request, io.MultiReader(strings.NewReader(processing), iotest.ErrReader(broken))); got.Out != processing {
		t.Errorf("%q", got.Out)
	}
	s = NewStream(request, &repeated{text: processing})
	if err := s.Begin(never); err != nil || len(s.out) > mostHeld+len(processing) {
		t.Errorf("endless comments: %d bytes, %v", len(s.out), err)
	}
	p := make([]byte, len(processing))
	if _, err := io.ReadFull(s, p); err != nil || !bytes.Equal(p, []byte(processing)) {
		t.Errorf("%q %v", p, err)
	}
}

// TestAnswerFailure covers W42: an error with status 200 is recognized, unless there is output or usage.
func TestAnswerFailure(t *testing.T) {
	for name, test := range map[string]struct {
		endpoint limit.Endpoint
		body     string
		status   int
	}{
		"an answer":                {limit.ChatCompletions, `{"choices":[{"message":{"content":"\"error\""}}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`, 0},
		"an answer with null":      {limit.Responses, `{"error":null,"output":[]}`, 0},
		"an answer of an error":    {limit.ChatCompletions, `{"error":{"code":502},"choices":[{"message":{"content":"Hi"}}]}`, 0},
		"an error that costs":      {limit.ChatCompletions, `{"error":{"code":502},"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}`, 0},
		"OpenRouter's":             {limit.ChatCompletions, `{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"x"}},"user_id":"u"}`, 429},
		"one-api's":                {limit.ChatCompletions, `{"error":{"message":"x","type":"new_api_error","param":"","code":"do_request_failed"}}`, 500},
		"no choices":               {limit.ChatCompletions, `{"choices":[ ],"error":{"type":"server_error"}}`, 500},
		"Anthropic's":              {limit.Messages, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"r"}`, 529},
		"a failed response":        {limit.Responses, `{"status":"failed","error":{"code":"server_error","message":"x"},"output":[],"usage":null}`, 500},
		"a sentence":               {limit.Embeddings, `{"error":"model is loading"}`, 500},
		"a wrong request":          {limit.Embeddings, `{"error":{"type":"invalid_request_error"}}`, 400},
		"no JSON":                  {limit.ChatCompletions, `"error"`, 0},
		"an error in a member":     {limit.ChatCompletions, `{"choices":[{"message":{"error":{"code":1}}}]}`, 0},
		"a choice that failed":     {limit.ChatCompletions, `{"choices":[{"index":0,"finish_reason":"error","native_finish_reason":"error","error":{"code":429,"message":"x"},"message":{"role":"assistant","content":"","refusal":null,"reasoning":null}}],"usage":{"prompt_tokens":0,"completion_tokens":0}}`, 429},
		"a choice, without words":  {limit.ChatCompletions, `{"choices":[{"finish_reason":"error","message":{"content":null}}]}`, 500},
		"an error beside a choice": {limit.ChatCompletions, `{"error":{"code":502},"choices":[{"finish_reason":"error","message":{"content":""}}]}`, 502},
		"a choice that broke off":  {limit.ChatCompletions, `{"choices":[{"finish_reason":"error","error":{"code":502},"message":{"content":"Hi"}}]}`, 0},
		"a choice of two":          {limit.ChatCompletions, `{"choices":[{"finish_reason":"error","message":{"content":""}},{"finish_reason":"stop","message":{"content":""}}]}`, 0},
		"a choice that costs":      {limit.ChatCompletions, `{"choices":[{"finish_reason":"error","message":{"content":""}}],"usage":{"prompt_tokens":3,"completion_tokens":0}}`, 0},
		"a word of an answer":      {limit.ChatCompletions, `{"choices":[{"finish_reason":"stop","message":{"content":"error","role":"error"}}]}`, 0},
		"embeddings, not an error": {limit.Embeddings, `{"data":[{"embedding":[1]}],"error":{"code":500}}`, 0},
	} {
		f, failed := AnswerFailure(test.endpoint, []byte(test.body))
		if failed != (test.status != 0) || failed && f.Status != test.status {
			t.Errorf("%s: %+v %v", name, f, failed)
		}
	}
}

// TestWhoseFault covers T07: only errors known to be the server's own count against it. Errors caused by user input
// count as a wrong request, under any name.
func TestWhoseFault(t *testing.T) {
	for says, want := range map[string]Failure{
		`{"type":"server_error"}`:                                            {Name: "server_error", Status: 500, Own: true},
		`{"type":"server_error","code":"new_one"}`:                           {Name: "new_one", Status: 500, Own: true},
		`{"code":"internal_error"}`:                                          {Name: "internal_error", Status: 500, Own: true},
		`{"type":"InternalServerError"}`:                                     {Name: "InternalServerError", Status: 500, Own: true},
		`{"type":"api_error"}`:                                               {Name: "api_error", Status: 500, Own: true},
		`{"type":"timeout_error"}`:                                           {Name: "timeout_error", Status: 504, Own: true},
		`{"type":"overloaded_error"}`:                                        {Name: "overloaded_error", Status: 529, Own: true},
		`{"code":502}`:                                                       {Name: "502", Status: 502, Own: true},
		`{"code":"503"}`:                                                     {Name: "503", Status: 503, Own: true},
		`{"type":"rate_limit_error"}`:                                        {Name: "rate_limit_error", Status: 429},
		`{"code":"invalid_api_key"}`:                                         {Name: "invalid_api_key", Status: 401},
		`{"code":"new_one"}`:                                                 {Name: "new_one", Status: 500},
		`{"type":"new_api_error","code":"do_request_failed"}`:                {Name: "do_request_failed", Status: 500},
		`{"code":1301}`:                                                      {Name: "1301", Status: 500},
		`"model is loading"`:                                                 {Status: 500},
		`{"message":"x"}`:                                                    {Status: 500},
		`{"type":"server_error","code":"image_parse_error"}`:                 {Name: "image_parse_error", Status: 400},
		`{"code":"failed_to_download_image"}`:                                {Name: "failed_to_download_image", Status: 400},
		`{"code":"empty_image_file"}`:                                        {Name: "empty_image_file", Status: 400},
		`{"code":"image_content_policy_violation"}`:                          {Name: "image_content_policy_violation", Status: 400},
		`{"code":"unsupported_image_media_type"}`:                            {Name: "unsupported_image_media_type", Status: 400},
		`{"code":"invalid_base64_image"}`:                                    {Name: "invalid_base64_image", Status: 400},
		`{"code":"data_inspection_failed"}`:                                  {Name: "data_inspection_failed", Status: 400},
		`{"code":"DataInspectionFailed"}`:                                    {Name: "DataInspectionFailed", Status: 400},
		`{"code":"InputTextSensitiveContentDetected"}`:                       {Name: "InputTextSensitiveContentDetected", Status: 400},
		`{"code":"content_filter"}`:                                          {Name: "content_filter", Status: 400},
		`{"code":"ResponsibleAIPolicyViolation"}`:                            {Name: "ResponsibleAIPolicyViolation", Status: 400},
		`{"code":"moderation_blocked","type":"image_generation_user_error"}`: {Name: "moderation_blocked", Status: 400},
		`{"type":"BadRequestError"}`:                                         {Name: "BadRequestError", Status: 400},
		`{"code":"InvalidParameter"}`:                                        {Name: "InvalidParameter", Status: 400},
	} {
		if f, failed := AnswerFailure(limit.ChatCompletions, []byte(`{"error":`+says+`}`)); !failed || f != want {
			t.Errorf("%s: %+v %v", says, f, failed)
		}
	}
}
