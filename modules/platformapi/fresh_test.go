package platformapi

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/identity/authn"
)

// TestFreshLogin checks that a browser which was left open enables no policy, applies no files, accepts no tools at once and offboards nobody,
// and that its fresh login and other clients do.
func TestFreshLogin(t *testing.T) {
	a := newAPI(t)
	server := a.server(a.adam, "Tracker", a.entry(a.adam, nil))
	policy := func(name, status string) object {
		return object{"name": name, "status": status, "mcp_server_id": server, "rules": []any{grant()}}
	}
	id := a.policy(a.adam, policy("draft", "DRAFT"))
	unknown := object{"mcp_server_id": server, "name": "no_such_tool", "hash": strings.Repeat("a", 64)}
	acts := []struct {
		method, path string
		body         any
		status       int // of one who may
	}{
		{http.MethodPut, "/api/policy/enable?id=" + id, nil, 200},
		{http.MethodPatch, "/api/v2/policies/" + id, object{"description": "of an active one"}, 200},
		{http.MethodPost, "/api/policy", policy("draft", "ACTIVE"), 200},
		{http.MethodPut, "/api/policy/disable?id=" + id, nil, 200},
		{http.MethodPatch, "/api/v2/policies/" + id, object{"status": "ACTIVE"}, 200},
		{http.MethodPut, "/api/policy/disable?id=" + id, nil, 200},
		{http.MethodPost, "/api/v2/policies", policy("another", "ACTIVE"), 201},
		{http.MethodPost, "/api/tools/accept", object{"tools": []object{unknown, unknown}}, 404},
		{http.MethodPost, "/api/configuration/apply", object{"files": []object{{"name": "empty.yaml", "text": "policies: []"}}}, 200},
		{http.MethodPost, "/api/users/" + a.alice.UserID + "/offboard", nil, 200},
	}
	as := func(console bool, provenAt time.Time) *authn.Caller {
		who := *a.adam
		who.Console, who.ProvenAt = console, provenAt
		return &who
	}
	left, unproven, fresh := as(true, start.Add(-5*time.Minute)), as(true, time.Time{}), as(true, start.Add(-5*time.Minute+time.Second))
	for _, word := range []string{"enable", "disable"} { // with another client's token
		a.do(as(false, time.Time{}), http.MethodPut, "/api/policy/"+word+"?id="+id, nil).wantStatus(200)
	}
	for _, act := range acts {
		if !strings.Contains(act.path, "disable") { // which takes rights away
			for _, who := range []*authn.Caller{left, unproven} {
				details, _ := a.do(who, act.method, act.path, act.body).wantError(403, gateway.Forbidden)["details"].(map[string]any)
				if details["login_url"] != "/login?fresh=1" {
					t.Errorf("%s %s does not say where to log in: %v", act.method, act.path, details)
				}
			}
		}
		a.do(fresh, act.method, act.path, act.body).wantStatus(act.status)
	}
	a.do(left, http.MethodPatch, "/api/v2/policies/"+id, object{"status": "INACTIVE"}).wantStatus(200)
	a.do(left, http.MethodPost, "/api/tools/accept", object{"tools": []object{unknown}}).wantStatus(404)
	a.do(left, http.MethodPost, "/api/configuration/plan", object{"files": []object{{"name": "empty.yaml", "text": "policies: []"}}}).wantStatus(200)
	a.do(left, http.MethodPost, "/api/users/"+a.alice.UserID+"/offboard?dry_run=true", nil).wantStatus(200)
}
