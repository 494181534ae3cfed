package platformapi

import (
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/modules/app/routes"
)

// TestAuditEvents: what every route that writes is recorded as.
func TestAuditEvents(t *testing.T) {
	want := map[string]string{
		"POST /api/servers":                             "server.create",
		"PUT /api/servers/{server_id}":                  "server.update",
		"DELETE /api/servers/{server_id}":               "server.delete",
		"POST /api/servers/{server_id}/connect":         "server.connect",
		"DELETE /api/servers/{server_id}/connection":    "connection.delete",
		"POST /api/servers/by-slug/{slug}/connect":      "server.connect",
		"DELETE /api/servers/by-slug/{slug}/connection": "connection.delete",
		"POST /api/servers/{server_id}/tools/accept":    "server.tools.accept",
		"POST /api/server-directory":                    "directory_entry.create",
		"PUT /api/server-directory/{id}":                "directory_entry.update",
		"DELETE /api/server-directory/{id}":             "directory_entry.delete",
		"POST /api/agents":                              "agent.create",
		"DELETE /api/agents/{agent_id}":                 "agent.delete",
		"POST /api/policy":                              "policy.create",
		"PUT /api/policy/enable":                        "policy.enable",
		"PUT /api/policy/disable":                       "policy.disable",
		"POST /api/v2/policies":                         "policy.create",
		"PATCH /api/v2/policies/{policy_id}":            "policy.update",
		"POST /api/v2/policies/{policy_id}/clone":       "policy.clone",
		"POST /api/approvals/{approval_id}/approve":     "approval.approve",
		"POST /api/approvals/{approval_id}/deny":        "approval.deny",
		"POST /api/users/{user_id}/revoke":              "user.revoke",
	}
	got := make(map[string]string)
	for _, a := range table {
		for _, r := range a.Methods {
			if !slices.Contains([]routes.AuditClass{routes.AuditNone, routes.AuditRead}, r.Audit) {
				got[r.Method+" "+r.Path] = r.Event()
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestAuditFilters: a word that no record holds is a mistake, not an empty log.
func TestAuditFilters(t *testing.T) {
	a := newAPI(t)
	a.do(a.adam, http.MethodGet, "/api/audit?decision=foo&outcome=foo&kind=foo", nil).wantProblems(
		"query.kind.0 enum", "query.decision enum", "query.outcome enum")
	a.do(a.adam, http.MethodGet, "/api/audit?decision=allow&outcome=held&limit=0", nil).wantProblems("query.limit greater_than_equal")
}
