package cluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
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

// cluster is three gateways on one database, each behind a chaos listener of its own.
type cluster struct {
	t        testing.TB
	url      string // public_url: of all nodes, as behind a load balancer
	database *pgtest.Server
	issuer   *rig.Issuer
	nodes    []*node
	option   string   // lines for the durward option
	env      []string // of the nodes
}

// node is one gateway.
type node struct {
	*rig.Process
	cluster *cluster
	name    string
	address string // host:port where it listens
	store   *chaos.Proxy
	start   func()
}

const size = 3

// startCluster starts the nodes at once, waits until all are ready, and ends them with the test.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	return startClusterWith(t, "")
}

// startClusterWith does the work of startCluster with lines for the durward option, and variables for the nodes.
func startClusterWith(t *testing.T, option string, env ...string) *cluster {
	t.Helper()
	rig.Figures(t)
	c := &cluster{t: t, database: pgtest.NewServer(t), issuer: rig.NewIssuer(t), option: option, env: env, url: "https://127.0.0.1:" + rig.FreePort(t)}
	binary := rig.Durward(t)
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	for i := range size {
		c.add(binary, fmt.Sprint("node", i+1), base64.StdEncoding.EncodeToString(key))
	}
	for _, n := range c.nodes {
		n.WaitFor(t, "http://"+n.address+"/readyz")
	}
	return c
}

func (c *cluster) add(binary, name, key string) {
	c.t.Helper()
	database, err := url.Parse(c.database.URL())
	if err != nil {
		c.t.Fatal(err)
	}
	port := rig.FreePort(c.t)
	n := &node{cluster: c, name: name, address: "127.0.0.1:" + port, store: chaos.NewPostgreSQL(c.t, database.Host)}
	database.Host = n.store.Addr()
	directory := c.t.TempDir()
	config := filepath.Join(directory, "Caddyfile")
	text := strings.NewReplacer("<url>", c.url, "<issuer>", c.issuer.URL(), "<port>", port, "<option>", c.option).Replace(`{
	admin unix/admin.sock
	persist_config off
	durward {
		public_url <url>
		store postgres {env.DURWARD_DATABASE_URL} {
			max_conns 10
		}
		master_key {env.DURWARD_TEST_KEY}
		identity oidc <issuer> {
			audience <url>
			login_client approver
			connect_check state
		}
		egress {
			http 127.0.0.0/8 ::1/128
		}
		sse require_grant
		<option>
	}
}

http://:<port> {
	bind 127.0.0.1
	durward
}
`)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
	n.start = func() {
		n.Process = rig.Start(c.t, nil, directory, append([]string{"DURWARD_TEST_KEY=" + key, "DURWARD_DATABASE_URL=" + database.String()}, c.env...),
			binary, "run", "--config", config, "--adapter", "caddyfile")
		started := n.Process
		c.t.Cleanup(func() {
			n.store.Resume() // a node that cannot reach its store ends late
			started.Stop(c.t)
			started.CheckLog(c.t)
		})
	}
	n.start()
	c.nodes = append(c.nodes, n)
}

// restart starts a node that was killed.
func (n *node) restart() {
	n.start()
	n.WaitFor(n.cluster.t, "http://"+n.address+"/readyz")
}

// addresses number the addresses that clients call from.
var addresses atomic.Uint32

// newClient returns a client of the cluster with an address of its own, because wrong credentials are counted by
// address.
func newClient(t testing.TB) *http.Client {
	i := addresses.Add(1)
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, byte(1+i>>16), byte(i>>8), byte(i))}}
	transport := &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 1000}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{
		Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// answer is the answer to a request; status 0: there was none.
type answer struct {
	status int
	header http.Header
	body   []byte
	err    error
}

func (a answer) String() string {
	return fmt.Sprintf("%d %v %s", a.status, a.err, rig.Tail(string(a.body), 1_000))
}

// send makes a request to a node. A body that is no string is written as JSON. The header's pairs are name, value.
func (n *node) send(client *http.Client, method, path, token string, body any, header ...string) answer {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	response, err := n.open(ctx, client, method, path, token, body, header...)
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return answer{status: response.StatusCode, header: response.Header, body: content, err: err}
}

func (n *node) open(ctx context.Context, client *http.Client, method, path, token string, body any, header ...string) (*http.Response, error) {
	request, err := rig.NewNodeRequest(ctx, n.cluster.url, n.address, method, path, token, body, header...)
	if err != nil {
		return nil, err
	}
	return client.Do(request)
}

// members holds the members of a JSON object.
type members map[string]any

// api calls a node's API and ends the test unless it succeeds.
func (n *node) api(client *http.Client, token, method, path string, body any) members {
	n.cluster.t.Helper()
	a := n.send(client, method, path, token, body)
	if a.err != nil || a.status/100 != 2 {
		n.cluster.t.Fatalf("%s: %s %s: %v", n.name, method, path, a)
	}
	var object members
	if len(a.body) > 0 {
		if err := json.Unmarshal(a.body, &object); err != nil {
			n.cluster.t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	return object
}

// apiWhenFree calls a node's API again as long as it answers 503. A node that was stopped inside a transaction may hold a
// lock. The others refuse writes until PostgreSQL ends that transaction, which takes seconds.
func (n *node) apiWhenFree(client *http.Client, token, method, path string) {
	n.cluster.t.Helper()
	var a answer
	eventually(n.cluster.t, n.name+" to write", func() bool {
		a = n.send(client, method, path, token, nil)
		return a.status != http.StatusServiceUnavailable
	})
	if a.err != nil || a.status/100 != 2 {
		n.cluster.t.Fatalf("%s: %s %s: %v", n.name, method, path, a)
	}
}

// server is an MCP server of the gateway.
type server struct{ id, slug, policy string }

var names atomic.Int64

// newServer makes a server whose callers may do everything.
func (n *node) newServer(client *http.Client, entry members) server {
	n.cluster.t.Helper()
	return n.newServerUnder(client, entry, members{"name": "all", "authorized": true})
}

// newServerUnder makes a server with one rule.
func (n *node) newServerUnder(client *http.Client, entry, rule members) server {
	n.cluster.t.Helper()
	name, token := fmt.Sprint("Upstream ", names.Add(1)), n.cluster.token(admin)
	whole := members{"name": name, "protocol": "mcp", "provider": "none", "requires_auth": false}
	for member, value := range entry {
		whole[member] = value
	}
	directory := n.api(client, token, http.MethodPost, "/api/server-directory", whole)
	created := n.api(client, token, http.MethodPost, "/api/servers?test=false", members{"name": name, "mcp_server_directory_id": directory["id"]})
	s := server{id: created["id"].(string)}
	s.slug = n.api(client, token, http.MethodGet, "/api/servers/"+s.id, nil)["slug"].(string)
	saved := n.api(client, token, http.MethodPost, "/api/v2/policies", members{
		"name": "Everything on " + name, "mcp_server_id": s.id, "status": "ACTIVE", "rules": []any{rule},
	})
	policy, _ := saved["policy"].(map[string]any)
	if policy == nil {
		policy = saved
	}
	s.policy, _ = policy["id"].(string)
	return s
}

const toolCall = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{}}}`

// call calls a tool of a server.
func (n *node) call(client *http.Client, token string, s server) answer {
	return n.send(client, http.MethodPost, "/mcp/"+s.slug, token, toolCall, "Accept", "application/json, text/event-stream")
}

// passed reports whether the upstream answered.
func (a answer) passed() bool {
	return a.status == http.StatusOK && bytes.Contains(a.body, []byte(`"content"`)) && !bytes.Contains(a.body, []byte(`"isError":true`))
}
