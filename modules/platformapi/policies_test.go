package platformapi

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/identity/authn"
)

// policy makes a policy and returns its id. Missing members of the body are taken from a policy that grants everything.
func (a *api) policy(who *authn.Caller, body object) string {
	a.t.Helper()
	full := object{"name": "Everything", "rules": []any{grant()}}
	for name, value := range body {
		full[name] = value
	}
	return a.do(who, http.MethodPost, "/api/v2/policies", full).want(http.StatusCreated)["policy"].(object)["id"].(string)
}

func (a *api) getPolicy(id string) object {
	a.t.Helper()
	return a.do(a.alice, http.MethodGet, "/api/v2/policies/"+id, nil).want(http.StatusOK)["policy"].(object)
}

func grant() object { return object{"name": "Grant", "authorized": true} }

func TestPolicyShape(t *testing.T) {
	a := newAPI(t)
	server := a.server(a.adam, "Tracker", a.entry(a.adam, nil))
	agent := a.agent(a.adam, "client")
	condition := object{"match": object{"all": object{"of": []any{object{"expr": "request.resource.attr.priority == 1"}}}}}
	w := a.do(a.adam, http.MethodPost, "/api/v2/policies", object{
		"name": "Sales", "description": "What sales may do", "support_contact": "help@acme.test", "tags": []string{"b", "a"}, "mcp_server_id": strings.ToUpper(server),
		"application_ids": []string{agent, agent}, "shadow": true, "organization_id": a.eve.OrganizationID, "rules_count": 99, "created_at": 7,
		"rules": []any{
			object{"name": "Write", "authorized": true, "actions": []string{"tools/call:create_issue", "tools/call:delete_issue:approve"}, "roles_groups": []string{"group:sales"},
				"condition": condition, "description": "d", "approval": "out_of_band"},
			object{"name": "Nothing else", "authorized": false, "active": false},
		},
	})
	made := w.want(http.StatusCreated)["policy"].(object)
	const at = "2026-03-01T12:00:00.000000Z"
	want := object{
		"id": made["id"], "organization_id": a.adam.OrganizationID, "name": "Sales", "description": "What sales may do", "support_contact": "help@acme.test",
		"tags": []any{"b", "a"}, "status": "DRAFT", "mcp_server_id": server, "mcp_server_name": "Tracker", "application_ids": []any{agent},
		"application_names": []any{"Name of client"}, "rules_count": 2.0, "shadow": true, "revision": 1.0, "created_at": at, "updated_at": at,
		"created_by_user_id": a.adam.UserID, "created_by_user_name": "adam", "updated_by_user_id": a.adam.UserID, "updated_by_user_name": "adam",
		"rules": []any{
			object{"name": "Write", "description": "d", "active": true, "authorized": true, "actions": []any{"tools/call:create_issue", "tools/call:delete_issue:approve"},
				"roles_groups": []any{"group:sales"}, "condition": object{"match": object{"all": object{"of": []any{object{"expr": "request.resource.attr.priority == 1"}}}}}, "approval": "out_of_band"},
			object{"name": "Nothing else", "active": false, "authorized": false, "actions": []any{"*"}, "roles_groups": []any{"*"}},
		},
	}
	if diff := cmp.Diff(want, made); diff != "" {
		t.Error(diff)
	}
	id := made["id"].(string)
	if diff := cmp.Diff(want, a.getPolicy(id)); diff != "" {
		t.Error(diff)
	}
	item := a.do(a.alice, http.MethodGet, "/api/v2/policies", nil).want(200)["data"].([]any)[0]
	if diff := cmp.Diff(object{
		"id": id, "name": "Sales", "status": "DRAFT", "mcp_server_id": server, "updated_at": at, "updated_by_user_id": a.adam.UserID, "mcp_server_name": "Tracker",
		"application_ids": []any{agent}, "application_names": []any{"Name of client"}, "tags": []any{"b", "a"}, "updated_by_user_name": "adam",
		"description": "What sales may do", "rules_count": 2.0,
	}, item); diff != "" {
		t.Error(diff)
	}
	// A record can be read, changed and sent back.
	made["description"] = "changed"
	back := a.do(a.adam, http.MethodPatch, "/api/v2/policies/"+id, made)
	if got := back.want(200)["policy"].(object); got["description"] != "changed" || got["revision"] != 2.0 || got["rules_count"] != 2.0 {
		t.Error(back.body)
	}
	empty := a.do(a.adam, http.MethodPost, "/api/v2/policies", object{"name": "Empty", "mcp_server_id": server}).want(201)["policy"].(object)
	for _, member := range []string{"tags", "application_ids", "application_names", "rules"} {
		if list, ok := empty[member].([]any); !ok || len(list) != 0 {
			t.Errorf("%s: %v", member, empty[member])
		}
	}
}

