package limit

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/strictjson"
)

func TestEstimateRequest(t *testing.T) {
	long := strings.Repeat("x", 40_000)
	for name, test := range map[string]struct {
		endpoint Endpoint
		body     string
		want     Estimate
	}{
		"nothing":                            {ChatCompletions, `{}`, Estimate{0, 0, 1, true}},
		"chat":                               {ChatCompletions, `{"model":"mmmmmmmm","messages":[{"role":"user","content":"hello"}]}`, Estimate{3, 0, 1, true}}, // 4 + 5 bytes
		"rounded up":                         {ChatCompletions, `{"messages":["12345678","9"]}`, Estimate{3, 0, 1, true}},
		"UTF-8":                              {ChatCompletions, `{"messages":["äöü","é"]}`, Estimate{2, 0, 1, true}},
		"escapes":                            {ChatCompletions, `{"messages":["\u00e4\n\"\ud83d\ude00\u20ac\u0041"]}`, Estimate{3, 0, 1, true}}, // 2+1+1+4+3+1
		"a maximum":                          {ChatCompletions, `{"messages":["1234"],"max_tokens":100,"n":3}`, Estimate{1, 100, 3, true}},
		"two maxima":                         {ChatCompletions, `{"max_tokens":100,"max_completion_tokens":70}`, Estimate{0, 100, 1, true}},
		"T07 n=128":                          {ChatCompletions, `{"max_tokens":1000,"n":128}`, Estimate{0, 1000, 128, true}},
		"odd numbers":                        {ChatCompletions, `{"max_tokens":1e3,"n":2.0}`, Estimate{0, 1000, 2, true}},
		"numbers in quotes":                  {ChatCompletions, `{"max_tokens":"1000","n":"5"}`, Estimate{0, 1000, 5, true}},
		"T07 in other spellings":             {ChatCompletions, `{"max_tokens":" 1_000\n","n":"\u0031\u0032"}`, Estimate{0, 1000, 12, true}},
		"T07 a maximum of another API":       {ChatCompletions, `{"max_output_tokens":1}`, Estimate{0, 0, 1, true}},
		"T07 another API's beside one's own": {Responses, `{"max_output_tokens":9,"max_tokens":1,"max_completion_tokens":70}`, Estimate{0, 9, 1, true}},
		"T07 two of another API":             {Responses, `{"max_tokens":1,"max_completion_tokens":1}`, Estimate{0, 0, 1, true}},
		"T07 a maximum of OpenAI's":          {Messages, `{"max_completion_tokens":1,"max_output_tokens":1}`, Estimate{0, 0, 1, true}},
		"no maxima":                          {ChatCompletions, `{"max_tokens":null,"max_completion_tokens":-5,"n":1.5}`, Estimate{0, 0, 1, true}},
		"too large":                          {ChatCompletions, `{"max_tokens":99999999999999999999,"n":1e400}`, Estimate{0, math.MaxInt64, math.MaxInt64, true}},
		"too small":                          {ChatCompletions, `{"max_tokens":-1e400,"n":0}`, Estimate{0, 0, 1, true}},
		"tools":                              {ChatCompletions, `{"tools":[{"type":"function","function":{"name":"abcd","parameters":{"type":"object","properties":{"url":{"type":"string"}}}}}]}`, Estimate{6, 0, 1, true}},
		"elsewhere":                          {ChatCompletions, `{"metadata":{"x":"` + long + `"},"user":"` + long + `"}`, Estimate{0, 0, 1, true}},
		"an image":                           {ChatCompletions, `{"messages":[{"content":[{"type":"image_url","image_url":{"url":"data:` + long + `","detail":"high"}},{"type":"text","text":"1234"}]}]}`, Estimate{1006, 0, 1, true}}, // 9+4+4+4
		"an image, type last":                {ChatCompletions, `{"messages":[{"content":[{"image_url":{"url":"data:` + long + `"},"type":"image_url"}]}]}`, Estimate{1003, 0, 1, true}},
		"audio":                              {ChatCompletions, `{"messages":[{"content":[{"type":"input_audio","input_audio":{"data":"` + long + `","format":"wav"}}]}]}`, Estimate{1004, 0, 1, true}},
		"a file":                             {ChatCompletions, `{"messages":[{"content":[{"type":"file","file":{"file_data":"` + long + `"}}]}]}`, Estimate{1001, 0, 1, true}},
		"data of no part":                    {ChatCompletions, `{"messages":[{"data":"` + long + `"}]}`, Estimate{10_000, 0, 1, true}},
		"responses":                          {Responses, `{"input":"12345678","instructions":"1234","max_output_tokens":50}`, Estimate{3, 50, 1, true}},
		"responses, image":                   {Responses, `{"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:` + long + `"}]}]}`, Estimate{1004, 0, 1, true}},
		"responses, screenshot":              {Responses, `{"input":[{"output":{"type":"computer_screenshot","image_url":"` + long + `"}}]}`, Estimate{1005, 0, 1, true}},
		"embeddings":                         {Embeddings, `{"input":["12345678","1234"],"max_tokens":100}`, Estimate{3, 0, 1, false}},
		"embeddings of tokens":               {Embeddings, `{"input":[[1,2,3],[4,5]]}`, Estimate{5, 0, 1, false}},
		"numbers in items":                   {Responses, `{"input":[{"index":1,"list":[1,2]}]}`, Estimate{0, 0, 1, true}},
		"messages":                           {Messages, `{"system":[{"type":"text","text":"1234"}],"messages":[{"role":"user","content":"1234"}],"max_tokens":9}`, Estimate{4, 9, 1, true}},
		"messages, image":                    {Messages, `{"messages":[{"content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + long + `"}}]}]}`, Estimate{1005, 0, 1, true}},
		"messages, image by url":             {Messages, `{"messages":[{"content":[{"type":"image","source":{"type":"url","url":"` + long + `"}}]}]}`, Estimate{1002, 0, 1, true}},
		"messages, text file":                {Messages, `{"messages":[{"content":[{"type":"document","source":{"type":"text","data":"` + long + `"}}]}]}`, Estimate{11_003, 0, 1, true}},
		"a text file in disguise":            {Messages, `{"messages":[{"content":[{"type":"document","source":{"type":"\u0074ext","data":"` + long + `"}}]}]}`, Estimate{11_003, 0, 1, true}},
		"an image in a tool's result": {Messages, `{"messages":[{"content":[{"type":"tool_result","content":[{"type":"image","source":{"type":"base64","data":"` + long + `"}}]}]}]}`,
			Estimate{1006, 0, 1, true}},
	} {
		got, err := EstimateRequest(test.endpoint, []byte(test.body), strictjson.Limits{})
		if err != nil || got != test.want {
			t.Errorf("%s: %+v, want %+v; %v", name, got, test.want, err)
		}
	}
	for _, body := range []string{``, `[]`, `"x"`, `{"a":1,"a":2}`, `{"messages":["x",]}`, `{"messages":["\ud800"]}`, `{"messages":[{"type":"x}]}`, `{} {}`, `{"input":[`} {
		if got, err := EstimateRequest(ChatCompletions, []byte(body), strictjson.Limits{}); err == nil || got != (Estimate{}) {
			t.Errorf("%s: %+v", body, got)
		}
	}
}

func TestReserve(t *testing.T) {
	const big = math.MaxInt64
	for _, test := range []struct {
		estimate             Estimate
		mean, able, smallest int64
		limited              bool
		want                 int64
	}{
		{Estimate{10, 100, 3, true}, 256, 0, 50, true, 310}, // a client's maximum in full, whatever the limit
		{Estimate{10, 0, 1, true}, 256, 0, 0, false, 266},
		{Estimate{10, 0, 1, true}, 256, 0, 1000, true, 266},
		{Estimate{10, 0, 1, true}, 256, 0, 100, true, 60},
		{Estimate{10, 0, 128, true}, 256, 0, 100, true, 60},
		{Estimate{10, 0, 2, true}, 256, 0, 10_000, true, 522},
		{Estimate{10, 100, 1, false}, 256, 0, 100, true, 10},
		// No reservation exceeds the output that the model can make.
		{Estimate{10, big, 128, true}, 256, 0, 0, false, 10 + MostOutput},
		{Estimate{10, big, 1, true}, 256, 0, 0, false, 10 + MostOutput},
		{Estimate{10, 100, big, true}, 256, 0, 0, false, 10 + MostOutput},
		{Estimate{10, big, 1, true}, 256, 8192, 0, false, 10 + 8192},
		{Estimate{10, big, 4, true}, 256, 8192, 0, false, 10 + 4*8192},
		{Estimate{10, 100, 1, true}, 256, 8192, 0, false, 110},
		{Estimate{10, big, big, true}, 256, 2_000_000, 0, false, 10 + 2_000_000},
		{Estimate{10, 0, 1, true}, 256, 64, 0, false, 74},
		{Estimate{0, 0, big, true}, 256, 0, 1000, true, 500},
	} {
		if got := test.estimate.Reserve(test.mean, test.able, test.smallest, test.limited); got != test.want {
			t.Errorf("%+v: %d", test, got)
		}
	}
}

// TestMostPrompt checks the bound on a prompt: no model reads a body full of images.
func TestMostPrompt(t *testing.T) {
	body := `{"messages":[` + strings.Repeat(`{"type":"image"},`, 2*MostPrompt/PartTokens) + `"x"]}`
	got, err := EstimateRequest(ChatCompletions, []byte(body), strictjson.Limits{})
	if err != nil || got.Prompt != MostPrompt {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestRates checks that the output of a model in a given time follows from the times of its answers.
func TestRates(t *testing.T) {
	c := newClock()
	m := NewMeans(c.now)
	want := func(in time.Duration, n int64) {
		t.Helper()
		if got := m.In(in, acme, "fast"); got != n {
			t.Fatalf("%d in %v, want %d", got, in, n)
		}
	}
	want(2*time.Second, 2*FirstRate)
	want(20*time.Millisecond, 2)
	want(-time.Second, 0)
	m.Add(acme, "fast", 100, 0) // without a known time
	want(time.Second, FirstRate)
	c.turn(61 * time.Minute)
	c.turn(5 * time.Minute)
	m.Add(acme, "fast", 30, time.Second)
	m.Add(acme, "fast", 90, 2*time.Second)
	m.Add(globex, "fast", 9999, time.Second)
	want(time.Second, 40)
	want(time.Millisecond, 1)
	c.turn(66 * time.Minute)
	want(time.Second, FirstRate)
	m.Add(acme, "fast", 1000, time.Microsecond) // from a cache: a model is slower
	want(time.Second, MostRate)
}

func TestOfToolResult(t *testing.T) {
	blob := strings.Repeat("A", 4000)
	for name, test := range map[string]struct {
		result string
		want   int64
	}{
		"text":         {`{"content":[{"type":"text","text":"12345678"}]}`, 3},
		"both forms":   {`{"content":[{"type":"text","text":"12345678"}],"structuredContent":{"a":"` + blob + `"}}`, 3},
		"structured":   {`{"content":[],"structuredContent":{"a":12345}}`, 3},
		"image":        {`{"content":[{"type":"image","data":"` + blob + `","mimeType":"image/png"}]}`, 1004},
		"resource":     {`{"content":[{"type":"resource","resource":{"uri":"a://b","blob":"` + blob + `"}}]}`, 1004},
		"text of one":  {`{"content":[{"type":"resource","resource":{"uri":"a://b","text":"` + blob + `"}}]}`, 2004},
		"empty":        {`{}`, 0},
		"not a result": {`"12345678"`, 3},
		"not JSON":     {`12345678{`, 3},
		"broken":       {`{"content":[`, 3},
	} {
		if got := OfToolResult([]byte(test.result)); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
	if OfBytes(-1) != 0 || OfBytes(0) != 0 || OfBytes(1) != 1 || OfBytes(4) != 1 || OfBytes(5) != 2 {
		t.Error("bytes")
	}
}

func TestMeans(t *testing.T) {
	c := newClock()
	m := NewMeans(c.now)
	want := func(n int64) {
		t.Helper()
		if got := m.Of(acme, "fast"); got != n {
			t.Fatalf("%d, want %d", got, n)
		}
	}
	want(FirstMean)
	m.Add(acme, "fast", 100, 0)
	m.Add(globex, "fast", 9999, 0)
	m.Add(acme, "slow", 9999, 0)
	want(100)
	c.turn(30 * time.Minute)
	m.Add(acme, "fast", 201, 0)
	want(151)
	c.turn(29 * time.Minute)
	want(151)
	c.turn(6 * time.Minute) // 65 minutes after the first
	want(201)
	c.turn(31 * time.Minute)
	want(FirstMean)
	m.Add(acme, "fast", -7, 0)
	want(0)
	for i := range maxMeans + 10 {
		m.Add(acme, strings.Repeat("a", i%100)+string(rune('b'+i/100)), 5, 0)
	}
	if len(m.known) > maxMeans {
		t.Errorf("%d are remembered", len(m.known))
	}
	c.turn(2 * time.Hour)
	m.Add(globex, "new", 5, 0)
	if len(m.known) != 1 || m.Of(globex, "new") != 5 {
		t.Errorf("%d are remembered", len(m.known))
	}
}

// FuzzEstimateRequest compares the estimate with a plain second implementation over encoding/json for bodies without
// parts, and with bounds for all bodies.
func FuzzEstimateRequest(f *testing.F) {
	for _, body := range []string{
		`{"messages":[{"role":"user","content":"h\u00e9llo \ud83d\ude00"}],"max_tokens":5,"n":2}`, `{"input":[[1,2],"x"],"tools":[{"type":"image","data":"x"}]}`,
		`{"messages":[{"content":[{"type":"image","source":{"type":"text","data":"x"}}]}],"system":"s"}`, `{"prompt":1,"instructions":null}`, `{"m\u0065ssages":"x"}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for endpoint := ChatCompletions; endpoint <= Messages; endpoint++ {
			got, err := EstimateRequest(endpoint, body, strictjson.Limits{})
			var object map[string]any
			if err != nil {
				if strictjson.Check(body, strictjson.Limits{}) == nil && json.Unmarshal(body, &object) == nil && object != nil {
					t.Fatalf("refused: %v", err)
				}
				continue
			}
			if got.Prompt < 0 || got.Most < 0 || got.Choices < 1 || got.Reserve(256, 0, 100, true) < got.Prompt {
				t.Fatalf("%+v", got)
			}
			if json.Unmarshal(body, &object) != nil {
				t.Fatal("encoding/json refuses")
			}
			var text, numbers int64
			parts := false
			for _, root := range []string{"messages", "system", "instructions", "tools", "input", "prompt"} {
				v, ok := object[root]
				if ok {
					text += plainText(v, root != "tools", &parts)
					if root == "input" || root == "prompt" {
						numbers += plainNumbers(v)
					}
				}
			}
			if want := (text+3)/4 + numbers; !parts && got.Prompt != want {
				t.Fatalf("%d, read plainly %d", got.Prompt, want)
			}
		}
		if n := OfToolResult(body); n < 0 || n > int64(len(body))*PartTokens {
			t.Fatalf("a result of %d bytes has %d tokens", len(body), n)
		}
	})
}

// FuzzOfAnswer checks that an answer read once has the same tokens as the message read in full.
func FuzzOfAnswer(f *testing.F) {
	for _, seed := range append(answers(), `[]`, `{"jsonrpc":"2.0","id":1,"result":{"content":[`, strings.Repeat(`{"result":`, 70)) {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		tokens, ok := OfAnswer(text)
		if !ok {
			return
		}
		body, err := jsonrpc.Parse(text, strictjson.Limits{MaxBytes: math.MaxInt, MaxDepth: 1 << 10, MaxMembers: len(text) + 1})
		if err != nil || len(body.Messages) != 1 || body.Messages[0].Kind != jsonrpc.Response {
			t.Fatalf("it is no answer: %v", err)
		}
		if want := OfToolResult(body.Messages[0].Result); tokens != want {
			t.Errorf("%d tokens, want %d", tokens, want)
		}
	})
}

// answers returns plain answers.
func answers() []string {
	return []string{
		`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"four five"}]}}`,
		` {"result":{"content":[],"structuredContent":{"a":"four five"}} , "id":"a","jsonrpc":"2.0"} `,
		`{"jsonrpc":"2.0","id":-7,"result":{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"text","text":"\u00e9"}]}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"taskId":"x","result":{"content":[{"type":"text","text":"in a task"}]}}}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`,
	}
}

func TestOfAnswer(t *testing.T) {
	for _, text := range answers() {
		if _, ok := OfAnswer([]byte(text)); !ok {
			t.Errorf("%s is not read at once", text)
		}
	}
	for _, text := range []string{
		``, `7`, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}`, `{"jsonrpc":"2.0","id":1,"result":{},"Result":{}}`,
		`{"jsonrpc":"2.0","id":null,"result":{}}`, `{"jsonrpc":"2.0","id":1.5,"result":{}}`, `{"jsonrpc":"1.0","id":1,"result":{}}`,
		`{"id":1,"result":{}}`, `{"jsonrpc":"2.0","result":{}}`, `{"jsonrpc":"2.0","id":1,"result":[]}`, `{"jsonrpc":"2.0","id":1,"result":{}} x`,
		`{"jsonrpc":"2.0","id":1,"result":{},"result":{}}`, `{"jsonrpc":"2.0","id":1,"method":"x","result":{}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"content":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}}`,
	} {
		if tokens, ok := OfAnswer([]byte(text)); ok {
			t.Errorf("%s is an answer of %d tokens", text, tokens)
		}
	}
}

func BenchmarkOfAnswer(b *testing.B) {
	text := []byte(`{"jsonrpc":"2.0","id":12345,"result":{"content":[{"type":"text","text":"` + strings.Repeat("word ", 40) + `"}]}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := OfAnswer(text); !ok {
			b.Fatal("no answer")
		}
	}
}

func plainText(v any, mayBePart bool, parts *bool) (n int64) {
	switch v := v.(type) {
	case string:
		return int64(len(v))
	case []any:
		for _, e := range v {
			n += plainText(e, mayBePart, parts)
		}
	case map[string]any:
		if kind, _ := v["type"].(string); mayBePart && isPart([]byte(kind)) {
			*parts = true
		}
		for _, e := range v {
			n += plainText(e, mayBePart, parts)
		}
	}
	return n
}

func plainNumbers(v any) (n int64) {
	switch v := v.(type) {
	case float64:
		return 1
	case []any:
		for _, e := range v {
			n += plainNumbers(e)
		}
	}
	return n
}

func BenchmarkEstimateRequest(b *testing.B) {
	for name, size := range map[string]int{"220B": 150, "2KB": 2000, "10KB": 10_000} {
		body := []byte(`{"model":"fast","stream":true,"messages":[{"role":"user","content":"` + strings.Repeat("word ", size/5) + `"}],"max_tokens":100}`)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := EstimateRequest(ChatCompletions, body, strictjson.Limits{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkMeansFull measures a call of an alias beyond the remembered ones.
func BenchmarkMeansFull(b *testing.B) {
	m := NewMeans(newClock().now)
	for i := range maxMeans {
		m.Add(acme, strconv.Itoa(i), 5, 0)
	}
	b.ReportAllocs()
	for b.Loop() {
		m.Add(acme, "another", 5, 0)
	}
}
