package integration

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/integration/rig"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

// readyWithin is the time within which a gateway is ready after its database is (Z-F01), with room for a busy machine.
var readyWithin = rig.Within(2 * time.Second)

// unready is the answer of /readyz while the store cannot be reached.
type unready struct {
	Error, Message string
	Details        struct {
		Missing []string
		Store   string
	}
}

// wantAway checks that the gateway lives, and reports the state of its store correctly.
func (g *gateway) wantAway(reason string) {
	g.t.Helper()
	g.send(http.MethodGet, "/healthz", "", nil).want(g.t, http.StatusOK)
	var said unready
	g.eventually("/readyz says that "+reason, func() bool {
		a := g.send(http.MethodGet, "/readyz", "", nil)
		if a.status == http.StatusOK {
			return false // it is known for a second at most
		}
		a.want(g.t, http.StatusServiceUnavailable).decode(g.t, &said)
		return strings.Contains(said.Details.Store, reason)
	})
	if said.Error != "Unavailable" || !slices.Equal(said.Details.Missing, []string{"store"}) {
		g.t.Errorf("/readyz says %+v", said)
	}
}

// wantReady waits until the gateway is ready, without having been started again.
func (g *gateway) wantReady(since time.Time) {
	g.t.Helper()
	g.waitFor(g.t, g.url+"/readyz")
	took := time.Since(since)
	if took > readyWithin {
		g.t.Errorf("ready after %v", took)
	}
	g.t.Logf("ready %v after the database", took.Round(time.Millisecond))
}

// everyFamily sends a request to each kind of address that the gateway has.
func (g *gateway) everyFamily(token string) map[string]int {
	g.t.Helper()
	statuses := make(map[string]int)
	for _, address := range []string{
		"GET /api/servers", "POST /api/servers", "GET /api/audit", "GET /api/llm-gateway/admin/api-keys", "GET /api/llm-gateway/v1/models",
		"POST /api/llm-gateway/v1/chat/completions", "POST /mcp/anything", "GET /mcp/anything", "GET /sse/anything", "GET /approvals", "GET /login",
		"GET /api/oauth/callback?state=x&code=y", "GET /.well-known/oauth-protected-resource", "DELETE /healthz", "GET /nowhere",
	} {
		method, path, _ := strings.Cut(address, " ")
		a := g.send(method, path, token, nil)
		statuses[address] = a.status
		if a.header.Get("Retry-After") == "" && a.status == http.StatusServiceUnavailable {
			g.t.Errorf("%s: no Retry-After", address)
		}
	}
	return statuses
}

// TestStoreAwayAtStart checks that a gateway whose database is away starts, refuses everything, says why, can be
// reloaded, can be stopped, and serves as soon as the database is there (Z-F01).
func TestStoreAwayAtStart(t *testing.T) {
	t.Parallel()
	database := pgtest.NewServer(t)
	database.Stop(t)
	g := startGateway(t, settings{database: database.URL()})
	if output, err := g.run("validate", "--config", g.config, "--adapter", "caddyfile"); err != nil {
		t.Errorf("validate asks the database: %s", output)
	}
	g.wantAway("cannot be reached")
	for _, token := range []string{"", "nonsense", g.token(alice), g.token(admin)} {
		for address, status := range g.everyFamily(token) {
			if status != http.StatusServiceUnavailable {
				t.Errorf("%s is answered %d", address, status)
			}
		}
	}
	g.mustReload(g.written())
	g.wantAway("cannot be reached")

	stopped := startGateway(t, settings{database: database.URL()})
	began := time.Now()
	stopped.stop(t)
	t.Logf("stopped within %v", time.Since(began).Round(time.Millisecond))

	g.wantQuiet(2 * time.Second)

	database.Start(t)
	g.wantReady(time.Now())
	s := g.createServer(newThirdParty(t).url()+"/open", nil)
	g.callTool(g.token(alice), s, "", "echo").want(t, http.StatusOK)
	g.mustReload(g.written())
	g.callTool(g.token(alice), s, "", "echo").want(t, http.StatusOK)
	g.send(http.MethodGet, "/api/servers", "nonsense", nil).want(t, http.StatusUnauthorized)
	if told := strings.Count(g.output.String(), "waits for its store"); told == 0 || told > 10 {
		t.Errorf("the log says %d times that the store is away", told)
	}
}

