package faults

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/integration/chaos"
	"github.com/durward-gateway/durward/integration/rig"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

func TestMain(m *testing.M) {
	os.Exit(rig.Run(pgtest.Main{M: m}))
}

// These are functions of the rig, under the names that tests use.
var number, eventually, within = rig.Number, rig.Eventually, rig.Within

const callTimeout = rig.CallTimeout

const organization = "0190aaaa-0000-7000-8000-00000000fa17"

// admin writes the objects for which no journal is kept.
var admin = members{"sub": "0190bbbb-0000-7000-8000-000000000001", "email": "admin@acme.test", "roles": []string{"admin"}}

// members holds the members of a JSON object.
type members = map[string]any

// site is one gateway, or several on one database, at one public address.
type site struct {
	t        testing.TB
	url      string // public_url: of all nodes, as behind a load balancer
	issuer   *rig.Issuer
	upstream *upstream
	nodes    []*node
	env      []string // of every node: the master key
}

// plan describes the parts of a site.
type plan struct {
	nodes    int
	database string     // URL of a PostgreSQL; "": the embedded store
	proxied  bool       // a chaos listener stands between each node and the database
	option   string     // lines for the durward option
	site     string     // lines for the site
	global   string     // lines for the global options
	files    []*os.File // that the nodes have open, from descriptor 3 on
}

// node is one gateway.
type node struct {
	*rig.Process
	site      *site
	name      string
	address   string // host:port where it listens
	directory string
	env       []string
	store     *chaos.Proxy // when the plan says so
	start     func()
}

// startSite starts the nodes at once, waits until all are ready, and ends them with the test.
func startSite(t testing.TB, p plan) *site {
	t.Helper()
	s := newSite(t, p)
	for _, n := range s.nodes {
		n.start()
	}
	for _, n := range s.nodes {
		n.ready()
	}
	return s
}

func newSite(t testing.TB, p plan) *site {
	t.Helper()
	s := &site{t: t, url: "http://127.0.0.1:" + rig.FreePort(t), issuer: rig.NewIssuer(t), upstream: newUpstream(t)}
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	s.env = []string{"DURWARD_TEST_KEY=" + base64.StdEncoding.EncodeToString(key)}
	for i := range p.nodes {
		s.add(p, fmt.Sprint("node", i+1))
	}
	return s
}

// add adds a node that is not started.
func (s *site) add(p plan, name string) {
	s.t.Helper()
	port := rig.FreePort(s.t)
	n := &node{site: s, name: name, address: "127.0.0.1:" + port, directory: s.t.TempDir()}
	env, store := slices.Clone(s.env), "sqlite durward.db"
	if p.database != "" {
		database, err := url.Parse(p.database)
		if err != nil {
			s.t.Fatal(err)
		}
		if p.proxied {
			n.store = chaos.NewPostgreSQL(s.t, database.Host)
			database.Host = n.store.Addr()
		}
		env = append(env, "DURWARD_DATABASE_URL="+database.String())
		store = "postgres {env.DURWARD_DATABASE_URL} {\n\t\t\tmax_conns 10\n\t\t}"
	}
	text := strings.NewReplacer("<url>", s.url, "<issuer>", s.issuer.URL(), "<port>", port, "<store>", store,
		"<option>", p.option, "<site>", p.site, "<global>", p.global).Replace(`{
	admin unix/admin.sock
	persist_config off
	<global>
	durward {
		public_url <url>
		store <store>
		master_key {env.DURWARD_TEST_KEY}
		identity oidc <issuer> {
			audience <url>
		}
		egress {
			http 127.0.0.0/8 ::1/128
		}
		approval_clients approver
		<option>
	}
}

http://:<port> {
	bind 127.0.0.1
	<site>
	durward
}
`)
	config := filepath.Join(n.directory, "Caddyfile")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	binary := rig.Durward(s.t)
	n.env = env
	n.start = func() {
		n.Process = rig.Start(s.t, p.files, n.directory, env, binary, "run", "--config", config, "--adapter", "caddyfile")
		started := n.Process
		s.t.Cleanup(func() {
			if n.store != nil {
				n.store.Delay(0)
				n.store.Resume() // a node that cannot reach its store ends late
			}
			started.Stop(s.t)
			started.CheckLog(s.t)
		})
	}
	s.nodes = append(s.nodes, n)
}

