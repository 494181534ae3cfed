package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

// over waits until a job is over and returns it.
func (g *gateway) over(t *testing.T, token, id string) (job members) {
	t.Helper()
	rig.Eventually(t, "the job to be over", func() bool {
		job = g.object(token, http.MethodGet, "/api/jobs/"+id, nil)
		return job["state"] != "queued" && job["state"] != "running"
	})
	return job
}

// TestJobs checks that a draft is replayed and a smart model evaluated as jobs: what they find, who may see them, that they
// survive a restart and can be followed.
func TestJobs(t *testing.T) {
	t.Parallel()
	const base = "/api/llm-gateway"
	g := startGateway(t, settings{identity: namedRoles})
	s := g.createServer(newMCPServer(t, nil).url, nil)
	user := g.token(alice)
	session := g.initialize(user, s)
	for i := range 5 {
		tool := []string{"echo", "upper"}[i%2]
		g.mcp(user, s, session, fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":%q,"arguments":{"text":"x"}}}`, tool)).want(t, http.StatusOK)
	}
	draft := g.draftFor(s, "No upper", members{"name": "all", "authorized": true}, members{"name": "no upper", "authorized": false, "actions": []string{"tools/call:upper"}})
	as := func(role string) string {
		return g.token(bob.with(claims{"roles": []string{role}, "sub": "0190bbbb-0000-7000-8000-0000000000" + map[string]string{"auditor": "a1", "editor": "a2", "operator": "a3"}[role]}))
	}
	editor, boss := as("editor"), g.token(admin)
	replay := "/api/v2/policies/" + draft + "/replay"
	for _, who := range []string{user, as("operator"), as("auditor")} {
		g.send(http.MethodPost, replay, who, nil).wantError(t, http.StatusForbidden, "Forbidden")
	}
	g.send(http.MethodPost, replay, g.token(eve.with(claims{"roles": []string{"editor"}})), nil).wantError(t, http.StatusNotFound, "PolicyNotFound")
	start := func() string {
		t.Helper()
		return g.object(editor, http.MethodPost, replay, members{"examples": 1})["id"].(string)
	}
	id := start()
	job := g.over(t, editor, id)
	result, _ := job["result"].(members)
	if job["state"] != "done" || result["calls"] != 5.0 || result["newly_denied"] != 2.0 || result["same"] != 3.0 || result["policy_id"] != draft {
		t.Fatalf("%v", job)
	}
	denied := result["examples"].(members)["deny"].([]any)
	if len(denied) != 1 || denied[0].(members)["name"] != "upper" || denied[0].(members)["new"].(members)["rule"] != "no upper" || denied[0].(members)["former"].(members)["decision"] != "allow" {
		t.Errorf("%v", denied)
	}
	if groups := result["groups"].([]any); len(groups) != 1 || groups[0].(members)["calls"] != 2.0 {
		t.Errorf("%v", groups)
	}
	future := g.send(http.MethodPost, replay, editor, members{"since": "2999-01-01T00:00:00Z"}).want(t, http.StatusUnprocessableEntity)
	if !strings.Contains(string(future.body), "in the past") {
		t.Errorf("%s", future.body)
	}

	for _, who := range []string{as("auditor"), boss} {
		g.api(who, http.MethodGet, "/api/jobs/"+id, nil)
	}
	g.send(http.MethodGet, "/api/jobs/"+id, user, nil).wantError(t, http.StatusForbidden, "Forbidden")
	g.send(http.MethodGet, "/api/jobs/"+id, as("operator"), nil).wantError(t, http.StatusForbidden, "Forbidden")
	rival := g.token(eve.with(claims{"roles": []string{"admin"}}))
	g.send(http.MethodGet, "/api/jobs/"+id, rival, nil).wantError(t, http.StatusNotFound, "NotFound")
	g.send(http.MethodDelete, "/api/jobs/"+id, rival, nil).wantError(t, http.StatusNotFound, "NotFound")
	g.send(http.MethodDelete, "/api/jobs/"+id, as("auditor"), nil).wantError(t, http.StatusForbidden, "Forbidden")
	g.send(http.MethodDelete, "/api/jobs/"+id, editor, nil).wantError(t, http.StatusConflict, "Conflict")

	// As events until it is over, and after a restart, which does not lose one that was just asked for.
	g.follows(t, editor, start())
	id = start()
	g.restart()
	if job := g.over(t, editor, id); job["state"] != "done" {
		t.Errorf("%v", job)
	}
	if listed := g.object(editor, http.MethodGet, "/api/jobs?limit=2", nil); len(listed["data"].([]any)) != 2 || listed["next_cursor"] == nil || listed["data"].([]any)[0].(members)["id"] != id {
		t.Errorf("%v", listed)
	}
	if listed := g.object(boss, http.MethodGet, "/api/jobs", nil); len(listed["data"].([]any)) != 0 {
		t.Errorf("another's jobs are listed: %v", listed)
	}

	// The determiner of the smart model is asked, and nothing else of the examples is sent anywhere.
	model := newUpstream(t, func(w http.ResponseWriter, _ *http.Request, body []byte) {
		said := "0"
		if strings.Contains(string(body), `The request:\n\"hard`) {
			said = "1"
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(members{
			"id": "c", "object": "chat.completion", "model": "s",
			"choices": []any{members{"index": 0, "finish_reason": "stop", "message": members{"role": "assistant", "content": said}}},
			"usage":   members{"prompt_tokens": 100, "completion_tokens": 1, "total_tokens": 101},
		})
	})
	provider := g.object(boss, http.MethodPost, base+"/admin/providers", members{"name": "Models", "kind": "openai", "api_key": "sk-very-secret", "base_url": model.server.URL + "/v1"})
	for _, alias := range []string{"judge", "small", "large"} {
		g.api(boss, http.MethodPost, base+"/admin/model-mappings", members{"model_alias": alias, "targets": []any{members{"provider_id": provider["id"], "model": "up-" + alias}}})
	}
	two := g.object(boss, http.MethodPost, smartModels, members{
		"model_alias": "two", "determiner_model_alias": "judge", "slots": []any{members{"model_alias": "small", "label": "easy"}, members{"model_alias": "large", "label": "hard"}},
		"context_breakpoints": []int{1000},
	})["id"].(string)
	examples := members{"examples": []any{
		members{"input": "easy", "slot": 0}, members{"input": "hard one", "label": "hard"}, members{"input": "hard two", "slot": 0},
		members{"messages": []any{members{"role": "user", "content": strings.Repeat("long ", 2000)}}, "slot": 1},
	}}
	g.send(http.MethodPost, smartModels+"/"+two+"/eval", editor, examples).wantError(t, http.StatusForbidden, "Forbidden")
	g.send(http.MethodPost, smartModels+"/"+two+"/eval", rival, examples).wantError(t, http.StatusNotFound, "NotFound")
	id = g.object(boss, http.MethodPost, smartModels+"/"+two+"/eval", examples)["id"].(string)
	job = g.over(t, boss, id)
	result, _ = job["result"].(members)
	if job["state"] != "done" || fmt.Sprint(result["confusion"]) != "[[1 1] [0 2]]" || result["right"] != 3.0 || result["high"] != 1.0 || result["asked"] != 3.0 {
		t.Errorf("%v", job)
	}
	g.send(http.MethodGet, "/api/jobs/"+id, editor, nil).wantError(t, http.StatusNotFound, "NotFound")
	model.mu.Lock()
	defer model.mu.Unlock()
	for _, r := range model.requests {
		if !strings.Contains(r.body, `"model":"up-judge"`) {
			t.Errorf("a model got %s", r.body)
		}
	}
	if len(model.requests) != 3 {
		t.Errorf("%d questions", len(model.requests))
	}
}

// follows wants the event stream of a job to end with it.
func (g *gateway) follows(t *testing.T, token, id string) {
	t.Helper()
	text := string(g.send(http.MethodGet, "/api/jobs/"+id, token, nil, "Accept", "text/event-stream").want(t, http.StatusOK).body)
	events := strings.Split(strings.TrimSuffix(text, "\n\n"), "\n\n")
	last, _ := strings.CutPrefix(events[len(events)-1], "event: job\ndata: ")
	var job members
	if err := json.Unmarshal([]byte(last), &job); err != nil || job["state"] != "done" || job["id"] != id {
		t.Errorf("%v: %s", err, text)
	}
}

// TestSuggestedPolicy checks that a policy from recorded calls, put to use as it is given, lets the same calls through and
// nothing beside them.
func TestSuggestedPolicy(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{identity: namedRoles})
	s := g.createServer(newMCPServer(t, nil).url, nil)
	editor, users := g.token(bob.with(claims{"roles": []string{"editor"}})), map[string]string{"alice": g.token(alice), "bob": g.token(bob)}
	call := func(user, tool string) string {
		t.Helper()
		return string(g.mcp(users[user], s, g.initialize(users[user], s), fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":%q,"arguments":{"text":"x"}}}`, tool)).want(t, http.StatusOK).body)
	}
	call("alice", "echo")
	call("bob", "upper")
	var ids []any
	for _, one := range g.object(g.token(admin), http.MethodGet, "/api/audit?kind=call&tool=echo", nil)["data"].([]any) {
		ids = append(ids, one.(members)["id"])
	}
	const path = "/api/v2/policies/suggest"
	for _, who := range []string{users["alice"], g.token(bob.with(claims{"roles": []string{"operator"}})), g.token(bob.with(claims{"roles": []string{"auditor"}}))} {
		g.send(http.MethodPost, path, who, members{"audit_ids": ids}).wantError(t, http.StatusForbidden, "Forbidden")
	}
	suggested := g.object(editor, http.MethodPost, path, members{"audit_ids": ids})
	policy, _ := suggested["policy"].(members)
	if suggested["calls"] != 1.0 || policy["status"] != "DRAFT" {
		t.Fatalf("%v", suggested)
	}
	active := g.object(editor, http.MethodGet, "/api/v2/policies?status=ACTIVE", nil)["data"].([]any)[0].(members)["id"].(string)
	g.api(editor, http.MethodPut, "/api/policy/disable?id="+active, nil)
	var made struct{ Policy struct{ ID string } }
	g.api(editor, http.MethodPost, "/api/v2/policies", policy).decode(t, &made)
	g.api(editor, http.MethodPut, "/api/policy/enable?id="+made.Policy.ID, nil)
	if got := call("alice", "echo"); strings.Contains(got, "error") {
		t.Errorf("the recorded call: %s", got)
	}
	for user, tool := range map[string]string{"alice": "upper", "bob": "echo"} {
		if got := call(user, tool); !strings.Contains(got, "Unknown tool") && !strings.Contains(got, "Denied by policy") {
			t.Errorf("%s may call %s: %s", user, tool, got)
		}
	}
}