// wantQuiet checks that the log of a gateway that waits has at most a line a second.
func (g *gateway) wantQuiet(during time.Duration) {
	g.t.Helper()
	from, before := time.Now(), strings.Count(g.output.String(), "\n")
	g.eventually("a while has passed", func() bool { return time.Since(from) >= during })
	if lines := strings.Count(g.output.String(), "\n") - before; lines > int(time.Since(from).Seconds())+1 {
		g.t.Errorf("%d lines in the log within %v:\n%s", lines, time.Since(from), tail(g.output.String(), 4_000))
	}
}

// TestStoreGoneAtReload checks that while the database is away a configuration with the same store and keys takes over,
// and whatever cannot be judged without the database is refused.
func TestStoreGoneAtReload(t *testing.T) {
	t.Parallel()
	database := pgtest.NewServer(t)
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	g := startGateway(t, settings{database: database.URL(), env: []string{
		"DURWARD_OTHER_DATABASE_URL=postgres://nobody@127.0.0.1:1/elsewhere", "DURWARD_OTHER_KEY=" + base64.StdEncoding.EncodeToString(key),
	}})
	g.wantReady(time.Now())
	s := g.createServer(newThirdParty(t).url()+"/open", nil)
	token := g.token(alice)
	g.callTool(token, s, "", "echo").want(t, http.StatusOK)

	refused := func(what, old, replacement, says string) {
		t.Helper()
		output, err := g.reload(strings.Replace(g.written(), old, replacement, 1))
		if err == nil || !strings.Contains(output, says) {
			t.Errorf("%s: %v %s", what, err, output)
		}
	}
	refused("a database that is away in the place of one that is there", "DURWARD_DATABASE_URL", "DURWARD_OTHER_DATABASE_URL", "cannot be reached")
	g.callTool(token, s, "", "echo").want(t, http.StatusOK)

	database.Stop(t)
	g.wantAway("the")
	g.wantFewLines(eve)
	refused("another master key", "DURWARD_TEST_KEY", "DURWARD_OTHER_KEY", "data keys")
	g.mustReload(strings.Replace(g.written(), "persist_config off", "persist_config off\n\tgrace_period 20s", 1))
	g.wantAway("the")
	if a := g.callTool(token, s, "", "echo"); a.status != http.StatusOK && a.status != http.StatusServiceUnavailable {
		t.Errorf("a call that was known is answered %d: %s", a.status, a.body)
	}
	g.send(http.MethodGet, "/api/servers", g.token(eve), nil).want(t, http.StatusServiceUnavailable)

	database.Start(t)
	g.wantReady(time.Now())
	g.callTool(token, s, "", "echo").want(t, http.StatusOK)
	g.send(http.MethodGet, "/api/servers", g.token(eve), nil).want(t, http.StatusOK)
	g.eventually("the log says that it is over", func() bool { return strings.Contains(g.output.String(), "the store serves again") })
}

// wantFewLines checks that the log reports once for all requests that the store refuses them, and the reason.
func (g *gateway) wantFewLines(caller claims) {
	g.t.Helper()
	from, before := time.Now(), g.output.String()
	for range 200 {
		g.send(http.MethodGet, "/api/servers", g.token(caller), nil).want(g.t, http.StatusServiceUnavailable)
		g.send(http.MethodGet, "/readyz", "", nil).want(g.t, http.StatusServiceUnavailable)
		g.send(http.MethodGet, "/api/oauth/callback?state=x&code=y", "", nil).want(g.t, http.StatusServiceUnavailable) // anybody's
	}
	said := g.output.String()
	const others = 3 // what else goes wrong: counters, audit records
	if lines := strings.Count(said[len(before):], "\n"); lines > int(time.Since(from).Seconds())+1+others {
		g.t.Errorf("%d lines in the log within %v:\n%s", lines, time.Since(from), tail(said, 4_000))
	}
	if !strings.Contains(said, "the store does not serve") || !strings.Contains(said, "connection refused") {
		g.t.Errorf("the log does not say what is wrong:\n%s", tail(said, 4_000))
	}
}

