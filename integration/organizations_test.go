package integration

import (
	"net/http"
	"strings"
	"testing"
)

// TestOrganizations checks that the operator of a gateway for one organization sees what tokens named besides, and
// removes what is empty (W25). Where organizations share a gateway, none sees another one.
func TestOrganizations(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	const path = "/api/organizations"
	boss := g.token(admin)
	used := eve.with(claims{"org_id": "0190aaaa-0000-7000-8000-000000000003"})
	type organization struct {
		ID         string
		Own, Empty bool
	}
	list := func() map[string]organization {
		t.Helper()
		var found struct{ Organizations []organization }
		g.api(boss, http.MethodGet, path, nil).decode(t, &found)
		byID := make(map[string]organization)
		for _, o := range found.Organizations {
			byID[o.ID] = o
		}
		return byID
	}
	for _, caller := range []claims{admin, eve} { // acme is the first
		g.send(http.MethodGet, "/api/servers", g.token(caller), nil).want(t, http.StatusOK)
	}
	g.api(g.token(used), http.MethodPost, "/api/server-directory", members{"name": "Theirs", "url": "https://mcp.example.com/mcp", "protocol": "mcp", "provider": "none"})
	if all := list(); len(all) != 1 || !all[orgAcme].Own {
		t.Errorf("O01 several organizations on one gateway: %v", all)
	}
	g.send(http.MethodDelete, path+"/"+orgRival, boss, nil).wantError(t, http.StatusNotFound, "NotFound")
	if output, _ := g.run("doctor", "--config", g.config, "--adapter", "caddyfile"); !strings.Contains(output, "further organizations") || !strings.Contains(output, orgRival) || strings.Contains(output, used["org_id"].(string)) {
		t.Errorf("the doctor does not warn of the empty one: %s", output)
	}

	g.mustReload(strings.Replace(g.written(), "audience ", "organization "+orgAcme+"\n\t\t\taudience ", 1))
	if all := list(); len(all) != 3 || !all[orgRival].Empty || all[orgRival].Own || all[used["org_id"].(string)].Empty {
		t.Errorf("of the one organization: %v", all)
	}
	g.send(http.MethodGet, path, g.token(alice), nil).wantError(t, http.StatusForbidden, "Forbidden")
	g.send(http.MethodDelete, path+"/"+orgRival, g.token(alice), nil).wantError(t, http.StatusForbidden, "Forbidden")
	g.send(http.MethodDelete, path+"/"+orgAcme, boss, nil).wantError(t, http.StatusConflict, "Conflict")
	g.send(http.MethodDelete, path+"/"+used["org_id"].(string), boss, nil).wantError(t, http.StatusConflict, "Conflict")
	g.send(http.MethodDelete, path+"/"+orgRival, boss, nil).want(t, http.StatusNoContent)
	g.send(http.MethodDelete, path+"/"+orgRival, boss, nil).wantError(t, http.StatusNotFound, "NotFound")
	if all := list(); len(all) != 2 {
		t.Errorf("after the removal: %v", all)
	}
	g.send(http.MethodGet, "/api/servers", g.token(eve), nil).want(t, http.StatusForbidden)
}
