package integration

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

// gateway is a running durward with a configuration, an identity provider and a store of its own.
type gateway struct {
	*process
	t         testing.TB
	url       string // public_url
	directory string // of its files, the home of the process
	config    string // path of its Caddyfile
	identity  *identityProvider
	client    *http.Client
	env       []string // of the process
}

// settings vary the configuration of a test's gateway.
type settings struct {
	global   string // lines for the global options
	option   string // lines for the durward option
	identity string // lines for the identity provider's block
	site     string // lines for the site, before the directive; with directives of the pipeline, pipeline says that it is whole
	whole    bool   // site holds the pipeline's own directives
	env      []string
	// provider is the identity provider; nil for one that is made here.
	provider *identityProvider
	// refuse has those who are not connected refused at once, instead of led to the page on which they connect.
	refuse bool
	// inherited makes the gateway listen on a socket that is open when it starts, as systemd hands it over.
	inherited bool
	// postgres makes the gateway keep everything in a PostgreSQL database of its own.
	postgres bool
	// database is the address of one that is not made here. Nobody waits until the gateway is ready.
	database string
	// binary is that of another version; "" stands for the one that is tested.
	binary string
}

// caddyfile returns the configuration of a gateway that tests start: a real one, except that everything is on this
// machine.
func (s settings) caddyfile(g *gateway, port string) string {
	directive, bind := "durward", "127.0.0.1"
	switch {
	case s.whole:
		directive = ""
	case os.Getenv("DURWARD_TEST_TRANSPORT") != "":
		directive = overNetHTTP
	}
	if s.inherited {
		bind = "fd/3"
	}
	if s.refuse {
		s.option += "\n\t\tunconnected refuse"
	}
	return strings.NewReplacer(
		"<url>", g.url, "<port>", port, "<issuer>", g.identity.issuer(), "<identity>", s.identity, "<global>", s.global, "<option>", s.option, "<store>", s.store(),
		"<site>", s.site, "<directive>", directive, "<bind>", bind,
	).Replace(`{
	admin unix/admin.sock
	persist_config off
	<global>
	durward {
		public_url <url>
		store <store>
		master_key {env.DURWARD_TEST_KEY}
		identity oidc <issuer> {
			audience <url>
			<identity>
		}
		egress {
			http 127.0.0.0/8 ::1/128
		}
		<option>
	}
}

http://:<port> {
	bind <bind>
	<site>
	<directive>
}
`)
}

// overNetHTTP is the expansion of `durward`, with the other HTTP client towards upstreams. With
// DURWARD_TEST_TRANSPORT=net_http all gateways use it.
const overNetHTTP = `durward_session
	durward_auth
	durward_limit
	durward_policy
	durward_credential
	durward_mcp {
		transport net_http
	}
	durward_sse {
		transport net_http
	}
	durward_llm {
		transport net_http
	}
	durward_gateway
	durward_scim
	durward_platform`

// startGateway starts a gateway, waits until it is ready and ends it with the test, which fails when the gateway has
// panicked, raced or would not end.
func startGateway(t testing.TB, s settings) *gateway {
	t.Helper()
	port := freePort(t)
	if s.provider == nil {
		s.provider = newIdentityProvider(t)
	}
	g := &gateway{t: t, url: "http://127.0.0.1:" + port, directory: t.TempDir(), identity: s.provider, client: newClient(t)}
	g.config = filepath.Join(g.directory, "Caddyfile")
	if err := os.WriteFile(g.config, []byte(s.caddyfile(g, port)), 0o600); err != nil {
		t.Fatal(err)
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	env := append([]string{"DURWARD_TEST_KEY=" + base64.StdEncoding.EncodeToString(key)}, s.env...)
	up := "/readyz"
	if s.database != "" {
		up = "/healthz"
	} else if s.onPostgres() {
		s.database = pgtest.Database(t)
	}
	if s.database != "" {
		env = append(env, "DURWARD_DATABASE_URL="+s.database)
	}
	g.env = env
	var files []*os.File
	if s.inherited {
		files = append(files, listeningSocket(t, "127.0.0.1:"+port))
	}
	g.process = startProcessWith(t, files, g.directory, env, cmp.Or(s.binary, durward(t)), "run", "--config", g.config, "--adapter", "caddyfile")
	t.Cleanup(func() {
		g.stop(t)
		g.checkLog(t)
		if code := exitCode(g.Err); code != 0 {
			t.Errorf("the gateway ended with status %d", code)
		}
	})
	g.waitFor(t, g.url+up)
	return g
}

// twin starts a second node of a gateway on PostgreSQL, behind the same public URL.
func (g *gateway) twin() *gateway {
	g.t.Helper()
	t := g.t
	text, err := os.ReadFile(g.config)
	if err != nil {
		t.Fatal(err)
	}
	_, from, _ := strings.Cut(strings.TrimPrefix(g.url, "http://"), ":")
	port := freePort(t)
	n := &gateway{t: t, url: "http://127.0.0.1:" + port, directory: t.TempDir(), identity: g.identity, client: g.client, env: g.env}
	n.config = filepath.Join(n.directory, "Caddyfile")
	if err := os.WriteFile(n.config, []byte(strings.Replace(string(text), "http://:"+from+" {", "http://:"+port+" {", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	n.process = startProcessWith(t, nil, n.directory, n.env, durward(t), "run", "--config", n.config, "--adapter", "caddyfile")
	t.Cleanup(func() {
		n.stop(t)
		n.checkLog(t)
	})
	n.waitFor(t, n.url+"/readyz")
	return n
}

// newClient makes an HTTP client that follows no redirects and keeps no connection beyond the test.
func newClient(t testing.TB) *http.Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport: transport, Timeout: callTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// answer is the answer to a request.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// decode reads the answer's body into target.
func (a answer) decode(t testing.TB, target any) {
	t.Helper()
	if err := json.Unmarshal(a.body, target); err != nil {
		t.Fatalf("status %d, body %q: %v", a.status, a.body, err)
	}
}

// want ends the test unless the status is the wanted one.
func (a answer) want(t testing.TB, status int) answer {
	t.Helper()
	if a.status != status {
		t.Fatalf("status %d instead of %d: %s", a.status, status, tail(string(a.body), 2_000))
	}
	return a
}

// send makes a request to the gateway. The header's pairs are name, value; a body that is not bytes or a string is
// written as JSON, with its content type.
func (g *gateway) send(method, path, token string, body any, header ...string) answer {
	g.t.Helper()
	response := g.open(context.Background(), method, path, token, body, header...)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		g.t.Fatalf("%s %s: %v", method, path, err)
	}
	checkDescribed(g.t, response.Request, response, content)
	return answer{status: response.StatusCode, header: response.Header, body: content}
}

// open does the work of send for answers that are read while they arrive: the caller closes the body.
func (g *gateway) open(ctx context.Context, method, path, token string, body any, header ...string) *http.Response {
	g.t.Helper()
	request, err := rig.NewRequest(ctx, method, g.url+path, token, body, header...)
	if err != nil {
		g.t.Fatal(err)
	}
	response, err := g.client.Do(request)
	if err != nil {
		g.t.Fatalf("%s %s: %v", method, path, err)
	}
	return response
}
