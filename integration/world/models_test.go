package world

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/durward-gateway/durward/integration/rig"
)

// spoken answers every question at the lab's provider.
const spoken = "Hello from the lab."

// modelProvider answers as OpenAI's and Anthropic's servers do, and keeps the requests.
type modelProvider struct {
	*httptest.Server
	mu   sync.Mutex
	seen []*http.Request
}

func newModelProvider(t testing.TB) *modelProvider {
	t.Helper()
	p := new(modelProvider)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.seen = append(p.seen, r)
		p.mu.Unlock()
		var asked struct {
			Stream  bool
			Options struct {
				Usage bool `json:"include_usage"`
			} `json:"stream_options"`
		}
		_ = json.Unmarshal(body, &asked)
		answer := answers[r.URL.Path]
		if !asked.Stream {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer.whole)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for line := range strings.Lines(answer.stream) {
			line = strings.TrimSpace(line)
			var event struct{ Type string }
			switch {
			case line == "", strings.Contains(line, `"choices":[]`) && !asked.Options.Usage:
				continue
			case json.Unmarshal([]byte(line), &event) == nil && event.Type != "":
				_, _ = io.WriteString(w, "event: "+event.Type+"\n")
			}
			_, _ = io.WriteString(w, "data: "+line+"\n\n")
			_ = http.NewResponseController(w).Flush()
		}
	}))
	t.Cleanup(p.Close)
	return p
}

// calls returns the requests since the last time.
func (p *modelProvider) calls() []*http.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := p.seen
	p.seen = nil
	return seen
}

