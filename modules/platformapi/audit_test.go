package platformapi

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/storage"
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
		for _, r := range a.methods {
			if !slices.Contains([]auditClass{auditNone, auditRead}, r.audit) {
				got[r.method+" "+r.path] = r.event()
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestRefusedEntry: what was tried stands in the record of a refusal as it stands in that of a write, without values.
func TestRefusedEntry(t *testing.T) {
	q := &request{
		http: httptest.NewRequest(http.MethodPatch, "/", nil), call: &app.Call{Caller: &app.Caller{UserID: "u", Agent: "client"}},
		route:  &route{method: http.MethodPatch, path: policyPath, audit: auditAdminWrite},
		params: map[string]string{"policy_id": "p"},
	}
	want := storage.AuditEntry{
		Kind: storage.AuditAdmin, Event: "policy.update", UserID: "u", Client: "client", Outcome: "refused",
		Detail: map[string]any{"policy_id": "p", "status": 403},
	}
	if diff := cmp.Diff(want, q.refusedEntry(http.StatusForbidden)); diff != "" {
		t.Errorf("before the body is read (-want +got)\n%s", diff)
	}
	q.record = &storage.AuditEntry{Detail: map[string]any{"fields": []string{"name", "rules"}, "id": "x"}}
	want.Detail = map[string]any{"policy_id": "p", "status": 409, "fields": []string{"name", "rules"}}
	if diff := cmp.Diff(want, q.refusedEntry(http.StatusConflict)); diff != "" {
		t.Errorf("with the body (-want +got)\n%s", diff)
	}
}
