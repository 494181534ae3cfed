package cluster

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestTasks creates a task at one node and asks for it at another, and at a third one that was started again: it is its creator's on
// each of them, and nobody else's. Then the server gives its id to somebody else's task: it is that one's alone.
func TestTasks(t *testing.T) {
	const task = `{"taskId":"t-1","status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttl":60000}`
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		result := task
		switch {
		case strings.Contains(string(body), `"tools/call"`):
			result = `{"task":` + task + `}`
		case strings.Contains(string(body), `"tasks/list"`):
			result = `{"tasks":[` + task + `]}`
		}
		writeJSON(w, http.StatusOK, json.RawMessage(`{"jsonrpc":"2.0","id":7,"result":`+result+`}`))
	}))
	defer upstream.Close()
	c := startCluster(t)
	client := newClient(t)
	s := c.nodes[0].newServer(client, members{"url": upstream.URL + "/mcp"})
	ask := func(n *node, token, method, params string) answer {
		t.Helper()
		return n.send(client, http.MethodPost, "/mcp/"+s.slug, token, fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":%s}`, method, params),
			"Accept", "application/json, text/event-stream", "MCP-Protocol-Version", "2025-11-25")
	}
	owns := func(n *node, token string) bool {
		t.Helper()
		return strings.Contains(string(ask(n, token, "tasks/get", `{"taskId":"t-1"}`).body), `"taskId":"t-1"`)
	}
	mine := c.token(alice)
	if a := ask(c.nodes[0], mine, "tools/call", `{"name":"echo","arguments":{},"task":{"ttl":60000}}`); a.status != http.StatusOK || !strings.Contains(string(a.body), "t-1") {
		t.Fatalf("creating the task: %v", a)
	}
	c.nodes[2].restart()
	for _, n := range c.nodes {
		for method, params := range map[string]string{"tasks/get": `{"taskId":"t-1"}`, "tasks/list": `{}`} {
			if a := ask(n, mine, method, params); a.status != http.StatusOK || !strings.Contains(string(a.body), `"taskId":"t-1"`) {
				t.Errorf("%s at %s: %v", method, n.name, a)
			}
			if a := ask(n, c.token(person()), method, params); strings.Contains(string(a.body), `"taskId":"t-1"`) {
				t.Errorf("O14 %s of somebody else at %s: %v", method, n.name, a)
			}
		}
	}
	other := c.token(person())
	if a := ask(c.nodes[1], other, "tools/call", `{"name":"echo","arguments":{},"task":{"ttl":60000}}`); a.status != http.StatusOK {
		t.Fatalf("creating the task again: %v", a)
	}
	for _, n := range c.nodes {
		if !owns(n, other) {
			t.Errorf("%s does not know the newest creation", n.name)
		}
		eventually(t, "O14 the former owner to lose the task at "+n.name, func() bool { return !owns(n, mine) })
	}
}
