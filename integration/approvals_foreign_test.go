package integration

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// demoPolicy returns the id of the policy of the demo server.
func (d *dev) demoPolicy(t *testing.T, token string) string {
	t.Helper()
	status, body := d.api(t, token, http.MethodGet, "/api/v2/policies")
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil || status != http.StatusOK || len(list.Data) != 1 {
		t.Fatalf("%d %s: %v", status, body, err)
	}
	return list.Data[0].ID
}

// TestApprovalsByOthers checks that people whom the policy names decide on a call, and nobody else does, the caller least of
// all.
func TestApprovalsByOthers(t *testing.T) {
	t.Parallel()
	d := newDevHome(t).start(t)
	d.connect(t, d.token(t), clientAccount)
	admin := d.tokenOf(t, "admin@example.test")
	policy := d.demoPolicy(t, admin)
	rules := func(approval string) string {
		return `{"rules":[{"name":"all","authorized":true},{"name":"ask","authorized":true,"actions":["tools/call:delete_issue:approve"],"approval":` + approval + `}]}`
	}
	for _, wrong := range []string{`{"by":[]}`, `{"by":["sales"]}`, `{"by":["*"]}`, `{"by":["group:sales"],"channel":"in_band"}`, `{"by":["group:sales"],"who":1}`, `{}`, `["group:sales"]`} {
		if status, body := d.asked(t, admin, http.MethodPatch, "/api/v2/policies/"+policy, rules(wrong)); status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", wrong, status, body)
		}
	}
	// alice is in engineering, as the caller; bob is in sales.
	if status, body := d.asked(t, admin, http.MethodPatch, "/api/v2/policies/"+policy, rules(`{"by":["group:sales","group:engineering"]}`)); status != http.StatusOK ||
		!strings.Contains(body, `"approval":{"by":["group:sales","group:engineering"],"channel":"out_of_band"}`) {
		t.Fatalf("%d %s", status, body)
	}
	_, body := d.asked(t, d.token(t), http.MethodPost, "/api/v2/policies/explain", `{"server":"demo","action":"tools/call:delete_issue"}`)
	if !strings.Contains(body, `"approvers":[["group:engineering","group:sales"]]`) || !strings.Contains(body, `"out_of_band":true`) {
		t.Errorf("explained: %s", body)
	}

	got := d.callTool(t, "delete_issue", `{"id":1}`)
	page := approvalPage.FindStringSubmatch(got)
	if page == nil || !strings.Contains(got, "approval of somebody else who is group:engineering or group:sales") {
		t.Fatalf("the client is told: %s", got)
	}
	address := "/api/approvals/" + page[2]
	alice, bob, eve := d.tokenWith(t, clientUser, "dev-console"), d.tokenWith(t, "bob@example.test", "dev-console"), d.tokenWith(t, "eve@rival.test", "dev-console")
	for name, tc := range map[string]struct {
		token string
		want  int
	}{
		"the caller":               {alice, http.StatusForbidden},
		"the caller's agent":       {d.token(t), http.StatusForbidden},
		"an agent of the approver": {d.tokenOf(t, "bob@example.test"), http.StatusForbidden},
		"an administrator":         {d.tokenWith(t, "admin@example.test", "dev-console"), http.StatusNotFound},
		"another organization's":   {eve, http.StatusNotFound},
	} {
		for _, word := range []string{"approve", "deny"} {
			if status, body := d.api(t, tc.token, http.MethodPost, address+"/"+word); status != tc.want {
				t.Errorf("%s, %s: %d %s", name, word, status, body)
			}
		}
	}
	if _, body := d.api(t, alice, http.MethodPost, address+"/approve"); !strings.Contains(body, "its policy lets other people decide") {
		t.Errorf("the caller is told: %s", body)
	}
	waiting := func(token string) string {
		status, body := d.api(t, token, http.MethodGet, "/api/approvals?waiting_for=me")
		if status != http.StatusOK {
			t.Fatalf("%d %s", status, body)
		}
		return body
	}
	if body := waiting(bob); !strings.Contains(body, page[2]) || !strings.Contains(body, `"arguments":{"id":1}`) || !strings.Contains(body, `"tool":"delete_issue"`) {
		t.Errorf("bob sees: %s", body)
	}
	// An agent of the approver's cannot decide, and learns no arguments of somebody else.
	agent := d.tokenOf(t, "bob@example.test")
	_, single := d.api(t, agent, http.MethodGet, address)
	for _, body := range []string{waiting(agent), single} {
		if !strings.Contains(body, page[2]) || !strings.Contains(body, `"arguments":null`) {
			t.Errorf("an agent of the approver's sees: %s", body)
		}
	}
	for _, token := range []string{alice, eve, admin} {
		if body := waiting(token); strings.Contains(body, page[2]) {
			t.Errorf("it waits for somebody else: %s", body)
		}
	}
	if got := d.callTool(t, "delete_issue", `{"id":1}`); !strings.Contains(got, page[2]) {
		t.Errorf("asked anew: %s", got)
	}
	status, body := d.api(t, bob, http.MethodPost, address+"/approve")
	if status != http.StatusOK || !strings.Contains(body, `"decided_by":"`) || !strings.Contains(body, `"approvers":[["group:engineering","group:sales"]]`) {
		t.Fatalf("%d %s", status, body)
	}
	if status, body := d.api(t, bob, http.MethodPost, address+"/deny"); status != http.StatusConflict {
		t.Errorf("decided twice: %d %s", status, body)
	}
	if got := d.callTool(t, "delete_issue", `{"id":1}`); strings.Contains(got, `"isError":true`) || !strings.Contains(got, `"id":1`) {
		t.Errorf("the approved call: %s", got)
	}
	if got := d.callTool(t, "delete_issue", `{"id":1}`); approvalPage.FindString(got) == "" {
		t.Errorf("M15 once more: %s", got)
	}
	_, log := d.api(t, admin, http.MethodGet, "/api/audit?kind=approval&limit=50")
	var rows struct {
		Data []struct {
			Event      string         `json:"event"`
			ApprovalID string         `json:"approval_id"`
			UserID     string         `json:"user_id"`
			Detail     map[string]any `json:"detail"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(log), &rows); err != nil {
		t.Fatalf("%s: %v", log, err)
	}
	users := map[string]string{}
	for _, row := range rows.Data {
		if row.ApprovalID == page[2] {
			users[row.Event] = row.UserID
		}
	}
	if users["approval.approved"] == "" || users["approval.approved"] == users["approval.requested"] || users["approval.used"] != users["approval.requested"] {
		t.Errorf("the audit log says: %v\n%s", users, log)
	}
}