func TestPolicyProblems(t *testing.T) {
	a := newAPI(t)
	server := a.server(a.adam, "Tracker", a.entry(a.adam, nil))
	agent := a.agent(a.adam, "client")
	foreignServer, foreignAgent := a.server(a.eve, "Rival", a.entry(a.eve, nil)), a.agent(a.eve, "client")
	rule := func(members object) object {
		full := grant()
		for name, value := range members {
			full[name] = value
			if value == "absent" {
				delete(full, name)
			}
		}
		return object{"name": "x", "mcp_server_id": server, "rules": []any{full}}
	}
	for _, tt := range []struct {
		name string
		body any
		want []string
	}{
		{"an empty body", "", []string{"body missing"}},
		{"an array", "[]", []string{"body dict_type"}},
		{"nothing", object{}, []string{"body.name missing", "body.mcp_server_id missing"}},
		{"the old wrapper", object{"policies": []any{object{"resourcePolicy": object{}}}}, []string{"body.name missing", "body.mcp_server_id missing", "body.policies extra_forbidden"}},
		{"B04", object{"name": 1, "description": nil, "support_contact": []any{}, "tags": "a", "status": "LIVE", "mcp_server_id": "tracker", "application_ids": object{}, "rules": 7, "shadow": "yes"}, []string{
			"body.name string_type", "body.description string_type", "body.support_contact string_type", "body.tags list_type", "body.status enum",
			"body.mcp_server_id uuid_parsing", "body.application_ids list_type", "body.rules list_type", "body.shadow bool_type",
		}},
		{"B06 H08 names", object{"name": "a\nb", "mcp_server_id": server, "tags": []any{"", 1, "a\u0000"}}, []string{
			"body.name value_error", "body.tags.0 string_too_short", "body.tags.1 string_type", "body.tags.2 value_error",
		}},
		{"a long name", object{"name": strings.Repeat("ü", 256), "mcp_server_id": server}, []string{"body.name string_too_long"}},
		{"unknown members", object{"name": "x", "mcp_server_id": server, "rule": []any{}, "applicationIds": []any{}}, []string{"body.applicationIds extra_forbidden", "body.rule extra_forbidden"}},
		{"unknown members of a rule", rule(object{"authorised": true, "effect": "deny"}), []string{"body.rules.0.authorised extra_forbidden", "body.rules.0.effect extra_forbidden"}},
		{"B04 in a rule", rule(object{"name": "", "authorized": "absent", "active": nil, "actions": []any{}, "roles_groups": nil, "condition": nil, "approval": "in_band"}), []string{
			"body.rules.0.name string_too_short", "body.rules.0.active bool_type", "body.rules.0.authorized missing", "body.rules.0.actions too_short",
			"body.rules.0.roles_groups list_type", "body.rules.0.condition dict_type", "body.rules.0.approval enum",
		}},
		{"a status that is made later", object{"name": "x", "mcp_server_id": server, "status": "INACTIVE"}, []string{"body.status value_error"}},
		{"a shadow of what is active", object{"name": "x", "mcp_server_id": server, "status": "ACTIVE", "shadow": true}, []string{"body.shadow value_error"}},
		{"O02 references", object{"name": "x", "mcp_server_id": foreignServer, "application_ids": []any{agent, foreignAgent, agent, uuid.NewString()}}, []string{
			"body.mcp_server_id value_error", "body.application_ids.1 value_error", "body.application_ids.3 value_error",
		}},
		{"O02 references beside others", object{"name": 7, "mcp_server_id": foreignServer, "application_ids": []any{agent, "x", foreignAgent}}, []string{
			"body.mcp_server_id value_error", "body.application_ids.2 value_error", "body.name string_type", "body.application_ids.1 uuid_parsing",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a.t = t
			for _, path := range []string{"/api/v2/policies", "/api/policy"} {
				a.do(a.adam, http.MethodPost, path, tt.body).wantProblems(tt.want...)
			}
		})
	}
	a.t = t
	if total := a.do(a.adam, http.MethodGet, "/api/v2/policies", nil).want(200)["pagination"].(object)["total"]; total != 0.0 {
		t.Errorf("%v policies were made", total)
	}
	foreign := a.do(a.adam, http.MethodPost, "/api/v2/policies", object{"name": "x", "mcp_server_id": foreignServer, "application_ids": []string{foreignAgent}})
	random := a.do(a.adam, http.MethodPost, "/api/v2/policies", object{"name": "x", "mcp_server_id": uuid.NewString(), "application_ids": []string{uuid.NewString()}})
	if foreign.body != random.body {
		t.Errorf("O02 %s\n%s", foreign.body, random.body)
	}
	// References are named in one answer with what is wrong with the rules.
	w := a.do(a.adam, http.MethodPost, "/api/v2/policies", object{"name": "x", "mcp_server_id": foreignServer, "rules": []any{object{"name": "r", "authorized": true, "action": "*"}}})
	w.wantProblems("body.mcp_server_id value_error", "body.rules.0.action extra_forbidden")
}

