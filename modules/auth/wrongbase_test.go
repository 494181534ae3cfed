package auth_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// TestWrongBase checks that a client of models with the wrong base URL is told the right one in the form that it reads,
// whatever its key is, and nothing else is taken for such a client (W34).
func TestWrongBase(t *testing.T) {
	g := newGateway(t, nil)
	const openai, anthropic = public + "/api/llm-gateway/v1", public + "/api/llm-gateway"
	post := func(path string, lines ...string) answer {
		return g.send("POST " + path + " HTTP/1.1\nHost: gate.example.com\nConnection: close\nContent-Length: 0" + join(lines))
	}
	for path, want := range map[string]string{
		"/api/llm-gateway/chat/completions": openai, "/chat/completions": openai, "/v1/chat/completions": openai, "/api/llm-gateway/responses": openai,
		"/v1/embeddings": openai, "/api/llm-gateway/v1/v1/chat/completions": openai, "/api/v1/completions": openai, "/openai/v1/responses": openai,
		"/api/llm-gateway/v1/chat/completions/chat/completions": openai, "/v1/chat/completions/chat/completions": openai,
		"/api/llm-gateway/v1/messages/v1/messages": anthropic, "/api/llm-gateway/v1/v1/messages": anthropic, "/v1/messages": anthropic, "/messages": anthropic, "/api/llm-gateway/messages": anthropic,
		"/v1/messages/count_tokens": anthropic, "/anthropic/v1/messages": anthropic,
	} {
		for _, line := range []string{"Authorization: Bearer dw-x", "X-Api-Key: dw-x", "Authorization: Bearer " + g.token()} {
			got := post(path, line)
			var body struct {
				Type  string
				Error struct{ Type, Message, Code string }
			}
			if err := json.Unmarshal([]byte(got.body), &body); err != nil || got.status != http.StatusNotFound || !strings.HasSuffix(body.Error.Message, " "+want) {
				t.Errorf("%s, %s: %d %s", path, line[:12], got.status, got.body)
			}
			if want == anthropic && (body.Type != "error" || body.Error.Type != "not_found_error") || want == openai && (body.Type != "" || body.Error.Code != "unknown_url") {
				t.Errorf("%s: not in the form of its clients: %s", path, got.body)
			}
		}
	}
	if got := g.get("/v1/models", "X-Api-Key: dw-x", "Anthropic-Version: 2023-06-01"); got.status != http.StatusNotFound || !strings.Contains(got.body, anthropic+`"`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	for _, path := range []string{"/mcp/messages", "/sse/models", "/api/llm-gateway/admin/models", "/api/llm-gateway/v1/messages", "/api/models/messages", "/x/chat/completions", "/messages/", "/api/llm-gateway/v1/chat/completions"} {
		if got := post(path, "Authorization: Bearer dw-x"); got.status == http.StatusNotFound && strings.Contains(got.body, "base URL") {
			t.Errorf("%s: %s", path, got.body)
		}
	}
	if got := g.get("/models"); got.status != http.StatusUnauthorized {
		t.Errorf("without a credential: %d %s", got.status, got.body)
	}
	if got := post("/v1/messages", "Authorization: Bearer dw-x", "Origin: https://evil.tld"); got.status != http.StatusForbidden {
		t.Errorf("a foreign page: %d", got.status)
	}
}
