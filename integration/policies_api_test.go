package integration

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// members holds the members of a JSON object.
type members = map[string]any

// plainServer makes a server of acme's without any policy and returns its id.
func (g *gateway) plainServer(name string) string {
	g.t.Helper()
	var entry, made struct{ ID string }
	token := g.token(admin)
	g.api(token, http.MethodPost, "/api/server-directory", members{"name": name, "url": "http://127.0.0.1:1/mcp", "provider": "none", "requires_auth": false}).decode(g.t, &entry)
	g.api(token, http.MethodPost, "/api/servers?test=false", members{"name": name, "mcp_server_directory_id": entry.ID}).decode(g.t, &made)
	return made.ID
}

// registerAgent registers a client as an internal agent of the caller's organization and returns the agent's id.
func (g *gateway) registerAgent(caller claims, client string) string {
	g.t.Helper()
	var made struct{ ID string }
	g.api(g.token(caller), http.MethodPost, "/api/agents", members{"application_directory": members{"external_id": client}}).decode(g.t, &made)
	return made.ID
}

func (g *gateway) object(token, method, path string, body any) members {
	g.t.Helper()
	var out members
	g.api(token, method, path, body).decode(g.t, &out)
	return out
}

// TestPolicyAPI walks through the life of a policy as an administrator has it.
func TestPolicyAPI(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	server, agent := g.plainServer("Tracker"), g.registerAgent(admin, "assistant")
	boss, user := g.token(admin), g.token(alice)
	rules := []any{
		members{"name": "Reading", "authorized": true, "actions": []string{"tools/call:list_*", "resources/read:*"}},
		members{"name": "Writing asks", "authorized": true, "actions": []string{"tools/call:create_issue:approve"}, "roles_groups": []string{"group:engineering"}},
		members{"name": "Nothing urgent", "authorized": false, "actions": []string{"tools/call:create_issue"},
			"condition": members{"match": members{"all": members{"of": []any{members{"expr": "request.resource.attr.priority == 1"}}}}}},
	}
	a := g.send(http.MethodPost, "/api/v2/policies", boss, members{"name": "Tracker", "mcp_server_id": server, "application_ids": []string{agent}, "rules": rules})
	a.want(t, http.StatusCreated)
	var created struct{ Policy struct{ ID string } }
	a.decode(t, &created)
	path := "/api/v2/policies/" + created.Policy.ID
	g.send(http.MethodPost, "/api/v2/policies", user, members{"name": "x"}).wantError(t, http.StatusForbidden, "Forbidden")

	explain := func(priority any) members {
		return g.object(user, http.MethodPost, "/api/v2/policies/explain", members{
			"policy_id": created.Policy.ID, "agent_id": agent, "action": "tools/call:create_issue", "arguments": members{"priority": priority},
		})
	}
	if got := explain(2); got["decision"] != "ask" || got["rule"] != "Writing asks" {
		t.Errorf("a draft is explained as %v", got)
	}
	if got := explain(1); got["decision"] != "deny" || got["rule"] != "Nothing urgent" {
		t.Errorf("a draft is explained as %v", got)
	}
	var both []any
	for _, priority := range []int{1, 2} {
		both = append(both, members{"policy_id": created.Policy.ID, "agent_id": agent, "action": "tools/call:create_issue", "arguments": members{"priority": priority}})
	}
	if got := g.object(user, http.MethodPost, "/api/v2/policies/explain", members{"calls": both}); !cmp.Equal(got["data"], any([]any{explain(1), explain(2)})) {
		t.Errorf("two calls are explained as %v", got)
	}
	if got := g.object(boss, http.MethodPut, "/api/policy/enable?id="+created.Policy.ID, nil); got["enabledPolicies"] != 1.0 {
		t.Errorf("%v", got)
	}
	saved := g.object(boss, http.MethodPost, "/api/policy", members{"name": "Tracker", "mcp_server_id": server, "description": "changed"})
	if policy := saved["policy"].(members); saved["created"] != false || policy["description"] != "changed" || policy["rules_count"] != 3.0 || policy["status"] != "ACTIVE" {
		t.Errorf("%v", saved)
	}
	g.api(boss, http.MethodPatch, path, members{"tags": []string{"reviewed"}})
	g.api(boss, http.MethodPost, path+"/clone", nil)
	revisions := g.object(boss, http.MethodGet, path+"/revisions", nil)["data"].([]any)
	if len(revisions) != 4 || !cmp.Equal(revisions[0].(members)["changes"], []any{members{"field": "tags", "before": []any{}, "after": []any{"reviewed"}}}) {
		t.Errorf("revisions %v", revisions)
	}
	written, _ := g.audit(boss, url.Values{"policy_id": {created.Policy.ID}, "kind": {"admin"}})
	for i, row := range written {
		if row.PolicyRevision != len(revisions)-i {
			t.Errorf("%s is recorded with revision %d", row.Event, row.PolicyRevision)
		}
	}
	if len(written) != len(revisions) {
		t.Errorf("%d writes of %d revisions are recorded", len(written), len(revisions))
	}
	if diff := cmp.Diff(members{"active": 1.0, "draft": 1.0, "inactive": 0.0, "archived": 0.0, "total": 2.0}, g.object(user, http.MethodGet, "/api/v2/policies/summary", nil)); diff != "" {
		t.Error(diff)
	}
	g.send(http.MethodPost, "/api/policy", boss, nil).want(t, http.StatusUnprocessableEntity)
	g.send(http.MethodPost, "/api/policy", boss, members{"policies": []any{members{"resourcePolicy": members{}}}}).want(t, http.StatusUnprocessableEntity)

	// The agent is deleted, and with it the policies for it alone.
	g.send(http.MethodDelete, "/api/agents/"+agent, boss, nil).want(t, http.StatusNoContent)
	if policy := g.object(user, http.MethodGet, path, nil)["policy"].(members); policy["status"] != "ARCHIVED" || !cmp.Equal(policy["application_ids"], []any{agent}) {
		t.Errorf("%v", policy)
	}
	t.Run("it outlives the process", func(t *testing.T) {
		before := string(g.api(user, http.MethodGet, path, nil).body)
		g.restart()
		if after := string(g.api(user, http.MethodGet, path, nil).body); after != before {
			t.Errorf("%s\nwas %s", after, before)
		}
	})
}