func TestPolicyUpdates(t *testing.T) {
	a := newAPI(t)
	server, other := a.server(a.adam, "Tracker", a.entry(a.adam, nil)), a.server(a.adam, "Other", a.entry(a.adam, object{"name": "Other"}))
	first, second := a.agent(a.adam, "first"), a.agent(a.adam, "second")
	id := a.policy(a.adam, object{"name": "P", "mcp_server_id": server, "application_ids": []string{first, second}, "tags": []string{"t"}, "shadow": true})
	patch := func(body any) answer { return a.do(a.adam, http.MethodPatch, "/api/v2/policies/"+id, body) }
	for _, tt := range []struct {
		name  string
		body  object
		check func(object) bool
	}{
		{"nothing", object{}, func(p object) bool { return p["revision"] == 1.0 && p["name"] == "P" }},
		{"null application_ids", object{"application_ids": nil}, func(p object) bool { return len(p["application_ids"].([]any)) == 2 && p["revision"] == 1.0 }},
		{"the same server", object{"mcp_server_id": server}, func(p object) bool { return p["revision"] == 1.0 }},
		{"a name", object{"name": "Q"}, func(p object) bool { return p["name"] == "Q" && p["revision"] == 2.0 && p["rules_count"] == 1.0 }},
		{"rules", object{"rules": []any{}}, func(p object) bool { return p["rules_count"] == 0.0 && len(p["tags"].([]any)) == 1 }},
		{"activated", object{"status": "ACTIVE"}, func(p object) bool { return p["status"] == "ACTIVE" && p["shadow"] == false }},
		{"the same status", object{"status": "ACTIVE"}, func(p object) bool { return p["revision"] == 4.0 }},
		{"an explicit empty list", object{"application_ids": []string{}}, func(p object) bool { return len(p["application_ids"].([]any)) == 0 }},
		{"put to rest", object{"status": "INACTIVE"}, func(p object) bool { return p["status"] == "INACTIVE" }},
		{"archived", object{"status": "ARCHIVED"}, func(p object) bool { return p["status"] == "ARCHIVED" && p["revision"] == 7.0 }},
		{"still archived", object{"status": "ARCHIVED"}, func(p object) bool { return p["revision"] == 7.0 }},
	} {
		w := patch(tt.body)
		if p := w.want(200)["policy"].(object); !tt.check(p) {
			t.Errorf("%s: %s", tt.name, w.body)
		}
	}
	patch(object{"name": "R"}).wantProblems("path.policy_id value_error")
	patch(object{"status": "ACTIVE"}).wantProblems("body.status value_error")
	patch(object{"status": "DRAFT", "mcp_server_id": other, "rules": []any{1}}).wantProblems(
		"body.mcp_server_id value_error", "body.status value_error", "body.rules.0 dict_type")
	for _, elsewhere := range []string{a.server(a.eve, "Foreign", a.entry(a.eve, nil)), uuid.NewString()} {
		patch(object{"mcp_server_id": elsewhere}).wantProblems("body.mcp_server_id value_error")
	}
	id = a.policy(a.adam, object{"name": "P", "mcp_server_id": server}) // the name is free again
	patch(object{"status": "INACTIVE"}).wantProblems("body.status value_error")
	patch(object{"application_ids": []string{uuid.NewString()}}).wantProblems("body.application_ids.0 value_error")
	patch(object{"status": "ACTIVE", "shadow": true}).wantProblems("body.shadow value_error")
	patch(``).wantProblems("body missing")
	a.policy(a.adam, object{"name": "Taken", "mcp_server_id": server})
	patch(object{"name": "Taken"}).wantError(409, gateway.Conflict)
	if p := a.getPolicy(id); p["revision"] != 1.0 {
		t.Errorf("changed by what was refused: %v", p)
	}
	unknown := "/api/v2/policies/" + uuid.NewString()
	a.do(a.adam, http.MethodPatch, unknown, object{"name": 1}).wantProblems("body.name string_type")
	a.do(a.adam, http.MethodPatch, unknown, object{}).wantError(404, gateway.PolicyNotFound)
	a.do(a.adam, http.MethodPatch, "/api/v2/policies/x", object{"name": 1}).wantProblems("path.policy_id uuid_parsing", "body.name string_type")
}

