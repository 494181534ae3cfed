package gatewayapi

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/storage"
)

func TestLimitBody(t *testing.T) {
	a := newAPI(t)
	made := a.do(a.adam, http.MethodPost, "/admin/rate-limits", object{
		"name": "Team", "scope_type": "team", "scope_value": "blue", "requests_per_minute": 0, "org_id": a.eve.OrganizationID, "more": true,
	})
	const stamped = `"created_at":"2026-03-01T12:00:00.000000Z","updated_at":"2026-03-01T12:00:00.000000Z"}`
	shown := `{"id":"ID","org_id":"` + a.adam.OrganizationID + `","name":"Team","scope_type":"team","scope_id":null,"scope_value":"blue","traffic_type":"all",` +
		`"enabled":true,"requests_per_minute":0,"tokens_per_minute":null,` + stamped
	made.wantBody(shown)
	id := made.want(200)["id"].(string)
	path := "/admin/rate-limits/" + id
	a.do(a.adam, http.MethodGet, path, nil).wantBody(shown)
	a.do(a.adam, http.MethodGet, "/admin/rate-limits", nil).wantBody("[" + shown + "]")
	// Absent keeps, null clears, a value sets.
	for _, tt := range []struct {
		change           object
		requests, tokens any
	}{
		{object{}, 0.0, nil},
		{object{"tokens_per_minute": 5}, 0.0, 5.0},
		{object{"requests_per_minute": nil}, nil, 5.0},
		{object{"requests_per_minute": 7, "tokens_per_minute": nil}, 7.0, nil},
	} {
		got := a.do(a.adam, http.MethodPut, path, tt.change).want(200)
		if got["requests_per_minute"] != tt.requests || got["tokens_per_minute"] != tt.tokens || got["name"] != "Team" || got["scope_value"] != "blue" {
			t.Errorf("%v: %v", tt.change, got)
		}
	}
	a.do(a.adam, http.MethodPut, path, object{"requests_per_minute": nil}).wantBad("requests_per_minute: Value error, give requests_per_minute or tokens_per_minute")
	a.do(a.adam, http.MethodPut, path, object{"name": nil, "enabled": nil, "traffic_type": "x", "scope_type": nil, "requests_per_minute": -1}).
		wantBad("name", "enabled", "traffic_type", "scope_type", "requests_per_minute")
	if got := a.do(a.adam, http.MethodPut, path, object{"scope_type": "user", "scope_value": nil, "scope_id": a.alice.UserID, "enabled": false}).want(200); got["scope_id"] != a.alice.UserID || got["scope_value"] != nil || got["enabled"] != false {
		t.Errorf("%v", got)
	}
	// The same scope and traffic is taken; other traffic is not.
	other := a.make(a.adam, "/admin/rate-limits", object{"name": "b", "scope_type": "user", "scope_id": a.alice.UserID, "traffic_type": "llm", "requests_per_minute": 1})
	a.do(a.adam, http.MethodPost, "/admin/rate-limits", object{"name": "c", "scope_type": "user", "scope_id": a.alice.UserID, "requests_per_minute": 1}).wantError(409, gateway.Conflict)
	a.do(a.adam, http.MethodPut, "/admin/rate-limits/"+other, object{"traffic_type": "all"}).wantError(409, gateway.Conflict)
	// The organization's scope can be named by its id, which is the same scope.
	a.make(a.adam, "/admin/rate-limits", object{"name": "o", "scope_type": "org", "scope_id": a.adam.OrganizationID, "requests_per_minute": 1})
	a.do(a.adam, http.MethodPost, "/admin/rate-limits", object{"name": "o", "scope_type": "org", "tokens_per_minute": 1}).wantError(409, gateway.Conflict)
	a.do(a.adam, http.MethodDelete, path, nil).wantBody(`{"deleted":true}`)
	a.do(a.adam, http.MethodDelete, path, nil).wantError(404, gateway.NotFound)
}

