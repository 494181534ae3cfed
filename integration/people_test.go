package integration

import (
	"net/http"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

// keyedPage is a page of a list that is read by its cursors.
type keyedPage struct {
	Data []struct {
		ID, Email, Status string
		UserID            string `json:"user_id"`
		ConnectedAt       string `json:"connected_at"`
	}
	NextCursor string `json:"next_cursor"`
}

// TestPeople checks what those who manage an organization see of its users, their connections and agents, and that
// somebody else's connection ends at the provider too (RFC 7009).
func TestPeople(t *testing.T) {
	t.Parallel()
	g, p := startGateway(t, settings{identity: namedRoles}), newGrantor(t)
	boss, operator := g.token(admin), g.token(bob.with(claims{"roles": []string{"operator"}}))
	s := g.createServer(p.mcpURL(), p.entry())
	g.attackConnect(g.token(alice), s, p).want(t, http.StatusOK)
	g.send(http.MethodGet, "/api/servers", g.token(eve), nil).want(t, http.StatusOK)

	found := make(map[string]string)
	for path := "/api/users?limit=1"; path != ""; {
		var page keyedPage
		g.api(boss, http.MethodGet, path, nil).decode(t, &page)
		for _, u := range page.Data {
			found[u.ID] = u.Email
		}
		path = ""
		if page.NextCursor != "" {
			path = "/api/users?limit=1&cursor=" + page.NextCursor
		}
	}
	id := alice["sub"].(string)
	if len(found) != 2 || found[id] != alice["email"] || found[eve["sub"].(string)] != "" {
		t.Errorf("the users are %v", found)
	}
	var one keyedPage
	g.api(boss, http.MethodGet, "/api/users?search=ALICE%40", nil).decode(t, &one)
	if len(one.Data) != 1 || one.Data[0].ID != id {
		t.Errorf("the search found %+v", one)
	}
	g.send(http.MethodGet, "/api/users/"+id, g.token(eve), nil).wantError(t, http.StatusNotFound, "NotFound")
	g.send(http.MethodGet, "/api/users", operator, nil).wantError(t, http.StatusForbidden, "Forbidden")
	g.send(http.MethodGet, "/api/users", g.token(alice), nil).wantError(t, http.StatusForbidden, "Forbidden")

	connections := "/api/servers/" + s.ID + "/connections"
	listed := g.api(operator, http.MethodGet, connections, nil)
	var page keyedPage
	listed.decode(t, &page)
	if len(page.Data) != 1 || page.Data[0].UserID != id || page.Data[0].Status != "connected" || page.Data[0].ConnectedAt == "" {
		t.Errorf("the connections are %s", listed.body)
	}
	for _, token := range p.handedOut() {
		if strings.Contains(string(listed.body), token) {
			t.Errorf("a token is shown: %s", listed.body)
		}
	}
	g.send(http.MethodDelete, connections+"/"+id, g.token(alice), nil).wantError(t, http.StatusForbidden, "Forbidden")
	g.send(http.MethodDelete, connections+"/"+id, operator, nil).want(t, http.StatusNoContent)
	rig.Eventually(t, "the tokens to be revoked", p.toldAll)
	if status := g.connection(g.token(alice), s); status != "available" {
		t.Errorf("the connection is %s", status)
	}
	g.send(http.MethodDelete, connections+"/"+id, operator, nil).wantError(t, http.StatusNotFound, "ConnectionNotFound")

	agent := "/api/agents/" + g.registerAgent(admin, "assistant")
	var changed struct {
		Application struct{ Name string } `json:"application_directory"`
		Channel     string                `json:"approval_channel"`
		Confirmed   bool                  `json:"write_confirmations_required"`
	}
	g.api(operator, http.MethodPatch, agent, members{"name": "Renamed", "approval_channel": "out_of_band", "write_confirmations_required": false}).decode(t, &changed)
	if changed.Application.Name != "Renamed" || changed.Channel != "out_of_band" || changed.Confirmed {
		t.Errorf("%+v", changed)
	}
	g.send(http.MethodPatch, agent, g.token(alice), members{"name": "x"}).wantError(t, http.StatusForbidden, "Forbidden")
}

// TestOffboard checks that everything of a user ends with one call: tokens, keys, the connection at the provider and the
// open stream; that a look beforehand counts the same and ends nothing; and that the audit log has it once, with the numbers.
func TestOffboard(t *testing.T) {
	t.Parallel()
	g, p := startGateway(t, settings{}), newGrantor(t)
	boss, token, id := g.token(admin), g.token(alice), alice["sub"].(string)
	s := g.createServer(p.mcpURL(), p.entry())
	g.attackConnect(token, s, p).want(t, http.StatusOK)
	var key struct{ Key string }
	g.api(token, http.MethodPost, "/api/llm-gateway/user/api-keys", members{"name": "k", "scopes": []string{"llm"}}).decode(t, &key)
	type numbers struct {
		Connections int
		Keys        int  `json:"api_keys"`
		DryRun      bool `json:"dry_run"`
	}
	offboard := func(query string) (n numbers) {
		t.Helper()
		g.api(boss, http.MethodPost, "/api/users/"+id+"/offboard"+query, nil).decode(t, &n)
		return n
	}
	if n := offboard("?dry_run=true"); !n.DryRun || n.Connections != 1 || n.Keys != 1 {
		t.Errorf("the look counts %+v", n)
	}
	if got := g.connection(token, s); got != "connected" || len(p.told()) != 0 {
		t.Errorf("after the look the connection is %s, and the provider was told %v", got, p.told())
	}
	g.send(http.MethodPost, "/api/users/"+id+"/offboard", token, nil).wantError(t, http.StatusForbidden, "Forbidden")
	if n := offboard(""); n.DryRun || n.Connections != 1 || n.Keys != 1 {
		t.Errorf("the act counts %+v", n)
	}
	g.send(http.MethodGet, "/api/servers", token, nil).want(t, http.StatusUnauthorized)
	g.send(http.MethodGet, "/api/llm-gateway/v1/models", key.Key, nil).want(t, http.StatusUnauthorized)
	rig.Eventually(t, "the tokens to be revoked", p.toldAll)
	if n := offboard("?dry_run=false"); n.Connections != 0 || n.Keys != 0 {
		t.Errorf("repeated, it counts %+v", n)
	}
	var log struct {
		Data []struct {
			Event  string
			Detail struct {
				DryRun bool `json:"dry_run"`
				Ended  map[string]int
			}
		}
	}
	found := func() (n int) {
		g.api(boss, http.MethodGet, "/api/audit?limit=100", nil).decode(t, &log)
		for _, r := range log.Data {
			if r.Event == "user.offboard" && !r.Detail.DryRun && r.Detail.Ended["connections"] == 1 && r.Detail.Ended["api_keys"] == 1 {
				n++
			}
		}
		return n
	}
	rig.Eventually(t, "the record", func() bool { return found() > 0 })
	if n := found(); n != 1 {
		t.Errorf("%d records of it: %+v", n, log)
	}
}
