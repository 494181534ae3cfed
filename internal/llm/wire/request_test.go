package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/durward-gateway/durward/internal/identity/apikey"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/internal/strictjson"
)

const large = 1 << 20

// parse reads a valid request.
func parse(t testing.TB, endpoint limit.Endpoint, body string) *Request {
	t.Helper()
	r, err := ParseRequest(endpoint, []byte(body), large)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestParseRequest(t *testing.T) {
	type want struct {
		Alias    string
		Stream   bool
		Estimate limit.Estimate
	}
	for name, test := range map[string]struct {
		endpoint limit.Endpoint
		body     string
		want     want
	}{
		"chat": {limit.ChatCompletions, `{"model":"fast","messages":[{"role":"user","content":"hello"}]}`,
			want{"fast", false, limit.Estimate{Prompt: 3, Choices: 1, Output: true}}},
		"chat, streamed": {limit.ChatCompletions, ` {"stream":true, "n":3,"max_completion_tokens":10,"model":"openai/large:latest"} `,
			want{"openai/large:latest", true, limit.Estimate{Most: 10, Choices: 3, Output: true}}},
		"escapes": {limit.Responses, `{"m\u006fdel":"f\u0061st","input":"1234","stream":false}`,
			want{"fast", false, limit.Estimate{Prompt: 1, Choices: 1, Output: true}}},
		"embeddings": {limit.Embeddings, `{"model":"e","input":["1234","5678"],"stream":null}`,
			want{"e", false, limit.Estimate{Prompt: 2, Choices: 1}}},
		"messages": {limit.Messages, `{"model":"claude","max_tokens":9,"system":"1234","messages":[{"role":"user","content":"1234"}],"stream":true,"stream_options":7}`,
			want{"claude", true, limit.Estimate{Prompt: 3, Most: 9, Choices: 1, Output: true}}},
		"messages, tools": {limit.Messages, `{"model":"claude","tools":[{"name":"1234","description":"12345678"}],"messages":[]}`,
			want{"claude", false, limit.Estimate{Prompt: 3, Choices: 1, Output: true}}},
		"unknown members": {limit.ChatCompletions, `{"model":"m","Metadata":{"Model":"x"},"é":1,"options":{"stream":"x"}}`,
			want{"m", false, limit.Estimate{Choices: 1, Output: true}}},
	} {
		r := parse(t, test.endpoint, test.body)
		if diff := cmp.Diff(test.want, want{r.Alias, r.Stream, r.Estimate}); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		reference, err := limit.EstimateRequest(test.endpoint, []byte(test.body), strictjson.Limits{})
		if err != nil || r.Estimate != reference {
			t.Errorf("%s: estimate %+v, alone %+v, %v", name, r.Estimate, reference, err)
		}
	}
}

func TestParseRequestRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		body   string
		status int
		code   string
	}{
		"nothing":                   {``, 400, ""},
		"an array":                  {`[]`, 400, ""},
		"M05 a model twice":         {`{"model":"a","model":"b"}`, 400, ""},
		"M05 twice, escaped":        {`{"model":"a","mod\u0065l":"b"}`, 400, ""},
		"M04 another Model":         {`{"model":"a","Model":"b"}`, 400, codeUnknownParameter},
		"M04 folded beyond ASCII":   {`{"model":"a","\u017ftream":true}`, 400, codeUnknownParameter},
		"M04 another limit":         {`{"model":"a","max_tokens":1,"MAX_TOKENS":100000}`, 400, codeUnknownParameter},
		"M04 in the options":        {`{"model":"a","stream":true,"stream_options":{"Include_Usage":false}}`, 400, codeInvalidType},
		"twice in the options":      {`{"model":"a","stream_options":{"include_usage":false,"include_usage":true}}`, 400, ""},
		"a byte order mark":         {"\xef\xbb\xbf{\"model\":\"a\"}", 400, ""},
		"bad UTF-8":                 {"{\"model\":\"a\",\"x\":\"\xff\"}", 400, ""},
		"trailing data":             {`{"model":"a"} {}`, 400, ""},
		"cut off":                   {`{"model":"a"`, 400, ""},
		"too large":                 {`{"model":"a","x":"` + strings.Repeat("x", large) + `"}`, 413, ""},
		"no word":                   {`{"model":"a","stream":tru}`, 400, ""},
		"no model":                  {`{"messages":[]}`, 400, codeMissing},
		"model null":                {`{"model":null}`, 400, codeInvalidType},
		"model a number":            {`{"model":1}`, 400, codeInvalidType},
		"model a list":              {`{"model":["a"]}`, 400, codeInvalidType},
		"no alias":                  {`{"model":""}`, 404, CodeModelNotFound},
		"an alias with a line end":  {`{"model":"a\r\nx: y"}`, 404, CodeModelNotFound},
		"stream a string":           {`{"model":"a","stream":"true"}`, 400, codeInvalidType},
		"stream a number":           {`{"model":"a","stream":1}`, 400, codeInvalidType},
		"options a list":            {`{"model":"a","stream_options":[]}`, 400, codeInvalidType},
		"include_usage a string":    {`{"model":"a","stream_options":{"include_usage":"no"}}`, 400, codeInvalidType},
		"syntax comes before types": {`{"model":1,}`, 400, ""},
	} {
		r, err := ParseRequest(limit.ChatCompletions, []byte(test.body), large)
		var refused *RequestError
		if !errors.As(err, &refused) || r != nil {
			t.Errorf("%s: %v, %v", name, r, err)
			continue
		}
		if refused.Status != test.status || refused.Code != test.code || refused.Message == "" {
			t.Errorf("%s: %+v", name, refused)
		}
	}
}