// ready waits until the node is.
func (n *node) ready() {
	n.site.t.Helper()
	n.WaitFor(n.site.t, "http://"+n.address+"/readyz")
}

// token signs claims for a caller of the site.
func (s *site) token(claims members) string {
	s.t.Helper()
	whole := members{"org_id": organization}
	maps.Copy(whole, claims)
	return s.issuer.Token(s.t, s.url, whole)
}

func newClient(t testing.TB) *http.Client {
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// answer is the answer to a request; status 0: there was none, or not all of it.
type answer struct {
	status int
	header http.Header
	body   []byte
	err    error
}

func (a answer) String() string {
	return fmt.Sprintf("%d %v %s", a.status, a.err, rig.Tail(string(a.body), 1_000))
}

// passed reports whether a tool was called: the upstream answered.
func (a answer) passed() bool {
	return a.status == http.StatusOK && bytes.Contains(a.body, []byte(`"content"`)) && !bytes.Contains(a.body, []byte(`"isError":true`))
}

// send makes a request to a node. A body that is no string is written as JSON. The header's pairs are name, value.
func (n *node) send(client *http.Client, method, path, token string, body any, header ...string) answer {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	request, err := rig.NewNodeRequest(ctx, n.site.url, n.address, method, path, token, body, header...)
	if err != nil {
		return answer{err: err}
	}
	response, err := client.Do(request)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{err: err}
	}
	return answer{status: response.StatusCode, header: response.Header, body: content}
}

// read does the work of send for requests that have to succeed; the answer is read into target.
func (n *node) read(client *http.Client, token, path string, target any) {
	n.site.t.Helper()
	n.must(client, http.MethodGet, path, token, nil, target)
}

// must does the work of send for requests that have to succeed; the answer is read into target, unless that is nil.
func (n *node) must(client *http.Client, method, path, token string, body, target any) {
	n.site.t.Helper()
	a := n.send(client, method, path, token, body)
	if a.err != nil || a.status/100 != 2 {
		n.site.t.Fatalf("%s: %s %s: %v", n.name, method, path, a)
	}
	if target == nil {
		return
	}
	if err := json.Unmarshal(a.body, target); err != nil {
		n.site.t.Fatalf("%s %s: %v", method, path, err)
	}
}

// server is an MCP server of the gateway.
type server struct{ id, slug, directory string }

// newServer makes a server with one rule.
func (n *node) newServer(name string, entry, rule members) server {
	n.site.t.Helper()
	client, token := newClient(n.site.t), n.site.token(admin)
	whole := members{"name": name, "protocol": "mcp", "provider": "none", "requires_auth": false, "url": n.site.upstream.server.URL + "/mcp"}
	maps.Copy(whole, entry)
	var made struct{ ID, Slug string }
	var s server
	n.must(client, http.MethodPost, "/api/server-directory", token, whole, &made)
	s.directory = made.ID
	n.must(client, http.MethodPost, "/api/servers?test=false", token, members{"name": name, "mcp_server_directory_id": s.directory}, &made)
	s.id, s.slug = made.ID, made.Slug
	n.must(client, http.MethodPost, "/api/v2/policies", token, members{
		"name": "Policy of " + name, "mcp_server_id": s.id, "status": "ACTIVE", "rules": []any{rule},
	}, nil)
	return s
}

// everything is the rule that grants all.
var everything = members{"name": "all", "authorized": true}

// call calls a tool of a server.
func (n *node) call(client *http.Client, token string, s server, tool string) answer {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":%q,"arguments":{}}}`, tool)
	return n.send(client, http.MethodPost, "/mcp/"+s.slug, token, body, "Accept", "application/json, text/event-stream")
}

var goroutinesText = regexp.MustCompile(`(?m)^go_goroutines (\d+)`)

// goroutines returns the number of a node's goroutines, by its metrics.
func (n *node) goroutines(t testing.TB) int {
	t.Helper()
	socket := filepath.Join(n.directory, "admin.sock")
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	response, err := (&http.Client{Transport: transport, Timeout: callTimeout}).Get("http://localhost/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	found := goroutinesText.FindSubmatch(text)
	if found == nil {
		t.Fatalf("no goroutines in %s", rig.Tail(string(text), 500))
	}
	count, _ := strconv.Atoi(string(found[1]))
	return count
}
