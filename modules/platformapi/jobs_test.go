package platformapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/internal/ops/jobs"
	"github.com/durward-gateway/durward/storage"
)

// as returns alice with other powers.
func (a *api) as(powers caller.Powers) *authn.Caller {
	who := *a.alice
	who.Powers = powers
	return &who
}

// TestJobs checks who may start, read, list and cancel jobs, and their bounds. Nothing runs them here.
func TestJobs(t *testing.T) {
	a := newAPI(t)
	server := a.server(a.adam, "Tracker", a.entry(a.adam, nil))
	draft := a.policy(a.adam, object{"name": "Draft", "mcp_server_id": server, "rules": []any{object{"name": "All", "authorized": true, "actions": []string{"*"}}}})
	replay := policiesPath + "/" + draft + "/replay"
	editor, auditor := a.as(caller.Powers{PolicyEditor: true}), a.as(caller.Powers{Auditor: true})
	job := a.do(editor, http.MethodPost, replay, nil).want(http.StatusCreated)
	path := "/api/jobs/" + job["id"].(string)
	if job["state"] != "queued" || job["kind"] != "policy_replay" || job["subject_id"] != draft || job["user_id"] != a.alice.UserID || job["result"] != nil || job["attempts"] != 0.0 {
		t.Errorf("%v", job)
	}
	for _, who := range []*authn.Caller{editor, auditor, a.adam} {
		a.do(who, http.MethodGet, path, nil).want(200)
	}
	a.do(a.as(caller.Powers{Operator: true}), http.MethodGet, path, nil).wantError(403, gateway.Forbidden)
	a.do(a.eve, http.MethodGet, path, nil).wantError(404, gateway.NotFound)
	a.do(a.eve, http.MethodDelete, path, nil).wantError(404, gateway.NotFound)
	a.do(auditor, http.MethodDelete, path, nil).wantError(403, gateway.Forbidden)
	other := *editor
	other.UserID = a.adam.UserID
	a.do(&other, http.MethodDelete, path, nil).wantError(403, gateway.Forbidden)

	// A kind that administrators alone may start is none for others.
	eval := storage.Job{OrganizationID: a.adam.OrganizationID, UserID: a.adam.UserID, Kind: storage.JobEval, Subject: "x"}
	eval, err := a.core.Jobs.Add(t.Context(), eval, object{})
	if err != nil {
		t.Fatal(err)
	}
	a.do(editor, http.MethodGet, "/api/jobs/"+eval.ID, nil).wantError(404, gateway.NotFound)
	a.do(editor, http.MethodDelete, "/api/jobs/"+eval.ID, nil).wantError(404, gateway.NotFound)
	a.do(auditor, http.MethodGet, "/api/jobs/"+eval.ID, nil).want(200)

	for body, problem := range map[string]string{
		`{"since":"2026-03-01T12:00:00Z"}`: "body.since value_error", `{"since":"yesterday"}`: "body.since value_error", `{"since":7}`: "body.since string_type",
		`{"examples":101}`: "body.examples less_than_equal", `{"sinse":"2026-02-01T12:00:00Z"}`: "body.sinse extra_forbidden", `{"since":null}`: "body.since string_type",
	} {
		a.do(editor, http.MethodPost, replay, body).wantProblems(problem)
	}
	a.do(editor, http.MethodPost, policiesPath+"/"+server+"/replay", nil).wantError(404, gateway.PolicyNotFound)
	a.do(a.eve, http.MethodPost, replay, nil).wantError(404, gateway.PolicyNotFound)
	for range jobs.MaxWaiting - 2 {
		a.do(editor, http.MethodPost, replay, object{"since": "2026-02-01T12:00:00Z"}).want(http.StatusCreated)
	}
	if got := a.do(editor, http.MethodPost, replay, nil).wantError(429, gateway.RateLimitExceeded); !strings.Contains(got["message"].(string), "Too many jobs") {
		t.Errorf("%v", got)
	}

	found := make(map[string]bool)
	list := "/api/jobs?limit=7"
	for next := list; next != ""; {
		got := a.do(editor, http.MethodGet, next, nil).want(200)
		for _, one := range got["data"].([]any) {
			found[one.(object)["id"].(string)] = true
		}
		if next = ""; got["next_cursor"] != nil {
			next = list + "&cursor=" + got["next_cursor"].(string)
		}
	}
	if len(found) != jobs.MaxWaiting-1 || found[eval.ID] {
		t.Errorf("%d jobs are listed: %v", len(found), found)
	}
	if got := a.do(a.eve, http.MethodGet, "/api/jobs", nil).want(200); len(got["data"].([]any)) != 0 {
		t.Errorf("O04 %v", got)
	}
	a.do(editor, http.MethodGet, "/api/jobs?user_id="+a.adam.UserID+"&cursor=x&limit=0", nil).wantProblems(
		"query.cursor uuid_parsing", "query.limit greater_than_equal", "query.user_id extra_forbidden")

	if got := a.do(a.adam, http.MethodDelete, path, nil).want(200); got["state"] != "cancelled" || got["ended_at"] == nil {
		t.Errorf("%v", got)
	}
	a.do(editor, http.MethodDelete, path, nil).wantError(409, gateway.Conflict)
	a.do(editor, http.MethodPost, replay, nil).want(http.StatusCreated) // there is room again

	// As an event stream, which ends because the job is over.
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, publicURL+path, nil)
	r.Header.Set("Accept", "text/event-stream")
	w := a.send(editor, r)
	if w.header.Get("Content-Type") != "text/event-stream" || !strings.HasPrefix(w.body, "event: job\ndata: {") || !strings.Contains(w.body, `"state":"cancelled"`) || !strings.HasSuffix(w.body, "}\n\n") {
		t.Errorf("%v %s", w.header, w.body)
	}
	r.URL.Path = "/api/jobs/" + server
	a.send(editor, r).wantError(404, gateway.NotFound)
}
