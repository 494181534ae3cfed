package platformapi

import (
	"net/http"
	"strings"
	"testing"
)

func TestClientSnippets(t *testing.T) {
	a := newAPI(t)
	a.server(a.adam, "Tracker", a.entry(a.adam, nil))
	got := a.do(a.alice, http.MethodGet, "/api/clients/snippets?server=tracker", nil).want(http.StatusOK)
	if got["server"] != "tracker" || got["url"] != publicURL+"/mcp/tracker" {
		t.Errorf("%v", got)
	}
	first := got["data"].([]any)[0].(object)
	if first["client"] != "claude-code" || first["text"] != "claude mcp add --transport http tracker "+publicURL+"/mcp/tracker" || first["name"] == "" || first["where"] == "" {
		t.Errorf("%v", first)
	}
	for path, status := range map[string]int{
		"?server=nothing": http.StatusNotFound, "": http.StatusUnprocessableEntity, "?server=": http.StatusUnprocessableEntity, "?server=Not%20one": http.StatusUnprocessableEntity,
		"?server=a&server=b": http.StatusUnprocessableEntity, "?server=" + strings.Repeat("a", 500): http.StatusUnprocessableEntity,
	} {
		a.do(a.alice, http.MethodGet, "/api/clients/snippets"+path, nil).want(status)
	}
	a.do(a.eve, http.MethodGet, "/api/clients/snippets?server=tracker", nil).want(http.StatusNotFound)
}

// TestPolicyWarnings checks that the author of a rule that asks for approval is warned when users have no page for
// approving.
func TestPolicyWarnings(t *testing.T) {
	a := newAPI(t)
	server := a.server(a.adam, "Tracker", a.entry(a.adam, nil))
	asking := object{"name": "asks", "mcp_server_id": server, "rules": []any{object{"name": "ask", "authorized": true, "actions": []string{"tools/call:delete:approve"}}}}
	warned := func(body object) bool {
		t.Helper()
		warnings, _ := body["warnings"].([]any)
		return len(warnings) == 1 && strings.Contains(warnings[0].(string), "`login_client`")
	}
	made := a.do(a.adam, http.MethodPost, "/api/v2/policies", asking).want(http.StatusCreated)
	path := "/api/v2/policies/" + made["policy"].(object)["id"].(string)
	if !warned(made) || !warned(a.do(a.adam, http.MethodPatch, path, object{"description": "d"}).want(http.StatusOK)) || !warned(a.do(a.adam, http.MethodGet, path, nil).want(http.StatusOK)) {
		t.Errorf("%v", made)
	}
	if got := a.do(a.adam, http.MethodPost, "/api/policy", asking).want(http.StatusOK); !warned(got) {
		t.Errorf("%v", got)
	}
	a.core.ApprovalClients = []string{"console"}
	if got := a.do(a.adam, http.MethodGet, path, nil).want(http.StatusOK); !warned(got) || !strings.Contains(got["warnings"].([]any)[0].(string), "`approval_clients`") {
		t.Errorf("with approval clients: %v", got)
	}
	a.core.ApprovalPage = true
	if got := a.do(a.adam, http.MethodGet, path, nil).want(http.StatusOK); got["warnings"] != nil {
		t.Errorf("with a page: %v", got)
	}
	a.core.ApprovalPage, a.core.ApprovalClients = false, nil
	for name, rule := range map[string]object{
		"a plain grant": {"name": "r", "authorized": true, "actions": []string{"tools/call:delete"}},
		"a denial":      {"name": "r", "authorized": false, "actions": []string{"tools/call:delete:approve"}},
	} {
		if got := a.do(a.adam, http.MethodPost, "/api/v2/policies", object{"name": name, "mcp_server_id": server, "rules": []any{rule}}).want(http.StatusCreated); got["warnings"] != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}
