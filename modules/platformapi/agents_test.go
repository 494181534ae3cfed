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
	"github.com/durward-gateway/durward/storage"
)

// agent registers a client as an agent of the caller's organization and returns the agent's id.
func (a *api) agent(who *authn.Caller, client string) string {
	a.t.Helper()
	body := object{"application_directory": object{"external_id": client, "name": "Name of " + client}}
	return a.do(who, http.MethodPost, "/api/agents", body).want(http.StatusOK)["id"].(string)
}

func TestAgentShape(t *testing.T) {
	a := newAPI(t)
	made := a.do(a.adam, http.MethodPost, "/api/agents", object{
		"application_directory": object{
			"external_id": "client-1", "name": "Assistant", "description": "Answers mail", "public": true, "dcr": true, "post_login_success": true,
			"callbacks": []string{"https://assistant.example/callback"}, "unknown": 1,
		},
		"organization_id": a.eve.OrganizationID, "agent_type": "internal",
	}).want(http.StatusOK)
	of := made["application_directory"].(object)
	want := object{
		"id": made["id"], "created_at": "2026-03-01T12:00:00.000000Z", "updated_at": "2026-03-01T12:00:00.000000Z",
		"organization_id": a.adam.OrganizationID, "application_directory_id": of["id"], "agent_type": "external",
		"write_confirmations_required": false, "llm_gateway_enabled": false, "approval_channel": "out_of_band",
		"application_directory": object{
			"id": of["id"], "created_at": "2026-03-01T12:00:00.000000Z", "updated_at": "2026-03-01T12:00:00.000000Z", "name": "Assistant",
			"description": "Answers mail", "organization_id": a.adam.OrganizationID, "issuer": issuer, "external_id": "client-1", "public": true, "dcr": true,
			"post_login_success": true, "callbacks": []any{"https://assistant.example/callback"},
		},
	}
	if diff := cmp.Diff(want, made); diff != "" {
		t.Error(diff)
	}
	for _, id := range []any{made["id"], of["id"]} {
		if u, err := uuid.Parse(id.(string)); err != nil || u.Version() != 7 {
			t.Errorf("id %v", id)
		}
	}
	if diff := cmp.Diff(want, a.do(a.alice, http.MethodGet, "/api/agents/"+made["id"].(string), nil).want(200)); diff != "" {
		t.Error(diff)
	}
	// Tokens are matched with the issuer of the administrator.
	stored, err := a.store.AgentByClient(t.Context(), a.adam.OrganizationID, a.adam.Issuer, "client-1")
	if err != nil || stored.ID != made["id"] {
		t.Errorf("%v, %v", stored, err)
	}
	plain := a.do(a.adam, http.MethodPost, "/api/agents", object{
		"application_directory": object{"external_id": "client-2"}, "application_directory_id": nil,
		"write_confirmations_required": true, "llm_gateway_enabled": true, "approval_channel": "out_of_band",
	}).want(http.StatusOK)
	of = plain["application_directory"].(object)
	if plain["agent_type"] != "internal" || of["name"] != "client-2" || of["public"] != false || len(of["callbacks"].([]any)) != 0 ||
		plain["write_confirmations_required"] != true || plain["llm_gateway_enabled"] != true || plain["approval_channel"] != "out_of_band" {
		t.Errorf("%v", plain)
	}
	internal := a.do(a.adam, http.MethodPost, "/api/agents", object{"application_directory": object{"external_id": "client-3"}}).want(http.StatusOK)
	if internal["approval_channel"] != "in_band" {
		t.Errorf("an internal agent: %v", internal)
	}
}

