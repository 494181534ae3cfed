package integration

import (
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestAuditOfHeldCall checks that every event of a credential, and of a call that waits for its user's decision, is
// recorded with the user and the client, under ids that lead from one to the other. It is found by each of these ids.
func TestAuditOfHeldCall(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{option: approvalConsole})
	agent := g.registerAgent(admin, "test-client")
	party := newThirdParty(t)
	s := g.bareServer(party.url()+"/open", bearerEntry())
	g.govern(s, granting("tools/call:pay:approve"), granting("tools/call:echo"))
	boss, token, console := g.token(admin), g.token(alice), g.consoleToken(alice)
	g.connectBearer(token, s, "a-secret-of-hers")
	const trace = "0af7651916cd43dd8448eb211c80319c"
	pay := func(traceparent string) {
		t.Helper()
		g.send(http.MethodPost, s.path, token, toolCallWith("pay", `{"to":"bob"}`), append(mcpHeader(""), "Traceparent", traceparent, "X-Tag-Session-Id", "tag")...).want(t, http.StatusOK)
	}
	pay("00-" + trace + "-b7ad6b7169203331-01")
	pending := g.object(console, http.MethodGet, "/api/approvals?status=pending", nil)["data"].([]any)
	if len(pending) != 1 {
		t.Fatalf("pending: %v", pending)
	}
	approval := pending[0].(members)["id"].(string)
	if n := reached(party); n != 0 {
		t.Errorf("%d requests reached the third party before the word", n)
	}
	g.api(console, http.MethodPost, "/api/approvals/"+approval+"/approve", nil)
	pay("00-" + trace + "-0000000000000001-00")
	g.callTool(token, s, "", "echo").want(t, http.StatusOK)
	for _, bad := range []string{"00-00000000000000000000000000000000-b7ad6b7169203331-01", "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", "00-" + trace, "x"} {
		g.send(http.MethodPost, s.path, token, toolCall("echo"), append(mcpHeader(""), "Traceparent", bad)...).want(t, http.StatusOK)
	}
	g.api(token, http.MethodDelete, "/api/servers/"+s.ID+"/connection", nil)

	policy := g.object(boss, http.MethodGet, "/api/v2/policies", nil)["data"].([]any)[0].(members)["id"].(string)
	events := func(filter url.Values) (found []string) {
		t.Helper()
		filter.Set("limit", "100")
		for _, one := range g.object(boss, http.MethodGet, "/api/audit?"+filter.Encode(), nil)["data"].([]any) {
			row := one.(members)
			what := row["event"].(string)
			if row["kind"] == "call" {
				what += " " + row["tool"].(string) + " " + row["outcome"].(string)
			}
			found = append(found, what)
		}
		slices.Reverse(found)
		return found
	}
	of := []string{"approval.requested", "decision pay held", "approval.approved", "approval.used", "decision pay ok"}
	for _, tc := range []struct {
		name   string
		filter url.Values
		want   []string
	}{
		{"approval", url.Values{"approval_id": {approval}}, of},
		{"kind approval", url.Values{"kind": {"approval"}}, []string{"approval.requested", "approval.approved", "approval.used"}},
		{"kind credential", url.Values{"kind": {"credential"}}, []string{"credential.stored", "credential.deleted"}},
		{"agent and tool", url.Values{"agent_id": {agent}, "tool": {"pay"}}, []string{"approval.requested", "decision pay held", "decision pay ok"}},
		{"policy and decision", url.Values{"policy_id": {policy}, "decision": {"ask"}}, []string{"decision pay held", "decision pay ok"}},
		{"session", url.Values{"session": {"tag"}, "mcp_server_id": {s.ID}}, []string{"decision pay held", "decision pay ok"}},
		{"outcome", url.Values{"outcome": {"held"}}, []string{"decision pay held"}},
		{"user", url.Values{"user_id": {bob["sub"].(string)}}, nil},
		{"another agent", url.Values{"agent_id": {s.ID}}, nil},
	} {
		if diff := cmp.Diff(tc.want, events(tc.filter)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tc.name, diff)
		}
	}
	for _, one := range g.object(boss, http.MethodGet, "/api/audit?limit=100&approval_id="+approval, nil)["data"].([]any) {
		row := one.(members)
		client, channel := "test-client", any(nil)
		if row["event"] == "approval.approved" {
			client, channel = "console", "out_of_band"
		}
		if row["event"] == "approval.used" {
			client = "" // the call's own record has it
		}
		if got, _ := row["client"].(string); row["user_id"] != alice["sub"] || got != client || row["detail"].(members)["channel"] != channel {
			t.Errorf("%v", row)
		}
		if row["kind"] == "call" && (row["agent_id"] != agent || row["trace_id"] != trace || row["policy_id"] != policy || row["rule"] != "grant tools/call:pay:approve") {
			t.Errorf("%v", row)
		}
	}
	for _, one := range g.object(boss, http.MethodGet, "/api/audit?limit=100&tool=echo", nil)["data"].([]any) {
		if one.(members)["trace_id"] != nil {
			t.Errorf("a trace out of nothing: %v", one)
		}
	}
}