// TestAttackPolicyOverlap checks that of many that would govern the same, one does, however it comes about (M23).
func TestAttackPolicyOverlap(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	boss, server, agent := g.token(admin), g.plainServer("Tracker"), g.registerAgent(admin, "assistant")
	for name, applications := range map[string][]string{"one agent": {agent}, "all agents": {}} {
		t.Run("M23 "+name, func(t *testing.T) {
			const many = 24
			statuses := make([]int, many)
			var wait sync.WaitGroup
			for i := range many {
				body := members{"name": fmt.Sprint(name, i), "mcp_server_id": server, "application_ids": applications, "status": "ACTIVE"}
				if i%2 == 0 {
					body["status"] = "DRAFT"
				}
				wait.Go(func() {
					a, err := g.try(http.MethodPost, "/api/v2/policies", boss, body)
					if statuses[i] = a.status; err != nil {
						t.Error(err)
					}
					if i%2 != 0 || a.status != http.StatusCreated {
						return
					}
					var made struct{ Policy struct{ ID string } }
					a.decode(t, &made)
					if a, err = g.try(http.MethodPut, "/api/policy/enable?id="+made.Policy.ID, boss, nil); err != nil {
						t.Error(err)
					}
					statuses[i] = a.status
				})
			}
			wait.Wait()
			held := 0
			for _, status := range statuses {
				switch status {
				case http.StatusOK, http.StatusCreated:
					held++
				case http.StatusConflict:
				default:
					t.Errorf("status %d", status)
				}
			}
			list := g.object(boss, http.MethodGet, "/api/v2/policies?status=ACTIVE&search="+strings.ReplaceAll(name, " ", "%20"), nil)
			if active := list["pagination"].(members)["total"]; held != 1 || active != 1.0 {
				t.Errorf("%d succeeded, %v are active", held, active)
			}
		})
	}
}