func TestAgentCreationProblems(t *testing.T) {
	a := newAPI(t)
	registered := a.agent(a.adam, "client-1")
	application := a.do(a.adam, http.MethodGet, "/api/agents/"+registered, nil).want(200)["application_directory_id"].(string)
	foreign := a.do(a.eve, http.MethodGet, "/api/agents/"+a.agent(a.eve, "client-1"), nil).want(200)["application_directory_id"].(string)
	for _, tt := range []struct {
		name string
		body any
		want []string
	}{
		{"nothing", object{}, []string{"body.application_directory_id missing"}},
		{"two nulls", object{"application_directory_id": nil, "application_directory": nil}, []string{"body.application_directory_id missing"}},
		{"null", object{"application_directory": nil}, []string{"body.application_directory_id missing"}},
		{"an empty body", "", []string{"body missing"}},
		{"both", object{"application_directory_id": application, "application_directory": object{"external_id": "x"}}, []string{"body.application_directory value_error"}},
		{"no uuid", object{"application_directory_id": "x"}, []string{"body.application_directory_id uuid_parsing"}},
		{"B04", object{"application_directory_id": 1, "write_confirmations_required": "yes", "llm_gateway_enabled": nil, "approval_channel": "phone"}, []string{
			"body.application_directory_id string_type", "body.write_confirmations_required bool_type", "body.llm_gateway_enabled bool_type", "body.approval_channel enum",
		}},
		{"B04 inside", object{"application_directory": object{"external_id": 7, "public": "no", "dcr": nil, "post_login_success": 1, "callbacks": []any{1, ""}}}, []string{
			"body.application_directory.external_id string_type", "body.application_directory.public bool_type", "body.application_directory.dcr bool_type",
			"body.application_directory.post_login_success bool_type", "body.application_directory.callbacks.0 string_type", "body.application_directory.callbacks.1 string_too_short",
		}},
		{"no client", object{"application_directory": object{"name": "x"}}, []string{"body.application_directory.external_id missing"}},
		{"a client with a line break", object{"application_directory": object{"external_id": "a\nb"}}, []string{"body.application_directory.external_id string_pattern_mismatch"}},
		{"a long client", object{"application_directory": object{"external_id": strings.Repeat("x", 256)}}, []string{"body.application_directory.external_id string_too_long"}},
		{"a list", object{"application_directory": []any{}}, []string{"body.application_directory dict_type"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a.t = t
			a.do(a.adam, http.MethodPost, "/api/agents", tt.body).wantProblems(tt.want...)
		})
	}
	a.t = t
	w := a.do(a.adam, http.MethodPost, "/api/agents", object{"application_directory": object{"external_id": "client-1"}})
	if got := w.wantError(409, gateway.Conflict); got["details"].(object)["field"] != "external_id" {
		t.Error(w.body)
	}
	a.do(a.adam, http.MethodPost, "/api/agents", object{"application_directory_id": application}).wantError(409, gateway.Conflict)
	unknown := a.do(a.adam, http.MethodPost, "/api/agents", object{"application_directory_id": uuid.NewString()})
	unknown.wantError(404, gateway.AgentNotFound)
	if w := a.do(a.adam, http.MethodPost, "/api/agents", object{"application_directory_id": foreign}); w.body != unknown.body || w.status != 404 {
		t.Errorf("O02 %d %s", w.status, w.body)
	}
	// The client of that id at another issuer is another agent.
	elsewhere := storage.Agent{ID: uuid.NewString(), OrganizationID: a.adam.OrganizationID, CreatedAt: start, UpdatedAt: start, Application: storage.Application{
		ID: uuid.NewString(), OrganizationID: a.adam.OrganizationID, Issuer: "https://other.example.test", ExternalID: "client-9", CreatedAt: start, UpdatedAt: start,
	}}
	if err := a.store.CreateAgent(t.Context(), elsewhere); err != nil {
		t.Fatal(err)
	}
	same := object{"application_directory": object{"external_id": "client-9"}}
	made := a.do(a.adam, http.MethodPost, "/api/agents", same).want(http.StatusOK)["id"].(string)
	a.do(a.adam, http.MethodPost, "/api/agents", same).wantError(409, gateway.Conflict)
	for _, id := range []string{made, elsewhere.ID} {
		a.do(a.adam, http.MethodDelete, "/api/agents/"+id, nil).want(204)
	}
	// An application outlives its agent, and can be one again.
	a.do(a.adam, http.MethodDelete, "/api/agents/"+registered, nil).want(204)
	again := a.do(a.adam, http.MethodPost, "/api/agents", object{"application_directory_id": application}).want(200)
	if again["id"] == registered || again["application_directory"].(object)["external_id"] != "client-1" {
		t.Errorf("%v", again)
	}
	if got := a.do(a.adam, http.MethodGet, "/api/agents/counts", nil).want(200); got["all"] != 1.0 {
		t.Errorf("%v", got)
	}
}

