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