func TestPolicyOverlap(t *testing.T) {
	a := newAPI(t)
	server, other := a.server(a.adam, "Tracker", a.entry(a.adam, nil)), a.server(a.adam, "Other", a.entry(a.adam, object{"name": "Other"}))
	first, second := a.agent(a.adam, "first"), a.agent(a.adam, "second")
	holder := a.policy(a.adam, object{"name": "Holder", "mcp_server_id": server, "status": "ACTIVE", "application_ids": []string{first}})
	everybody := a.policy(a.adam, object{"name": "Everybody", "mcp_server_id": server, "status": "ACTIVE"})
	wantHolder := func(w answer, id, name string) {
		t.Helper()
		got := w.wantError(409, gateway.Conflict)
		details := got["details"].(object)
		if details["policy_id"] != id || details["policy_name"] != name || !strings.Contains(got["message"].(string), name) {
			t.Error(w.body)
		}
	}
	draft := a.policy(a.adam, object{"name": "Draft", "mcp_server_id": server, "application_ids": []string{second, first}})
	wantHolder(a.do(a.adam, http.MethodPatch, "/api/v2/policies/"+draft, object{"status": "ACTIVE"}), holder, "Holder")
	wantHolder(a.do(a.adam, http.MethodPut, "/api/policy/enable?id="+draft, nil), holder, "Holder")
	wantHolder(a.do(a.adam, http.MethodPost, "/api/policy", object{"name": "Draft", "mcp_server_id": server, "status": "ACTIVE"}), holder, "Holder")
	wantHolder(a.do(a.adam, http.MethodPost, "/api/v2/policies", object{"name": "New", "mcp_server_id": server, "status": "ACTIVE"}), everybody, "Everybody")
	a.policy(a.adam, object{"name": "Elsewhere", "mcp_server_id": other, "status": "ACTIVE"})
	a.do(a.adam, http.MethodPut, "/api/policy/disable?id="+holder, nil).want(200)
	a.do(a.adam, http.MethodPatch, "/api/v2/policies/"+draft, object{"status": "ACTIVE"}).want(200)

	t.Run("validate", func(t *testing.T) {
		a.t = t
		for _, tt := range []struct {
			body object
			want object
		}{
			{object{"name": "Free"}, object{"name_is_unique": true, "no_overlap_if_active": true, "overlapping_policy_names": []any{}}},
			{object{"name": "Draft", "mcp_server_id": nil, "application_ids": nil}, object{"name_is_unique": false, "no_overlap_if_active": true, "overlapping_policy_names": []any{}}},
			{object{"name": "Draft", "exclude_policy_id": draft, "mcp_server_id": server, "application_ids": []string{first}}, object{"name_is_unique": true, "no_overlap_if_active": true, "overlapping_policy_names": []any{}}},
			{object{"name": "Free", "mcp_server_id": server, "application_ids": []string{first}}, object{"name_is_unique": true, "no_overlap_if_active": false, "overlapping_policy_names": []any{"Draft"}}},
			{object{"name": "Free", "mcp_server_id": server}, object{"name_is_unique": true, "no_overlap_if_active": false, "overlapping_policy_names": []any{"Everybody"}}},
			{object{"name": "Free", "mcp_server_id": server, "application_ids": []string{uuid.NewString()}, "rules": 1}, object{"name_is_unique": true, "no_overlap_if_active": true, "overlapping_policy_names": []any{}}},
			{object{"name": "Free", "mcp_server_id": uuid.NewString()}, object{"name_is_unique": true, "no_overlap_if_active": true, "overlapping_policy_names": []any{}}},
		} {
			if diff := cmp.Diff(tt.want, a.do(a.alice, http.MethodPost, "/api/v2/policies/validate", tt.body).want(200)); diff != "" {
				t.Errorf("%v: %s", tt.body, diff)
			}
		}
		a.do(a.alice, http.MethodPost, "/api/v2/policies/validate", object{"mcp_server_id": "x", "application_ids": []any{1}}).wantProblems(
			"body.name missing", "body.mcp_server_id uuid_parsing", "body.application_ids.0 string_type")
		got := a.do(a.eve, http.MethodPost, "/api/v2/policies/validate", object{"name": "Draft", "mcp_server_id": server, "application_ids": []string{first}}).want(200)
		if got["name_is_unique"] != true || got["no_overlap_if_active"] != true {
			t.Errorf("O05 another organization's: %v", got)
		}
	})
}

