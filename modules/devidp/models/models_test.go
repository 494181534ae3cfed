package models

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/llm/smart"
	"github.com/durward-gateway/durward/internal/proxy/sse"
	"github.com/durward-gateway/durward/storage"
)

// post asks the provider and gives the answer as it stands.
func post(t *testing.T, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	Handler(Options{}).ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
	return w
}

// ask asks the provider and reads its answer.
func ask(t *testing.T, path, body string, status int, into any) {
	t.Helper()
	w := post(t, path, body)
	if w.Code != status {
		t.Fatalf("%s %s: %d %s", path, body, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
}

// events asks for a stream and gives the data of its events.
func events(t *testing.T, path, body string) (data []string) {
	t.Helper()
	w := post(t, path, body)
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	reader := sse.NewReader(bufio.NewReader(w.Body), 0)
	for {
		event, err := reader.Next()
		if err != nil {
			return data
		}
		data = append(data, string(event.Data))
	}
}

type chatAnswer struct {
	Choices []struct {
		Message struct {
			Content   string
			ToolCalls []struct {
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		FinishReason string `json:"finish_reason"`
	}
	Usage struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
	}
}

func chatOf(t *testing.T, body string) chatAnswer {
	t.Helper()
	var got chatAnswer
	ask(t, "/v1/chat/completions", body, http.StatusOK, &got)
	return got
}

func TestStrengthsDiffer(t *testing.T) {
	last := 0
	for _, model := range []string{Small, Medium, Large} {
		got := chatOf(t, `{"model":"`+model+`","messages":[{"role":"user","content":[{"type":"text","text":"Tea or coffee?"}]}]}`)
		if text := got.Choices[0].Message.Content; !strings.Contains(text, "Tea or coffee?") || got.Usage.Completion < 2*last || got.Usage.Prompt == 0 {
			t.Errorf("%s: %+v", model, got)
		}
		last = got.Usage.Completion
	}
	if got := chatOf(t, `{"model":"demo-large","max_completion_tokens":5,"messages":[{"role":"user","content":"Hi"}]}`); got.Choices[0].FinishReason != "length" || got.Usage.Completion != 5 {
		t.Errorf("%+v", got)
	}
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"gpt","messages":[]}`, "/v1/embeddings": `{"model":"demo-small","input":"x"}`,
		"/v1/messages": `{"model":"claude","max_tokens":1,"messages":[]}`, "/v1/responses": `{"model":"gpt","input":"x"}`,
	} {
		var refused struct{ Error struct{ Message string } }
		if ask(t, path, body, http.StatusNotFound, &refused); refused.Error.Message == "" {
			t.Errorf("%s: %+v", path, refused)
		}
		ask(t, path, `[`, http.StatusBadRequest, &refused)
	}
}

// TestDetermines checks that the gateway's own prompt is recognised, so that a new wording of it is not forgotten here.
func TestDetermines(t *testing.T) {
	m := &storage.SmartModel{Slots: []storage.ModelSlot{{Alias: "a"}, {Alias: "b"}, {Alias: "c"}}, DeterminerInputMaxChars: 4000}
	for text, want := range map[string]string{
		"Hi there!": "0", "": "0", "Explain tides": "1", strings.Repeat("word ", 100): "1",
		"Prove that there are infinitely many primes.": "2", strings.Repeat("word ", 400): "2",
	} {
		p := smart.NewPrompt(m, text)
		body, err := json.Marshal(object{"model": Small, "messages": []object{{"role": "system", "content": p.System}, {"role": "user", "content": p.User}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := chatOf(t, string(body)).Choices[0].Message.Content; got != want {
			t.Errorf("%.20q: %s, want %s", text, got, want)
		}
	}
	for slots, want := range map[int]int{1: 0, 2: 1, 3: 2, 10: 9} {
		if got := slot("prove it", slots); got != want || slot("hi", slots) != 0 {
			t.Errorf("%d slots: %d", slots, got)
		}
	}
}

const weather = `"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}}}}}]`

func TestTools(t *testing.T) {
	const question = `{"role":"user","content":"What will the weather be in Lisbon for 3 days?"}`
	got := chatOf(t, `{"model":"demo-small",`+weather+`,"messages":[`+question+`]}`).Choices[0]
	if got.FinishReason != "tool_calls" || len(got.Message.ToolCalls) != 1 || got.Message.ToolCalls[0].Function.Name != "get_weather" ||
		got.Message.ToolCalls[0].Function.Arguments != `{"city":"Lisbon","days":3}` {
		t.Errorf("%+v", got)
	}
	for name, rest := range map[string]string{
		"the tool has answered": `"messages":[` + question + `,{"role":"assistant","content":null},{"role":"tool","content":"sunny"}]`,
		"no tool fits":          `"messages":[{"role":"user","content":"Hi"}]`,
		"no tool is wanted":     `"tool_choice":"none","messages":[` + question + `]`,
	} {
		if got := chatOf(t, `{"model":"demo-small",`+weather+`,`+rest+`}`).Choices[0]; got.FinishReason != "stop" || got.Message.Content == "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, choice := range []string{`"required"`, `{"type":"function","function":{"name":"get_weather"}}`} {
		got := chatOf(t, `{"model":"demo-small",`+weather+`,"tool_choice":`+choice+`,"messages":[{"role":"user","content":"Hi"}]}`).Choices[0]
		if got.FinishReason != "tool_calls" {
			t.Errorf("%s: %+v", choice, got)
		}
	}
	var message struct {
		Content []struct {
			Type, Name string
			Input      json.RawMessage
		}
		StopReason string `json:"stop_reason"`
	}
	const tools = `"tools":[{"name":"add","input_schema":{"properties":{"a":{"type":"number"},"b":{"type":"number"}}}}]`
	ask(t, "/v1/messages", `{"model":"demo-large","max_tokens":50,`+tools+`,"tool_choice":{"type":"any"},"messages":[{"role":"user","content":"19 and 23.5"}]}`, http.StatusOK, &message)
	if message.StopReason != "tool_use" || message.Content[0].Name != "add" || string(message.Content[0].Input) != `{"a":19,"b":23.5}` {
		t.Errorf("%+v", message)
	}
	ask(t, "/v1/messages", `{"model":"demo-large","max_tokens":500,`+tools+`,"messages":[{"role":"user","content":"19 add 23.5"},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":[{"type":"text","text":"42.5"}]}]}]}`, http.StatusOK, &message)
	if message.StopReason != "end_turn" || message.Content[0].Type != "text" {
		t.Errorf("%+v", message)
	}
}

// TestStreams checks that a streamed answer has the same text as a whole one, with usage where it belongs.
func TestStreams(t *testing.T) {
	const rest = `"messages":[{"role":"user","content":"Hi"}]}`
	whole := chatOf(t, `{"model":"demo-large",`+rest)
	data := events(t, "/v1/chat/completions", `{"model":"demo-large","stream":true,"stream_options":{"include_usage":true},`+rest)
	var text strings.Builder
	var usage string
	for _, event := range data[:len(data)-1] {
		var chunk struct {
			Choices []struct{ Delta struct{ Content string } }
			Usage   json.RawMessage
		}
		if err := json.Unmarshal([]byte(event), &chunk); err != nil {
			t.Fatal(err)
		}
		for _, c := range chunk.Choices {
			text.WriteString(c.Delta.Content)
		}
		usage = string(chunk.Usage)
	}
	if data[len(data)-1] != "[DONE]" || text.String() != whole.Choices[0].Message.Content || !strings.Contains(usage, `"completion_tokens":`+strconv.Itoa(whole.Usage.Completion)) {
		t.Errorf("%s %q", usage, text.String())
	}
	if data := strings.Join(events(t, "/v1/chat/completions", `{"model":"demo-small","stream":true,`+rest), "\n"); strings.Contains(data, "usage") {
		t.Errorf("usage that nobody asked for: %s", data)
	}

	data = events(t, "/v1/messages", `{"model":"demo-small","stream":true,"max_tokens":3,`+rest)
	if !strings.Contains(data[0], "message_start") || !strings.Contains(data[len(data)-2], `"output_tokens":3`) || !strings.Contains(data[len(data)-2], "max_tokens") {
		t.Errorf("%v", data)
	}
	data = events(t, "/v1/responses", `{"model":"demo-small","stream":true,"instructions":"Be kind.","input":[{"role":"user","content":[{"type":"input_text","text":"Hi"}]}]}`)
	if !strings.Contains(data[len(data)-1], `"type":"response.completed"`) || !strings.Contains(data[len(data)-1], `"output_tokens"`) {
		t.Errorf("%v", data)
	}
}

func TestEmbeddings(t *testing.T) {
	var got struct {
		Data []struct{ Embedding []float64 }
	}
	ask(t, "/v1/embeddings", `{"model":"demo-embed","input":["the cat sat","THE cat sat!","a dog ran far",""]}`, http.StatusOK, &got)
	dot := func(i, j int) (sum float64) {
		for k, v := range got.Data[i].Embedding {
			sum += v * got.Data[j].Embedding[k]
		}
		return sum
	}
	if len(got.Data) != 4 || dot(0, 1) < 0.99 || dot(0, 2) > 0.9 || dot(3, 3) < 0.99 {
		t.Errorf("%v %v %v", len(got.Data), dot(0, 1), dot(0, 2))
	}
	var packed struct{ Data []struct{ Embedding string } }
	ask(t, "/v1/embeddings", `{"model":"demo-embed","input":"the cat","encoding_format":"base64","dimensions":8}`, http.StatusOK, &packed)
	if raw, err := base64.StdEncoding.DecodeString(packed.Data[0].Embedding); err != nil || len(raw) != 32 {
		t.Errorf("%d bytes, %v", len(raw), err)
	}
}
