package platformapi

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/storage"
)

// TestSuggest checks with explain that a suggested policy allows each of the calls that it was made from, and neither
// another tool, nor another user, agent or server.
func TestSuggest(t *testing.T) {
	a := newAPI(t)
	trail := a.audited()
	entry := a.entry(a.adam, nil)
	server, other := a.server(a.adam, "Tracker", entry), a.server(a.adam, "Mail", entry)
	robot, stranger, gone := a.agent(a.adam, "robot"), a.agent(a.adam, "stranger"), a.agent(a.adam, "gone")
	editor := a.as(caller.Powers{PolicyEditor: true})
	n := 0
	call := func(user, agent, of, method, name, decision string, detail map[string]any) string {
		t.Helper()
		n++
		return a.append(trail, nil, storage.AuditEntry{
			At: start.Add(-time.Duration(n) * time.Second), Kind: storage.AuditCall, Event: "decision", UserID: user, AgentID: agent, ServerID: of, Server: "tracker",
			Method: method, Tool: name, Decision: decision, Roles: []string{}, Detail: detail,
		})
	}
	alice, adam := a.alice.UserID, a.adam.UserID
	ids := []string{
		call(alice, robot, server, "tools/call", "list", "allow", nil), call(alice, robot, server, "tools/call", "list", "allow", nil),
		call(alice, robot, server, "tools/call", "write", "deny", nil), call(adam, robot, server, "tools/call", "write", "ask", nil),
		call(alice, robot, server, "resources/subscribe", "file:///a/b", "allow", nil), call(alice, robot, server, "prompts/get", "greet", "allow", nil),
	}
	odd := []string{
		call(alice, robot, server, "prompts/get", "all*", "allow", nil), call(alice, robot, server, "resources/read", "file:///long", "allow", map[string]any{"name_bytes": 9000}),
		call("", robot, server, "tools/call", "list", "allow", nil), call(alice, robot, server, "tools/call", "de lete", "deny", nil), call(alice, gone, server, "tools/call", "secret", "allow", nil),
	}
	foreign := call(alice, robot, other, "tools/call", "list", "allow", nil)
	a.do(a.adam, http.MethodDelete, "/api/agents/"+gone, nil).want(http.StatusNoContent)
	suggest := func(body object) answer { return a.do(editor, http.MethodPost, policiesPath+"/suggest", body) }

	got := suggest(object{"audit_ids": append(append([]string{uuid.Must(uuid.NewV7()).String()}, ids...), odd...), "name": "Suggested"}).want(200)
	if got["calls"] != 6.0 || len(got["left_out"].([]any)) != 4 {
		t.Errorf("%v", got)
	}
	notes := fmt.Sprint(got["notes"])
	for _, text := range []string{"1 of the ids", "1 calls are left out: their agents", "1 of the calls were denied", "1 of the calls had to be approved", "arguments"} {
		if !strings.Contains(notes, text) {
			t.Errorf("the notes do not say %q: %s", text, notes)
		}
	}
	policy := got["policy"].(object)
	if policy["status"] != "DRAFT" || policy["mcp_server_id"] != server || fmt.Sprint(policy["application_ids"]) != "["+robot+"]" || len(policy["rules"].([]any)) != 2 {
		t.Errorf("%v", policy)
	}
	id := a.policy(editor, policy)
	decides := func(want, of, user, agent, action string) {
		t.Helper()
		got := a.do(a.adam, http.MethodPost, policiesPath+"/explain", object{"server": of, "policy_id": id, "action": action, "agent": agent, "user": user}).want(200)
		if got["decision"] != want {
			t.Errorf("%s by %s through %s is %v, want %s: %v", action, user, agent, got["decision"], want, got["reason"])
		}
	}
	for _, c := range []struct{ user, action string }{
		{alice, "tools/call:list"}, {alice, "tools/call:write"}, {adam, "tools/call:write"}, {alice, "resources/read:file:///a/b"}, {alice, "prompts/get:greet"},
	} {
		decides("allow", server, c.user, robot, c.action)
		decides("deny", server, c.user, stranger, c.action)
		decides("deny", server, a.machine("acme", "machine"), robot, c.action)
	}
	for _, action := range []string{"tools/call:lis", "tools/call:list2", "tools/call:List", "tools/call:secret", "resources/read:file:///a", "resources/read:file:///a/b/c", "prompts/get:all", "prompts/get:greet2"} {
		decides("deny", server, alice, robot, action)
	}
	decides("deny", server, adam, robot, "tools/call:list")
	a.do(editor, http.MethodPatch, policiesPath+"/"+id, object{"status": "ACTIVE"}).want(200)
	if got := a.do(a.adam, http.MethodPost, policiesPath+"/explain", object{"server": other, "action": "tools/call:list", "agent": robot, "user": alice}).want(200); got["decision"] != "deny" {
		t.Errorf("another server: %v", got)
	}

	// By a filter, and with a client that is no agent: the policy is for all, and its rules for that client alone.
	call(alice, "", server, "tools/call", "open", "allow", nil)
	got = suggest(object{"filter": object{"mcp_server_id": server, "tool": "open"}}).want(200)
	if policy := got["policy"].(object); got["calls"] != 1.0 || len(policy["application_ids"].([]any)) != 0 || !strings.Contains(fmt.Sprint(policy["rules"]), `P.agent == ""`) ||
		!strings.Contains(fmt.Sprint(got["notes"]), `P.agent == "" means every one`) {
		t.Errorf("%v", got)
	}
	if got := suggest(object{"audit_ids": []string{ids[0], ids[0]}}).want(200); got["calls"] != 1.0 || strings.Contains(fmt.Sprint(got["notes"]), "of no recorded call") {
		t.Errorf("an id that is named twice: %v", got)
	}
	if got := suggest(object{"filter": object{"mcp_server_id": server, "to": "2026-01-01T00:00:00Z"}}).want(200); got["policy"] != nil || got["calls"] != 0.0 {
		t.Errorf("an empty span: %v", got)
	}
	suggest(object{"audit_ids": []string{ids[0], foreign}}).wantProblems("body.audit_ids value_error")
	suggest(object{}).wantProblems("body.audit_ids value_error")
	suggest(object{"audit_ids": ids, "filter": object{"mcp_server_id": server}}).wantProblems("body.audit_ids value_error")
	suggest(object{"audit_ids": []string{uuid.NewString()}}).wantProblems("body.audit_ids.0 value_error")
	suggest(object{"filter": object{"tol": "list"}}).wantProblems("body.filter.mcp_server_id missing", "body.filter.tol extra_forbidden")
	theirs := a.do(a.eve, http.MethodPost, policiesPath+"/suggest", object{"audit_ids": ids}).want(200)
	if theirs["policy"] != nil || !strings.Contains(fmt.Sprint(theirs["notes"]), "6 of the ids") {
		t.Errorf("O01 %v", theirs)
	}
}