func TestSavePolicy(t *testing.T) {
	a := newAPI(t)
	server, other := a.server(a.adam, "Tracker", a.entry(a.adam, nil)), a.server(a.adam, "Other", a.entry(a.adam, object{"name": "Other"}))
	agent := a.agent(a.adam, "client")
	save := func(body any) answer { return a.do(a.adam, http.MethodPost, "/api/policy", body) }
	made := save(object{"name": "P", "mcp_server_id": server, "application_ids": []string{agent}}).want(200)
	if diff := cmp.Diff(object{}, made["success"]); diff != "" || made["created"] != true {
		t.Errorf("%v", made)
	}
	id := made["policy"].(object)["id"].(string)
	changed := save(object{"name": "P", "mcp_server_id": server, "description": "by name"}).want(200)
	if p := changed["policy"].(object); changed["created"] != false || p["id"] != id || p["description"] != "by name" || len(p["application_ids"].([]any)) != 1 {
		t.Errorf("%v", changed)
	}
	changed = save(object{"id": id, "name": "Q", "status": "ACTIVE"}).want(200)
	if p := changed["policy"].(object); changed["created"] != false || p["name"] != "Q" || p["status"] != "ACTIVE" {
		t.Errorf("%v", changed)
	}
	save(object{"name": "Q", "mcp_server_id": other}).wantError(409, gateway.Conflict)
	save(object{"name": "Q", "mcp_server_id": other, "application_ids": []string{uuid.NewString()}}).wantProblems("body.application_ids.0 value_error")
	save(object{"name": "Q", "mcp_server_id": uuid.NewString(), "status": "INACTIVE"}).wantProblems("body.status value_error", "body.mcp_server_id value_error")
	save(object{"id": uuid.NewString()}).wantError(404, gateway.PolicyNotFound)
	save(object{"id": "x"}).wantProblems("body.id uuid_parsing")
	save(object{"id": nil}).wantProblems("body.id string_type")
	save(object{"id": id, "mcp_server_id": other}).wantProblems("body.mcp_server_id value_error")
	save(object{"name": "Q", "mcp_server_id": server, "status": "DRAFT"}).wantProblems("body.status value_error")
	save(object{"id": id, "status": "ARCHIVED"}).want(200)
	save(object{"id": id, "name": "Z"}).wantProblems("body.id value_error")
	again := save(object{"name": "Q", "mcp_server_id": other}).want(200)
	if again["created"] != true || again["policy"].(object)["id"] == id {
		t.Errorf("an archived policy's name is not free: %v", again)
	}
}

