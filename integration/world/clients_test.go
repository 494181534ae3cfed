package world

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/integration/rig"
)

// mcpClient is a client of another project.
type mcpClient struct {
	name   string // of client.mjs
	pkg    string
	short  bool // CI tries it, too
	keeps  bool // it cannot cancel a call
	silent bool // it cancels a call without a word to the server
	remark string
}

func mcpClientsOfOthers() []mcpClient {
	return []mcpClient{
		{name: "sdk 1", pkg: sdk1, short: true},
		{name: "sdk 2", pkg: "@modelcontextprotocol/client", remark: "2025 era."},
		{name: "sdk 2 modern", pkg: "@modelcontextprotocol/client", short: true, remark: "Asks for 2026-07-28, and speaks 2025 with this server."},
		{name: "mcp-remote", pkg: "mcp-remote", short: true},
		{name: "supergateway", pkg: "supergateway", remark: "It has no login: its user gives it a token."},
		{name: "@ai-sdk/mcp", pkg: "@ai-sdk/mcp", silent: true, remark: "It says nothing to the server when a call is canceled, which runs on there."},
		{name: "@langchain/mcp-adapters", pkg: "@langchain/mcp-adapters"},
		{name: "@openai/agents", pkg: "@openai/agents"},
		{name: "@mastra/mcp", pkg: "@mastra/mcp"},
		{name: "mcp-use", pkg: "mcp-use"},
		{name: "inspector --cli", pkg: inspector, keeps: true, remark: "A conversation for each command."},
		{name: "inspector mcpdo", pkg: inspector, keeps: true},
	}
}

// TestMCPClients: clients of others see what the policy lets them see, are refused what it refuses, are led to the page
// where a held call is decided and get its answer after, and go on when the gateway was started again.
func TestMCPClients(t *testing.T) {
	lab(t)
	g := startGateway(t, "approval_clients console")
	upstream := listenIn(t, startEverything(t, "streamableHttp", "/mcp"))
	id, address := g.bare(upstream.URL+"/mcp", nil)
	g.policy(id,
		map[string]any{"name": "echo", "authorized": true, "actions": []string{"tools/call:echo"}},
		map[string]any{"name": "sums", "authorized": true, "actions": []string{"tools/call:get-sum:approve"}},
		map[string]any{"name": "long", "authorized": true, "actions": []string{"tools/call:trigger-long-running-operation"}})
	for _, c := range mcpClientsOfOthers() {
		if form == short && !c.short {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			tried := ": list, call, refused call, held call, restart of the gateway, canceled call"
			if c.keeps {
				tried = strings.TrimSuffix(tried, ", canceled call")
			}
			record(t, &row{section: mcpClients, software: c.pkg, version: version(t, c.pkg), tried: c.name + tried, remark: c.remark})
			got := c.use(t, g, address, upstream)
			if diff := cmp.Diff([]string{"echo", "get-sum", "trigger-long-running-operation"}, got.Tools); diff != "" {
				t.Errorf("tools/list (-want +got):\n%s", diff)
			}
			if !c.keeps && (got.Canceled == "" || strings.Contains(got.Canceled, "completed") || !strings.Contains(got.Still, "Echo: still here")) {
				t.Errorf("a call that it cancels: %q; and the one after it: %q", got.Canceled, got.Still)
			}
			for what, said := range map[string][2]string{
				"tools/call echo": {got.Echo, "Echo: hello"}, "tools/call get-sum, held": {got.Held, "/approvals/"},
				"tools/call get-sum, approved": {got.Approved, "The sum of 1 and 2 is 3."}, "tools/call echo after a restart": {got.After, "Echo: again"},
			} {
				if !strings.Contains(said[0], said[1]) {
					t.Errorf("%s: the client says %q, want %q in it", what, rig.Tail(said[0], 2_000), said[1])
				}
			}
			if strings.Contains(got.Denied, "PATH") || !strings.Contains(got.Denied, "error") {
				t.Errorf("tools/call get-env, which the policy does not grant: the client says %q", rig.Tail(got.Denied, 2_000))
			}
		})
	}
}

// used holds the findings of client.mjs.
type used struct {
	Tools                                                []string
	Echo, Denied, Held, Approved, After, Canceled, Still string
	Decided                                              int
}

// use lets a client use the server; the gateway is started again in between. At last the client cancels a call that has
// reached the server, and the server is told.
func (c mcpClient) use(t *testing.T, g *gateway, address string, upstream *overheard) used {
	t.Helper()
	console := maps.Clone(alice)
	console["client_id"], console["azp"] = "console", "console"
	plan := map[string]string{"url": address, "token": g.token(alice), "console": g.token(console), "modules": filepath.Dir(module(t, "x"))}
	var got used
	running, canceled := upstream.count("trigger-long-running-operation"), upstream.count("notifications/cancelled")
	converse(t, plan, func(line string) bool {
		switch line {
		case "runs":
			rig.Eventually(t, "the call to run", func() bool { return upstream.count("trigger-long-running-operation") > running })
		case "half":
			g.restart()
		default:
			return false
		}
		return true
	}, &got, "client.mjs", c.name)
	told := func() bool { return upstream.count("notifications/cancelled") > canceled }
	switch {
	case !c.keeps && !c.silent:
		rig.Eventually(t, "the server to hear that the call is canceled", told)
	case told():
		t.Error("the server hears of a canceled call")
	}
	return got
}
