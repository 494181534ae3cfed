package integration

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/durward-gateway/durward/integration/rig"
)

// provider stands for an identity provider that provisions users and groups.
type provider struct {
	*gateway
	key string
}

// scimResource is a user or group.
type scimResource struct {
	ID, UserName, DisplayName, ExternalID string
	Active                                bool
	Members, Groups                       []struct{ Value, Display string }
}

func (g *gateway) provisioner(t *testing.T) *provider {
	t.Helper()
	var made struct{ Key string }
	g.api(g.token(admin), http.MethodPost, "/api/llm-gateway/admin/api-keys", members{"name": "directory", "scopes": []string{"scim"}}).decode(t, &made)
	return &provider{g, made.Key}
}

func (p *provider) scim(method, path string, body string) answer {
	p.t.Helper()
	var sent any
	if body != "" {
		sent = body
	}
	return p.send(method, "/scim/v2"+path, p.key, sent, "Content-Type", "application/scim+json; charset=utf-8")
}

func (p *provider) read(t *testing.T, a answer, status int) (r scimResource) {
	t.Helper()
	a.want(t, status).decode(t, &r)
	return r
}

// find returns the resources that a filter finds.
func (p *provider) find(t *testing.T, path, filter string) (found []scimResource) {
	t.Helper()
	var list struct {
		Total     int `json:"totalResults"`
		Resources []scimResource
	}
	p.scim(http.MethodGet, path+"?startIndex=1&count=100&filter="+url.QueryEscape(filter), "").want(t, http.StatusOK).decode(t, &list)
	if list.Total != len(list.Resources) {
		t.Errorf("%s: %d of %d", filter, len(list.Resources), list.Total)
	}
	return list.Resources
}

func operations(list string) string {
	return `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":[` + list + `]}`
}

// refuses checks that a user's calls are refused soon, with a token of before and with a new one.
func (p *provider) refuses(t *testing.T, who claims, before string) {
	t.Helper()
	rig.Eventually(t, "the user's former token to be refused", func() bool {
		status := p.send(http.MethodGet, "/api/me", before, nil).status
		return status == http.StatusForbidden || status == http.StatusUnauthorized
	})
	p.send(http.MethodGet, "/api/me", p.token(who), nil).wantError(t, http.StatusForbidden, "Forbidden")
}

// admits checks that a user comes in with a new token soon: tokens of the second of their revocation are refused.
func (p *provider) admits(t *testing.T, who claims) (token string) {
	t.Helper()
	rig.Eventually(t, "the user to come in", func() bool {
		token = p.token(who)
		return p.send(http.MethodGet, "/api/me", token, nil).status == http.StatusOK
	})
	return token
}

