package integration

import (
	"net/http"
	"strings"
	"testing"
)

// namedRoles gives the roles beside the administrator's their names.
const namedRoles = "auditor_role auditor\n\t\t\tpolicy_editor_role editor\n\t\t\toperator_role operator"

// TestRoles checks that each role beside the administrator's gives its own rights and no others, that an API key has none
// of them, and that a role without a name in the configuration is nobody's (R01).
func TestRoles(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{identity: namedRoles})
	as := func(role string) string {
		return g.token(bob.with(claims{"roles": []string{role}, "sub": "0190bbbb-0000-7000-8000-0000000000" + map[string]string{"auditor": "a1", "editor": "a2", "operator": "a3"}[role]}))
	}
	auditor, editor, operator, boss := as("auditor"), as("editor"), as("operator"), g.token(admin)
	entry := g.send(http.MethodPost, "/api/server-directory", operator, members{"name": "Notes", "url": "https://mcp.example.com/mcp", "provider": "none"})
	var made struct{ ID string }
	entry.want(t, http.StatusOK)
	entry.decode(t, &made)
	server := g.send(http.MethodPost, "/api/servers?test=false", operator, members{"name": "Notes", "mcp_server_directory_id": made.ID})
	server.want(t, http.StatusOK)
	server.decode(t, &made)
	policy := members{"name": "P", "mcp_server_id": made.ID, "rules": []members{}}
	g.send(http.MethodPost, "/api/v2/policies", operator, policy).wantError(t, http.StatusForbidden, "Forbidden")
	g.send(http.MethodPost, "/api/v2/policies", auditor, policy).wantError(t, http.StatusForbidden, "Forbidden")
	if a := g.send(http.MethodPost, "/api/v2/policies", editor, policy); a.status == http.StatusForbidden {
		t.Errorf("a policy editor: %d %s", a.status, a.body)
	}
	for path, roles := range map[string]string{
		"/api/audit": "auditor", "/api/llm-gateway/admin/api-keys": "auditor", "/api/llm-gateway/admin/usage": "auditor", "/api/refused-tokens": "auditor",
		"/api/servers/notes/tools": "auditor editor", "/api/servers": "auditor editor operator",
	} {
		for name, token := range map[string]string{"auditor": auditor, "editor": editor, "operator": operator} {
			want := http.StatusForbidden
			if strings.Contains(roles, name) {
				want = http.StatusOK
			}
			if a := g.send(http.MethodGet, path, token, nil); a.status != want {
				t.Errorf("%s for the %s: %d %s", path, name, a.status, a.body)
			}
		}
	}
	for _, write := range [][2]string{
		{http.MethodPut, "/api/servers/" + made.ID}, {http.MethodDelete, "/api/servers/" + made.ID}, {http.MethodPost, "/api/llm-gateway/admin/budgets"},
		{http.MethodPost, "/api/users/" + admin["sub"].(string) + "/revoke"}, {http.MethodPut, "/api/policy/disable"},
	} {
		g.send(write[0], write[1], auditor, members{}).wantError(t, http.StatusForbidden, "Forbidden")
	}
	g.send(http.MethodDelete, "/api/servers/"+made.ID, editor, nil).wantError(t, http.StatusForbidden, "Forbidden")
	g.send(http.MethodPost, "/api/llm-gateway/admin/api-keys", operator, members{"name": "k"}).wantError(t, http.StatusForbidden, "Forbidden")
	// A credential acts as its agent: contract 4.1 leaves that to administrators.
	g.send(http.MethodPost, "/api/agents/0190cccc-0000-7000-8000-000000000001/credentials", operator, nil).wantError(t, http.StatusForbidden, "Forbidden")
	g.send(http.MethodPost, "/api/users/"+admin["sub"].(string)+"/revoke", operator, nil).wantError(t, http.StatusForbidden, "Forbidden")

	for token, want := range map[string]string{
		auditor: "read_everything", editor: "edit_policies", operator: "operate_servers",
		boss: "read_everything edit_policies operate_servers administer", g.token(bob): "",
	} {
		var me struct {
			User         struct{ ID, Email string }
			Organization struct{ ID string }
			May          []string
		}
		g.api(token, http.MethodGet, "/api/me", nil).decode(t, &me)
		if got := strings.Join(me.May, " "); got != want || me.Organization.ID != orgAcme || me.User.ID == "" || !strings.HasSuffix(me.User.Email, "@acme.test") {
			t.Errorf("want %q: %+v", want, me)
		}
	}

	var key struct{ Key string }
	g.api(auditor, http.MethodPost, "/api/llm-gateway/user/api-keys", members{"name": "k", "scopes": []string{"llm"}}).decode(t, &key)
	if a := g.send(http.MethodGet, "/api/me", key.Key, nil); a.status < 400 {
		t.Errorf("a key at /api/me: %d %s", a.status, a.body)
	}
	if a := g.send(http.MethodGet, "/api/audit", key.Key, nil); key.Key == "" || a.status < 400 {
		t.Errorf("an auditor's key: %d %s", a.status, a.body)
	}

	g.mustReload(strings.Replace(g.written(), "auditor_role auditor", "", 1))
	g.send(http.MethodGet, "/api/audit", auditor, nil).wantError(t, http.StatusForbidden, "Forbidden")
	g.send(http.MethodGet, "/api/audit", boss, nil).want(t, http.StatusOK)
	if a := g.send(http.MethodGet, "/api/servers/notes/tools", editor, nil); a.status != http.StatusOK {
		t.Errorf("the policy editor after the reload: %d %s", a.status, a.body)
	}
}
