package integration

import (
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"testing"
)

// TestUpgrade checks on each store that this version goes on with the data of a former one: what users have connected and
// their keys work, policies grant, and the audit log is whole and has the former calls. `make upgrade-test` names that
// version's binary in DURWARD_UPGRADE_FROM.
func TestUpgrade(t *testing.T) {
	former := os.Getenv("DURWARD_UPGRADE_FROM")
	if former == "" {
		t.Skip("no former version is named: make upgrade-test builds one")
	}
	for _, store := range []string{"sqlite", "postgres"} {
		t.Run(store, func(t *testing.T) {
			t.Setenv("DURWARD_TEST_STORE", "")
			g := startGateway(t, settings{binary: former, postgres: store == "postgres", option: approvalConsole})
			upstream := newMCPServer(t, nil)
			s := g.createServer(upstream.url, map[string]any{"provider": "bearer_token", "requires_auth": true})
			token := g.token(alice)
			g.connectBearer(token, s, "credential-of-alice")
			key, _ := g.makeKey(g.consoleToken(alice), "mcp")
			work := func(with, when string) {
				t.Helper()
				client := connectMCP(t, g.url+s.path, with, "2025-11-25", nil)
				if got := client.call(t, "echo", map[string]any{"text": when}); got != when {
					t.Errorf("%s: echo says %q", when, got)
				}
			}
			work(token, "before")
			work(key, "before, with a key")
			calls := url.Values{"tool": {"echo"}, "kind": {"call"}, "outcome": {"ok"}}
			if rows, _ := g.audit(g.token(admin), calls); len(rows) != 2 {
				t.Errorf("the former version has recorded %d calls", len(rows))
			}

			g.restart()
			if now, then := versionOf(t, g.command.Path), versionOf(t, former); now == then {
				t.Errorf("both versions are %s", now)
			}
			if status := g.connection(token, s); status != "connected" {
				t.Errorf("the connection is %q", status)
			}
			work(token, "after")
			work(key, "after, with a key")
			g.send(http.MethodGet, "/readyz", token, nil).want(t, http.StatusOK)
			if rows, _ := g.audit(g.token(admin), calls); len(rows) != 4 {
				t.Errorf("%d calls are recorded", len(rows))
			}
			g.mustVerifyAudit()
		})
	}
}

// versionOf returns the version that a binary says.
func versionOf(t *testing.T, binary string) string {
	t.Helper()
	said, err := exec.CommandContext(t.Context(), binary, "version").Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(said)
}