func TestAgentLists(t *testing.T) {
	a := newAPI(t)
	for _, client := range []string{"b", "a", "c"} {
		a.agent(a.adam, client)
	}
	a.do(a.adam, http.MethodPost, "/api/agents", object{"application_directory": object{"external_id": "d%", "dcr": true, "description": "Only this one"}}).want(200)
	a.agent(a.eve, "foreign")
	names := func(query string) []string {
		t.Helper()
		var names []string
		body := a.do(a.alice, http.MethodGet, "/api/agents"+query, nil).want(200)
		for _, item := range body["data"].([]any) {
			names = append(names, item.(object)["application_directory"].(object)["external_id"].(string))
		}
		return names
	}
	for query, want := range map[string][]string{
		"": {"d%", "a", "b", "c"}, "?agent_type=external": {"d%"}, "?agent_type=internal": {"a", "b", "c"}, "?agent_type=internal,external": {"d%", "a", "b", "c"},
		"?search=NAME%20OF%20B": {"b"}, "?search=%25": {"d%"}, "?search=only%20this": {"d%"}, "?search=foreign": nil, "?limit=2&page=2": {"b", "c"}, "?page=9": nil,
	} {
		if got := names(query); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	page := a.do(a.alice, http.MethodGet, "/api/agents?limit=3", nil).want(200)["pagination"]
	if diff := cmp.Diff(object{"page": 1.0, "limit": 3.0, "total": 4.0, "pages": 2.0, "previous_page": nil, "next_page": 2.0}, page); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(object{"all": 4.0, "internal": 3.0, "external": 1.0}, a.do(a.alice, http.MethodGet, "/api/agents/counts", nil).want(200)); diff != "" {
		t.Error(diff)
	}
	a.do(a.alice, http.MethodGet, "/api/agents?agent_type=machine&limit=0", nil).wantProblems("query.limit greater_than_equal", "query.agent_type.0 enum")
	for _, id := range []string{"x", "COUNTS", "' OR 1=1 --"} {
		r := "/api/agents/" + strings.ReplaceAll(strings.ReplaceAll(id, " ", "%20"), "'", "%27")
		a.do(a.alice, http.MethodGet, r, nil).wantProblems("path.agent_id uuid_parsing")
	}
}

// TestDeletedAgents checks that a policy that named only a deleted agent is archived; no policy ever becomes one for
// everybody.
func TestDeletedAgents(t *testing.T) {
	a := newAPI(t)
	server := a.server(a.adam, "Tracker", a.entry(a.adam, nil))
	first, second := a.agent(a.adam, "first"), a.agent(a.adam, "second")
	alone := a.policy(a.adam, object{"name": "Alone", "mcp_server_id": server, "application_ids": []string{first}, "status": "ACTIVE"})
	both := a.policy(a.adam, object{"name": "Both", "mcp_server_id": server, "application_ids": []string{first, second}})
	a.do(a.adam, http.MethodDelete, "/api/agents/"+first, nil).want(204)
	a.do(a.adam, http.MethodDelete, "/api/agents/"+first, nil).wantError(404, gateway.AgentNotFound)
	a.do(a.adam, http.MethodGet, "/api/agents/"+first, nil).wantError(404, gateway.AgentNotFound)
	got := a.getPolicy(alone)
	if got["status"] != "ARCHIVED" || !cmp.Equal(got["application_ids"], []any{first}) || got["updated_by_user_id"] != a.adam.UserID {
		t.Errorf("%v", got)
	}
	if got := a.getPolicy(both); got["status"] != "DRAFT" || !cmp.Equal(got["application_ids"], []any{second}) || !cmp.Equal(got["application_names"], []any{"Name of second"}) {
		t.Errorf("%v", got)
	}
	w := a.do(a.adam, http.MethodPost, "/api/v2/policies/"+alone+"/clone", nil)
	w.wantProblems("path.policy_id value_error")
}
