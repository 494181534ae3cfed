package integration

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAccessLog checks that a line of the access log names the caller, the action and the object, and nothing of the
// content.
func TestAccessLog(t *testing.T) {
	t.Parallel()
	r := startRunning(t, settings{site: "log"})
	const marker = "argument-that-nobody-logs"
	who := map[string]any{"org": orgAcme, "user": alice["sub"], "agent": "test-client", "server": r.oauth.Slug}
	for _, test := range []struct {
		tag    string // finds the line again
		header []string
		body   string
		want   map[string]any // besides who
	}{
		{"tag-tool", mcpHeader(r.session), strings.Replace(toolCall("echo"), `"arguments":{}`, `"arguments":{"secret":"`+marker+`"}`, 1),
			map[string]any{"method": "tools/call", "tool": "echo"}},
		{"tag-list", mcpHeader(r.session), `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"` + marker + `"}}`,
			map[string]any{"method": "tools/list"}},
		{"tag-refused", append(mcpHeader(r.session), "MCP-Protocol-Version", "2026-07-28"), `{"jsonrpc":"2.0","id":2,"method":"` + marker + `","params":{"name":"` + marker + `"}}`,
			nil},
	} {
		r.send(http.MethodPost, r.oauth.path, r.user, test.body, append(test.header, "X-Test-Session-Id", test.tag)...)
		line := r.accessLine(`"session":"` + test.tag + `"`)
		want := maps.Clone(who)
		maps.Copy(want, test.want)
		want["session"] = test.tag
		got := map[string]any{}
		for _, name := range []string{"org", "user", "agent", "server", "method", "tool", "session"} {
			if line[name] != nil {
				got[name] = line[name]
			}
		}
		if test.want == nil {
			delete(got, "method") // the client's own word
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.tag, diff)
		}
		if request, _ := line["request"].(map[string]any); request == nil || line["user_id"] != alice["sub"] {
			t.Errorf("%s: %v", test.tag, line)
		}
	}
	r.events.close()
	r.accessLine(`"uri":"/sse/` + r.oauth.Slug + `"`)
	r.get.close()
	r.post.close() // a call that goes on would hold up the exit
	r.stop(t)
	// A method's name is logged as the client sends it; values of params never are.
	log := strings.ReplaceAll(r.output.String(), `"method":"`+marker+`"`, "")
	if strings.Contains(log, marker) {
		t.Error("the log holds arguments")
	}
	if strings.Contains(log, r.user) {
		t.Error("the log holds a token")
	}
}

// accessLine waits for the line of the access log that holds a text.
func (g *gateway) accessLine(text string) map[string]any {
	g.t.Helper()
	var found map[string]any
	g.eventually("the log says "+text, func() bool {
		for line := range strings.Lines(g.output.String()) {
			if strings.Contains(line, text) && strings.Contains(line, `"handled request"`) && strings.HasSuffix(line, "\n") {
				return json.Unmarshal([]byte(line), &found) == nil
			}
		}
		return false
	})
	return found
}

