package auth_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFixedOrganization checks that everybody of the issuer is of one organization, and whoever says otherwise is told
// what to do (W20).
func TestFixedOrganization(t *testing.T) {
	g := newGatewayOf(t, nil, object{"organization": "Acme"})
	organizations := map[string]bool{}
	for _, claims := range []object{{"org_id": nil}, {"org_id": "acme", "sub": "bob"}, {"org_id": nil, "organization": []string{"acme"}, "sub": "carol"}} {
		got := g.get("/api/servers", "Authorization: Bearer "+g.issuer.Token(public, claims))
		calls := g.calls()
		if got.status != http.StatusAccepted || len(calls) != 1 {
			t.Fatalf("%v: %d %s", claims, got.status, got.body)
		}
		organizations[calls[0].Caller.OrganizationID] = true
	}
	if len(organizations) != 1 {
		t.Errorf("organizations %v", organizations)
	}
	for _, claims := range []object{{}, {"org_id": "secret-org"}, {"org_id": nil, "organization": []string{"acme", "secret-org"}}, {"org_id": "acme", "organization_slug": "secret-org"}} {
		for _, path := range []string{"/api/servers", "/mcp/demo", "/api/llm-gateway/v1/models"} {
			got := g.get(path, "Authorization: Bearer "+g.issuer.Token(public, claims))
			if got.status != http.StatusForbidden || !strings.Contains(got.body, "names another organization") || !strings.Contains(got.body, "Log in with an account of that organization") {
				t.Errorf("%v at %s: %d %s", claims, path, got.status, got.body)
			}
		}
	}
	if n := len(g.calls()); n != 0 {
		t.Errorf("%d requests went on", n)
	}
	logged := g.stop()
	if !strings.Contains(logged, `the claim \"organization_slug\"`) || strings.Contains(logged, "secret-org") {
		t.Error("the log does not name the claim, or holds its value")
	}
}

// TestNoOrganization checks that the refusal says which options there are.
func TestNoOrganization(t *testing.T) {
	g := newGateway(t, nil)
	got := g.get("/api/servers", "Authorization: Bearer "+g.issuer.Token(public, object{"org_id": nil}))
	got.service(t, http.StatusForbidden, "Forbidden")
	if !strings.Contains(got.body, "`organization`") || !strings.Contains(got.body, "`claim org`") {
		t.Error(got.body)
	}
}

// TestScopes checks that clients learn what to ask for from the 401 and from the metadata (W21).
func TestScopes(t *testing.T) {
	g := newGatewayOf(t, nil, object{"organization": "acme", "scopes": []string{"openid", "mcp"}}, object{"issuer": "https://second.example.com", "scopes": []string{"mcp", "api://x/.default"}})
	const scope = `scope="openid mcp api://x/.default"`
	for path, want := range map[string]string{"/mcp/demo": "Bearer " + metadata + ", " + scope, "/api/servers": "Bearer " + scope} {
		if got := g.get(path); got.status != http.StatusUnauthorized || got.header.Get("WWW-Authenticate") != want {
			t.Errorf("%s: %d, %q", path, got.status, got.header.Get("WWW-Authenticate"))
		}
	}
	if got := g.get("/mcp/demo", "Authorization: Bearer x").header.Get("WWW-Authenticate"); got != `Bearer error="invalid_token", `+metadata+", "+scope {
		t.Errorf("%q", got)
	}
	var document struct {
		Scopes []string `json:"scopes_supported"`
	}
	if err := json.Unmarshal([]byte(g.get("/.well-known/oauth-protected-resource/mcp/demo").body), &document); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"openid", "mcp", "api://x/.default"}, document.Scopes); diff != "" {
		t.Error(diff)
	}
	if body := newGateway(t, nil).get("/.well-known/oauth-protected-resource/mcp/demo").body; strings.Contains(body, "scopes_supported") {
		t.Errorf("without the option: %s", body)
	}
}
