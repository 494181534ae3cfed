package cluster

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// sessionUpstream is a server with sessions. It counts its calls and their cancellations.
type sessionUpstream struct{ sessions, calls, cancelled atomic.Int64 }

func (u *sessionUpstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	switch text := string(body); {
	case strings.Contains(text, `"initialize"`):
		w.Header().Set("Mcp-Session-Id", fmt.Sprint("upstream-session-", u.sessions.Add(1)))
		writeJSON(w, http.StatusOK, members{"jsonrpc": "2.0", "id": 1, "result": members{
			"protocolVersion": "2025-06-18", "capabilities": members{}, "serverInfo": members{"name": "s", "version": "1"},
		}})
	case strings.Contains(text, `"tools/call"`):
		u.calls.Add(1)
		writeJSON(w, http.StatusOK, members{"jsonrpc": "2.0", "id": 7, "result": members{"content": []any{}}})
	default:
		if strings.Contains(text, "notifications/cancelled") {
			u.cancelled.Add(1)
		}
		w.WriteHeader(http.StatusAccepted)
	}
}

// session begins a session of a client that asks its user, and returns the headers for the requests of the session.
func (h *holder) session(n *node) []string {
	h.c.t.Helper()
	a := n.send(h.client, http.MethodPost, "/mcp/"+h.server.slug, h.caller, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{`+
		`"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}`, "Accept", "application/json, text/event-stream")
	id := a.header.Get("Mcp-Session-Id")
	if id == "" {
		h.c.t.Fatalf("beginning a session: %v", a)
	}
	return []string{"Mcp-Session-Id", id, "MCP-Protocol-Version", "2025-06-18", "Accept", "application/json, text/event-stream"}
}

// ask makes a call that is held, and returns its open stream, and the approval that it waits for.
func (h *holder) ask(n *node, argument int, session []string) (stream io.ReadCloser, approval string) {
	t := h.c.t
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	t.Cleanup(cancel)
	response, err := n.open(ctx, h.client, http.MethodPost, "/mcp/"+h.server.slug, h.caller,
		fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"n":%d}}}`, argument), session...)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), "elicitation/create") {
	}
	if err := lines.Err(); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("the call is not held: %d, %v", response.StatusCode, err)
	}
	pending := n.api(h.client, h.approver, http.MethodGet, "/api/approvals?status=pending", nil)
	items, _ := pending["data"].([]any)
	if len(items) != 1 {
		t.Fatalf("what waits: %v", pending)
	}
	return response.Body, items[0].(map[string]any)["id"].(string)
}

// TestTakenBackElsewhere takes a held call back at another node than holds it: a yes that comes later does not make it. A call that is
// taken back in another session, or under another id, is made.
func TestTakenBackElsewhere(t *testing.T) {
	c := startClusterWith(t, "streams {\n\t\t\theartbeat 1s\n\t\t}")
	up := new(sessionUpstream)
	server := httptest.NewServer(up)
	defer server.Close()
	h := &holder{c: c, client: newClient(t)}
	h.caller, h.approver = h.tokenOf("asks"), h.tokenOf("approver")
	c.nodes[0].api(h.client, c.token(admin), http.MethodPost, "/api/agents", members{"application_directory": members{"external_id": "asks", "name": "asks", "dcr": false}})
	h.server = c.nodes[0].newServerUnder(h.client, members{"url": server.URL + "/mcp"}, members{"name": "asks", "authorized": true, "actions": []string{"tools/call:echo:approve"}})
	holds, takes, decides := c.nodes[0], c.nodes[1], c.nodes[2]
	own, other := h.session(holds), h.session(takes)
	for i, tc := range []struct {
		name    string
		session []string
		id      string
		made    int64
	}{{"", own, "7", 0}, {"of another session", other, "7", 1}, {"of another id", own, `"7"`, 1}} {
		before, told := up.calls.Load(), up.cancelled.Load()
		stream, approval := h.ask(holds, i, own)
		a := takes.send(h.client, http.MethodPost, "/mcp/"+h.server.slug, h.caller, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+tc.id+`}}`, tc.session...)
		if a.status != http.StatusAccepted || up.cancelled.Load() != told+1 {
			t.Errorf("taking a call back %s: %v, the upstream was told %d times", tc.name, a, up.cancelled.Load()-told)
		}
		h.approve(decides, approval)
		rest, err := io.ReadAll(stream)
		_ = stream.Close()
		if err != nil {
			t.Error(err)
		}
		if made := up.calls.Load() - before; made != tc.made || strings.Contains(string(rest), `"result"`) != (tc.made == 1) {
			t.Errorf("after a call was taken back %s, %d ran; the client got %q", tc.name, made, rest)
		}
	}
	// A call that is taken back ends before anybody has decided on it.
	stream, _ := h.ask(holds, 9, own)
	takes.send(h.client, http.MethodPost, "/mcp/"+h.server.slug, h.caller, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`, own...)
	if _, err := io.ReadAll(stream); err != nil {
		t.Errorf("the stream of a call that was taken back: %v", err)
	}
}