// TestAuditOfTraces checks that where Caddy's tracing runs a record has the trace that it says, whatever header carries
// it.
func TestAuditOfTraces(t *testing.T) {
	t.Parallel()
	const client = "0af7651916cd43dd8448eb211c80319c"
	for _, c := range []struct {
		propagators string
		continues   bool // the client's trace
	}{{"", true}, {"b3", false}, {"none", false}, {"tracecontext,none", false}} {
		t.Run(c.propagators, func(t *testing.T) {
			t.Parallel()
			g := startGateway(t, settings{site: "tracing", env: []string{"OTEL_TRACES_EXPORTER=none", "OTEL_PROPAGATORS=" + c.propagators}})
			g.registerAgent(admin, "test-client")
			s := g.bareServer(newThirdParty(t).url()+"/open", bearerEntry())
			g.govern(s, granting("tools/call:echo"))
			boss, token := g.token(admin), g.token(alice)
			g.connectBearer(token, s, "a-secret-of-hers")
			g.callTool(token, s, "", "echo").want(t, http.StatusOK)
			g.send(http.MethodPost, s.path, token, toolCall("echo"), append(mcpHeader(""), "Traceparent", "00-"+client+"-b7ad6b7169203331-01")...).want(t, http.StatusOK)
			rows := g.object(boss, http.MethodGet, "/api/audit?limit=100&tool=echo", nil)["data"].([]any)
			if len(rows) != 2 {
				t.Fatalf("%d records", len(rows))
			}
			second, first := rows[0].(members)["trace_id"], rows[1].(members)["trace_id"]
			if id, _ := first.(string); len(id) != 32 || first == second {
				t.Errorf("the first call's trace is %v, the second's %v", first, second)
			}
			if (second == client) != c.continues {
				t.Errorf("the second call's trace is %v", second)
			}
		})
	}
}

// TestAuditOfRefusals checks that requests that are refused before they are calls, and those that find nothing to
// change, are in the log of the organization, with their callers.
func TestAuditOfRefusals(t *testing.T) {
	t.Parallel()
	provider := newLLMProvider(t, func(w http.ResponseWriter, _ *http.Request, _ string) { answerJSON(w, http.StatusOK, chatAnswer) })
	g := startGateway(t, settings{env: []string{"PROVIDER_KEY=sk-configured"}, option: approvalConsole + `
		provider openai house {
			base_url ` + provider.URL + `/v1
			key {env.PROVIDER_KEY}
		}
		alias small {
			target house gpt-real
		}`})
	s := g.bareServer(newThirdParty(t).url()+"/open", nil)
	boss, user := g.token(admin), g.token(alice)
	key, id := g.makeKey(g.consoleToken(alice), "mcp")
	models, modelsID := g.makeKey(user, "llm")
	g.send(http.MethodPost, s.path, models, pingMessage, "Accept", bothKinds).want(t, http.StatusForbidden)
	g.api(user, http.MethodDelete, keysPath+"/"+id, nil)
	g.send(http.MethodPost, s.path, key, pingMessage, "Accept", bothKinds).want(t, http.StatusUnauthorized)

	const trace, unknown = "0af7651916cd43dd8448eb211c80319c", `{"model":"nope","messages":[]}`
	ask := func(body string, status int) {
		t.Helper()
		g.send(http.MethodPost, chatPath, user, body, "Traceparent", "00-"+trace+"-b7ad6b7169203331-01", "X-Tag-Session-Id", "tag").want(t, status)
	}
	ask(unknown, http.StatusNotFound)
	ask(chatAsked, http.StatusOK)
	g.object(boss, http.MethodPost, llmBase+"/admin/rate-limits", members{"name": "None", "scope_type": "org", "requests_per_minute": 1, "traffic_type": "llm"})
	for range 2 { // whether the call before counts in it or not
		g.send(http.MethodPost, chatPath, user, chatAsked)
	}
	ask(chatAsked, http.StatusTooManyRequests)

	policy := g.object(boss, http.MethodPost, "/api/policy", members{"name": "All", "mcp_server_id": s.ID, "status": "ACTIVE", "rules": []any{members{"name": "all", "authorized": true}}})
	g.api(boss, http.MethodPut, "/api/policy/enable?id="+policy["policy"].(members)["id"].(string), nil)

	wanted := []string{"the scopes of the API key do not cover this address", "the API key was revoked", "nope refused", "small ok", " limited", "unchanged"}
	var found map[string]bool
	missing := func(what string) bool { return !found[what] }
	// Refusals are recorded behind their answers.
	for deadline := time.Now().Add(callTimeout); ; {
		found = g.refusalsFound(t, boss, id, modelsID, trace)
		if !slices.ContainsFunc(wanted, missing) || time.Now().After(deadline) {
			break
		}
	}
	for _, want := range wanted {
		if missing(want) {
			t.Errorf("not recorded: %s, in %v", want, found)
		}
	}
}

// refusalsFound reads the newest records, and returns those of TestAuditOfRefusals.
func (g *gateway) refusalsFound(t *testing.T, boss, id, modelsID, trace string) map[string]bool {
	t.Helper()
	var page struct {
		Data []struct {
			auditRow
			Trace string `json:"trace_id"`
		}
	}
	g.send(http.MethodGet, "/api/audit?limit=100", boss, nil).want(t, http.StatusOK).decode(t, &page)
	found := make(map[string]bool)
	for _, r := range page.Data {
		reason, _ := r.Detail["reason"].(string)
		what := ""
		switch {
		case r.Event == "token.refused":
			what = reason
			if key := r.Detail["api_key_id"]; r.UserID != alice["sub"] || key != id && key != modelsID {
				t.Errorf("%+v", r)
			}
		case r.Event == "model.call":
			what = r.Tool + " " + r.Outcome
			// Of what is over the limits of its caller the body is not read.
			if read := r.Tool != ""; read != (len(r.ArgumentsDigest) == 64) || r.Session != "" && (r.Session != "tag" || r.Trace != trace) {
				t.Errorf("%+v", r)
			}
		case r.Event == "policy.enable" && r.Detail["unchanged"] == true:
			what = "unchanged"
		case r.Kind == "admin" && r.Outcome != "ok":
			t.Errorf("%+v", r)
		}
		found[what] = true
	}
	return found
}
