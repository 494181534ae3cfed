package integration

import (
	"net/http"
	"net/url"
	"testing"
)

// TestAuditSearch checks that cursors lead through the whole log, that values are counted, that users see their own calls
// with the reason of a refusal and nobody else's, and that the state of the log is told to administrators alone.
func TestAuditSearch(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	party := newThirdParty(t)
	s := g.bareServer(party.url()+"/open", nil)
	g.govern(s, granting("*"), denying("tools/call:drop"))
	boss, token, stranger := g.token(admin), g.token(alice), g.token(bob)
	session := g.initialize(token, s)
	for range 4 {
		g.mcp(token, s, session, toolCallWith("pay", `{}`)).want(t, http.StatusOK)
	}
	g.mcp(token, s, session, toolCallWith("drop", `{}`)).want(t, http.StatusOK)
	g.mcp(stranger, s, g.initialize(stranger, s), toolCallWith("peek", `{}`)).want(t, http.StatusOK)

	all, total := g.audit(boss, url.Values{"limit": {"100"}})
	var followed []string
	for cursor := ""; ; {
		page := g.object(boss, http.MethodGet, "/api/audit?limit=3&cursor="+cursor, nil)
		for _, row := range page["data"].([]any) {
			followed = append(followed, row.(members)["id"].(string))
		}
		if page["pagination"] != nil || page["partial"] != false || len(followed) > total {
			t.Fatalf("%v", page)
		}
		more, ok := page["next_cursor"].(string)
		if cursor = more; !ok {
			break
		}
	}
	if len(followed) != total || len(all) != total {
		t.Errorf("%d rows behind cursors, %d of %d on a page", len(followed), len(all), total)
	}
	for i := range min(len(followed), len(all)) {
		if followed[i] != all[i].ID {
			t.Errorf("row %d is %s behind cursors and %s on a page", i, followed[i], all[i].ID)
		}
	}
	facets := g.object(boss, http.MethodGet, "/api/audit?cursor=&kind=call&facets=tool,outcome", nil)["facets"].(members)
	tools := facets["values"].(members)["tool"].(members)["values"].([]any)
	if first := tools[0].(members); facets["partial"] != false || first["value"] != "pay" || first["count"] != 4.0 {
		t.Errorf("%v", facets)
	}

	mine := func(token string) (rows []members) {
		for _, row := range g.object(token, http.MethodGet, "/api/audit/mine?limit=100&user_id="+all[0].UserID, nil)["data"].([]any) {
			rows = append(rows, row.(members))
		}
		return rows
	}
	seen := make(map[string]bool)
	for _, row := range mine(token) {
		seen[row["id"].(string)] = true
		if row["tool"] == "drop" && (row["decision"] != "deny" || row["outcome"] != "denied" || row["rule"] == nil) {
			t.Errorf("why was it refused? %v", row)
		}
		if row["tool"] == "pay" && row["outcome"] != "ok" {
			t.Errorf("what became of it? %v", row)
		}
	}
	others := mine(stranger)
	for _, row := range others {
		if tool := row["tool"]; seen[row["id"].(string)] || tool == "pay" || tool == "drop" {
			t.Errorf("another's call: %v", row)
		}
	}
	if len(seen) < 5 || len(others) == 0 {
		t.Errorf("%d and %d own calls", len(seen), len(others))
	}

	g.send(http.MethodGet, "/api/audit/status", token, nil).wantError(t, http.StatusForbidden, "Forbidden")
	status := g.object(boss, http.MethodGet, "/api/audit/status", nil)
	if journal := status["journal"].(members); status["newest"] == nil || journal["segments"] != 1.0 || journal["set_aside"] != 0.0 {
		t.Errorf("%v", status)
	}
}