// TestAttackPolicyReferences checks that another organization's objects are nobody's (O01, O02, O03).
func TestAttackPolicyReferences(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	server, agent := g.plainServer("Tracker"), g.registerAgent(admin, "assistant")
	var ours struct{ Policy struct{ ID string } }
	g.api(g.token(admin), http.MethodPost, "/api/v2/policies", members{"name": "Ours", "mcp_server_id": server}).decode(t, &ours)
	spy := g.token(eve)
	const random = "0190cccc-0000-7000-8000-000000000001"
	for _, attack := range []struct {
		name, method, path string
		id                 string
		body               func(id string) any
		status             int
	}{
		{"O01 policy", http.MethodGet, "/api/v2/policies/ID", ours.Policy.ID, nil, 404},
		{"O01 policy's revisions", http.MethodGet, "/api/v2/policies/ID/revisions", ours.Policy.ID, nil, 404},
		{"O01 change", http.MethodPatch, "/api/v2/policies/ID", ours.Policy.ID, func(string) any { return members{"name": "Stolen"} }, 404},
		{"O01 agent", http.MethodGet, "/api/agents/ID", agent, nil, 404},
		{"O01 deletion", http.MethodDelete, "/api/agents/ID", agent, nil, 404},
		{"O01 user", http.MethodPost, "/api/users/ID/revoke", alice["sub"].(string), nil, 404},
		{"O02 server", http.MethodPost, "/api/policy", server, func(id string) any { return members{"name": "x", "mcp_server_id": id} }, 422},
		{"O02 agent", http.MethodPost, "/api/v2/policies", agent, func(id string) any {
			return members{"name": "x", "mcp_server_id": random, "application_ids": []string{id}}
		}, 422},
		{"O03 batch", http.MethodPut, "/api/policy/disable?id=ID", ours.Policy.ID, nil, 404},
	} {
		t.Run(attack.name, func(t *testing.T) {
			try := func(id string) answer {
				var body any
				if attack.body != nil {
					body = attack.body(id)
				}
				return g.send(attack.method, strings.Replace(attack.path, "ID", id, 1), spy, body)
			}
			foreign, unknown := try(attack.id), try(random)
			if foreign.status != attack.status || string(foreign.body) != string(unknown.body) {
				t.Errorf("%d %s\nunknown %s", foreign.status, foreign.body, unknown.body)
			}
		})
	}
	if policy := g.object(g.token(alice), http.MethodGet, "/api/v2/policies/"+ours.Policy.ID, nil)["policy"].(members); policy["revision"] != 1.0 {
		t.Errorf("changed: %v", policy)
	}
}

// TestAttackRevokedUser checks that tokens are refused and streams end before the administrator has an answer (R06).
func TestAttackRevokedUser(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
		beginEvents(w)
		<-r.Context().Done()
	})
	changes := bearerEntry()
	changes["events_url"] = upstream.url
	s := g.createServer(upstream.url, changes)
	early := alice.with(claims{"iat": time.Now().Unix() - 10})
	hers, his := g.token(early), g.token(bob)
	for _, token := range []string{hers, his} {
		g.connectBearer(token, s, "secret")
	}
	stream, other := g.listen(http.MethodGet, "/sse/"+s.Slug, hers, nil), g.listen(http.MethodGet, "/sse/"+s.Slug, his, nil)
	for _, open := range []*eventStream{stream, other} {
		if e := open.next(); e.name != "connected" {
			t.Fatalf("%+v", e)
		}
	}
	boss := g.token(admin)
	revoked := g.object(boss, http.MethodPost, "/api/users/"+alice["sub"].(string)+"/revoke", members{"connections": true})
	if revoked["revoked"] != true || revoked["streams_ended"] != 1.0 || revoked["connections_removed"] != 1.0 {
		t.Errorf("%v", revoked)
	}
	g.send(http.MethodGet, "/api/servers", hers, nil).wantError(t, http.StatusUnauthorized, "Unauthorized")
	g.send(http.MethodGet, "/sse/"+s.Slug, hers, nil).wantError(t, http.StatusUnauthorized, "Unauthorized")
	if e := stream.next(); e.name != "status_change" || !strings.Contains(e.data, `"revoked"`) {
		t.Errorf("the stream ends with %+v", e)
	}
	g.send(http.MethodGet, "/api/servers", his, nil).want(t, http.StatusOK)
	// A user who logs in again is let in, with nothing connected. Issuers count in seconds.
	again := g.token(alice.with(claims{"iat": time.Now().Unix() + 2}))
	if got := g.connection(again, s); got != "available" {
		t.Errorf("the connection is %s", got)
	}
	select {
	case e := <-other.events:
		t.Errorf("another user's stream got %+v", e)
	default:
	}
}

