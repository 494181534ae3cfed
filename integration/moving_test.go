package integration

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

// TestMovingHouse checks the case that a gateway's store moves from SQLite to PostgreSQL, its master key and data key
// are rotated under the gateway that runs on it, and what users have connected works all the time.
func TestMovingHouse(t *testing.T) {
	t.Setenv("DURWARD_TEST_STORE", "") // it begins on SQLite whatever the others run on
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	g := startGateway(t, settings{env: []string{
		"DURWARD_DATABASE_URL=" + pgtest.Database(t),
		"DURWARD_NEW_KEY=" + base64.StdEncoding.EncodeToString(key),
	}})
	upstream := newMCPServer(t, nil)
	s := g.createServer(upstream.url, map[string]any{"provider": "bearer_token", "requires_auth": true})
	token := g.token(alice)
	g.connectBearer(token, s, "credential-of-alice")
	call := func(when string) {
		t.Helper()
		client := connectMCP(t, g.url+s.path, token, "2025-11-25", nil)
		if got := client.call(t, "echo", map[string]any{"text": when}); got != when {
			t.Errorf("%s: echo says %q", when, got)
		}
	}
	run := func(want string, arguments ...string) string {
		t.Helper()
		output, err := g.run(arguments...)
		if err != nil || !strings.Contains(output, want) {
			t.Fatalf("%v: %v: %s", arguments, err, output)
		}
		return output
	}
	call("on SQLite")
	move := []string{"migrate-store", "--from", "sqlite:durward.db", "--to", "{env.DURWARD_DATABASE_URL}"}
	if output, err := g.run(move...); err == nil || !strings.Contains(output, "stop the gateway") {
		t.Fatalf("beside a running gateway: %v: %s", err, output)
	}
	g.stop(t)
	journals := regexp.MustCompile(`is in (\S+): move that directory to (\S+) of`).FindStringSubmatch(run("are the same on both sides", move...))
	if journals == nil {
		t.Fatal("it is not said where the journals belong")
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(journals[2]), 0o700), os.Rename(filepath.Join(g.directory, journals[1]), journals[2])); err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(g.config)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(config), "store sqlite durward.db", "store postgres {env.DURWARD_DATABASE_URL} {\n\t\t\tmax_conns 10\n\t\t}", 1)
	configure := func(text string) {
		t.Helper()
		if err := os.WriteFile(g.config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	configure(text)
	g.process = startProcess(t, g.directory, g.command.Env, durward(t), g.command.Args[1:]...)
	g.waitFor(t, g.url+"/readyz")
	if status := g.connection(token, s); status != "connected" {
		t.Errorf("after the move the connection is %q", status)
	}
	call("on PostgreSQL")

	both := strings.Replace(text, "{env.DURWARD_TEST_KEY}", "{env.DURWARD_NEW_KEY} {env.DURWARD_TEST_KEY}", 1)
	configure(both)
	g.mustReload(both)
	run("1 data key rewrapped", "rekey", "--config", g.config, "--adapter", "caddyfile")
	call("while the key is rotated")
	after := strings.Replace(text, "{env.DURWARD_TEST_KEY}", "{env.DURWARD_NEW_KEY}", 1)
	configure(after)
	g.mustReload(after)
	call("with the new key")
	g.send(http.MethodGet, "/readyz", token, nil).want(t, http.StatusOK)

	// The throwaway server of the tests saves the disk: the doctor sees that, and nothing else that is wrong.
	output, err := g.run("doctor", "--config", g.config, "--adapter", "caddyfile")
	if err == nil || !strings.Contains(output, "ok       master key") || !strings.Contains(output, "fsync or full_page_writes is off") ||
		!strings.Contains(output, " 1 error,") {
		t.Errorf("%v: %s", err, output)
	}
	if strings.Contains(output, "durward-test@") {
		t.Error("the doctor tells the database's password")
	}
	run("the audit log is whole", "audit", "verify", "--database", "{env.DURWARD_DATABASE_URL}", "--master-key", "{env.DURWARD_NEW_KEY}")
	if _, err := os.Stat(filepath.Join(g.directory, "durward.db")); err != nil {
		t.Errorf("the source has gone: %v", err)
	}
}
