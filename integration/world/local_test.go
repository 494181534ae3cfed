package world

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

// readLocalGuide lays out docs/local.md, as its reader would beside a clone.
func readLocalGuide(t *testing.T, changes ...string) *guide {
	t.Helper()
	root := t.TempDir()
	g := &guide{t: t, directory: filepath.Join(root, "durward-local"), blocks: make(map[string]string)}
	if err := os.Mkdir(g.directory, 0o700); err != nil {
		t.Fatal(err)
	}
	clone, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{filepath.Join(root, "durward"): clone, filepath.Join(g.directory, "node_modules"): module(t, "")} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile("../../docs/local.md")
	if err != nil {
		t.Fatal(err)
	}
	g.text = string(text)
	for _, found := range block.FindAllStringSubmatch(g.text, -1) {
		g.blocks[found[1]] = strings.NewReplacer(changes...).Replace(found[2])
		g.write(found[1], g.blocks[found[1]])
	}
	return g
}

func (g *guide) write(name, text string) {
	g.t.Helper()
	if err := os.WriteFile(filepath.Join(g.directory, name), []byte(text), 0o600); err != nil {
		g.t.Fatal(err)
	}
}

// follow runs blocks of the guide.
func (g *guide) follow(names ...string) {
	g.t.Helper()
	for _, name := range names {
		if output, err := g.script(nil, name); err != nil {
			g.t.Fatalf("%s: %v: %s", name, err, output)
		}
	}
}

// elsewhere changes a file that a block has made: the ports of the sample may be taken.
func (g *guide) elsewhere(name string, changes ...string) {
	g.t.Helper()
	text, err := os.ReadFile(filepath.Join(g.directory, name))
	if err != nil {
		g.t.Fatal(err)
	}
	g.write(name, strings.NewReplacer(changes...).Replace(string(text)))
}

// TestEdgeSampleOnThisMachine checks that docs/local.md leads from caddyfile/edge.caddyfile, with the edits of the page
// and no others, to a first call, and a client that is given the address alone calls the tool as well (W20 to W22,
// W31).
func TestEdgeSampleOnThisMachine(t *testing.T) {
	lab(t)
	record(t, &row{section: mcpClients, software: sdk1, version: version(t, sdk1), tried: "sdk 1: caddyfile/edge.caddyfile with the edits of docs/local.md: login from the address alone, registered by itself; a first call"})
	gatePort, issuerPort, upstreamPort, health := rig.FreePort(t), rig.FreePort(t), rig.FreePort(t), rig.FreePort(t)
	gate, issuer := "http://127.0.0.1:"+gatePort, "http://127.0.0.1:"+issuerPort
	g := readLocalGuide(t, "http://127.0.0.1:8080", gate, "http://127.0.0.1:9000", issuer)
	g.installs("oidc-provider", "@modelcontextprotocol/server-everything")
	if form != short {
		g.installs(inspector)
	}
	g.follow("take", "edit")
	g.elsewhere("Caddyfile", "127.0.0.1:8081", "127.0.0.1:"+health)

	env := []string{"GATE=" + gate, "ISSUER=" + issuer, "UPSTREAM=http://127.0.0.1:" + upstreamPort + "/mcp"}
	startNode(t, upstreamPort, []string{"PORT=" + upstreamPort}, module(t, "@modelcontextprotocol/server-everything/dist/index.js"), "streamableHttp")
	provider := g.start(append(env, loginSecret), node(t), "provider.mjs")
	provider.WaitForListener(t, "127.0.0.1:"+issuerPort)
	key := masterKey()
	durward := g.gatewayWith(gate, key)
	durward.WaitFor(t, "http://127.0.0.1:"+health+"/readyz")

	pages := pagesOfOIDCProvider(gate)
	root, alice := g.login(env, "root", pages.browse), g.login(env, "alice", pages.browse)
	g.firstCall(env, gate, durward, root, alice)
	pages.visit(t, "alice", "alice@example.test") // by the login_client

	plan := object{"url": gate + "/mcp/everything", "modules": filepath.Dir(module(t, "x")), "tool": "echo", "arguments": object{"message": "hello"}}
	at := &provided{gate: gate, login: gate + "/oauth/authorize?"}
	browser := rig.StartBrowser(t)
	browser.Mind(gate)
	var opened []string
	got := newcomer{name: "sdk 1"}.contact(t, plan, func(address string) {
		opened = append(opened, address)
		at.visit(browser, address, "alice")
	})
	if len(opened) != 1 || !strings.HasPrefix(opened[0], at.login) || !strings.Contains(got.Result, "Echo: hello") {
		t.Errorf("the user was led to %q, and the client says %s\n%s", opened, got.Result, rig.Tail(durward.Output.String(), 3_000))
	}

	durward.Stop(t)
	provider.Stop(t)
	g.overTLS(gatePort, issuerPort, health, env, key)
}

// overTLS follows the page's section about TLS, after the gateway and the provider of the sections before were stopped.
func (g *guide) overTLS(gatePort, issuerPort, health string, env []string, key string) {
	g.t.Helper()
	g.elsewhere("edit-tls", "https://localhost:8443", "https://localhost:"+gatePort)
	g.follow("edit-tls")
	authority := filepath.Join(g.directory, "caddy/pki/authorities/local/root.crt")
	env = append(env, "GATE=https://localhost:"+gatePort, "NODE_EXTRA_CA_CERTS="+authority, "CURL_CA_BUNDLE="+authority) // the last of two counts
	g.start(append(env, loginSecret), node(g.t), "provider.mjs").WaitForListener(g.t, "127.0.0.1:"+issuerPort)
	durward := g.start([]string{key, loginSecret, "XDG_DATA_HOME=" + g.directory}, rig.Durward(g.t), "run", "--config", "tls.caddyfile")
	durward.WaitFor(g.t, "http://127.0.0.1:"+health+"/readyz")
	rig.Eventually(g.t, "the authority's certificate", func() bool {
		_, err := os.Stat(authority)
		return err == nil
	})
	pages := pagesOfOIDCProvider("https://localhost:" + gatePort)
	root, alice := g.login(env, "root", pages.browse), g.login(env, "alice", pages.browse)
	if output, err := g.script(append(env, "ADMIN="+root, "ALICE="+alice), "calls"); err != nil || !strings.Contains(output, "Echo: hello") {
		g.t.Errorf("over TLS: %v\n%s\n%s", err, output, rig.Tail(durward.Output.String(), 3_000))
	}
	durward.Stop(g.t)
}