// TestMetrics checks that the collectors are there under their names, and none of their labels could name a user, an
// organization, a server or an argument (L06).
func TestMetrics(t *testing.T) {
	t.Parallel()
	provider := newLLMProvider(t, func(w http.ResponseWriter, _ *http.Request, _ string) { answerJSON(w, http.StatusOK, chatAnswer) })
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo="
	receiver := newAnnouncementReceiver(t, secret)
	r := startRunning(t, settings{global: "metrics\nlog {\noutput durward\n}", env: []string{"WEBHOOK_SECRET=" + secret}, option: approvalConsole + `
		notify {
			webhook ` + receiver.server.URL + `/held {
				secret {env.WEBHOOK_SECRET}
			}
		}
		provider openai {
			base_url ` + provider.URL + `/v1
		}
		alias alias-of-a-model {
			target openai name-of-a-model
		}`})
	r.callTool(r.user, r.oauth, r.session, "echo").want(t, http.StatusOK)
	r.callTool(r.user, r.oauth, r.session, "page").want(t, http.StatusBadGateway)
	r.callTool(r.user, server{path: "/mcp/nothing"}, "", "echo").want(t, http.StatusNotFound)
	odd := newUpstream(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		answerJSON(w, http.StatusOK, `{"jsonrpc":"2.0","id":"of-nobody","result":{}}`)
	})
	r.callTool(r.user, r.createServer(odd.url, nil), "", "echo").want(t, http.StatusBadGateway)
	r.callTool(r.token(bob), r.oauth, "", "echo").wantConnect(t)
	r.send(http.MethodGet, "/api/servers", "", nil).want(t, http.StatusUnauthorized)
	r.send(http.MethodGet, "/api/servers", "nonsense", nil).want(t, http.StatusUnauthorized)
	r.api(r.user, http.MethodDelete, "/api/servers/"+r.oauth.ID+"/connection", nil)
	r.events.ended()
	boss := r.token(admin)
	r.object(boss, http.MethodPost, llmBase+"/admin/smart-models", members{"model_alias": "name-of-a-smart-one", "slots": []any{members{"model_alias": "alias-of-a-model"}}})
	r.object(boss, http.MethodPost, llmBase+"/admin/rate-limits", members{"name": "One", "scope_type": "model_alias", "scope_value": "alias-of-a-model", "requests_per_minute": 1})
	r.send(http.MethodPost, chatPath, r.user, `{"model":"name-of-a-smart-one","messages":[]}`).want(t, http.StatusOK)
	r.send(http.MethodPost, chatPath, r.user, `{"model":"alias-of-a-model","messages":[]}`).want(t, http.StatusTooManyRequests)

	asks := r.bareServer(r.party.url()+"/open", nil)
	r.govern(asks, granting("tools/call:pay:approve"))
	r.callTool(r.user, asks, "", "pay").want(t, http.StatusOK)
	receiver.waitFor(t, "approval.held")
	r.eventually("the announcement is counted", func() bool { return r.metric(`durward_announcements_total{kind="webhook",result="delivered"}`) == "1" })

	metrics := r.admin("/metrics")
	want := map[string]map[string][]string{ // name: label: values that there can be
		"durward_authentications_total":            {"result": {"ok", "missing", "invalid", "forbidden", "limited", "unavailable"}},
		"durward_calls_total":                      {"family": {"mcp", "sse", "llm"}, "result": {"ok", "refused", "limited", "not_connected", "unavailable", "upstream_error", "client_gone", "cancelled", "ended", "cut", "scope", "error", "held"}},
		"mcp_client_operation_duration_seconds":    {"mcp_method_name": {"tools/call", "initialize"}, "error_type": {"", "upstream_error", "ended"}},
		"gen_ai_client_operation_duration_seconds": {"gen_ai_operation_name": {"chat"}, "gen_ai_provider_name": {"openai"}, "error_type": {""}},
		"gen_ai_client_token_usage":                {"gen_ai_operation_name": {"chat"}, "gen_ai_provider_name": {"openai"}, "gen_ai_token_type": {"input", "output"}},
		"durward_announcements_total":              {"kind": {"webhook"}, "result": {"delivered", "failed"}}, "durward_log_lines_dropped_total": {},
		"durward_upstream_response_seconds": {"family": {"mcp", "sse", "llm"}},
		"durward_open_streams":              {"family": {"mcp", "sse"}},
		"durward_mcp_answers_dropped_total": {"reason": {"unreadable", "other_id", "second_answer", "server_request", "event_name"}},
		"durward_audit_lost_total":          {"where": {"journal", "refusals", "store"}},
		"durward_connection_events_total":   {"event": {"connected", "failed", "refreshed", "refresh_failed", "broken", "disconnected", "revoked", "revoke_failed", "not_revoked"}},
		"durward_llm_tokens_total":          {"direction": {"input", "output", "cached"}},
		"durward_llm_routes_total":          {"reason": {"single"}, "slot": {"0"}},
		"durward_limit_refusals_total":      {"traffic": {"llm"}, "where": {"charge"}, "measure": {"requests"}},
		"durward_limit_counters":            {}, "durward_limit_degraded": {}, "durward_limit_alone_total": {},
		"durward_usage_batches_total":           {"result": {"ok", "failed"}},
		"durward_usage_refused_rows_total":      {},
		"durward_usage_unpriced_requests_total": {}, "durward_usage_coarse_requests_total": {}, "durward_usage_pending_rows": {},
		"durward_budget_refusals_total": {}, "durward_budget_alerts_total": {}, "durward_clock_ahead_seconds": {}, "durward_store_failing": {},
	}
	series := regexp.MustCompile(`^((?:durward|mcp|gen_ai)_\w+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? \S+$`)
	label := regexp.MustCompile(`(\w+)="([^"]*)"`)
	seen := map[string]bool{}
	for line := range strings.Lines(metrics) {
		match := series.FindStringSubmatch(strings.TrimSpace(line))
		if match == nil {
			continue
		}
		labels, ok := want[match[1]]
		if !ok {
			t.Errorf("nobody knows of %s", match[1])
			continue
		}
		seen[match[1]] = true
		for _, pair := range label.FindAllStringSubmatch(match[2], -1) {
			if pair[1] != "le" && !slices.Contains(labels[pair[1]], pair[2]) {
				t.Errorf("label %s=%q in %s", pair[1], pair[2], line)
			}
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(seen))); diff != "" {
		t.Errorf("collectors (-want +got):\n%s", diff)
	}
	wantMetricsOf(t, slices.Sorted(maps.Keys(seen)))
	for _, id := range []string{orgAcme, alice["sub"].(string), bob["sub"].(string), r.oauth.ID, r.oauth.Slug, "echo", "test-client", "acme", "name-of-a", "alias-of-a", "of-nobody"} {
		if strings.Contains(metrics, id) {
			t.Errorf("the metrics hold %q", id)
		}
	}
	for name, value := range map[string]string{
		`durward_calls_total{family="mcp",result="upstream_error"}`: "2", `durward_calls_total{family="mcp",result="not_connected"}`: "1",
		`durward_authentications_total{result="missing"}`: "1", `durward_authentications_total{result="invalid"}`: "1",
		`durward_connection_events_total{event="connected"}`: "1", `durward_connection_events_total{event="disconnected"}`: "1",
		`durward_open_streams{family="sse"}`: "0", `durward_llm_routes_total{reason="single",slot="0"}`: "1", `durward_llm_tokens_total{direction="output"}`: "3",
		`durward_mcp_answers_dropped_total{reason="other_id"}`: "1",
		`durward_calls_total{family="llm",result="limited"}`:   "1", `durward_limit_refusals_total{measure="requests",traffic="llm",where="charge"}`: "1",
	} {
		r.eventually(name+" is "+value, func() bool { return r.metric(name) == value })
	}
}

