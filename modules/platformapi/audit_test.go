package platformapi

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/modules/app/routes"
)

// TestAuditEvents checks the event that every writing route records.
func TestAuditEvents(t *testing.T) {
	want := map[string]string{
		"POST /api/servers":                                         "server.create",
		"POST /api/servers/{server_id}/test":                        "server.test",
		"PUT /api/servers/{server_id}":                              "server.update",
		"DELETE /api/servers/{server_id}":                           "server.delete",
		"POST /api/servers/{server_id}/connect":                     "server.connect",
		"DELETE /api/servers/{server_id}/connection":                "connection.delete",
		"POST /api/servers/by-slug/{slug}/connect":                  "server.connect",
		"DELETE /api/servers/by-slug/{slug}/connection":             "connection.delete",
		"POST /api/servers/{server_id}/tools/accept":                "server.tools.accept",
		"DELETE /api/servers/{server_id}/registration":              "registration.delete",
		"POST /api/server-directory":                                "directory_entry.create",
		"PUT /api/server-directory/{id}":                            "directory_entry.update",
		"DELETE /api/organizations/{organization_id}":               "organization.delete",
		"DELETE /api/server-directory/{id}":                         "directory_entry.delete",
		"POST /api/agents":                                          "agent.create",
		"DELETE /api/servers/{server_id}/connections/{user_id}":     "connection.delete",
		"PATCH /api/agents/{agent_id}":                              "agent.update",
		"DELETE /api/agents/{agent_id}":                             "agent.delete",
		"POST /api/agents/{agent_id}/credentials":                   "agent_credential.create",
		"DELETE /api/agents/{agent_id}/credentials/{credential_id}": "agent_credential.delete",
		"POST /api/policy":                                          "policy.create",
		"PUT /api/policy/enable":                                    "policy.enable",
		"PUT /api/policy/disable":                                   "policy.disable",
		"POST /api/v2/policies":                                     "policy.create",
		"PATCH /api/v2/policies/{policy_id}":                        "policy.update",
		"POST /api/v2/policies/{policy_id}/clone":                   "policy.clone",
		"POST /api/approvals/{approval_id}/approve":                 "approval.approve",
		"POST /api/approvals/{approval_id}/deny":                    "approval.deny",
		"POST /api/users/{user_id}/revoke":                          "user.revoke",
		"POST /api/users/{user_id}/offboard":                        "user.offboard",
		"DELETE /api/sessions/{session_id}":                         "session.delete",
		"POST /api/tools/accept":                                    "tool.accept",
		"POST /api/v2/policies/{policy_id}/replay":                  "policy.replay",
		"POST /api/v2/policies/suggest":                             "policy.suggest",
		"POST /api/configuration/plan":                              "configuration.plan",
		"POST /api/configuration/apply":                             "configuration.apply",
		"DELETE /api/jobs/{job_id}":                                 "job.delete",
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

// TestAuditFilters checks that a word that no record holds is a mistake, not an empty log.
func TestAuditFilters(t *testing.T) {
	a := newAPI(t)
	a.do(a.adam, http.MethodGet, "/api/audit?decision=foo&outcome=foo&kind=foo", nil).wantProblems(
		"query.kind.0 enum", "query.decision enum", "query.outcome enum")
	// A filter that is misspelt does not match everything, here and in all that only administrators read.
	a.do(a.adam, http.MethodGet, "/api/audit?toool=x&limit=1&User_id=y", nil).wantProblems("query.User_id extra_forbidden", "query.toool extra_forbidden")
	for _, path := range []string{"/api/audit/export", "/api/organizations", "/api/refused-tokens"} {
		a.do(a.adam, http.MethodGet, path+"?x=1", nil).wantProblems("query.x extra_forbidden")
	}
	a.do(a.adam, http.MethodGet, "/api/servers?x=1", nil).want(200)
	a.do(a.adam, http.MethodGet, "/api/audit?limit=0&tool="+strings.Repeat("x", 8<<10), nil).wantProblems("query.limit greater_than_equal")
	a.do(a.adam, http.MethodGet, "/api/audit?tool="+strings.Repeat("x", 8<<10+1), nil).wantProblems("query.tool string_too_long")
	a.do(a.adam, http.MethodGet, "/api/audit?decision=allow&outcome=held&limit=0", nil).wantProblems("query.limit greater_than_equal")
}

// TestAuditSpan checks that without a beginning the log is read a week back from now, or from an end before that.
func TestAuditSpan(t *testing.T) {
	now := time.Date(2026, 3, 20, 12, 0, 0, 0, time.UTC)
	for query, want := range map[string][2]string{
		"":                          {"2026-03-13T12:00:00Z", "2026-03-20T12:00:01Z"},
		"to=9999-12-31T23:59:59Z":   {"2026-03-13T12:00:00Z", "9999-12-31T23:59:59Z"},
		"to=2026-03-10T00:00:00Z":   {"2026-03-03T00:00:00Z", "2026-03-10T00:00:00Z"},
		"from=2026-01-01T00:00:00Z": {"2026-01-01T00:00:00Z", "2026-03-20T12:00:01Z"},
	} {
		parsed, err := validate.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		q := &request{Request: &routes.Request{Query: parsed}, handler: &Handler{now: func() time.Time { return now }}}
		from, to := q.span()
		if got := [2]string{from.Format(time.RFC3339), to.Format(time.RFC3339)}; got != want {
			t.Errorf("%q: %v, want %v", query, got, want)
		}
	}
}
