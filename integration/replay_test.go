package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// replayOutput is the output of `durward replay --json`.
type replayOutput struct {
	differences []members
	summary     struct {
		Calls        int
		Same         int
		NewlyDenied  int                                                    `json:"newly_denied"`
		NewlyAllowed int                                                    `json:"newly_allowed"`
		NewlyAsking  int                                                    `json:"newly_asking"`
		NotJudged    struct{ Calls, Arguments, Roles, Claims, Streams int } `json:"not_judged"`
		Groups       []struct {
			Name, Rule string
			Former     string `json:"former_decision"`
			New        string `json:"new_decision"`
			Calls      int
		}
	}
}

// replay replays a policy and returns the output. The gateway may be running.
func (g *gateway) replay(t *testing.T, policy string, arguments ...string) (out replayOutput) {
	t.Helper()
	text, err := g.run(slices.Concat([]string{"replay", "--policy", policy, "--json"}, g.source(), arguments)...)
	if err != nil {
		t.Fatalf("replay: %v\n%s", err, text)
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for _, line := range lines[:len(lines)-1] {
		var d members
		if err := json.Unmarshal([]byte(line), &d); err != nil || d["type"] != "difference" {
			t.Fatalf("%v: %s", err, line)
		}
		out.differences = append(out.differences, d)
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &out.summary); err != nil || !strings.HasPrefix(lines[len(lines)-1], `{"type":"summary"`) {
		t.Fatalf("%v: %s", err, lines[len(lines)-1])
	}
	return out
}

// draftFor makes a draft for a server and returns its id.
func (g *gateway) draftFor(s server, name string, rules ...any) string {
	g.t.Helper()
	var made struct{ Policy struct{ ID string } }
	g.api(g.token(admin), http.MethodPost, "/api/v2/policies", members{"name": name, "mcp_server_id": s.ID, "rules": rules}).decode(g.t, &made)
	return made.Policy.ID
}

// TestReplay checks that a draft says before it is active which calls of the last days it would have decided otherwise.
func TestReplay(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{option: "audit {\n arguments on\n}"})
	s := g.createServer(newMCPServer(t, nil).url, nil)
	users := map[string]string{"alice": g.token(alice), "bob": g.token(bob)}
	call := func(user, session, tool, text string) {
		t.Helper()
		g.mcp(users[user], s, session, fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":%q,"arguments":{"text":%q}}}`, tool, text)).want(t, http.StatusOK)
	}
	sessions := map[string]string{"alice": g.initialize(users["alice"], s), "bob": g.initialize(users["bob"], s)}
	for user, session := range sessions {
		for range 3 {
			call(user, session, "echo", "urgent")
			call(user, session, "echo", "later")
		}
		call(user, session, "upper", "urgent")
	}
	all := members{"name": "all", "authorized": true}
	active := g.object(users["alice"], http.MethodGet, "/api/v2/policies?status=ACTIVE", nil)["data"].([]any)[0].(members)["id"].(string)
	noUpper := g.draftFor(s, "No upper", all, members{"name": "no upper", "authorized": false, "actions": []string{"tools/call:upper"}})
	urgent := g.draftFor(s, "Nothing urgent from sales",
		members{"name": "reading", "authorized": true, "actions": []string{"tools/call:echo"}},
		members{"name": "asking", "authorized": true, "actions": []string{"tools/call:upper:approve"}},
		members{"name": "urgent", "authorized": false, "actions": []string{"tools/call:echo"}, "roles_groups": []string{"group:sales"},
			"condition": members{"match": members{"expr": "R.attr.text == 'urgent'"}}})
	claimed := g.draftFor(s, "By claim", all, members{"name": "rivals", "authorized": false, "condition": members{"match": members{"expr": "P.attr.org_id == 'rival'"}}})

	judge := func(t *testing.T) {
		same := g.replay(t, active)
		if same.summary.Calls != 14 || same.summary.Same != 14 || len(same.differences) != 0 {
			t.Errorf("the active policy: %+v", same)
		}
		denied := g.replay(t, noUpper, "--since", "1h")
		if denied.summary.NewlyDenied != 2 || denied.summary.Same != 12 || len(denied.differences) != 2 || len(denied.summary.Groups) != 1 {
			t.Fatalf("a draft that denies a tool: %+v", denied)
		}
		d := denied.differences[0]
		if d["kind"] != "tools/call" || d["name"] != "upper" || d["client"] == nil || d["user_id"] == "" {
			t.Errorf("%v", d)
		}
		if diff := cmp.Diff(members{"decision": "deny", "rule": "no upper", "policy_id": noUpper, "policy_revision": 1.0}, d["new"]); diff != "" {
			t.Error(diff)
		}
		if former := d["former"].(members); former["decision"] != "allow" || former["rule"] != "all" || former["policy_id"] != active {
			t.Errorf("%v", former)
		}
		conditional := g.replay(t, urgent, "--limit", "1")
		if c := conditional.summary; c.NewlyDenied != 3 || c.NewlyAsking != 2 || c.Same != 9 || c.NotJudged.Calls != 0 || len(conditional.differences) != 1 {
			t.Errorf("a draft with a condition: %+v", c)
		}
		if c := g.replay(t, claimed).summary; c.NotJudged.Calls != 14 || c.NotJudged.Claims != 14 || c.NotJudged.Arguments != 0 {
			t.Errorf("a draft that depends on claims: %+v", c)
		}
		if c := g.replay(t, noUpper, "--until", "1h").summary; c.Calls != 0 {
			t.Errorf("an hour ago: %+v", c)
		}
	}
	t.Run("beside the gateway", judge)
	text, err := g.run(append([]string{"replay", "--policy", urgent}, g.source()...)...)
	for _, want := range []string{
		`Policy "Nothing urgent from sales" (DRAFT, revision 1)`, "3  would newly be denied", "2  would newly ask", "9  stay as they were decided",
		`3  tools/call:echo   allow → deny  by rule "urgent"`, "bob@acme.test through", `was allowed by rule "all" (revision 1), would be held for approval by rule "asking"`,
	} {
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("%v: the text lacks %q:\n%s", err, want, text)
		}
	}
	t.Run("what cannot be", func(t *testing.T) {
		for want, arguments := range map[string][]string{
			"say which policy":      {},
			"no policy in":          append([]string{"--policy", "0198c6a0-0000-7000-8000-000000000009"}, g.source()...),
			"is neither a time":     {"--policy", active, "--data", g.directory, "--since", "yesterday"},
			"is not before":         {"--policy", active, "--data", g.directory, "--since", "1h", "--until", "2h"},
			"give its path to":      {"--policy", active, "--data", g.directory + "/nowhere"},
			"--limit -1 is less":    {"--policy", active, "--data", g.directory, "--limit", "-1"},
			"unknown command \"x\"": {"x"},
		} {
			if text, err := g.run(append([]string{"replay"}, arguments...)...); err == nil || !strings.Contains(text, want) {
				t.Errorf("replay %v: %v, want %q: %s", arguments, err, want, text)
			}
		}
	})
	g.stop(t)
	t.Run("without the gateway", judge)
}

