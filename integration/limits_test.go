package integration

import (
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/durward-gateway/durward/internal/ratelimit/cluster/valkey/valkeytest"
)

// TestRateLimits checks the case that an administrator limits calls, a client of the official SDK is refused beyond the
// limit, the status has the numbers, and a higher limit lets calls pass at once. A reload changes nothing of it.
func TestRateLimits(t *testing.T) {
	t.Parallel()
	const limits = "/api/llm-gateway/admin/rate-limits"
	// Every count is looked at: shared counters that answer late on a busy machine count a call twice.
	g := startGateway(t, settings{option: "coordinate local"})
	upstream := newMCPServer(t, &mcp.StreamableHTTPOptions{Stateless: true})
	s := g.createServer(upstream.url, nil)
	boss := g.token(admin)
	client := connectMCP(t, g.url+s.path, g.token(alice), "2025-11-25", nil)
	client.call(t, "echo", members{"text": "free"})

	made := g.object(boss, http.MethodPost, limits, members{"name": "Calls of each", "scope_type": "user", "traffic_type": "mcp", "requests_per_minute": 2, "tokens_per_minute": 1000})
	path := limits + "/" + made["id"].(string)
	client.call(t, "echo", members{"text": strings.Repeat("0123456789", 20)})
	client.call(t, "echo", members{"text": "last"})
	refused := func() {
		t.Helper()
		if _, err := client.CallTool(within(t, callTimeout), &mcp.CallToolParams{Name: "echo", Arguments: members{"text": "x"}}); err == nil || !strings.Contains(err.Error(), "Too Many Requests") && !strings.Contains(err.Error(), "429") {
			t.Fatalf("%v", err)
		}
		a := g.mcp(g.token(alice), s, "", toolCall("echo")).want(t, http.StatusTooManyRequests)
		if !strings.Contains(string(a.body), `"code":-31429`) || a.header.Get("Retry-After") == "" || a.header.Get("RateLimit") == "" || a.header.Get("RateLimit-Policy") != `"requests";q=2;w=60` {
			t.Errorf("%v %s", a.header, a.body)
		}
	}
	refused()
	g.mcp(g.token(bob), s, "", toolCall("echo")).want(t, http.StatusOK) // counts for himself

	var status []members
	g.api(boss, http.MethodGet, limits+"/status", nil).decode(t, &status)
	// 200 bytes and "last", each with the type of its part: 51 and 2 tokens.
	if len(status) != 1 || status[0]["rpm_used"] != 2.0 || status[0]["rpm_percentage"] != 100.0 || status[0]["tpm_used"] != 53.0 {
		t.Errorf("%v", status)
	}
	if subjects := status[0]["subjects"].(members); subjects["active"] != 2.0 {
		t.Errorf("%v", subjects)
	}
	for _, who := range []struct {
		token string
		used  any
	}{{g.token(alice), 2.0}, {g.token(bob), 1.0}} {
		mine := g.object(who.token, http.MethodGet, "/api/limits/mine", nil)["rate_limits"].([]any)
		if own := mine[0].(members); len(mine) != 1 || own["rpm_used"] != who.used || own["rpm_limit"] != 2.0 || own["shared"] != false {
			t.Errorf("%v", mine)
		}
	}
	g.mustReload(g.written())
	refused()
	g.object(boss, http.MethodPut, path, members{"requests_per_minute": 3})
	g.mcp(g.token(alice), s, "", toolCall("echo")).want(t, http.StatusOK)
	g.mcp(g.token(alice), s, "", toolCall("echo")).want(t, http.StatusTooManyRequests)
	g.object(boss, http.MethodPut, path, members{"enabled": false})
	g.mcp(g.token(alice), s, "", toolCall("echo")).want(t, http.StatusOK)

	// Refusals are counted, and the metrics name nobody.
	if n := g.metric(`durward_limit_refusals_total{measure="requests",traffic="mcp",where="look"}`); n != "5" {
		t.Errorf("%s refusals are counted", n)
	}
}

// TestRateLimitsAlone checks that while the counters that nodes share are away, the status of a limit says that it is
// counted by this node alone, and so does /readyz (T09). Calls are counted on.
func TestRateLimitsAlone(t *testing.T) {
	t.Parallel()
	server := valkeytest.New(t)
	g := startGateway(t, settings{option: "coordinate valkey {env.DURWARD_LIMITS_URL}", env: []string{"DURWARD_LIMITS_URL=" + server.Address()}})
	const limits = "/api/llm-gateway/admin/rate-limits"
	boss := g.token(admin)
	s := g.createServer(newMCPServer(t, &mcp.StreamableHTTPOptions{Stateless: true}).url, nil)
	g.object(boss, http.MethodPost, limits, members{"name": "Calls of each", "scope_type": "user", "traffic_type": "mcp", "requests_per_minute": 2})
	alone := func() bool {
		var status []members
		g.api(boss, http.MethodGet, limits+"/status", nil).decode(t, &status)
		if len(status) != 1 {
			t.Fatal(status)
		}
		ready := strings.Contains(string(g.send(http.MethodGet, "/readyz", "", nil).want(t, http.StatusOK).body), `"limits":"degraded"`)
		return status[0]["degraded"] == true && ready
	}
	g.eventually("limits are counted together", func() bool { return !alone() })
	server.Stop()
	g.eventually("limits are counted alone", alone)
	for i := range 3 {
		want := http.StatusOK
		if i == 2 {
			want = http.StatusTooManyRequests
		}
		g.mcp(g.token(alice), s, "", toolCall("echo")).want(t, want)
	}
	server.Start(t)
	g.eventually("limits are counted together again", func() bool { return !alone() })
}
