package platformapi

import (
	"net/http"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/gateway"
)

// TestConfiguration checks what requests with files are answered: a plan, the places of errors, and what the store refuses.
func TestConfiguration(t *testing.T) {
	a := newAPI(t)
	a.server(a.adam, "Tracker", a.entry(a.adam, nil))
	post := func(path, text string, secrets ...object) answer {
		return a.do(a.adam, http.MethodPost, "/api/configuration/"+path, object{"files": []object{{"name": "a.yaml", "text": text}}, "secrets": secrets})
	}
	policy := func(name string) string {
		return "  - {name: " + name + ", server: Tracker, status: ACTIVE, rules: [{name: r, authorized: true}]}\n"
	}
	if planned := post("plan", "policies:\n"+policy("one")); planned.want(200)["applied"] != false || !strings.Contains(planned.body, `"action":"create","kind":"policy","name":"one"`) {
		t.Errorf("planned %s", planned.body)
	}
	if made := a.do(a.adam, http.MethodGet, "/api/configuration", nil); strings.Contains(made.body, "policies") {
		t.Errorf("a plan made %s", made.body)
	}
	post("apply", "policies:\n"+policy("one")+policy("two")).wantError(http.StatusConflict, gateway.Conflict)
	if made := a.do(a.adam, http.MethodGet, "/api/configuration", nil); strings.Contains(made.body, "policies") {
		t.Errorf("a refused file made %s", made.body)
	}
	post("apply", "policies:\n"+policy("one")).want(200)
	if made := a.do(a.adam, http.MethodGet, "/api/configuration", nil); !strings.Contains(made.body, `policies:\n  - name: one\n`) {
		t.Errorf("applied, there is %s", made.body)
	}

	const secret = "servers: [{name: Tracker, directory: x, client_secret: '{file./etc/passwd}'}]"
	wrong := post("apply", secret)
	wrong.wantProblems("body.files.0.text value_error", "body.files.0.text value_error")
	if !strings.Contains(wrong.body, `"column":56,"file":"a.yaml","line":1`) || !strings.Contains(wrong.body, "the request gives no value for this reference") {
		t.Errorf("the places of errors: %s", wrong.body)
	}
	if other := post("apply", "organization: rival"); other.status != http.StatusUnprocessableEntity || !strings.Contains(other.body, "the token is for the organization") {
		t.Errorf("for another organization: %d %s", other.status, other.body)
	}
	if known := post("plan", "agents: [{name: x, external_id: x, issuer: 'https://other.example'}]"); !strings.Contains(known.body, "say which identity provider issues its tokens") {
		t.Errorf("with an unknown issuer: %s", known.body)
	}
}

// TestManagedByFile checks that objects say whether an applied file declares them.
func TestManagedByFile(t *testing.T) {
	a := newAPI(t)
	a.server(a.adam, "Hand", a.entry(a.adam, nil))
	const text = "directory: [{name: Filed, slug: filed, url: 'https://filed.example.com/mcp', provider: none}]\n" +
		"servers: [{name: File, directory: filed}]\nagents: [{name: filed, external_id: filed-1}]\npolicies: [{name: filed, server: File}]\n"
	a.do(a.adam, http.MethodPost, "/api/configuration/apply", object{"files": []object{{"name": "a.yaml", "text": text}}}).want(200)
	for path, want := range map[string]int{"/api/servers": 1, "/api/server-directory": 1, "/api/agents": 1, "/api/v2/policies": 1} {
		if got := strings.Count(a.do(a.adam, http.MethodGet, path, nil).body, `"managed_by_file":true`); got != want {
			t.Errorf("%s shows %d, not %d", path, got, want)
		}
	}
	prune := func(text string) answer {
		return a.do(a.adam, http.MethodPost, "/api/configuration/plan", object{"files": []object{{"name": "a.yaml", "text": text}}, "prune": true})
	}
	prune("{}").want(http.StatusUnprocessableEntity)
	applied := prune("organization: " + a.adam.OrganizationID)
	if !strings.Contains(applied.body, `"action":"delete","kind":"server","name":"File","ends":{"connections":0,"keys":0}`) {
		t.Errorf("planned %s", applied.body)
	}
}