// tools lists the tools that a user sees of a server.
func (p *provider) tools(t *testing.T, s server, token string) (names []string) {
	t.Helper()
	var list struct {
		Result struct{ Tools []struct{ Name string } }
	}
	p.mcp(token, s, "", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`).want(t, http.StatusOK).decode(t, &list)
	for _, tool := range list.Result.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return names
}

// TestSCIMOfOkta provisions as Okta does: what its test suite sends, then assignment, a pushed group, and deactivation.
func TestSCIMOfOkta(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{option: "scim {\n groups scim\n match email\n }"})
	p := g.provisioner(t)
	s := g.bareServer(newMCPServer(t, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}).url, nil)
	g.govern(s, limited(granting("tools/call:echo"), map[string]any{"roles_groups": []string{"group:Staff"}}),
		limited(granting("tools/call:upper"), map[string]any{"roles_groups": []string{"group:engineering"}}))
	token := g.token(alice)
	if got := p.tools(t, s, token); len(got) != 0 {
		t.Errorf("groups of a user who is not provisioned: %v", got)
	}

	if found := p.find(t, "/Users", `userName eq "alice@acme.test"`); len(found) != 0 {
		t.Fatal(found)
	}
	create := `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":"alice@acme.test","name":{"givenName":"Alice","familyName":"Smith"},
		"emails":[{"primary":true,"value":"alice@acme.test","type":"work"}],"displayName":"Alice Smith","locale":"en-US","externalId":"00ujl29u0le5T6Aj10h7","groups":[],"password":"1mz050nq","active":true}`
	user := p.read(t, p.scim(http.MethodPost, "/Users", create), http.StatusCreated)
	p.scim(http.MethodPost, "/Users", create).want(t, http.StatusConflict)
	for _, filter := range []string{`userName eq "ALICE@ACME.TEST"`, `externalId eq "00ujl29u0le5T6Aj10h7"`, `id eq "` + user.ID + `" and active eq true`, `emails[type eq "work"].value eq "alice@acme.test"`} {
		if found := p.find(t, "/Users", filter); len(found) != 1 || found[0].ID != user.ID {
			t.Errorf("%s: %+v", filter, found)
		}
	}
	p.scim(http.MethodGet, "/Users/00919288221112222", "").want(t, http.StatusNotFound)
	p.scim(http.MethodGet, "/Users?count=1&startIndex=1", "").want(t, http.StatusOK)
	if body := string(g.send(http.MethodGet, "/scim/v2/Users", "", nil, "Authorization", "non-token").want(t, http.StatusUnauthorized).body); !strings.Contains(body, `"status":"401"`) || !strings.Contains(body, "messages:2.0:Error") {
		t.Error(body)
	}
	g.send(http.MethodGet, "/scim/v2/Users", g.token(admin), nil).want(t, http.StatusForbidden)
	g.send(http.MethodGet, "/api/servers", p.key, nil).want(t, http.StatusUnauthorized)
	g.send(http.MethodGet, "/api/llm-gateway/v1/models", p.key, nil).want(t, http.StatusForbidden)

	group := p.read(t, p.scim(http.MethodPost, "/Groups", `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group"],"displayName":"Staff","members":[]}`), http.StatusCreated)
	p.scim(http.MethodPatch, "/Groups/"+group.ID, operations(`{"op":"add","path":"members","value":[{"value":"`+user.ID+`","display":"alice@acme.test"}]}`)).want(t, http.StatusNoContent)
	rig.Eventually(t, "the group to decide", func() bool { return slices.Equal(p.tools(t, s, token), []string{"echo"}) })
	p.scim(http.MethodPatch, "/Groups/"+group.ID, operations(`{"op":"replace","value":{"id":"`+group.ID+`","displayName":"Crew"}}`)).want(t, http.StatusNoContent)
	rig.Eventually(t, "the new name to decide", func() bool { return len(p.tools(t, s, token)) == 0 })
	p.scim(http.MethodPatch, "/Groups/"+group.ID, operations(`{"op":"replace","path":"displayName","value":"Staff"},{"op":"remove","path":"members[value eq \"`+user.ID+`\"]"}`)).want(t, http.StatusNoContent)
	if got := p.tools(t, s, token); len(got) != 0 {
		t.Errorf("of a former member: %v", got)
	}

	deactivate := operations(`{"op":"replace","value":{"active":false}}`)
	if got := p.read(t, p.scim(http.MethodPatch, "/Users/"+user.ID, deactivate), http.StatusOK); got.Active {
		t.Errorf("%+v", got)
	}
	p.refuses(t, alice, token)
	renamed := `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":"alice@acme.test","displayName":"Alice"}`
	if got := p.read(t, p.scim(http.MethodPut, "/Users/"+user.ID, renamed), http.StatusOK); got.Active {
		t.Error("a user who is replaced without active comes in again")
	}
	g.send(http.MethodGet, "/api/me", g.token(bob), nil).want(t, http.StatusOK)
	replaced := strings.Replace(create, `"userName"`, `"id":"`+user.ID+`","userName"`, 1)
	if got := p.read(t, p.scim(http.MethodPut, "/Users/"+user.ID, replaced), http.StatusOK); !got.Active {
		t.Errorf("%+v", got)
	}
	p.admits(t, alice)
	rows, _ := g.audit(g.token(admin), url.Values{"limit": {"100"}})
	for _, event := range []string{"scim.user.create", "scim.group.create", "scim.group.update", "scim.user.deactivate", "scim.user.reactivate"} {
		if !slices.ContainsFunc(rows, func(r auditRow) bool { return r.Event == event }) {
			t.Errorf("no record of %s", event)
		}
	}
}

