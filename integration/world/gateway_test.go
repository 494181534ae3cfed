package world

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

const organization = "0190aaaa-0000-7000-8000-00000000ac3e"

type claims = map[string]any

// Callers of the lab.
var (
	admin = claims{"sub": "0190bbbb-0000-7000-8000-000000000001", "email": "admin@acme.test", "org_id": organization, "roles": []string{"admin"}}
	alice = claims{"sub": "0190bbbb-0000-7000-8000-000000000002", "email": "alice@acme.test", "org_id": organization}
)

// gateway is a running durward.
type gateway struct {
	*rig.Process
	t      testing.TB
	url    string
	issuer *rig.Issuer
	names  atomic.Int64
	start  func() // starts it, the first time and again
}

// startGateway starts a gateway whose identity provider is the rig's, with further lines for the option `durward`. It ends
// with the test.
func startGateway(t testing.TB, option string) *gateway {
	t.Helper()
	issuer := rig.NewIssuer(t)
	g := startGatewayWith(t, fmt.Sprintf("identity oidc %s {\n\t\t\taudience <url>\n\t\t}\n\t\t%s", issuer.URL(), option))
	g.issuer = issuer
	return g
}

// startGatewayWith starts a gateway with lines for the option `durward`; <url> in them is its address.
func startGatewayWith(t testing.TB, option string) *gateway {
	t.Helper()
	port, home := rig.FreePort(t), t.TempDir()
	g := &gateway{t: t, url: "http://127.0.0.1:" + port}
	config := filepath.Join(home, "Caddyfile")
	text := strings.NewReplacer("<option>", option, "<port>", port).Replace(`{
	admin unix/admin.sock
	persist_config off
	durward {
		public_url <url>
		store sqlite durward.db
		master_key {env.DURWARD_TEST_KEY}
		egress {
			http 127.0.0.0/8 ::1/128
		}
		<option>
	}
}

http://:<port> {
	bind 127.0.0.1
	durward
}
`)
	if err := os.WriteFile(config, []byte(strings.ReplaceAll(text, "<url>", g.url)), 0o600); err != nil {
		t.Fatal(err)
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	g.start = func() {
		g.Process = rig.Start(t, nil, home, []string{"DURWARD_TEST_KEY=" + base64.StdEncoding.EncodeToString(key)},
			rig.Durward(t), "run", "--config", config, "--adapter", "caddyfile")
		g.WaitFor(t, g.url+"/readyz")
	}
	g.start()
	t.Cleanup(func() {
		g.Stop(t)
		g.CheckLog(t)
	})
	return g
}

// restart ends the gateway and starts it again.
func (g *gateway) restart() {
	g.t.Helper()
	g.Stop(g.t)
	g.CheckLog(g.t)
	g.start()
}

// token of a caller, for the whole gateway.
func (g *gateway) token(c claims) string { return g.issuer.Token(g.t, g.url, c) }

// api calls the gateway's API as the administrator and ends the test unless it succeeds.
func (g *gateway) api(method, path string, body, target any) {
	g.t.Helper()
	api(g.t, method, g.url+path, g.token(admin), body, target)
}

// api calls the API of a gateway with a token, and ends the test unless it succeeds. target may be nil.
func api(t testing.TB, method, address, token string, body, target any) {
	t.Helper()
	request, err := rig.NewRequest(t.Context(), method, address, token, body)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode/100 != 2 {
		t.Fatalf("%s %s: status %d, %v: %s", method, address, response.StatusCode, err, rig.Tail(string(content), 2_000))
	}
	if target != nil {
		if err := json.Unmarshal(content, target); err != nil {
			t.Fatalf("%s %s: %v: %s", method, address, err, content)
		}
	}
}

// serve makes a server of an upstream's address that everybody may do everything on, and returns its address at the
// gateway. changes complete its directory entry; by default it needs no authentication.
func (g *gateway) serve(upstream string, changes map[string]any) string {
	g.t.Helper()
	id, address := g.bare(upstream, changes)
	g.policy(id, map[string]any{"name": "all", "authorized": true})
	return address
}

// bare does the work of serve without a policy: nobody may do anything. It returns the server's id, too.
func (g *gateway) bare(upstream string, changes map[string]any) (id, address string) {
	g.t.Helper()
	name := fmt.Sprint("Upstream ", g.names.Add(1))
	entry := map[string]any{"name": name, "url": upstream, "protocol": "mcp", "provider": "none", "requires_auth": false}
	for member, value := range changes {
		entry[member] = value
	}
	var directory struct {
		ID string `json:"id"`
	}
	var created struct {
		ID   string `json:"id"`
		Test struct{ Message string }
	}
	var server struct {
		Slug string `json:"slug"`
	}
	g.api(http.MethodPost, "/api/server-directory", entry, &directory)
	g.api(http.MethodPost, "/api/servers", map[string]any{"name": name, "mcp_server_directory_id": directory.ID}, &created)
	g.t.Logf("%s, tried at its creation: %s", upstream, created.Test.Message)
	g.api(http.MethodGet, "/api/servers/"+created.ID, nil, &server)
	return created.ID, g.url + "/mcp/" + server.Slug
}

// policy gives a server a policy of rules.
func (g *gateway) policy(serverID string, rules ...any) {
	g.t.Helper()
	g.api(http.MethodPost, "/api/policy", map[string]any{
		"name": fmt.Sprint("Policy ", g.names.Add(1)), "mcp_server_id": serverID, "status": "ACTIVE", "rules": rules,
	}, nil)
}

// connect lets a user connect an account at a server's third party, whose pages ask nothing.
func (g *gateway) connect(address string, user claims) {
	g.t.Helper()
	slug := address[strings.LastIndex(address, "/")+1:]
	request, err := rig.NewRequest(g.t.Context(), http.MethodPost, g.url+"/api/servers/"+slug+"/connect", g.token(user), nil)
	if err != nil {
		g.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		g.t.Fatal(err)
	}
	defer response.Body.Close()
	var attempt struct {
		AuthURL string `json:"auth_url"`
	}
	if err := json.NewDecoder(response.Body).Decode(&attempt); err != nil || attempt.AuthURL == "" {
		g.t.Fatalf("connecting %s: status %d, %v", slug, response.StatusCode, err)
	}
	page, err := http.Get(attempt.AuthURL) //nolint:noctx // the browser of the user
	if err != nil {
		g.t.Fatal(err)
	}
	defer page.Body.Close()
	if text, err := io.ReadAll(page.Body); err != nil || page.StatusCode != http.StatusOK {
		g.t.Fatalf("connecting %s ends on status %d, %v: %s", slug, page.StatusCode, err, rig.Tail(string(text), 2_000))
	}
}