// wantMetricsOf checks that the gateway exposes every metric that pages, dashboard and rules name, and that the pages
// name all that it exposes.
func wantMetricsOf(t *testing.T, exposed []string) {
	t.Helper()
	name := regexp.MustCompile(`\b(?:durward|mcp_client|gen_ai_client)_[a-z_]+[a-z]\b`)
	recorded := regexp.MustCompile(`[a-z_]*:(?:durward|mcp_client|gen_ai_client)_\w+:\w+|\bdurward_\w+:\w+`)
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	documented := make(map[string]bool)
	for _, file := range append(pages, "../deploy/grafana/durward.json", "../deploy/prometheus/alerts.yaml", "../deploy/prometheus/recording.yaml", "../deploy/prometheus/tests.yaml") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range name.FindAllString(recorded.ReplaceAllString(string(text), ""), -1) {
			metric := strings.TrimSuffix(found, "_bucket")
			documented[metric] = true
			// Pages also name directives, such as durward_llm.
			is := filepath.Ext(file) != ".md" || strings.HasSuffix(metric, "_total") || strings.HasSuffix(metric, "_seconds")
			if is && !slices.Contains(exposed, metric) {
				t.Errorf("%s names %s, which is not exposed", file, metric)
			}
		}
	}
	for _, metric := range exposed {
		if !documented[metric] {
			t.Errorf("no page names %s", metric)
		}
	}
}

// TestHealth checks that load balancers may ask under any name, without a token, and get no more than a word.
func TestHealth(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	for path, want := range map[string]string{"/healthz": `{"status":"ok"}`, "/readyz": `{"status":"ready"}`} {
		for _, origin := range []string{"", "https://evil.example"} {
			a := g.send(http.MethodGet, path, "", nil, "Origin", origin, "X-Forwarded-Host", "evil.example").want(t, http.StatusOK)
			if string(a.body) != want {
				t.Errorf("%s: %s", path, a.body)
			}
		}
		request, err := http.NewRequest(http.MethodGet, g.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = "10.0.0.1"
		response, err := g.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s under another name: %s", path, response.Status)
		}
		a := g.send(http.MethodPost, path, "", "{}").want(t, http.StatusMethodNotAllowed)
		if !strings.Contains(a.header.Get("Allow"), http.MethodGet) {
			t.Errorf("%s: Allow %q", path, a.header.Get("Allow"))
		}
	}
}

// TestPlaceholders checks that a Caddyfile can use what the gateway knows of a call, wherever that is known.
func TestPlaceholders(t *testing.T) {
	t.Parallel()
	const all = `"{durward.org}|{durward.user}|{durward.agent}|{durward.server}|{durward.method}|{durward.tool}|{http.auth.user.id}"`
	g := startGateway(t, settings{whole: true, site: `
	header >X-At-The-End ` + all + `
	route {
		durward_auth
		header X-After-Auth "{durward.org}|{durward.server}"
		durward_limit
		durward_policy
		durward_credential
		durward_mcp
		durward_sse
		durward_platform
	}
`})
	s := g.createServer(newThirdParty(t).url()+"/open", nil)
	user := alice["sub"].(string)
	a := g.callTool(g.token(alice), s, "", "echo").want(t, http.StatusOK)
	if got, want := a.header.Get("X-At-The-End"), strings.Join([]string{orgAcme, user, "test-client", s.Slug, "tools/call", "echo", user}, "|"); got != want {
		t.Errorf("at the end: %q instead of %q", got, want)
	}
	if got, want := a.header.Get("X-After-Auth"), orgAcme+"|"+s.Slug; got != want {
		t.Errorf("after authentication: %q instead of %q", got, want)
	}
	// Nothing that a caller sends is expanded.
	b := g.send(http.MethodPost, s.path, g.token(alice.with(claims{"client_id": "{env.DURWARD_TEST_KEY}", "azp": "{env.DURWARD_TEST_KEY}"})),
		strings.Replace(toolCall("{env.HOME}"), "tools/call", "{durward.org}", 1), mcpHeader("")...)
	if got := b.header.Get("X-At-The-End"); !strings.Contains(got, "|{env.DURWARD_TEST_KEY}|") || !strings.Contains(got, "|{durward.org}|") {
		t.Errorf("with placeholders in the token and the message: %q", got)
	}
}
