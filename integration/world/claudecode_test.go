package world

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/durward-gateway/durward/integration/rig"
)

// script plays a model that has a tool called for its user: the one that leads to the page, and once the account is connected
// the server's own.
type script struct {
	mu        sync.Mutex
	connect   func() // connects the account, as the user does at the page
	page      string
	connected bool
	results   []string // of tools
}

// modelRequest holds what a model gets to read.
type modelRequest struct {
	Messages []struct{ Content json.RawMessage }
	Tools    []struct{ Name string }
}

// next returns the tool that the model wants called, "" at the end.
func (s *script) next(asked modelRequest) (tool string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	has := func(name string) bool {
		return slices.ContainsFunc(asked.Tools, func(t struct{ Name string }) bool { return t.Name == name })
	}
	if !slices.ContainsFunc(asked.Tools, func(t struct{ Name string }) bool { return strings.HasPrefix(t.Name, "mcp__account__") }) {
		return "" // a request beside the conversation
	}
	s.results = nil
	for _, m := range asked.Messages {
		var blocks []struct {
			Type    string
			Content json.RawMessage
		}
		if json.Unmarshal(m.Content, &blocks) != nil {
			continue
		}
		for _, b := range blocks {
			if b.Type == "tool_result" {
				s.results = append(s.results, string(b.Content))
			}
		}
	}
	last := ""
	if n := len(s.results); n > 0 {
		last = s.results[n-1]
	}
	switch {
	case strings.Contains(last, "Hello, Alice!"), len(s.results) > 50:
		return ""
	case strings.Contains(last, s.page) && !s.connected:
		s.connected = true
		s.connect()
	}
	if has("mcp__account__greet") {
		return "mcp__account__greet"
	}
	return "mcp__account__connect_account"
}

// answer writes what Anthropic's servers write when their model wants a tool called, or has nothing more to say.
func (s *script) answer(w http.ResponseWriter, r *http.Request) {
	var asked modelRequest
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || r.URL.Path != "/v1/messages" {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answers["/v1/messages/count_tokens"].whole)
		return
	}
	block, delta, reason := `{"type":"text","text":""}`, `{"type":"text_delta","text":"`+spoken+`"}`, "end_turn"
	if tool := s.next(asked); tool != "" {
		block = fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d","name":%q,"input":{}}`, len(asked.Messages), tool)
		delta, reason = `{"type":"input_json_delta","partial_json":"{\"name\":\"Alice\"}"}`, "tool_use"
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range []string{
		`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"real","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":11,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":` + block + `}`,
		`{"type":"content_block_delta","index":0,"delta":` + delta + `}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"` + reason + `","stop_sequence":null},"usage":{"output_tokens":6}}`,
		`{"type":"message_stop"}`,
	} {
		var named struct{ Type string }
		_ = json.Unmarshal([]byte(event), &named)
		_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", named.Type, event)
	}
}

// TestClaudeCode: W31: Claude Code, whose user has not connected their account, begins, is led to the page, and calls the tool in
// the same conversation. Its models come through the gateway, too.
func TestClaudeCode(t *testing.T) {
	lab(t, all, newest)
	const software = "@anthropic-ai/claude-code"
	record(t, &row{section: mcpClients, software: software, version: version(t, software), tried: "led to connect an account; the same conversation goes on", remark: "With a token in its configuration, and a model that plays a script."})
	model := new(script)
	provider := httptest.NewServer(http.HandlerFunc(model.answer))
	t.Cleanup(provider.Close)
	g := startGateway(t, `provider anthropic {
			base_url `+provider.URL+`
		}
		alias claude {
			target anthropic real
		}`)
	address := g.serve(example(t, "simpleStreamableHttp", "localhost", "--oauth"), map[string]any{"provider": "oauth2", "requires_auth": true})
	model.page = strings.Replace(address, "/mcp/", "/connect/", 1)
	model.connect = func() { g.connect(address, alice) }
	var made struct{ Key string }
	g.api(http.MethodPost, "/api/llm-gateway/admin/api-keys", map[string]any{"name": "Lab"}, &made)
	home := t.TempDir()
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"account": map[string]any{
		"type": "http", "url": address, "headers": map[string]string{"Authorization": "Bearer " + g.token(alice)},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "mcp.json"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), scriptTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, node(t), module(t, software+"/cli-wrapper.cjs"), "-p", "Greet Alice.",
		"--mcp-config", "mcp.json", "--strict-mcp-config", "--allowedTools", "mcp__account")
	command.Dir, command.WaitDelay = home, 10*time.Second
	command.Env = environment(t, "ANTHROPIC_BASE_URL="+g.url+"/api/llm-gateway", "ANTHROPIC_AUTH_TOKEN="+made.Key, "ANTHROPIC_MODEL=claude",
		"ANTHROPIC_SMALL_FAST_MODEL=claude", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1")
	output, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(output), spoken) {
		t.Errorf("%v: %s", err, rig.Tail(string(output), 5_000))
	}
	model.mu.Lock()
	defer model.mu.Unlock()
	if n := len(model.results); n < 2 || !strings.Contains(model.results[0], model.page) || !strings.Contains(model.results[n-1], "Hello, Alice!") {
		t.Errorf("the model read %q", model.results)
	}
}