// TestAgentRules checks that clients that nobody registered are refused, or registered, as the configuration says.
func TestAgentRules(t *testing.T) {
	t.Parallel()
	t.Run("require_registered", func(t *testing.T) {
		t.Parallel()
		g := startGateway(t, settings{option: "agents require_registered"})
		upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
			if r.Method == http.MethodGet {
				beginEvents(w)
				<-r.Context().Done()
				return
			}
			writeJSON(w, http.StatusOK, members{"jsonrpc": "2.0", "id": 1, "result": members{}})
		})
		s := g.createServer(upstream.url, nil)
		stranger, known := g.token(alice.with(claims{"azp": "stranger", "client_id": nil})), g.token(alice.with(claims{"azp": "assistant", "client_id": nil}))
		for _, path := range []string{"/mcp/" + s.Slug, "/sse/" + s.Slug, "/mcp/no-such-server", "/mcp/NOT_A_SLUG"} {
			g.send(http.MethodGet, path, stranger, nil, "Accept", "text/event-stream").wantError(t, http.StatusForbidden, "Forbidden")
		}
		g.send(http.MethodGet, "/api/servers", stranger, nil).want(t, http.StatusOK)
		explained := g.object(stranger, http.MethodPost, "/api/v2/policies/explain", members{"server": s.Slug, "action": "tools/call:x"})
		if reason, _ := explained["reason"].(string); explained["decision"] != "deny" || !strings.Contains(reason, "not registered") {
			t.Errorf("%v", explained)
		}
		agent := g.registerAgent(admin, "assistant")
		a := g.send(http.MethodPost, s.path, known, pingMessage, "Accept", bothKinds)
		if a.status != http.StatusOK {
			t.Errorf("a registered client: %d %s", a.status, a.body)
		}
		stream := g.listen(http.MethodGet, s.path, known, nil, "Accept", "text/event-stream")
		g.api(g.token(admin), http.MethodPost, "/api/policy", members{"name": "Nothing", "mcp_server_id": s.ID, "status": "DRAFT"})
		select {
		case e, open := <-stream.events:
			t.Errorf("the stream of a registered client: %v, open %v", e, open)
		default:
		}
		g.api(g.token(admin), http.MethodDelete, "/api/agents/"+agent, nil)
		stream.ended() // with the right to be there
		g.send(http.MethodPost, s.path, known, pingMessage, "Accept", bothKinds).wantError(t, http.StatusForbidden, "Forbidden")
	})
	t.Run("auto_register", func(t *testing.T) {
		t.Parallel()
		g := startGateway(t, settings{option: "agents auto_register"})
		for range 2 {
			g.api(g.token(alice.with(claims{"azp": "stranger", "client_id": nil})), http.MethodGet, "/api/servers", nil)
		}
		found := g.object(g.token(admin), http.MethodGet, "/api/agents?search=stranger", nil)["data"].([]any)
		if len(found) != 1 || found[0].(members)["agent_type"] != "external" || found[0].(members)["approval_channel"] != "out_of_band" {
			t.Errorf("%v", found)
		}
	})
}

// TestDevAgents checks that the development provider's own clients are internal agents.
func TestDevAgents(t *testing.T) {
	d := newDevHome(t).start(t)
	status, body := d.api(t, d.token(t), http.MethodGet, "/api/agents?search=dev-&agent_type=internal")
	if status != http.StatusOK || !strings.Contains(body, `"dev-agent"`) || !strings.Contains(body, `"dev-console"`) || !strings.Contains(body, `"dev-service"`) {
		t.Errorf("%d %s", status, body)
	}
}
