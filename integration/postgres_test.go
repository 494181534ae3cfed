package integration

import (
	"bytes"
	"database/sql"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

// onPostgres: DURWARD_TEST_STORE=postgres runs every suite on that store.
func (s settings) onPostgres() bool {
	return s.postgres || s.database != "" || os.Getenv("DURWARD_TEST_STORE") == "postgres"
}

// store returns the Caddyfile's words for the store.
func (s settings) store() string {
	if s.onPostgres() {
		return "postgres {env.DURWARD_DATABASE_URL} {\n\t\t\tmax_conns 10\n\t\t}"
	}
	return "sqlite durward.db"
}

// database returns the address of the gateway's PostgreSQL database, "" when it has none.
func (g *gateway) database() string {
	for _, v := range g.command.Env {
		if address, ok := strings.CutPrefix(v, "DURWARD_DATABASE_URL="); ok {
			return address
		}
	}
	return ""
}

// local returns the directory for the gateway's files outside its store.
func (g *gateway) local() string {
	if g.database() != "" {
		return filepath.Join(g.directory, ".data", "caddy", "durward")
	}
	return g.directory
}

// tamper changes a word in the audit records of the store, of a gateway that does not run. Both have one length.
func (g *gateway) tamper(word, other string) {
	g.t.Helper()
	if database := g.database(); database != "" {
		pgtest.Exec(g.t, database, `UPDATE audit_records SET text = convert_to(replace(convert_from(text, 'UTF8'), '`+word+`', '`+other+`'), 'UTF8')`)
		return
	}
	path := filepath.Join(g.directory, "durward.db")
	content, err := os.ReadFile(path)
	if err != nil {
		g.t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Replace(content, []byte(word), []byte(other), 1), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

// alter runs a statement in the store of a gateway that does not run.
func (g *gateway) alter(statement string) {
	g.t.Helper()
	if database := g.database(); database != "" {
		pgtest.Exec(g.t, database, statement)
		return
	}
	db, err := sql.Open("sqlite", filepath.Join(g.directory, "durward.db"))
	if err != nil {
		g.t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(g.t.Context(), statement); err != nil {
		g.t.Fatalf("%s: %v", statement, err)
	}
}

// source returns the arguments that tell commands the place of the gateway's audit log.
func (g *gateway) source() []string {
	if g.database() != "" {
		return []string{"--database", "{env.DURWARD_DATABASE_URL}"}
	}
	return []string{"--data", g.directory}
}

// TestPostgres checks that a gateway on PostgreSQL does what one on SQLite does, and kill -9 takes nothing back; so
// does one behind a pgbouncer that keeps sessions.
func TestPostgres(t *testing.T) {
	t.Parallel()
	t.Run("alone", func(t *testing.T) {
		t.Parallel()
		runOnPostgres(t, settings{postgres: true})
	})
	t.Run("behind a pooler", func(t *testing.T) {
		t.Parallel()
		runOnPostgres(t, settings{database: pgtest.NewServer(t).Pooler(t, "session")})
	})
}

func runOnPostgres(t *testing.T, on settings) {
	g := startGateway(t, on)
	g.waitFor(t, g.url+"/readyz")
	upstream := newMCPServer(t, nil)
	s := g.createServer(upstream.url, map[string]any{"provider": "bearer_token", "requires_auth": true})
	token := g.token(alice)
	g.connectBearer(token, s, "credential-of-alice")
	call := func() {
		t.Helper()
		client := connectMCP(t, g.url+s.path, token, "2025-11-25", nil)
		if got := client.call(t, "echo", map[string]any{"text": "grüezi"}); got != "grüezi" {
			t.Errorf("echo says %q", got)
		}
	}
	call()
	g.kill()
	g.process = startProcess(t, g.directory, g.command.Env, durward(t), g.command.Args[1:]...)
	g.waitFor(t, g.url+"/readyz")
	if status := g.connection(token, s); status != "connected" {
		t.Errorf("after kill -9 the connection is %q", status)
	}
	call()

	// PostgreSQL keeps no NUL; the API lets none through.
	g.send(http.MethodPost, "/api/server-directory", g.token(admin), map[string]any{"name": "NUL", "description": "a\x00b", "url": upstream.url}).want(t, http.StatusUnprocessableEntity)
	// Beside the gateway, and with nothing of it but its files and its database.
	for range 2 {
		output, err := g.run(append([]string{"audit", "verify", "--master-key", "{env.DURWARD_TEST_KEY}"}, g.source()...)...)
		if err != nil || !strings.Contains(output, "the audit log is whole") || strings.HasPrefix(output, "0 records") {
			t.Errorf("%v: %s", err, output)
		}
		g.stop(t)
	}
	exported, err := g.run(append([]string{"audit", "export"}, g.source()...)...)
	if err != nil || checkChains(t, []byte(exported)) < 2 || !strings.Contains(exported, `"tool":"echo"`) {
		t.Errorf("%v: %s", err, tail(exported, 1_000))
	}

	config, err := os.ReadFile(g.config)
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{string(config), g.output.String()} {
		if strings.Contains(place, "durward-test@") {
			t.Error("the database's password is in the configuration or the log")
		}
	}
}