// TestReplayWithoutArguments checks that decisions that depend on unrecorded arguments are not guessed.
func TestReplayWithoutArguments(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	s := g.createServer(newMCPServer(t, nil).url, nil)
	token := g.token(alice)
	session := g.initialize(token, s)
	g.mcp(token, s, session, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"text":"urgent"}}}`).want(t, http.StatusOK)
	g.callTool(token, s, session, "upper") // without any: that is known
	draft := g.draftFor(s, "Nothing urgent", members{"name": "all", "authorized": true},
		members{"name": "urgent", "authorized": false, "condition": members{"match": members{"expr": "has(R.attr.text) && R.attr.text == 'urgent'"}}})
	if c := g.replay(t, draft).summary; c.Calls != 2 || c.Same != 1 || c.NotJudged.Calls != 1 || c.NotJudged.Arguments != 1 {
		t.Errorf("%+v", c)
	}
}

// TestReplayWhatNoPolicyDecided checks that calls that nothing judged, and streams that are open to all, are known for
// what they were.
func TestReplayWhatNoPolicyDecided(t *testing.T) {
	t.Parallel()
	t.Run("off", func(t *testing.T) {
		t.Parallel()
		g := startGateway(t, settings{whole: true, site: "durward_auth\n durward_limit off\n durward_policy off\n durward_credential\n durward_mcp\n durward_platform"})
		s := g.bareServer(newMCPServer(t, nil).url, nil)
		token := g.token(bob)
		session := g.initialize(token, s)
		g.callTool(token, s, session, "echo")
		g.callTool(token, s, session, "upper")
		draft := g.draftFor(s, "Sales", members{"name": "upper", "authorized": true, "actions": []string{"tools/call:upper"}, "roles_groups": []string{"group:sales"}})
		out := g.replay(t, draft)
		if c := out.summary; c.Calls != 2 || c.Same != 1 || c.NewlyDenied != 1 || len(out.differences) != 1 {
			t.Fatalf("%+v", out)
		}
		if d := out.differences[0]; d["name"] != "echo" || d["former"].(members)["decision"] != "off" {
			t.Errorf("%v", d)
		}
	})
	t.Run("streams", func(t *testing.T) {
		t.Parallel()
		g := startGateway(t, settings{})
		upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
			w.Header().Set("Content-Type", "text/event-stream")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		s := g.bareServer(upstream.url, members{"protocol": "sse"})
		stream := g.listen(http.MethodGet, "/sse/"+s.Slug, g.token(alice), nil)
		stream.next() // connected
		if c := g.replay(t, g.draftFor(s, "Tools", members{"name": "all tools", "authorized": true, "actions": []string{"tools/call:*"}})).summary; c.Calls != 1 || c.Same != 1 {
			t.Errorf("a draft that says nothing of streams: %+v", c)
		}
		denying := g.draftFor(s, "No streams", members{"name": "no", "authorized": false, "actions": []string{"sse/stream"}})
		if c := g.replay(t, denying).summary; c.Calls != 1 || c.NewlyDenied != 1 {
			t.Errorf("a draft that denies streams: %+v", c)
		}
	})
}
