package integration

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPackagedCaddyfile checks that the configuration of the packages starts as it is, in directories and on ports of the
// test's own, listens on loopback only, and lets nobody in.
func TestPackagedCaddyfile(t *testing.T) {
	t.Parallel()
	binary, err := release()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../deploy/release/files/Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	root, port, health := t.TempDir(), freePort(t), freePort(t)
	key := filepath.Join(root, "key")
	random := make([]byte, 32)
	rand.Read(random)
	if err := os.WriteFile(key, []byte(base64.StdEncoding.EncodeToString(random)), 0o600); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(root, "Caddyfile")
	moved := strings.NewReplacer("/run/durward", root, "/var/lib/durward", root, "/run/credentials/durward.service/durward_key", key,
		"127.0.0.1:8080", "127.0.0.1:"+port, "127.0.0.1:8081", "127.0.0.1:"+health).Replace(string(text))
	if err := os.WriteFile(config, []byte(moved), 0o600); err != nil {
		t.Fatal(err)
	}
	for block := range strings.SplitSeq(moved, "\n\n") {
		if strings.Contains(block, "\nhttp") && !strings.Contains(block, "\n\tbind 127.0.0.1\n") {
			t.Errorf("it listens for other machines too:\n%s", block)
		}
	}
	gateway := startProcess(t, root, nil, binary, "run", "--config", config)
	gateway.waitFor(t, "http://127.0.0.1:"+health+"/readyz")
	for _, path := range []string{"/api/agents", "/mcp/any"} {
		response, err := http.Get("http://127.0.0.1:" + port + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %d", path, response.StatusCode)
		}
	}
}
