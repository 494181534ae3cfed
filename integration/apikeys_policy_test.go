package integration

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/integration/rig"
)

// refusedTool reports whether policies refuse a call.
func refusedTool(a answer) bool {
	return a.status == http.StatusOK && strings.Contains(string(a.body), `"error"`)
}

// ruled makes a server with these rules and without an account to connect.
func (g *gateway) ruled(rules ...any) server {
	g.t.Helper()
	s := g.bareServer(answering(g.t).url, nil)
	g.api(g.token(admin), http.MethodPost, "/api/policy", map[string]any{"name": "Of " + s.ID, "mcp_server_id": s.ID, "status": "ACTIVE", "rules": rules})
	return s
}

// TestAttackKeyAndPolicy checks that a user's own key for MCP servers is held to what policies say of the user, by what
// their newest token says, and to those of the agent that it was made for (K09).
func TestAttackKeyAndPolicy(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{option: approvalConsole})
	all := members{"name": "all", "authorized": true}
	no := func(more members) members {
		rule := members{"name": "no", "authorized": false}
		for name, value := range more {
			rule[name] = value
		}
		return rule
	}
	byGroup := g.ruled(all, no(members{"roles_groups": []string{"group:sales"}}))
	byCondition := g.ruled(all, no(members{"condition": members{"match": members{"expr": `"sales" in P.groups`}}}))
	byClaim := g.ruled(all, no(members{"condition": members{"match": members{"expr": `has(P.attr.floor) && P.attr.floor == 7`}}}))
	granted := g.ruled(members{"name": "staff", "authorized": true, "roles_groups": []string{"role:staff"}})
	open := g.ruled(all)
	call := func(key string, s server) answer { return g.mcp(key, s, "", toolCall("echo")) }
	at := func(seconds int) any { return time.Now().Add(time.Duration(seconds) * time.Second).Unix() }

	seller := alice.with(claims{"groups": []string{"sales"}, "roles": []string{"staff"}, "iat": at(-60)})
	token := g.consoleToken(seller)
	if !refusedTool(call(token, byGroup)) || !refusedTool(call(token, byCondition)) || refusedTool(call(token, granted)) {
		t.Fatal("the user's own token")
	}
	key, _ := g.makeKey(token, "mcp")
	for name, s := range map[string]server{"group": byGroup, "condition": byCondition, "claim": byClaim} {
		if a := call(key, s); !refusedTool(a) {
			t.Errorf("the key gets through where %s denies: %s", name, a.body)
		}
	}
	for name, s := range map[string]server{"everybody": open, "the role": granted} {
		if a := call(key, s); a.status != http.StatusOK || refusedTool(a) {
			t.Errorf("the key does not get what %s has: %d %s", name, a.status, a.body)
		}
	}

	// The newest token counts: a newer one with fewer claims restricts the key, and an older one gives nothing back.
	left := alice.with(claims{"groups": []string{}, "roles": []string{}, "iat": at(-30)})
	g.send(http.MethodGet, "/api/servers", g.token(left), nil).want(t, http.StatusOK)
	rig.Eventually(t, "the key to have lost the role", func() bool { return refusedTool(call(key, granted)) })
	g.send(http.MethodGet, "/api/servers", g.token(seller.with(claims{"iat": at(-45)})), nil).want(t, http.StatusOK)
	if a := call(key, granted); !refusedTool(a) {
		t.Errorf("an older token gives the key its role back: %s", a.body)
	}
	if a := call(key, byGroup); refusedTool(a) {
		t.Errorf("not in the group any more: %s", a.body)
	}

	// A token that does not say when it was issued says nothing about keys, so that denies match.
	stranger := g.consoleToken(bob.with(claims{"iat": nil, "groups": []string{}, "roles": []string{"staff"}}))
	unknown, _ := g.makeKey(stranger, "mcp")
	if a := call(unknown, byGroup); !refusedTool(a) {
		t.Errorf("nothing is known of the user: %s", a.body)
	}
	if a := call(unknown, granted); !refusedTool(a) {
		t.Errorf("nothing is known of the user, and a role grants: %s", a.body)
	}
	if a := call(unknown, open); refusedTool(a) {
		t.Errorf("nothing is known of the user, and everybody may: %s", a.body)
	}

	// An agent's token makes none; a key of an agent is governed by its policies, and goes with it.
	g.send(http.MethodPost, keysPath, g.token(seller), members{"name": "Mine", "scopes": []string{"mcp"}}).wantError(t, http.StatusForbidden, "Forbidden")
	agent := g.object(g.token(admin), http.MethodPost, "/api/agents", members{"application_directory": members{"name": "Robot", "external_id": "robot"}})
	id := agent["id"].(string)
	narrow := g.ruled(all)
	g.api(g.token(admin), http.MethodPost, "/api/policy", map[string]any{"name": "Robot's", "mcp_server_id": narrow.ID, "status": "ACTIVE", "application_ids": []string{id}, "rules": []any{no(nil)}})
	made := g.object(g.consoleToken(admin), http.MethodPost, keysPath, members{"name": "Robot's", "scopes": []string{"mcp"}, "agent_id": id})
	robot := made["key"].(string)
	if a := call(robot, narrow); !refusedTool(a) {
		t.Errorf("the agent's policy: %s", a.body)
	}
	g.api(g.token(admin), http.MethodDelete, "/api/agents/"+id, nil)
	call(robot, narrow).wantError(t, http.StatusUnauthorized, "Unauthorized")
}