// TestReadOnlyAtReload checks that a node that is ready while its database only reads stays ready when its
// configuration is loaded anew.
func TestReadOnlyAtReload(t *testing.T) {
	t.Parallel()
	database := pgtest.NewServer(t)
	g := startGateway(t, settings{database: database.URL()})
	g.wantReady(time.Now())
	database.Exec(t, `ALTER DATABASE durward SET default_transaction_read_only = on`)
	database.Exec(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'durward_test'`)
	wantReadOnly := func() {
		t.Helper()
		g.eventually("/readyz says that the database only reads", func() bool {
			a := g.send(http.MethodGet, "/readyz", "", nil)
			return a.status == http.StatusOK && strings.Contains(string(a.body), `"store":"read-only"`)
		})
	}
	wantReadOnly()
	g.mustReload(strings.Replace(g.written(), "persist_config off", "persist_config off\n\tgrace_period 20s", 1))
	wantReadOnly()
}

// TestStoreRefuses checks that a database that is there and does not let the gateway work is told apart, and is worked
// with once that is mended, without a start. What can only be a mistake fails the start.
func TestStoreRefuses(t *testing.T) {
	t.Parallel()
	database := pgtest.NewServer(t)
	stranger, err := url.Parse(database.URL())
	if err != nil {
		t.Fatal(err)
	}
	stranger.User = url.UserPassword("stranger", "secret-word")
	g := startGateway(t, settings{database: stranger.String()})
	g.wantAway("refuses the gateway's user or password")
	database.Exec(t, `CREATE ROLE stranger LOGIN`)
	database.Exec(t, `ALTER DATABASE durward OWNER TO stranger`)
	database.Exec(t, `GRANT ALL ON SCHEMA public TO stranger`)
	g.wantReady(time.Now())
	if strings.Contains(g.output.String(), "secret-word") {
		t.Error("the log has the password")
	}
	s := g.createServer(newThirdParty(t).url()+"/open", nil)
	g.stop(t)

	database.Exec(t, `UPDATE schema_migrations SET oldest_writer = 1000 WHERE version = 1`)
	g.process = startProcess(t, g.directory, g.command.Env, durward(t), g.command.Args[1:]...)
	g.waitFor(t, g.url+"/healthz")
	g.wantAway("start a newer durward")
	g.send(http.MethodPost, "/api/server-directory", g.token(admin), map[string]any{"name": "x", "url": "https://x.example.com"}).want(t, http.StatusServiceUnavailable)
	database.Exec(t, `UPDATE schema_migrations SET oldest_writer = 1 WHERE version = 1`)
	g.wantReady(time.Now())
	g.callTool(g.token(alice), s, "", "echo").want(t, http.StatusOK)

	foreign := pgtest.NewServer(t)
	foreign.Exec(t, `CREATE TABLE invoices (id BIGINT)`)
	env := slices.DeleteFunc(slices.Clone(g.command.Env), func(v string) bool { return strings.HasPrefix(v, "DURWARD_DATABASE_URL=") })
	config := filepath.Join(g.directory, "Caddyfile.foreign")
	if err := os.WriteFile(config, []byte(strings.ReplaceAll(g.written(), strings.TrimPrefix(g.url, "http://127.0.0.1:"), freePort(t))), 0o600); err != nil {
		t.Fatal(err)
	}
	refused := startProcess(t, t.TempDir(), append(env, "DURWARD_DATABASE_URL="+foreign.URL()), durward(t), "run", "--config", config, "--adapter", "caddyfile")
	select {
	case <-refused.exited:
	case <-time.After(startTimeout):
		t.Fatal("a gateway runs on the database of another program")
	}
	if exitCode(refused.Err) == 0 || !strings.Contains(refused.output.String(), "another program") {
		t.Errorf("it ended with %v:\n%s", refused.Err, refused.output.String())
	}
}
