package integration

import (
	"net/http"
	"testing"
)

// TestHealthDetail checks what operators are told of the parts of a node, and that others are not.
func TestHealthDetail(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{identity: namedRoles})
	as := func(role string) string {
		return g.token(bob.with(claims{"roles": []string{role}}))
	}
	g.api(g.token(admin), http.MethodPost, "/api/llm-gateway/admin/providers", members{"name": "Models", "kind": "openai", "api_key": "sk-very-secret"})
	const path = "/api/health/detail"
	for _, who := range []string{g.token(alice), as("editor")} {
		g.send(http.MethodGet, path, who, nil).wantError(t, http.StatusForbidden, "Forbidden")
	}
	for _, role := range []string{"operator", "auditor"} {
		got := g.object(as(role), http.MethodGet, path, nil)
		states := make(map[string]any)
		for _, one := range got["parts"].([]any) {
			states[one.(members)["kind"].(string)] = one.(members)["state"]
		}
		for _, kind := range []string{"store", "clock", "memory", "journal", "identity_provider", "llm_provider"} {
			if states[kind] != "ok" {
				t.Errorf("%s is %v: %v", kind, states[kind], got)
			}
		}
		if states["counters"] == nil || states["disk"] == nil || got["node"] == "" {
			t.Errorf("%v", got)
		}
	}
	for _, one := range g.object(g.token(eve.with(claims{"roles": []string{"operator"}})), http.MethodGet, path, nil)["parts"].([]any) {
		if one.(members)["kind"] == "llm_provider" {
			t.Errorf("another organization's: %v", one)
		}
	}
}
