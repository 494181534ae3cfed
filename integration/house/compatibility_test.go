package house

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// tried are rows of docs/compatibility.md, with the package that the lab pins for them. Debian pins the others.
var tried = map[string]string{
	"FastMCP": "fastmcp", "FastMCP, HTTP+SSE": "fastmcp", "Playwright MCP": "@playwright/mcp",
	"SDK 1.x example simpleStreamableHttp": "@modelcontextprotocol/sdk", "SDK 1.x example simpleStreamableHttp, --oauth": "@modelcontextprotocol/sdk",
	"SDK 2.x, createMcpHandler": "@modelcontextprotocol/server", "SDK 2.x, createMcpHandler in the 2025 era": "@modelcontextprotocol/server",
	"server-everything": "@modelcontextprotocol/server-everything", "server-everything, HTTP+SSE": "@modelcontextprotocol/server-everything",
	"server-filesystem behind supergateway, stateful": "@modelcontextprotocol/server-filesystem",
	"server-memory behind supergateway, stateful":     "@modelcontextprotocol/server-memory",
	"mcp-go, example conformance":                     "github.com/mark3labs/mcp-go", "go-sdk, example everything": "github.com/modelcontextprotocol/go-sdk",

	"@modelcontextprotocol/sdk": "", "@modelcontextprotocol/client": "", "@modelcontextprotocol/inspector": "", "mcp-remote": "", "@ai-sdk/mcp": "",
	"@langchain/mcp-adapters": "", "@openai/agents": "", "mcp-use": "", "@mastra/mcp": "", "supergateway": "",

	"oidc-provider": "", "Ory Hydra": "github.com/ory/hydra/v2", "glewlwyd": "-", "LemonLDAP::NG": "-",

	"openai": "", "@anthropic-ai/sdk": "", "@ai-sdk/openai": "", "@ai-sdk/anthropic": "", "@langchain/openai": "", "@anthropic-ai/claude-code": "", "@openai/codex": "",
}

// TestCompatibilityIsOfThePinnedVersions: what the lab runs is on its page, with the version that is pinned: who pins another one
// runs `make world`, which writes the page.
func TestCompatibilityIsOfThePinnedVersions(t *testing.T) {
	var pinned struct{ Dependencies, DevDependencies map[string]string }
	if err := json.Unmarshal([]byte(read(t, "../world/package.json")), &pinned); err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{"-": ""}
	for _, list := range []map[string]string{pinned.Dependencies, pinned.DevDependencies} {
		for name, version := range list {
			versions[name] = version
		}
	}
	required := regexp.MustCompile(`(?m)^\t(\S+) (v\S+)`)
	for _, file := range []string{"../world/servers/go.mod", "../world/hydra/go.mod"} {
		for _, found := range required.FindAllStringSubmatch(read(t, file), -1) {
			versions[found[1]] = found[2]
		}
	}
	rows := make(map[string][]string)
	for line := range strings.Lines(read(t, "../../docs/compatibility.md")) {
		if cells := strings.Split(line, " | "); len(cells) > 2 {
			software := strings.TrimPrefix(cells[0], "| ")
			rows[software] = append(rows[software], cells[1])
		}
	}
	for software, name := range tried {
		if name == "" {
			name = software
		}
		want, known := versions[name]
		if len(rows[software]) == 0 || !known {
			t.Errorf("%s: no row, or %q is pinned nowhere", software, name)
		}
		for _, got := range rows[software] {
			if got != want && want != "" {
				t.Errorf("%s: the page has %s, and the lab %s", software, got, want)
			}
		}
	}
}
