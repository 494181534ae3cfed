package integration

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
)

// TestConsoleRoles has those who look after a part of an organization look at every screen: none is broken, none asks the API
// for what the role is refused, and none offers an act that the role does not have. DURWARD_CONSOLE=all looks in each of the
// looks, and has axe judge each; TestConsoleScreens does so for an administrator.
func TestConsoleRoles(t *testing.T) {
	t.Parallel()
	v := newVoucher(t)
	g := startGateway(t, settings{provider: v.identityProvider, identity: "login_client " + loginClient + "\n\t\t\t" + namedRoles})
	boss := g.token(admin)
	var entry, server, policy struct{ ID string }
	g.api(boss, http.MethodPost, "/api/server-directory", members{"name": "Notes", "url": "https://mcp.example.com/mcp", "provider": "none"}).decode(t, &entry)
	g.api(boss, http.MethodPost, "/api/servers?test=false", members{"name": "Notes", "slug": "notes", "mcp_server_directory_id": entry.ID}).decode(t, &server)
	var wrapped struct {
		Policy struct{ ID string }
	}
	made := g.api(boss, http.MethodPost, "/api/v2/policies", members{"name": "P", "mcp_server_id": server.ID, "rules": []members{}})
	made.decode(t, &policy)
	made.decode(t, &wrapped)
	if policy.ID == "" {
		policy.ID = wrapped.Policy.ID
	}
	const models = "/api/llm-gateway/admin/"
	var provider struct{ ID string }
	g.api(boss, http.MethodPost, models+"providers", members{"name": "mine", "kind": "openai"}).decode(t, &provider)
	g.api(boss, http.MethodPost, models+"model-mappings", members{"model_alias": "small", "targets": []members{{"provider_id": provider.ID, "model": "m"}}})
	g.api(boss, http.MethodPost, models+"rate-limits", members{"name": "all", "scope_type": "org", "requests_per_minute": 100})
	g.api(boss, http.MethodPost, models+"api-keys", members{"name": "service"})
	g.api(boss, http.MethodPost, "/api/agents", members{"application_directory": members{"name": "Robot", "external_id": "robot"}})

	routes := []string{"/console/settings", "/console/organization/nothing"}
	for _, path := range organizationRoutes {
		if path == "/console/settings" {
			continue
		}
		routes = append(routes, strings.Replace(path, "servers/demo", "servers/notes", 1))
	}
	routes = append(routes, "/console/organization/policies/"+policy.ID)
	policyPath := routes[len(routes)-1]
	always := []string{"CSV", "As API", "Show more", "Show all", "Export by API", "To the start", "Copy", "Search", "Explain"}
	whole := os.Getenv("DURWARD_CONSOLE") == "all"
	l := startLooker(t, g.url)
	for role, has := range map[string]struct {
		may    []string
		offers map[string][]string
	}{
		"auditor": {offers: map[string][]string{policyPath: {"Explain"}, "/console/organization/audit": {"Export by API"}}},
		"editor": {
			may:    []string{"Write a policy", "Enable", "Notes", "Add a line", "Save", "Save and enable", "Watch calls", "Replay"},
			offers: map[string][]string{"/console/organization/policies": {"Write a policy", "Enable"}, policyPath: {"Save", "Save and enable", "Watch calls", "Replay"}},
		},
		"operator": {
			may: []string{"Add a server", "Add", "Go on", "Try it", "Delete", "Register an agent", "Remove"},
			offers: map[string][]string{
				"/console/organization/servers": {"Add a server"}, "/console/organization/servers/notes": {"Try it", "Delete"}, "/console/organization/agents": {"Register an agent", "Remove"},
			},
		},
	} {
		t.Run(role, func(t *testing.T) {
			l.t = t
			v.set(func() {
				v.person = admin.with(claims{"sub": "0190bbbb-0000-7000-8000-0000000000c" + role[:1], "email": role + "@acme.test", "roles": []string{role}})
			})
			l.do("arrive", "path", "/console")
			for _, path := range []string{"/console", "/console/servers", "/console/servers/notes?tab=tools", "/console/keys", "/console/approvals", "/console/activity", "/console/clients"} {
				if whole || role == "operator" { // everybody's screens
					l.do("screen", "path", path, "scheme", "light", "quick", !whole)
				}
			}
			for i, path := range routes {
				for look, scheme := range []string{"light", "dark"} {
					if !whole && i%2 != look {
						continue
					}
					l.do("screen", "path", path, "scheme", scheme, "width", look*390, "quick", !whole, "picture", l.picture(fmt.Sprintf("role-%s-%02d-%s", role, i, scheme)))
					l.do("acts", "may", append(has.may, always...), "offers", append([]string{}, has.offers[path]...))
				}
			}
		})
	}
}