func TestSwitchPolicies(t *testing.T) {
	a := newAPI(t)
	server := a.server(a.adam, "Tracker", a.entry(a.adam, nil))
	first, second := a.agent(a.adam, "first"), a.agent(a.adam, "second")
	one := a.policy(a.adam, object{"name": "One", "mcp_server_id": server, "application_ids": []string{first}})
	two := a.policy(a.adam, object{"name": "Two", "mcp_server_id": server, "application_ids": []string{second}})
	clash := a.policy(a.adam, object{"name": "Clash", "mcp_server_id": server, "application_ids": []string{second}})
	archived := a.policy(a.adam, object{"name": "Archived", "mcp_server_id": server})
	a.do(a.adam, http.MethodPatch, "/api/v2/policies/"+archived, object{"status": "ARCHIVED"}).want(200)
	foreign := a.policy(a.eve, object{"name": "One", "mcp_server_id": a.server(a.eve, "Tracker", a.entry(a.eve, nil))})
	statuses := func(want ...string) {
		t.Helper()
		var got []string
		for _, id := range []string{one, two, clash} {
			got = append(got, a.getPolicy(id)["status"].(string))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
	put := func(what string) answer { return a.do(a.adam, http.MethodPut, "/api/policy/"+what, nil) }
	a.do(a.adam, http.MethodPut, "/api/policy/enable", object{"ids": []string{one}}).wantProblems("body.ids extra_forbidden")
	a.do(a.adam, http.MethodPut, "/api/policy/enable", object{}).want(200)
	if diff := cmp.Diff(object{"enabledPolicies": 0.0}, put("enable").want(200)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(object{"disabledPolicies": 0.0}, put("disable").want(200)); diff != "" {
		t.Error(diff)
	}
	for _, unknown := range []string{foreign, uuid.NewString()} {
		put("enable?id="+one+"&id="+unknown).wantError(404, gateway.PolicyNotFound)
		put("enable?id="+unknown+"&id="+one).wantError(404, gateway.PolicyNotFound)
	}
	statuses("DRAFT", "DRAFT", "DRAFT") // O03
	put("enable?id=" + one + "&id=" + archived).wantProblems("query.id.1 value_error")
	put("enable?id=" + one + "&id=" + one + "&id=" + archived).wantProblems("query.id.2 value_error")
	put("enable?id="+one+"&id="+two+"&id="+clash).wantError(409, gateway.Conflict)
	statuses("DRAFT", "DRAFT", "DRAFT")
	if diff := cmp.Diff(object{"enabledPolicies": 2.0}, put("enable?id="+one+"&id="+two+","+one).want(200)); diff != "" {
		t.Error(diff)
	}
	put("enable?id=" + one).want(200)
	statuses("ACTIVE", "ACTIVE", "DRAFT")
	put("disable?id=" + one + "&id=" + clash).wantProblems("query.id.1 value_error")
	if diff := cmp.Diff(object{"disabledPolicies": 2.0}, put("disable?id="+one+"&id="+two).want(200)); diff != "" {
		t.Error(diff)
	}
	put("disable?id=" + one).want(200)
	statuses("INACTIVE", "INACTIVE", "DRAFT")
	put("disable?id=x&id=" + one).wantProblems("query.id.0 uuid_parsing")
	if got := a.do(a.eve, http.MethodGet, "/api/v2/policies/"+foreign, nil).want(200)["policy"].(object)["status"]; got != "DRAFT" {
		t.Errorf("another organization's: %v", got)
	}
}

func TestClonesAndRevisions(t *testing.T) {
	a := newAPI(t)
	server := a.server(a.adam, "Tracker", a.entry(a.adam, nil))
	id := a.policy(a.adam, object{"name": "P", "mcp_server_id": server, "status": "ACTIVE", "tags": []string{"t"}})
	clone := a.do(a.adam, http.MethodPost, "/api/v2/policies/"+id+"/clone", nil).want(200)["policy"].(object)
	if clone["name"] != "P Copy" || clone["status"] != "DRAFT" || clone["id"] == id || clone["rules_count"] != 1.0 || clone["revision"] != 1.0 {
		t.Errorf("%v", clone)
	}
	a.do(a.adam, http.MethodPost, "/api/v2/policies/"+id+"/clone", object{}).wantError(409, gateway.Conflict)
	again := a.do(a.adam, http.MethodPost, "/api/v2/policies/"+id+"/clone", nil).wantError(409, gateway.Conflict)
	if diff := cmp.Diff(`A policy of the name "P Copy" exists already: send {"name": ...} with another`, again["message"]); diff != "" {
		t.Error(diff)
	}
	named := a.do(a.adam, http.MethodPost, "/api/v2/policies/"+id+"/clone", object{"name": "P Copy"}).wantError(409, gateway.Conflict)
	if diff := cmp.Diff("A policy of that name exists already", named["message"]); diff != "" {
		t.Error(diff)
	}
	if got := a.do(a.adam, http.MethodPost, "/api/v2/policies/"+id+"/clone", object{"name": "Named"}).want(200)["policy"].(object)["name"]; got != "Named" {
		t.Error(got)
	}
	a.do(a.adam, http.MethodPost, "/api/v2/policies/"+id+"/clone", object{"name": ""}).wantProblems("body.name string_too_short")
	long := a.policy(a.adam, object{"name": strings.Repeat("ü", 255), "mcp_server_id": server})
	if got := a.do(a.adam, http.MethodPost, "/api/v2/policies/"+long+"/clone", nil).want(200)["policy"].(object)["name"]; got != strings.Repeat("ü", 250)+" Copy" {
		t.Error(got)
	}
	a.do(a.adam, http.MethodPost, "/api/v2/policies/"+uuid.NewString()+"/clone", nil).wantError(404, gateway.PolicyNotFound)

	a.do(a.adam, http.MethodPatch, "/api/v2/policies/"+id, object{"name": "Q", "tags": []string{}}).want(200)
	got := a.do(a.adam, http.MethodGet, "/api/v2/policies/"+id+"/revisions?limit=1", nil).want(200)
	if diff := cmp.Diff(object{
		"data": []any{object{
			"revision": 2.0, "policy_id": id, "created_at": "2026-03-01T12:00:00.000000Z", "user_id": a.adam.UserID, "user_name": "adam",
			"changes": []any{object{"field": "name", "before": "P", "after": "Q"}, object{"field": "tags", "before": []any{"t"}, "after": []any{}}},
		}},
		"pagination": object{"page": 1.0, "limit": 1.0, "total": 2.0, "pages": 2.0, "previous_page": nil, "next_page": 2.0},
	}, got); diff != "" {
		t.Error(diff)
	}
	first := a.do(a.adam, http.MethodGet, "/api/v2/policies/"+id+"/revisions?page=2&limit=1", nil).want(200)["data"].([]any)[0].(object)
	for _, change := range first["changes"].([]any) {
		if change.(object)["before"] != nil {
			t.Errorf("%v", change)
		}
	}
	a.do(a.adam, http.MethodGet, "/api/v2/policies/"+uuid.NewString()+"/revisions", nil).wantError(404, gateway.PolicyNotFound)
}

func TestPolicyLists(t *testing.T) {
	a := newAPI(t)
	server, other := a.server(a.adam, "Tracker", a.entry(a.adam, nil)), a.server(a.adam, "Other", a.entry(a.adam, object{"name": "Other"}))
	agent := a.agent(a.adam, "client")
	active := a.policy(a.adam, object{"name": "Alpha", "mcp_server_id": server, "status": "ACTIVE", "description": "100% sure"})
	draft := a.policy(a.adam, object{"name": "Beta", "mcp_server_id": other, "application_ids": []string{agent}, "support_contact": "help@acme.test"})
	for query, want := range map[string][]string{
		"": {"Alpha", "Beta"}, "?status=ACTIVE": {"Alpha"}, "?status=DRAFT,ARCHIVED": {"Beta"}, "?mcp_server_id=" + other: {"Beta"},
		"?mcp_server_id=" + other + "&mcp_server_id=" + server: {"Alpha", "Beta"}, "?agent_id=" + agent: {"Beta"}, "?agent_id=" + uuid.NewString(): nil,
		"?mcp_server_id=" + uuid.NewString(): nil, "?search=ALPHA": {"Alpha"}, "?search=" + draft: {"Beta"}, "?search=help%40acme": {"Beta"}, "?search=100%25": {"Alpha"},
		"?search=%25%25": nil, "?search=" + active[:8] + "x": nil, "?status=INACTIVE": nil,
	} {
		var got []string
		for _, item := range a.do(a.alice, http.MethodGet, "/api/v2/policies"+query, nil).want(200)["data"].([]any) {
			got = append(got, item.(object)["name"].(string))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	a.do(a.alice, http.MethodGet, "/api/v2/policies?status=active&mcp_server_id=tracker&agent_id=x&limit=101", nil).wantProblems(
		"query.limit less_than_equal", "query.status.0 enum", "query.mcp_server_id.0 uuid_parsing", "query.agent_id.0 uuid_parsing")
	if diff := cmp.Diff(object{"active": 1.0, "draft": 1.0, "inactive": 0.0, "archived": 0.0, "total": 2.0},
		a.do(a.alice, http.MethodGet, "/api/v2/policies/summary", nil).want(200)); diff != "" {
		t.Error(diff)
	}
	if got := a.do(a.eve, http.MethodGet, "/api/v2/policies/summary", nil).want(200); got["total"] != 0.0 {
		t.Errorf("O04 %v", got)
	}
	w := a.do(a.alice, http.MethodGet, "/api/v2/policies/filter-definitions", nil)
	w.wantStatus(200)
	want := `[{"id":"status","label":"Status","options":[{"value":"DRAFT","label":"Draft"},{"value":"ACTIVE","label":"Active"},` +
		`{"value":"INACTIVE","label":"Inactive"},{"value":"ARCHIVED","label":"Archived"}]},` +
		`{"id":"mcp_server_id","label":"MCP server","options":[{"value":"` + other + `","label":"Other"},{"value":"` + server + `","label":"Tracker"}]},` +
		`{"id":"agent_id","label":"Agent","options":[{"value":"` + agent + `","label":"Name of client"}]}]`
	if w.body != want {
		t.Error(w.body)
	}
	t.Run("O01 O15 another organization's", func(t *testing.T) {
		a.t = t
		for _, c := range []struct{ method, path string }{
			{"GET", "/api/v2/policies/"}, {"PATCH", "/api/v2/policies/"}, {"POST", "/api/v2/policies/%/clone"}, {"GET", "/api/v2/policies/%/revisions"},
			{"GET", "/api/agents/"}, {"DELETE", "/api/agents/"}, {"PUT", "/api/policy/enable?id="}, {"PUT", "/api/policy/disable?id="},
		} {
			at := func(id string) string {
				if before, after, ok := strings.Cut(c.path, "%"); ok {
					return before + id + after
				}
				return c.path + id
			}
			id := active
			if strings.HasPrefix(c.path, "/api/agents") {
				id = agent
			}
			foreign, unknown := a.do(a.eve, c.method, at(id), object{}), a.do(a.eve, c.method, at(uuid.NewString()), object{})
			if foreign.status != 404 || foreign.body != unknown.body {
				t.Errorf("%s %s: %d %s, unknown %s", c.method, c.path, foreign.status, foreign.body, unknown.body)
			}
		}
		a.do(a.eve, "POST", "/api/policy", object{"id": active, "name": "x"}).wantError(404, gateway.PolicyNotFound)
		for _, query := range []string{"search=" + active, "mcp_server_id=" + server, "agent_id=" + agent, ""} {
			if total := a.do(a.eve, "GET", "/api/v2/policies?"+query, nil).want(200)["pagination"].(object)["total"]; total != 0.0 {
				t.Errorf("O05 %s: %v", query, total)
			}
		}
		if p := a.getPolicy(active); p["revision"] != 1.0 {
			t.Errorf("changed: %v", p)
		}
	})
	t.Run("O15 a server made anew", func(t *testing.T) {
		a.t = t
		a.do(a.adam, "DELETE", "/api/servers/"+server, nil).want(200)
		again := a.server(a.adam, "Tracker", a.do(a.adam, "POST", "/api/server-directory", object{"name": "New", "url": "https://new.example/"}).want(200)["id"].(string))
		if p := a.getPolicy(active); p["status"] != "ARCHIVED" || p["mcp_server_name"] != "" {
			t.Errorf("%v", p)
		}
		if total := a.do(a.adam, "GET", "/api/v2/policies?mcp_server_id="+again, nil).want(200)["pagination"].(object)["total"]; total != 0.0 {
			t.Errorf("the new server has %v policies", total)
		}
		a.do(a.adam, "POST", "/api/v2/policies/"+active+"/clone", nil).wantProblems("path.policy_id value_error")
	})
}