// TestSCIMOfEntra provisions as Entra ID does, with the requests of its guide for SCIM endpoints, up to the deletion of a user.
func TestSCIMOfEntra(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{option: "scim {\n groups scim token\n match external_id\n }"})
	p := g.provisioner(t)
	s := g.bareServer(newMCPServer(t, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}).url, nil)
	g.govern(s, limited(granting("tools/call:echo"), map[string]any{"roles_groups": []string{"group:Staff"}}),
		limited(granting("tools/call:upper"), map[string]any{"roles_groups": []string{"group:engineering"}}))
	token, object := g.token(alice), alice["sub"].(string)
	if got := p.tools(t, s, token); !slices.Equal(got, []string{"upper"}) {
		t.Errorf("the token's groups: %v", got)
	}

	if found := p.find(t, "/Users", `externalId eq "`+object+`"`); len(found) != 0 {
		t.Fatal(found)
	}
	user := p.read(t, p.scim(http.MethodPost, "/Users", `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User","urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],
		"externalId":"`+object+`","userName":"alice@acme.onmicrosoft.test","active":true,"displayName":"Alice","emails":[{"primary":true,"type":"work","value":"alice@acme.test"}],
		"meta":{"resourceType":"User"},"name":{"formatted":"Alice Smith","familyName":"Smith","givenName":"Alice"},"roles":[],
		"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User":{"department":"Engineering"}}`), http.StatusCreated)
	changed := p.read(t, p.scim(http.MethodPatch, "/Users/"+user.ID, operations(`{"op":"Replace","path":"emails[type eq \"work\"].value","value":"a@acme.test"},
		{"op":"Replace","path":"name.familyName","value":"Jones"},{"op":"Add","path":"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department","value":"x"},
		{"op":"Replace","path":"displayName","value":"Alice Jones"}`)), http.StatusOK)
	if changed.DisplayName != "Alice Jones" || len(p.find(t, "/Users", `emails[type eq "work"].value eq "a@acme.test"`)) != 1 {
		t.Errorf("%+v", changed)
	}
	group := p.read(t, p.scim(http.MethodPost, "/Groups", `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group","http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group"],
		"externalId":"8aa1a0c0-c4c3-4bc0-b4a5-2ef676900159","displayName":"Staff","meta":{"resourceType":"Group"}}`), http.StatusCreated)
	p.scim(http.MethodPatch, "/Groups/"+group.ID, operations(`{"op":"Add","path":"members","value":[{"$ref":null,"value":"`+user.ID+`"}]}`)).want(t, http.StatusNoContent)
	rig.Eventually(t, "the group to decide beside the token's", func() bool { return slices.Equal(p.tools(t, s, token), []string{"echo", "upper"}) })
	a := p.scim(http.MethodGet, "/Groups?excludedAttributes=members&filter="+url.QueryEscape(`displayName eq "Staff"`), "").want(t, http.StatusOK)
	if strings.Contains(string(a.body), "members") || !strings.Contains(string(a.body), group.ID) {
		t.Errorf("%s", a.body)
	}
	if found := p.find(t, "/Groups", `id eq "`+group.ID+`" and members eq "`+user.ID+`"`); len(found) != 1 {
		t.Errorf("%+v", found)
	}
	p.scim(http.MethodPatch, "/Groups/"+group.ID, operations(`{"op":"Remove","path":"members","value":[{"$ref":null,"value":"`+user.ID+`"}]}`)).want(t, http.StatusNoContent)
	rig.Eventually(t, "the group to decide no more", func() bool { return slices.Equal(p.tools(t, s, token), []string{"upper"}) })

	p.scim(http.MethodPatch, "/Users/"+user.ID, operations(`{"op":"Replace","path":"active","value":"False"}`)).want(t, http.StatusOK)
	p.refuses(t, alice, token)
	p.scim(http.MethodPatch, "/Users/"+user.ID, operations(`{"op":"Replace","path":"active","value":"True"}`)).want(t, http.StatusOK)
	token = p.admits(t, alice)
	p.scim(http.MethodPatch, "/Users/"+user.ID, operations(`{"op":"Replace","path":"actve","value":"False"}`)).want(t, http.StatusBadRequest)
	p.scim(http.MethodDelete, "/Users/"+user.ID, "").want(t, http.StatusNoContent)
	p.scim(http.MethodGet, "/Users/"+user.ID, "").want(t, http.StatusNotFound)
	p.refuses(t, alice, token)
	p.scim(http.MethodDelete, "/Groups/"+group.ID, "").want(t, http.StatusNoContent)
}

// TestSCIMRequired checks that only provisioned users come in where that is required, and machines still do.
func TestSCIMRequired(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	p := g.provisioner(t)
	g.mustReload(strings.Replace(g.written(), "egress {", "scim {\n require\n }\n egress {", 1))
	g.send(http.MethodGet, "/api/me", g.token(alice), nil).wantError(t, http.StatusForbidden, "Forbidden")
	g.send(http.MethodGet, "/api/me", g.token(alice.with(claims{"sub": "robot", "gty": "client_credentials"})), nil).want(t, http.StatusOK)
	p.scim(http.MethodPost, "/Users", `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":"`+alice["sub"].(string)+`"}`).want(t, http.StatusCreated)
	p.admits(t, alice)
}

// TestSCIMOnTwoNodes checks that a deactivation at one node counts at the other, for tokens and keys.
func TestSCIMOnTwoNodes(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{postgres: true})
	other := g.twin()
	p := g.provisioner(t)
	token := g.token(alice)
	var key struct{ Key string }
	g.api(token, http.MethodPost, "/api/llm-gateway/user/api-keys", members{"name": "k", "scopes": []string{"llm"}}).decode(t, &key)
	user := p.read(t, p.scim(http.MethodPost, "/Users", `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"userName":"alice@acme.test"}`), http.StatusCreated)
	other.send(http.MethodGet, "/api/me", token, nil).want(t, http.StatusOK)
	other.send(http.MethodGet, "/api/llm-gateway/v1/models", key.Key, nil).want(t, http.StatusOK)
	p.scim(http.MethodPatch, "/Users/"+user.ID, operations(`{"op":"replace","value":{"active":false}}`)).want(t, http.StatusOK)
	rig.Eventually(t, "the other node to refuse the user", func() bool {
		return other.send(http.MethodGet, "/api/me", g.token(alice), nil).status == http.StatusForbidden
	})
	other.send(http.MethodGet, "/api/me", token, nil).wantError(t, http.StatusForbidden, "Forbidden")
	other.send(http.MethodGet, "/api/llm-gateway/v1/models", key.Key, nil).want(t, http.StatusUnauthorized)
}
