package integration

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOfficialSDKs checks that the clients that OpenAI and Anthropic publish work with the gateway as they are, whole
// and streamed, with tools, and take its refusals for what they are.
func TestOfficialSDKs(t *testing.T) {
	t.Parallel()
	tools, clients := conformanceTools(t), officialClients(t)
	provider := newLLMProvider(t, replay)
	g := startGateway(t, settings{option: `provider openai {
			base_url ` + provider.URL + `/v1
		}
		provider anthropic {
			base_url ` + provider.URL + `
		}
		alias gpt {
			target openai gpt-4o
		}
		alias embed {
			target openai text-embedding-3-small
		}
		alias claude {
			target anthropic claude-sonnet-4-5
		}`})
	boss := g.token(admin)
	made := g.object(boss, http.MethodPost, llmBase+"/admin/api-keys", members{"name": "Clients"})
	limited := g.object(boss, http.MethodPost, llmBase+"/admin/api-keys", members{"name": "Nothing"})
	g.object(boss, http.MethodPost, llmBase+"/admin/rate-limits", members{
		"name": "Nothing", "scope_type": "api_key", "scope_id": limited["id"], "traffic_type": "llm", "requests_per_minute": 0,
	})
	for script, want := range map[string]string{"clients/openai.mjs": openAIFound, "clients/anthropic.mjs": anthropicFound} {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(script, "clients/"), ".mjs"), func(t *testing.T) {
			said := runNode(t, tools, script, g.url, made["key"].(string), limited["key"].(string), clients)
			var found, expected any
			if err := json.Unmarshal([]byte(said), &found); err != nil {
				t.Fatalf("%v: %s", err, said)
			}
			if err := json.Unmarshal([]byte(want), &expected); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(expected, found); diff != "" {
				t.Errorf("(-want +found)\n%s", diff)
			}
		})
	}
}

const openAIFound = `{
	"models": ["claude", "embed", "gpt"], "model": "gpt",
	"whole": {"text": "Hello! How can I help you today?", "used": 29, "alias": "gpt", "request_id": "req_recorded"},
	"stream": {"text": "Hello!", "empty": 0, "used": 0},
	"counted": {"text": "Hello!", "empty": 1, "used": 29},
	"left": true,
	"tool": {"reason": "tool_calls", "name": "get_weather", "arguments": {"city": "Lisbon"}},
	"answered": "Hello! How can I help you today?",
	"streamedTool": {"arguments": "{\"city\":\"Lisbon\"}", "pieces": 2},
	"embeddings": [[0.5, -1], [0.25, 2]],
	"response": {"text": "Hello!", "used": 47},
	"streamedResponse": {"text": "Hello!", "last": "response.completed"},
	"wrongKey": {"right": true, "status": 401, "code": "invalid_api_key"},
	"unknownModel": {"right": true, "status": 404, "code": "model_not_found"},
	"unknownEmbedding": {"right": true, "status": 404, "code": "model_not_found"},
	"limited": {"right": true, "status": 429, "code": "rate_limit_exceeded", "retry-after": true},
	"limitedStream": {"right": true, "status": 429, "code": "rate_limit_exceeded", "retry-after": true},
	"tooLong": {"right": true, "status": 400, "code": "context_length_exceeded"},
	"broken": {"right": true, "status": 503, "code": "server_is_overloaded", "retry-after": true}
}`

const anthropicFound = `{
	"models": ["claude", "embed", "gpt"],
	"whole": {"text": "Hello!", "input": 11, "output": 6, "alias": "claude", "request_id": "req_recorded"},
	"bearer": "Hello!",
	"stream": {"text": "Hello!", "events": ["message_start", "content_block_start", "content_block_delta", "content_block_delta", "content_block_stop",
		"message_delta", "message_stop"]},
	"tool": {"reason": "tool_use", "name": "get_weather", "input": {"city": "Lisbon"}},
	"answered": "Hello!",
	"streamedTool": {"reason": "tool_use", "input": {"city": "Lisbon"}, "pieces": 2, "output": 89},
	"wrongKey": {"right": true, "status": 401, "type": "authentication_error"},
	"unknownModel": {"right": true, "status": 404, "type": "not_found_error"},
	"limited": {"right": true, "status": 429, "type": "rate_limit_error", "retry-after": true},
	"limitedStream": {"right": true, "status": 429, "type": "rate_limit_error", "retry-after": true},
	"tooLong": {"right": true, "status": 400, "type": "invalid_request_error"},
	"broken": {"right": true, "status": 503, "type": "overloaded_error", "retry-after": true}
}`

// replay answers with recorded answers of the providers' servers.
func replay(w http.ResponseWriter, r *http.Request, body string) {
	var asked struct {
		Stream        bool
		Tools         []any
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
		Format string `json:"encoding_format"`
	}
	if json.Unmarshal([]byte(body), &asked) != nil {
		answerJSON(w, http.StatusBadRequest, `{}`)
		return
	}
	tool := len(asked.Tools) > 0 && !strings.Contains(body, "celsius")
	anthropic := r.URL.Path == "/v1/messages"
	w.Header().Set("X-Request-Id", "req_recorded")
	if anthropic {
		w.Header().Del("X-Request-Id")
		w.Header().Set("Request-Id", "req_recorded")
	}
	switch {
	case strings.Contains(body, "break"):
		answerJSON(w, http.StatusServiceUnavailable, `{"error":{"message":"The server is overloaded","type":"server_error","param":null,"code":null}}`)
	case strings.Contains(body, "too long") && anthropic:
		answerJSON(w, http.StatusBadRequest, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long"},"request_id":"req_recorded"}`)
	case strings.Contains(body, "too long"):
		answerJSON(w, http.StatusBadRequest, `{"error":{"message":"This model's maximum context length is 128000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`)
	case anthropic && asked.Stream && tool:
		sendEvents(w, true, recordedMessageTool)
	case anthropic && asked.Stream:
		sendEvents(w, true, recordedMessageStream)
	case anthropic && tool:
		answerJSON(w, http.StatusOK, recordedToolUse)
	case anthropic:
		answerJSON(w, http.StatusOK, recordedMessage)
	case r.URL.Path == "/v1/responses" && asked.Stream:
		sendEvents(w, true, recordedResponseStream)
	case r.URL.Path == "/v1/responses":
		answerJSON(w, http.StatusOK, recordedResponse)
	case r.URL.Path == "/v1/embeddings" && asked.Format == "base64":
		answerJSON(w, http.StatusOK, recordedEmbeddings)
	case r.URL.Path == "/v1/embeddings":
		answerJSON(w, http.StatusBadRequest, `{}`) // the client asks for base64
	case asked.Stream:
		chunks := recordedChunks
		if tool {
			chunks = recordedToolChunks
		}
		if asked.StreamOptions.IncludeUsage {
			chunks += recordedUsage
		}
		sendEvents(w, false, chunks+"\n[DONE]")
	case tool:
		answerJSON(w, http.StatusOK, recordedToolCall)
	default:
		answerJSON(w, http.StatusOK, recordedCompletion)
	}
}

// sendEvents sends each line as an event, with its type as its name when named is set.
func sendEvents(w http.ResponseWriter, named bool, lines string) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	for line := range strings.Lines(strings.TrimSpace(lines)) {
		line = strings.TrimSpace(line)
		var event struct{ Type string }
		if named && json.Unmarshal([]byte(line), &event) == nil {
			_, _ = io.WriteString(w, "event: "+event.Type+"\n")
		}
		_, _ = io.WriteString(w, "data: "+line+"\n\n")
		_ = http.NewResponseController(w).Flush()
	}
}
