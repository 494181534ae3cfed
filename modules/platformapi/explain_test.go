package platformapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/identity/authn"
)

func TestExplain(t *testing.T) {
	a := newAPI(t)
	a.alice.Groups, a.alice.Roles = []string{"engineering"}, []string{"reader"}
	server := a.server(a.adam, "Tracker", a.entry(a.adam, nil))
	other := a.server(a.adam, "Other", a.entry(a.adam, object{"name": "Other"}))
	agent := a.agent(a.adam, "client")
	urgent := object{"match": object{"expr": "request.resource.attr.priority == 1"}}
	active := a.policy(a.adam, object{"name": "Active", "mcp_server_id": server, "status": "ACTIVE", "rules": []any{
		object{"name": "Engineers create", "authorized": true, "actions": []string{"tools/call:create_issue"}, "roles_groups": []string{"group:engineering"}},
		object{"name": "Nothing urgent", "authorized": false, "actions": []string{"tools/call:create_issue"}, "condition": urgent},
		object{"name": "Deleting asks", "authorized": true, "actions": []string{"tools/call:delete_issue:approve"}, "approval": "out_of_band"},
	}})
	draft := a.policy(a.adam, object{"name": "Draft", "mcp_server_id": server, "shadow": true, "rules": []any{
		object{"name": "All", "authorized": true, "actions": []string{"tools/call:*"}},
	}})
	scoped := a.policy(a.adam, object{"name": "Scoped", "mcp_server_id": server, "application_ids": []string{agent}, "rules": []any{}})
	machine := a.machine("acme", "batch")
	explain := func(who *authn.Caller, body object) object {
		t.Helper()
		full := object{"server": server, "action": "tools/call:create_issue"}
		if _, ok := body["mcp_server_id"]; ok {
			delete(full, "server")
		}
		for name, value := range body {
			full[name] = value
		}
		return a.do(who, http.MethodPost, "/api/v2/policies/explain", full).want(200)
	}
	got := explain(a.alice, object{"arguments": object{"priority": 2}})
	want := object{
		"decision": "allow", "certain": true, "reason": got["reason"], "hidden": false, "out_of_band": false, "approvers": []any{}, "rule": "Engineers create",
		"policy": object{"id": active, "name": "Active", "revision": 1.0}, "conditions": []any{
			object{"rule": "Nothing urgent", "expr": "request.resource.attr.priority == 1", "value": false, "error": nil},
		}, "displaced_policy_names": []any{}, "shadow": []any{},
		"mcp_server_id": server, "mcp_server_slug": "tracker", "action": "tools/call:create_issue", "user_id": a.alice.UserID, "agent_id": nil,
		"roles": []any{"reader"}, "groups": []any{"engineering"}, "roles_known": true, "notes": []any{},
	}
	if diff := cmp.Diff(want, got); diff != "" || got["reason"] == "" {
		t.Error(diff)
	}
	for _, tt := range []struct {
		name  string
		who   *authn.Caller
		body  object
		check func(object) bool
	}{
		{"by slug", a.alice, object{"server": "tracker"}, func(v object) bool { return v["mcp_server_id"] == server }},
		{"as policies name it", a.alice, object{"mcp_server_id": "tracker"}, func(v object) bool { return v["mcp_server_id"] == server }},
		{"a deny by its arguments", a.alice, object{"arguments": object{"priority": 1}}, func(v object) bool {
			conditions := v["conditions"].([]any)
			return v["decision"] == "deny" && v["rule"] == "Nothing urgent" && v["hidden"] == false && len(conditions) == 1 &&
				cmp.Equal(conditions[0], object{"rule": "Nothing urgent", "expr": "request.resource.attr.priority == 1", "value": true, "error": nil}) &&
				v["shadow"].([]any)[0].(object)["decision"] == "allow"
		}},
		{"not evaluable", a.alice, object{"arguments": object{}}, func(v object) bool {
			condition := v["conditions"].([]any)[0].(object)
			return v["decision"] == "deny" && condition["value"] == nil && condition["error"] != nil
		}},
		{"ask", a.alice, object{"action": "tools/call:delete_issue"}, func(v object) bool { return v["decision"] == "ask" && v["out_of_band"] == true }},
		{"hidden", a.alice, object{"action": "tools/call:drop"}, func(v object) bool { return v["decision"] == "deny" && v["hidden"] == true && v["rule"] == nil }},
		{"a stream is open", a.alice, object{"action": "sse/stream"}, func(v object) bool { return v["decision"] == "allow" && len(v["shadow"].([]any)) == 0 }},
		{"a draft", a.alice, object{"policy_id": draft, "server": nil, "action": "tools/call:drop"}, func(v object) bool {
			return v["decision"] == "allow" && v["policy"].(object)["id"] == draft && cmp.Equal(v["displaced_policy_names"], []any{"Active"}) && len(v["shadow"].([]any)) == 0
		}},
		{"a draft for another agent", a.alice, object{"policy_id": scoped}, func(v object) bool {
			return v["policy"].(object)["id"] == active && len(v["displaced_policy_names"].([]any)) == 0
		}},
		{"a draft for the agent", a.alice, object{"policy_id": scoped, "agent": agent}, func(v object) bool {
			return v["decision"] == "deny" && v["policy"].(object)["id"] == scoped && v["agent_id"] == agent
		}},
		{"a server without policies", a.alice, object{"mcp_server_id": other}, func(v object) bool { return v["decision"] == "deny" && v["policy"] == nil }},
		{"another user", a.adam, object{"user": a.alice.UserID}, func(v object) bool {
			return v["decision"] == "deny" && v["certain"] == true && v["roles_known"] == false && v["user_id"] == a.alice.UserID && len(v["notes"].([]any)) == 3
		}},
		{"another user whose groups decide", a.adam, object{"user": a.alice.UserID, "arguments": object{"priority": 2}}, func(v object) bool {
			return v["decision"] == "deny" && v["certain"] == false
		}},
		{"another user with groups", a.adam, object{"user_id": a.alice.UserID, "groups": []string{"engineering"}, "roles": []string{}, "arguments": object{"priority": 2}}, func(v object) bool {
			return v["decision"] == "allow" && v["certain"] == true && v["roles_known"] == true
		}},
		{"another user who is denied whatever their groups are", a.adam, object{"user_id": a.alice.UserID, "action": "tools/call:drop"}, func(v object) bool {
			return v["decision"] == "deny" && v["certain"] == true
		}},
		{"a machine, behind which nobody can be asked", a.adam, object{"user_id": machine, "action": "tools/call:delete_issue"}, func(v object) bool {
			return v["decision"] == "deny" && v["rule"] == "Deleting asks" && v["out_of_band"] == false
		}},
		{"null roles and groups are none given", a.alice, object{"roles": nil, "groups": nil, "arguments": object{"priority": 2}}, func(v object) bool { return v["decision"] == "allow" }},
		{"a resource with a blank", a.alice, object{"action": "resources/read:file:///a b"}, func(v object) bool { return v["decision"] == "deny" && v["hidden"] == true }},
		{"a resource whose name ends in a star", a.alice, object{"action": "resources/read:a*"}, func(v object) bool { return v["action"] == "resources/read:a*" }},
		{"oneself by id", a.alice, object{"user_id": a.alice.UserID, "arguments": object{"priority": 2}}, func(v object) bool { return v["decision"] == "allow" }},
		{"oneself with other groups", a.adam, object{"groups": []string{"engineering"}, "arguments": object{"priority": 2}}, func(v object) bool {
			return v["decision"] == "allow" && len(v["notes"].([]any)) == 1
		}},
	} {
		if got := explain(tt.who, tt.body); !tt.check(got) {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
	t.Run("several", func(t *testing.T) {
		a.t = t
		var calls []any
		var want []any
		for i := range 40 { // of two servers and a draft, in turns
			call := object{"server": []string{"tracker", "other"}[i%2], "action": "tools/call:create_issue", "arguments": object{"priority": i % 3}}
			if i%5 == 0 {
				call = object{"policy_id": draft, "action": "tools/call:drop"}
			}
			calls, want = append(calls, call), append(want, a.do(a.alice, http.MethodPost, "/api/v2/policies/explain", call).want(200))
		}
		got := a.do(a.alice, http.MethodPost, "/api/v2/policies/explain", object{"calls": calls}).want(200)
		if diff := cmp.Diff(object{"data": want}, got); diff != "" {
			t.Error(diff)
		}
		ask := func(body object) answer { return a.do(a.alice, http.MethodPost, "/api/v2/policies/explain", body) }
		one := object{"server": server, "action": "sse/stream"}
		ask(object{"calls": []any{one, object{"server": server}, 1, object{"server": server, "action": "x", "tool": 1}}}).wantProblems(
			"body.calls.2 dict_type", "body.calls.1.action missing", "body.calls.3.action value_error", "body.calls.3.tool extra_forbidden")
		ask(object{"calls": []any{one}, "server": server}).wantProblems("body.server extra_forbidden")
		ask(object{"calls": []any{one}, "server": server, "action": "sse/stream"}).wantProblems("body.calls extra_forbidden")
		ask(object{"calls": []any{}}).wantProblems("body.calls too_short")
		ask(object{"calls": slices.Repeat([]any{one}, 501)}).wantProblems("body.calls too_long")
		if all := ask(object{"calls": slices.Repeat([]any{one}, 500)}).want(200)["data"].([]any); len(all) != 500 {
			t.Errorf("%d answers to 500 calls", len(all))
		}
		w := ask(object{"calls": []any{one, object{"server": uuid.NewString(), "action": "sse/stream"}}})
		w.wantError(404, gateway.ServerNotFound)
		if !strings.Contains(w.body, `"call":1`) {
			t.Errorf("which call? %s", w.body)
		}
		ask(object{"calls": []any{one, object{"server": server, "action": "sse/stream", "user_id": a.adam.UserID}}}).wantError(403, gateway.Forbidden)
		a.do(a.adam, http.MethodPost, "/api/v2/policies/explain", object{"calls": []any{one, object{"policy_id": draft, "server": other, "action": "sse/stream"}}}).
			wantProblems("body.calls.1.policy_id value_error")
	})
	a.t = t
	a.handler.streamsOpen = false
	if got := explain(a.alice, object{"action": "sse/stream"}); got["decision"] != "deny" {
		t.Errorf("a stream without the grant that is demanded: %v", got)
	}

	t.Run("refused", func(t *testing.T) {
		a.t = t
		ask := func(who *authn.Caller, body any) answer {
			return a.do(who, http.MethodPost, "/api/v2/policies/explain", body)
		}
		ask(a.alice, object{}).wantProblems("body.server missing", "body.action missing")
		ask(a.alice, object{"server": server, "mcp_server_id": server, "agent": nil, "agent_id": nil, "action": "sse/stream", "argument": object{}, "user_ID": a.alice.UserID}).wantProblems(
			"body.agent_id extra_forbidden", "body.argument extra_forbidden", "body.mcp_server_id extra_forbidden", "body.user_ID extra_forbidden")
		ask(a.alice, object{"mcp_server_id": "A B", "policy_id": "x", "agent_id": 1, "user_id": "y", "action": "tools/call:a*", "arguments": []any{}, "roles": "a"}).wantProblems(
			"body.policy_id uuid_parsing", "body.mcp_server_id uuid_parsing", "body.agent_id string_type", "body.user_id uuid_parsing", "body.roles list_type",
			"body.action value_error", "body.arguments dict_type")
		for action, reason := range map[string]string{
			"*": "name one call", "tools/list": "name one call", "sse": "name one call", "tools/call:": "names nothing", "resources/read:": "names nothing",
			"tools/call:x:approve": "leave it out", "tools/call:x*": "not a pattern", "tools/call:a b": "A-Z a-z 0-9",
		} {
			w := ask(a.alice, object{"server": server, "action": action})
			if w.wantProblems("body.action value_error"); !strings.Contains(w.body, reason) {
				t.Errorf("%s: %s", action, w.body)
			}
		}
		for _, body := range []object{{"user_id": a.adam.UserID}, {"roles": []string{"admin"}}, {"groups": []string{}}} {
			body["mcp_server_id"], body["action"] = server, "sse/stream"
			ask(a.alice, body).wantError(403, gateway.Forbidden)
		}
		ask(a.adam, object{"policy_id": draft, "mcp_server_id": other, "action": "sse/stream"}).wantProblems("body.policy_id value_error")
		for name, refusal := range map[string]gateway.ErrorName{
			"mcp_server_id": gateway.ServerNotFound, "policy_id": gateway.PolicyNotFound, "agent_id": gateway.AgentNotFound, "user_id": gateway.NotFound,
		} {
			foreign := map[string]string{"mcp_server_id": server, "policy_id": draft, "agent_id": agent, "user_id": a.alice.UserID}[name]
			own := a.server(a.eve, name, a.entry(a.eve, object{"name": name}))
			question := func(id string) object {
				body := object{"mcp_server_id": own, "action": "sse/stream"}
				body[name] = id
				return body
			}
			unknown := ask(a.eve, question(uuid.NewString()))
			unknown.wantError(404, refusal)
			if w := ask(a.eve, question(foreign)); w.body != unknown.body || w.status != 404 {
				t.Errorf("O02 %s: %d %s", name, w.status, w.body)
			}
		}
	})
}

// TestRuleProblems checks that a problem that internal/policy/engine finds has its place in the body, inside expressions too.
func TestRuleProblems(t *testing.T) {
	a := newAPI(t)
	server := a.server(a.adam, "Tracker", a.entry(a.adam, nil))
	w := a.do(a.adam, http.MethodPost, "/api/v2/policies", object{"name": "x", "mcp_server_id": server, "rules": []any{
		object{"name": "a", "authorized": true, "actions": []any{"tools/call:x:approve:approve", 1, "tools/call: x"}},
		object{"name": "a", "authorized": true, "roles_groups": []any{"role:"}},
		object{"name": "c", "authorized": true, "condition": object{"match": object{"all": object{"of": []any{object{"expr": "R.attr.a == 1"}, object{"expr": "R.attr.a ==\n  == 2"}}}}}},
	}})
	w.wantProblems("body.rules.0.actions.1 string_type", "body.rules.0.actions.0 value_error", "body.rules.0.actions.2 value_error",
		"body.rules.1.name value_error", "body.rules.1.roles_groups.0 value_error", "body.rules.2.condition.match.all.of.1.expr value_error")
	details := w.want(422)["detail"].([]any)
	last := details[len(details)-1].(object)
	if diff := cmp.Diff(object{"line": 2.0, "column": 3.0}, last["ctx"]); diff != "" || !strings.Contains(last["msg"].(string), "(line 2, column 3)") {
		t.Errorf("%s in %v", diff, last)
	}
	for _, text := range []string{
		"tools/call:x:approve:approve", "tools/call::approve", "tools/call:", "tools/call:x:approve:y", "tools/call:x:APPROVE", "tools/call: x", "tools/call:a*b",
		"Tools/call:x", "resources/read:", "resources/read:x:approve", "sse/stream:approve", "*:approve", "", "prompts/get:a*b",
	} {
		t.Run("M07 "+text, func(t *testing.T) {
			a.t = t
			a.do(a.adam, http.MethodPost, "/api/v2/policies", object{"name": "x", "mcp_server_id": server, "rules": []any{
				object{"name": "r", "authorized": true, "actions": []string{text}},
			}}).wantProblems("body.rules.0.actions.0 value_error")
		})
	}
	a.t = t
	a.do(a.adam, http.MethodPost, "/api/v2/policies", object{"name": "x", "mcp_server_id": server, "rules": []any{
		object{"name": "r", "authorized": false, "actions": []string{"tools/list"}},
	}}).wantProblems("body.rules.0.actions.0 value_error")
	if names := a.do(a.adam, http.MethodGet, "/api/v2/policies", nil).want(200)["data"].([]any); len(names) != 0 {
		t.Errorf("made: %v", names)
	}
}

// TestExplainConfirmation checks that the answer shows what an agent's write_confirmations_required demands: approval of
// every tool but those that say, as pinned and as seen last, that they only read.
func TestExplainConfirmation(t *testing.T) {
	a := newAPI(t)
	server := a.server(a.adam, "Tracker", a.entry(a.adam, nil))
	a.do(a.adam, http.MethodPost, "/api/policy", object{"name": "p", "mcp_server_id": server, "status": "ACTIVE", "rules": []any{
		object{"name": "all", "authorized": true, "actions": []string{"tools/call:*", "resources/read:*"}},
		object{"name": "asks", "authorized": true, "actions": []string{"tools/call:asked:approve"}, "approval": "out_of_band"},
		object{"name": "never", "authorized": false, "actions": []string{"tools/call:denied"}},
	}}).want(200)
	const reads = `,"annotations":{"readOnlyHint":true}}`
	a.observe(server, start, map[string]string{
		"read": `{"name":"read"` + reads, "turned": `{"name":"turned"}`, "was": `{"name":"was"` + reads, "asked": `{"name":"asked"` + reads, "denied": `{"name":"denied"}`,
		"says": `{"name":"says","annotations":{"readOnlyHint":"true"}}`, "quotes": `{"name":"quotes","description":"\"readOnlyHint\":true"}`, "write": `{"name":"write","annotations":{"readOnlyHint":false}}`,
	})
	a.observe(server, start.Add(time.Hour), map[string]string{"turned": `{"name":"turned"` + reads, "was": `{"name":"was"}`})
	strict := a.agent(a.adam, "strict")
	a.do(a.adam, http.MethodPatch, "/api/agents/"+strict, object{"write_confirmations_required": true}).want(200)
	lax := a.agent(a.adam, "lax")
	for action, want := range map[string]string{
		"tools/call:read": "allow all", "tools/call:turned": "ask write_confirmations_required", "tools/call:was": "ask write_confirmations_required",
		"tools/call:says": "ask write_confirmations_required", "tools/call:quotes": "ask write_confirmations_required", "tools/call:write": "ask write_confirmations_required",
		"tools/call:unknown": "ask write_confirmations_required", "tools/call:asked": "ask asks", "tools/call:denied": "deny never", "resources/read:file:///x": "allow all",
	} {
		for agent, want := range map[any]string{strict: want, lax: strings.Replace(want, "ask write_confirmations_required", "allow all", 1), nil: strings.Replace(want, "ask write_confirmations_required", "allow all", 1)} {
			got := a.do(a.adam, http.MethodPost, policiesPath+"/explain", object{"server": "tracker", "action": action, "agent": agent}).want(200)
			if said := fmt.Sprint(got["decision"], " ", got["rule"]); said != want || got["certain"] != true {
				t.Errorf("%s of agent %v: %s, want %s: %v", action, agent, said, want, got["reason"])
			}
		}
	}
}
