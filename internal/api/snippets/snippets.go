// Package snippets holds the texts with which a server is added to each MCP client: for pages, the API, and
// development mode. They follow the clients' documentation of November 2026.
package snippets

import (
	"encoding/json"
	"strings"
)

// Snippet describes how a server is added to one client.
type Snippet struct {
	// Client is a word for programs; Name is the client's name for people.
	Client string `json:"client"`
	Name   string `json:"name"`
	// Where says where the text goes: run it, or put it into a file.
	Where string `json:"where"`
	Text  string `json:"text"`
}

// For makes the snippets of the server with that slug at address, the URL that clients call. A slug holds nothing
// that a shell or a file's format would read in another way.
func For(address, slug string) []Snippet {
	const terminal = "Run this in a terminal"
	return []Snippet{
		{"claude-code", "Claude Code", terminal, "claude mcp add --transport http " + slug + " " + word(address)},
		{"claude-desktop", "Claude Desktop", "Settings, Developer, Edit Config: claude_desktop_config.json", file("mcpServers", slug, program{"npx", []string{"-y", "mcp-remote", address}})},
		{"vscode", "VS Code", "Put this into .vscode/mcp.json", file("servers", slug, map[string]any{"type": "http", "url": address})},
		{"cursor", "Cursor", "Put this into .cursor/mcp.json", file("mcpServers", slug, map[string]any{"url": address})},
		{"codex", "Codex", terminal, "codex mcp add " + slug + " --url " + word(address) + "\ncodex mcp login " + slug},
		{"gemini-cli", "Gemini CLI", terminal, "gemini mcp add --transport http " + slug + " " + word(address)},
		{"mcp-remote", "Clients that start a program", "Give the client this command", "npx -y mcp-remote " + word(address)},
		{"inspector", "MCP Inspector, to look at the server", terminal, "npx @modelcontextprotocol/inspector --transport http --server-url " + word(address)},
		{"other", "Any other client", "Transport Streamable HTTP, login by OAuth", address},
	}
}

// program describes a server that a client starts.
type program struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

// file returns a configuration with one server.
func file(group, slug string, server any) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(map[string]any{group: map[string]any{slug: server}}); err != nil {
		return "" // not reached: all of it can be encoded
	}
	return strings.TrimSpace(out.String())
}

// word returns a text as one word of a shell.
func word(text string) string {
	if strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:/.-_~") == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