// answers holds answers of the public APIs, whole and event by event.
var answers = map[string]struct{ whole, stream string }{
	"/v1/chat/completions": {
		`{"id":"c1","object":"chat.completion","created":1,"model":"real","choices":[{"index":0,"message":{"role":"assistant","content":"` + spoken + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":5,"total_tokens":25}}`,
		`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"real","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}
		{"id":"c1","object":"chat.completion.chunk","created":1,"model":"real","choices":[{"index":0,"delta":{"content":"` + spoken + `"},"finish_reason":null}]}
		{"id":"c1","object":"chat.completion.chunk","created":1,"model":"real","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}
		{"id":"c1","object":"chat.completion.chunk","created":1,"model":"real","choices":[],"usage":{"prompt_tokens":20,"completion_tokens":5,"total_tokens":25}}
		[DONE]`,
	},
	"/v1/responses": {
		responseDone,
		`{"type":"response.created","sequence_number":0,"response":` + responseBegun + `}
		{"type":"response.in_progress","sequence_number":1,"response":` + responseBegun + `}
		{"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}
		{"type":"response.content_part.added","sequence_number":3,"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}
		{"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"` + spoken + `"}
		{"type":"response.output_text.done","sequence_number":5,"item_id":"msg_1","output_index":0,"content_index":0,"text":"` + spoken + `"}
		{"type":"response.output_item.done","sequence_number":6,"output_index":0,"item":` + responseItem + `}
		{"type":"response.completed","sequence_number":7,"response":` + responseDone + `}`,
	},
	"/v1/messages": {
		`{"id":"msg_1","type":"message","role":"assistant","model":"real","content":[{"type":"text","text":"` + spoken + `"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":11,"output_tokens":6}}`,
		`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"real","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":11,"output_tokens":1}}}
		{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
		{"type":"ping"}
		{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + spoken + `"}}
		{"type":"content_block_stop","index":0}
		{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":6}}
		{"type":"message_stop"}`,
	},
	"/v1/messages/count_tokens": {whole: `{"input_tokens":42}`},
}

const (
	responseItem  = `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"` + spoken + `","annotations":[]}]}`
	responseBegun = `{"id":"resp_1","object":"response","created_at":1,"status":"in_progress","model":"real","output":[],"error":null,"usage":null,"parallel_tool_calls":true,"tool_choice":"auto","tools":[]}`
	responseDone  = `{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"real","output":[` + responseItem + `],"error":null,"parallel_tool_calls":true,"tool_choice":"auto","tools":[],` +
		`"usage":{"input_tokens":30,"input_tokens_details":{"cached_tokens":0},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":35}}`
)

// TestModelClients checks that clients of models that others wrote are given a base URL and a key of the gateway, and
// answer.
func TestModelClients(t *testing.T) {
	t.Parallel()
	lab(t, all, newest)
	provider := newModelProvider(t)
	g := startGateway(t, `provider openai {
			base_url `+provider.URL+`/v1
		}
		provider anthropic {
			base_url `+provider.URL+`
		}
		alias gpt {
			target openai real
		}
		alias claude {
			target anthropic real
		}`)
	const base = "/api/llm-gateway"
	var made struct{ Key string }
	g.api(http.MethodPost, base+"/admin/api-keys", map[string]any{"name": "Lab"}, &made)
	asked := 0 // calls to models
	check := func(t *testing.T, paths string) {
		t.Helper()
		var at []string
		for _, r := range provider.calls() {
			at = append(at, r.URL.Path)
			if !strings.HasSuffix(r.URL.Path, "/count_tokens") {
				asked++
			}
			for name, values := range r.Header {
				if strings.Contains(strings.Join(values, " "), made.Key) {
					t.Errorf("the gateway's key reached the provider in %s", name)
				}
			}
		}
		if got := strings.Join(at, " "); !strings.Contains(got, paths) {
			t.Errorf("asked %q, not %s", got, paths)
		}
	}
	for _, c := range []struct{ client, software, path string }{
		{"ai-responses", "@ai-sdk/openai", "/v1/responses /v1/responses"},
		{"ai-chat", "@ai-sdk/openai", "/v1/chat/completions /v1/chat/completions"},
		{"ai-compatible", "@ai-sdk/openai-compatible", "/v1/chat/completions /v1/chat/completions"},
		{"ai-anthropic", "@ai-sdk/anthropic", "/v1/messages /v1/messages"},
		{"langchain-openai", "@langchain/openai", "/v1/chat/completions /v1/chat/completions"},
		{"langchain-anthropic", "@langchain/anthropic", "/v1/messages /v1/messages"},
		{"openai", "openai", "/v1/chat/completions /v1/chat/completions"},
		{"anthropic", "@anthropic-ai/sdk", "/v1/messages /v1/messages /v1/messages/count_tokens"},
	} {
		t.Run(c.client, func(t *testing.T) {
			record(t, &row{section: modelClients, software: c.software, version: version(t, c.software), tried: "a whole answer and a stream: " + strings.Fields(c.path)[0]})
			var found struct {
				Whole, Stream struct {
					Text string
					Used int
				}
			}
			if err := json.Unmarshal(run(t, nil, "models.mjs", c.client, g.url+base, made.Key), &found); err != nil {
				t.Fatal(err)
			}
			if found.Whole.Text != spoken || found.Stream.Text != spoken || found.Whole.Used == 0 || found.Stream.Used == 0 {
				t.Errorf("%+v", found)
			}
			check(t, c.path)
		})
	}
	for _, c := range []struct {
		software, path string
		env, command   []string
	}{
		{
			"@anthropic-ai/claude-code", "/v1/messages",
			[]string{"ANTHROPIC_BASE_URL=" + g.url + base, "ANTHROPIC_AUTH_TOKEN=" + made.Key, "ANTHROPIC_MODEL=claude", "ANTHROPIC_SMALL_FAST_MODEL=claude", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"},
			[]string{"@anthropic-ai/claude-code/cli-wrapper.cjs", "-p", "hi"},
		},
		{
			"@openai/codex", "/v1/responses", []string{"DURWARD_KEY=" + made.Key},
			[]string{
				"@openai/codex/bin/codex.js", "exec", "--skip-git-repo-check", "-s", "read-only", "-m", "gpt", "-c", "model_provider=durward",
				"-c", `model_providers.durward={name="durward",base_url="` + g.url + base + `/v1",env_key="DURWARD_KEY",wire_api="responses"}`, "hi",
			},
		},
	} {
		t.Run(c.software, func(t *testing.T) {
			record(t, &row{section: modelClients, software: c.software, version: version(t, c.software), tried: "one prompt from the command line"})
			ctx, cancel := context.WithTimeout(t.Context(), scriptTimeout)
			defer cancel()
			command := exec.CommandContext(ctx, node(t), append([]string{module(t, c.command[0])}, c.command[1:]...)...)
			command.Env, command.Dir, command.WaitDelay = environment(t, c.env...), t.TempDir(), 10*time.Second
			output, err := command.CombinedOutput()
			if err != nil || !strings.Contains(string(output), spoken) {
				t.Errorf("%v: %s", err, rig.Tail(string(output), 5_000))
			}
			check(t, c.path)
		})
	}
	var usage struct{ Data []struct{ Requests int } }
	g.api(http.MethodGet, base+"/admin/usage", nil, &usage)
	if len(usage.Data) != 1 || usage.Data[0].Requests != asked {
		t.Errorf("%d calls were made, usage says %+v", asked, usage.Data)
	}
}
