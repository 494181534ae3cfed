package integration

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

// openapiFile is the description as readers of the repository see it. UPDATE=1 writes it anew.
const openapiFile = "../docs/openapi.json"

// TestOpenAPI checks that the API describes itself to everybody, that docs/openapi.json is this description, and that a
// linter that others wrote finds no fault in it. All suites check their answers against it, see checkDescribed.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	d := devGateway(t, "", "")
	response, err := http.Get(d.url + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var document map[string]any
	if err := json.NewDecoder(response.Body).Decode(&document); err != nil || response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "application/json" {
		t.Fatal(response.Status, response.Header, err)
	}
	servers, _ := document["servers"].([]any)
	if server, _ := servers[0].(map[string]any); server["url"] != d.url {
		t.Errorf("served at %v", document["servers"])
	}
	document["servers"] = []any{map[string]any{"url": "https://gateway.acme.dev"}}
	document["info"].(map[string]any)["version"] = "1"
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(openapiFile, text, 0o644); err != nil { //nolint:gosec // a file of the repository
			t.Fatal(err)
		}
	}
	if kept, err := os.ReadFile(openapiFile); err != nil || !bytes.Equal(kept, text) {
		t.Errorf("docs/openapi.json is not what the gateway says (%v): UPDATE=1 go test ./integration -run TestOpenAPI writes it", err)
	}

	clients := rig.Tools(t, "clients")
	file := filepath.Join(t.TempDir(), "openapi.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	lint := exec.CommandContext(t.Context(), "node", filepath.Join(clients, "node_modules/@redocly/cli/bin/cli.js"), "lint", "--skip-rule=no-ambiguous-paths", file)
	lint.Dir, lint.Env = filepath.Dir(file), append(os.Environ(), "REDOCLY_TELEMETRY=off", "HOME="+filepath.Dir(file))
	if out, err := lint.CombinedOutput(); err != nil || strings.Contains(string(out), "You have ") {
		t.Errorf("the linter: %v\n%s", err, out)
	}
}