// TestAliasText compares isAlias with the pattern of the administration API.
func TestAliasText(t *testing.T) {
	pattern := regexp.MustCompile(apikey.AliasPattern)
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.StringMatching(`[A-Za-z0-9._:/@+ \n-]{0,4}`), rapid.String(),
			rapid.Map(rapid.IntRange(126, 130), func(n int) string { return strings.Repeat("a", n) })).Draw(t, "alias")
		if got, want := isAlias(s), pattern.MatchString(s); got != want {
			t.Errorf("%q: %v, the pattern says %v", s, got, want)
		}
	})
}

func TestBody(t *testing.T) {
	for name, test := range map[string]struct {
		endpoint          limit.Endpoint
		body, model, want string
	}{
		"same alias":              {limit.ChatCompletions, `{"model":"a"}`, "a", `{"model":"a"}`},
		"same alias, escaped":     {limit.ChatCompletions, `{"model":"\u0061"}`, "a", `{"model":"\u0061"}`},
		"another":                 {limit.ChatCompletions, "{ \"model\" : \"a\" ,\n\"x\":1}", "gpt-4o", "{ \"model\" : \"gpt-4o\" ,\n\"x\":1}"},
		"in need of escapes":      {limit.Embeddings, `{"model":"a"}`, "a\"b\\\nc é <", `{"model":"a\"b\\\nc é \u003c"}`},
		"other models in it":      {limit.Responses, `{"tools":[{"model":"a"}],"model":"a"}`, "b", `{"tools":[{"model":"a"}],"model":"b"}`},
		"streamed":                {limit.ChatCompletions, `{"stream":true,"model":"a"}`, "b", `{"stream":true,"model":"b","stream_options":{"include_usage":true}}`},
		"streamed, same":          {limit.ChatCompletions, `{"model":"\u0061","stream":true}`, "a", `{"model":"\u0061","stream_options":{"include_usage":true},"stream":true}`},
		"options null":            {limit.ChatCompletions, `{"stream_options":null,"model":"a","stream":true}`, "b", `{"stream_options":{"include_usage":true},"model":"b","stream":true}`},
		"options empty":           {limit.ChatCompletions, `{"model":"a","stream":true,"stream_options":{ }}`, "b", `{"model":"b","stream":true,"stream_options":{"include_usage":true }}`},
		"options, others":         {limit.ChatCompletions, `{"stream_options": {"x":1},"model":"a","stream":true}`, "a", `{"stream_options": {"include_usage":true,"x":1},"model":"a","stream":true}`},
		"usage false":             {limit.ChatCompletions, `{"stream_options":{"x":1,"include_usage": false},"stream":true,"model":"a"}`, "bb", `{"stream_options":{"x":1,"include_usage": true},"stream":true,"model":"bb"}`},
		"usage null":              {limit.ChatCompletions, `{"model":"a","stream_options":{"include_usage":null,"x":1},"stream":true}`, "a", `{"model":"a","stream_options":{"include_usage":true,"x":1},"stream":true}`},
		"usage wanted":            {limit.ChatCompletions, `{"model":"a","stream_options":{"include_usage":true},"stream":true}`, "b", `{"model":"b","stream_options":{"include_usage":true},"stream":true}`},
		"options, not streamed":   {limit.ChatCompletions, `{"model":"a","stream_options":{"include_usage":false}}`, "b", `{"model":"b","stream_options":{"include_usage":false}}`},
		"responses, streamed":     {limit.Responses, `{"model":"a","stream":true}`, "b", `{"model":"b","stream":true}`},
		"messages, streamed":      {limit.Messages, `{"model":"a","stream":true}`, "b", `{"model":"b","stream":true}`},
		"no name for it upstream": {limit.Messages, `{"model":"a"}`, "", `{"model":""}`},
	} {
		r := parse(t, test.endpoint, test.body)
		got := r.Body(test.model)
		if string(got) != test.want {
			t.Errorf("%s: %s", name, got)
		}
		if string(r.body) != test.body {
			t.Errorf("%s: the client's body was changed to %s", name, r.body)
		}
		if test.body == test.want && &got[0] != &r.body[0] {
			t.Errorf("%s: the same body was copied", name)
		}
		again, err := ParseRequest(test.endpoint, got, large)
		if test.model != "" && (err != nil && isAlias(test.model) || err == nil && (again.Injects() || again.Alias != test.model)) {
			t.Errorf("%s: what leaves is read as %+v, %v", name, again, err)
		}
	}
}

