package snippets

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestFor checks that every client gets the address, that files are whole, and that no part of an address is a word
// of the shell.
func TestFor(t *testing.T) {
	const address = "https://gate.example.com:8443/mcp/my-notes"
	seen := map[string]bool{}
	for _, s := range For(address, "my-notes") {
		if seen[s.Client] || s.Client == "" || s.Name == "" || s.Where == "" || !strings.Contains(s.Text, address) {
			t.Errorf("%+v", s)
		}
		seen[s.Client] = true
		if strings.HasPrefix(s.Text, "{") {
			var config map[string]map[string]map[string]any
			if err := json.Unmarshal([]byte(s.Text), &config); err != nil || len(config) != 1 {
				t.Errorf("%s: %v", s.Text, err)
			}
			for _, servers := range config {
				if servers["my-notes"] == nil {
					t.Errorf("%s names no my-notes", s.Text)
				}
			}
		}
	}
	for _, s := range For(address, "my-notes") { // people read the command before its arguments
		if command, args := strings.Index(s.Text, `"command"`), strings.Index(s.Text, `"args"`); command > args {
			t.Errorf("%s: args come first in %s", s.Client, s.Text)
		}
	}
	for _, client := range []string{"claude-code", "claude-desktop", "vscode", "cursor", "codex", "gemini-cli", "mcp-remote", "inspector"} {
		if !seen[client] {
			t.Errorf("no snippet for %s", client)
		}
	}
	for _, s := range For("http://[::1]:8080/mcp/demo", "demo") {
		if s.Client == "claude-code" && s.Text != "claude mcp add --transport http demo 'http://[::1]:8080/mcp/demo'" {
			t.Error(s.Text)
		}
	}
}