// TestLimitScopes checks attack T10 at its entrance: all 12 scopes, named by id, by value, by both and not at all, in
// all kinds of traffic.
func TestLimitScopes(t *testing.T) {
	a := newAPI(t)
	key := a.make(a.adam, "/admin/api-keys", object{"name": "k"})
	provider := a.models(a.adam, "small")
	for _, tt := range []struct {
		scope            string
		id               string // of one that is there, "" when the scope has no ids
		value            string
		apart            bool // may name none
		noValue, traffic string
	}{
		{scope: "org", apart: true},
		{scope: "team", value: "t"}, {scope: "role", value: "r"}, {scope: "group", value: "g"}, {scope: "project", value: "p"},
		{scope: "user", id: a.alice.UserID, value: "alice@example.test", apart: true},
		{scope: "api_key", id: key, apart: true},
		{scope: "agent", apart: true},
		{scope: "mcp_server", value: "tracker", apart: true, traffic: "llm"},
		{scope: "llm_provider", id: provider, value: "OpenAI", apart: true, traffic: "mcp"},
		{scope: "model", value: "gpt", apart: true, traffic: "mcp"},
		{scope: "model_alias", value: "small", apart: true, traffic: "mcp"},
	} {
		for _, traffic := range []string{"all", "llm", "mcp"} {
			for _, named := range []string{"none", "id", "value", "both", "unknown id"} {
				body := object{"name": "x", "scope_type": tt.scope, "traffic_type": traffic, "requests_per_minute": 1}
				good := traffic != tt.traffic
				switch named {
				case "none":
					good = good && tt.apart
				case "id":
					body["scope_id"] = tt.id
					if tt.id == "" {
						body["scope_id"] = uuid.NewString()
					}
					good = good && tt.id != ""
				case "value":
					body["scope_value"] = tt.value
					if tt.value == "" {
						body["scope_value"] = "x"
					}
					good = good && tt.value != ""
				case "both":
					body["scope_id"], body["scope_value"], good = a.alice.UserID, "x", false
				case "unknown id":
					body["scope_id"], good = uuid.NewString(), false
				}
				w := a.do(a.adam, http.MethodPost, "/admin/rate-limits", body)
				if want := map[bool]int{true: 200, false: 400}[good]; w.status != want {
					t.Errorf("T10 %s %s named by %s: %d %s", tt.scope, traffic, named, w.status, w.body)
				}
			}
		}
	}
	a.do(a.adam, http.MethodPost, "/admin/rate-limits", object{"name": "x", "scope_type": "planet", "requests_per_minute": 1}).wantBad("scope_type: Input should be one of")
	a.do(a.adam, http.MethodPost, "/admin/rate-limits", object{"name": "x", "scope_type": "org"}).wantBad("give requests_per_minute or tokens_per_minute")
	a.do(a.adam, http.MethodPost, "/admin/rate-limits", object{"scope_type": "org", "requests_per_minute": 1.5, "scope_id": "x"}).
		wantBad("name", "scope_id", "requests_per_minute: Input should be a valid integer")
	a.do(a.adam, http.MethodPost, "/admin/rate-limits", object{"name": "x", "scope_type": "mcp_server", "scope_value": "No Slug", "requests_per_minute": 1}).wantBad("scope_value")
}

// TestStatus checks attack T11: the numbers are those of the counters, and of the own organization.
func TestStatus(t *testing.T) {
	a := newAPI(t)
	pool := a.make(a.adam, "/admin/rate-limits", object{"name": "a pool", "scope_type": "org", "requests_per_minute": 4})
	a.make(a.adam, "/admin/rate-limits", object{"name": "b blocks", "scope_type": "group", "scope_value": "x", "tokens_per_minute": 0})
	a.make(a.adam, "/admin/rate-limits", object{"name": "c each", "scope_type": "user", "requests_per_minute": 10, "tokens_per_minute": 100})
	a.make(a.adam, "/admin/rate-limits", object{"name": "d off", "scope_type": "role", "scope_value": "x", "enabled": false, "requests_per_minute": 1})
	a.make(a.adam, "/admin/rate-limits", object{"name": "e aliases", "scope_type": "model_alias", "requests_per_minute": 8})
	a.make(a.eve, "/admin/rate-limits", object{"name": "theirs", "scope_type": "org", "requests_per_minute": 9})

	for user, calls := range map[string]int{a.alice.UserID: 3, a.adam.UserID: 1} {
		for range calls {
			matched, err := a.core.Admitter.Matched(t.Context(), a.adam.OrganizationID, &limit.Subject{Traffic: storage.TrafficLLM, UserID: user, Alias: "fast"})
			if err != nil {
				t.Fatal(err)
			}
			if _, refused, err := a.core.Admitter.Engine().Charge(t.Context(), matched, limit.Cost{Requests: 1}); err != nil || refused != nil {
				t.Fatalf("%v %v", refused, err)
			}
		}
	}
	got := a.do(a.adam, http.MethodGet, "/admin/rate-limits/status", nil).all()
	if len(got) != 4 {
		t.Fatalf("%v", got)
	}
	if fullest := got[3]["subjects"].(object)["fullest"].([]any)[0].(object); fullest["subject"] != "fast" || fullest["name"] != nil {
		t.Errorf("aliases: %v", got[3])
	}
	policy := got[0]["policy"].(object)
	if policy["id"] != pool || got[0]["rpm_used"] != 4.0 || got[0]["rpm_limit"] != 4.0 || got[0]["rpm_percentage"] != 100.0 || got[0]["subjects"] != nil {
		t.Errorf("pool: %v", got[0])
	}
	if got[0]["tpm_used"] != 0.0 || got[0]["tpm_limit"] != 0.0 || got[0]["tpm_percentage"] != 0.0 || policy["tokens_per_minute"] != nil {
		t.Errorf("a number that the policy lacks: %v", got[0])
	}
	if got[1]["tpm_percentage"] != 100.0 || got[1]["tpm_limit"] != 0.0 {
		t.Errorf("blocked: %v", got[1])
	}
	subjects := got[2]["subjects"].(object)
	if fullest := subjects["fullest"].([]any)[0].(object); got[2]["rpm_used"] != 3.0 || got[2]["rpm_percentage"] != 30.0 || subjects["active"] != 2.0 || fullest["rpm_used"] != 3.0 ||
		fullest["subject"] != a.alice.UserID || fullest["name"] != "alice" {
		t.Errorf("each: %v", got[2])
	}
	if theirs := a.do(a.eve, http.MethodGet, "/admin/rate-limits/status", nil); len(theirs.all()) != 1 || strings.Contains(theirs.body, a.adam.OrganizationID) || theirs.all()[0]["rpm_used"] != 0.0 {
		t.Errorf("T11 %s", theirs.body)
	}
}
