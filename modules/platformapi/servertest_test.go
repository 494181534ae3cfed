package platformapi

import (
	"net/http"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/gateway"
)

// TestServerIsTried checks that at its creation, which no outcome refuses, and when an administrator asks. What is
// wrong is kept with the server, for administrators.
func TestServerIsTried(t *testing.T) {
	a := newAPI(t)
	entry := a.entry(a.adam, nil)
	tried := func(test any) {
		t.Helper()
		got, _ := test.(object)
		if message, _ := got["message"].(string); got["error"] != "dns" || got["reachable"] != false || !strings.Contains(message, "mcp.tracker.example") {
			t.Errorf("the test says %v", test)
		}
	}
	create := func(query, name string) object {
		t.Helper()
		return a.do(a.adam, http.MethodPost, "/api/servers"+query, object{"name": name, "mcp_server_directory_id": entry}).want(200)
	}
	made := create("", "Tried")
	tried(made["test"])
	path := "/api/servers/" + made["id"].(string)
	if got := a.do(a.adam, http.MethodGet, path, nil).want(200); got["last_seen_at"] != nil || !strings.Contains(got["last_error"].(string), "mcp.tracker.example") {
		t.Errorf("kept is %v", got)
	}
	if got := a.do(a.alice, http.MethodGet, path, nil).want(200); got["last_error"] != nil {
		t.Errorf("somebody who is no administrator sees %v", got["last_error"])
	}
	tried(a.do(a.adam, http.MethodPost, path+"/test", nil).want(200))
	tried(a.do(a.adam, http.MethodPost, "/api/servers/tried/test", object{}).want(200))
	a.do(a.alice, http.MethodPost, path+"/test", nil).wantError(http.StatusForbidden, gateway.Forbidden)
	if got := create("?test=false", "Not tried")["test"]; got != nil {
		t.Errorf("the test says %v", got)
	}
	a.do(a.adam, http.MethodPost, "/api/servers?test=maybe", object{"name": "x", "mcp_server_directory_id": entry}).wantProblems("query.test bool_type")
}

// TestServerTestsAreCounted checks that an administrator who enters addresses cannot scan ports (S10). Tests of another
// organization are not counted here.
func TestServerTestsAreCounted(t *testing.T) {
	a := newAPI(t)
	path := "/api/servers/" + a.server(a.adam, "Tracker", a.entry(a.adam, nil)) + "/test"
	for range 30 {
		a.do(a.adam, http.MethodPost, path, nil).want(200)
	}
	a.do(a.adam, http.MethodPost, path, nil).wantError(http.StatusTooManyRequests, gateway.RateLimitExceeded)
	made := a.do(a.adam, http.MethodPost, "/api/servers", object{"name": "Late", "mcp_server_directory_id": a.entry(a.adam, object{"name": "Other"})}).want(200)
	if test := made["test"].(object); test["error"] != "not_tested" {
		t.Errorf("the test says %v", test)
	}
	theirs := "/api/servers/" + a.server(a.eve, "Theirs", a.entry(a.eve, nil)) + "/test"
	a.do(a.eve, http.MethodPost, theirs, nil).want(200)
}
