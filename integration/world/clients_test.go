package world

import (
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/integration/rig"
)

// mcpClient is a client of others.
type mcpClient struct {
	name   string // of client.mjs
	pkg    string
	short  bool // CI tries it, too
	remark string
}

func mcpClientsOfOthers() []mcpClient {
	return []mcpClient{
		{name: "sdk 1", pkg: sdk1, short: true},
		{name: "sdk 2", pkg: "@modelcontextprotocol/client", remark: "2025 era."},
		{name: "sdk 2 modern", pkg: "@modelcontextprotocol/client", short: true, remark: "Asks for 2026-07-28, and speaks 2025 with this server."},
		{name: "mcp-remote", pkg: "mcp-remote", short: true},
		{name: "supergateway", pkg: "supergateway"},
		{name: "@ai-sdk/mcp", pkg: "@ai-sdk/mcp"},
		{name: "@langchain/mcp-adapters", pkg: "@langchain/mcp-adapters"},
		{name: "@openai/agents", pkg: "@openai/agents"},
		{name: "@mastra/mcp", pkg: "@mastra/mcp"},
	}
}

// TestMCPClients: clients of others see what the policy lets them see, are refused what it refuses, are led to the page
// where a held call is decided and get its answer after, and go on when the gateway was started again.
func TestMCPClients(t *testing.T) {
	lab(t)
	g := startGateway(t, "approval_clients console")
	upstream := startEverything(t, "streamableHttp", "/mcp")
	id, address := g.bare(upstream, nil)
	g.policy(id,
		map[string]any{"name": "echo", "authorized": true, "actions": []string{"tools/call:echo"}},
		map[string]any{"name": "sums", "authorized": true, "actions": []string{"tools/call:get-sum:approve"}})
	for _, c := range mcpClientsOfOthers() {
		if form == short && !c.short {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			record(t, &row{section: mcpClients, software: c.pkg, version: version(t, c.pkg), tried: c.name + ": list, call, refused call, held call, restart of the gateway", remark: c.remark})
			got := c.use(t, g, address)
			if diff := cmp.Diff([]string{"echo", "get-sum"}, got.Tools); diff != "" {
				t.Errorf("tools/list (-want +got):\n%s", diff)
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
	Tools                               []string
	Echo, Denied, Held, Approved, After string
	Decided                             int
}

// use has a client use the server; the gateway is started again in between.
func (c mcpClient) use(t *testing.T, g *gateway, address string) used {
	t.Helper()
	console := maps.Clone(alice)
	console["client_id"], console["azp"] = "console", "console"
	plan := map[string]string{"url": address, "token": g.token(alice), "console": g.token(console), "modules": filepath.Dir(module(t, "x"))}
	var got used
	converse(t, plan, func(line string) bool {
		if line != "half" {
			return false
		}
		g.restart()
		return true
	}, &got, "client.mjs", c.name)
	return got
}