// checkBody compares Body with another JSON reader: only model and include_usage may change, and no byte around them.
func checkBody(t interface {
	Helper()
	Fatalf(string, ...any)
}, r *Request, model string) {
	t.Helper()
	out := r.Body(model)
	decode := func(b []byte) (v map[string]any) {
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		return v
	}
	if err := strictjson.Check(out, strictjson.Limits{MaxBytes: 2 * large}); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	want, got := decode(r.body), decode(out)
	want["model"] = model
	if r.Injects() {
		options, _ := want["stream_options"].(map[string]any)
		if options == nil {
			options = map[string]any{}
		}
		options["include_usage"] = true
		want["stream_options"] = options
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s: %s", out, diff)
	}
	first, last := r.model.from, r.model.to
	if o := r.options.value; r.Injects() && o != (span{}) {
		first, last = min(first, o.from), max(last, o.to)
	}
	if !bytes.HasPrefix(out, r.body[:first]) || !bytes.HasSuffix(out, r.body[last:]) {
		t.Fatalf("%s: bytes around were changed", out)
	}
}

func TestBodyChangesNothingElse(t *testing.T) {
	value := rapid.SampledFrom([]string{`null`, `1.50`, `1e3`, `"x\u0041\/"`, `[ 1,{"model":"y"}]`, `{"model":"z","stream":false}`, `"é"`})
	members := map[string]*rapid.Generator[string]{
		"stream":         rapid.SampledFrom([]string{"true", "true", "false", "null"}),
		"stream_options": rapid.SampledFrom([]string{`null`, `{}`, `{ "x" : 1 }`, `{"include_usage":true}`, `{"a":{},"include_usage" : false,"b":1}`, `{"include_usage":null}`}),
		"messages":       rapid.SampledFrom([]string{`[]`, `[{"role":"user","content":"hi"}]`}),
		"x":              value, "y\\u0020": value,
	}
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"stream", "stream_options", "messages", "x", "y\\u0020"}), 0, 5, rapid.ID).Draw(t, "names")
		at := rapid.IntRange(0, len(names)).Draw(t, "place of model")
		blank := rapid.SampledFrom([]string{"", " ", "\n\t"})
		var b strings.Builder
		b.WriteString(blank.Draw(t, "b") + "{")
		for i := 0; i <= len(names); i++ {
			if i > 0 {
				b.WriteString("," + blank.Draw(t, "b"))
			}
			switch {
			case i == at:
				b.WriteString(`"model"` + blank.Draw(t, "b") + `:"alias"`)
			default:
				j := i
				if i > at {
					j--
				}
				b.WriteString(`"` + names[j] + `":` + blank.Draw(t, "b") + members[names[j]].Draw(t, "value"))
			}
			b.WriteString(blank.Draw(t, "b"))
		}
		b.WriteString("}" + blank.Draw(t, "b"))
		r, err := ParseRequest(limit.ChatCompletions, []byte(b.String()), large)
		if err != nil {
			t.Fatalf("%s: %v", b.String(), err)
		}
		checkBody(t, r, rapid.OneOf(rapid.Just("alias"), rapid.String()).Draw(t, "model"))
	})
}

