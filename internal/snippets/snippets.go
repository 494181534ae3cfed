// Package snippets has the texts with which each client of MCP is told of a server: for pages, the API, and development mode.
// They are as the clients' documentation had them in November 2026.
package snippets

import (
	"encoding/json"
	"strings"
)

// Snippet is how one client is told of a server.
type Snippet struct {
	// Client is a word for programs, Name is the client's for people.
	Client string `json:"client"`
	Name   string `json:"name"`
	// Where says what is to be done with the text: run it, or put it into a file.
	Where string `json:"where"`
	Text  string `json:"text"`
}

// For makes the snippets of the server with that slug at address, the URL that clients call. A slug holds nothing that a
// shell or a file's format would read as anything else.
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

// program is a server that a client starts.
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