// TestBackground covers T07: requests whose usage would not be known are refused.
func TestBackground(t *testing.T) {
	for body, ok := range map[string]bool{
		`{"model":"a","background":false}`:     true,
		`{"model":"a","background":null}`:      true,
		`{"model":"a","background":true}`:      false,
		`{"model":"a","backgr\u006fund":true}`: false,
		`{"model":"a","background":1}`:         false,
		`{"model":"a","background":"true"}`:    false,
		`{"model":"a","Background":true}`:      false,
	} {
		_, err := ParseRequest(limit.Responses, []byte(body), large)
		var refused *RequestError
		if ok != (err == nil) || err != nil && (!errors.As(err, &refused) || refused.Status != 400) {
			t.Errorf("%s: %v", body, err)
		}
	}
	if _, err := ParseRequest(limit.ChatCompletions, []byte(`{"model":"a","background":true}`), large); err != nil {
		t.Error(err) // the member is absent
	}
}

// TestBodyWithout covers W41: stream_options is removed at any position, and the rest stays the client's.
func TestBodyWithout(t *testing.T) {
	for body, want := range map[string]string{
		`{"model":"m","stream":true}`:                                                              `{"model":"real","stream":true}`,
		`{"stream_options":{"include_usage":true},"model":"m","stream":true}`:                      `{"model":"real","stream":true}`,
		"\n{ \"stream_options\" : null , \"model\":\"m\",\"stream\":true}":                         "\n{ \"model\":\"real\",\"stream\":true}",
		`{"stream":true,"stream_options":{"include_usage":false},"model":"m"}`:                     `{"stream":true,"model":"real"}`,
		`{"model":"m", "stream_options":{}, "stream":true}`:                                        `{"model":"real", "stream":true}`,
		"{\"model\":\"m\",\"stream\":true,\n\"stream_options\": {\"include_usage\":true}\n}":       "{\"model\":\"real\",\"stream\":true\n}",
		`{"messages":[{"content":"\"stream_options\":{}"}],"stream_options":{},"model":"m","x":1}`: `{"messages":[{"content":"\"stream_options\":{}"}],"model":"real","x":1}`,
	} {
		r := parse(t, limit.ChatCompletions, body)
		if got := string(r.BodyWithout("real")); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
		if got := string(r.BodyWithout("m")); got != strings.Replace(want, "real", "m", 1) {
			t.Errorf("%s: %s", body, got)
		}
	}
}
