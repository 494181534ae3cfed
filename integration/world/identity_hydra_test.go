package world

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

// TestGuideOfHydra checks that docs/identity/hydra.md leads from an unmodified Hydra to a first call, with nothing but
// what the page says (W20 to W22).
func TestGuideOfHydra(t *testing.T) {
	lab(t, all, newest)
	r := &row{
		section: identityProviders, software: "Ory Hydra", version: moduleVersion("hydra", "github.com/ory/hydra/v2"), tried: "docs/identity/hydra.md: log in, administrator by role, a first call; clients that register at the gateway",
	}
	record(t, r)
	gatePort, publicPort, adminPort, appPort, upstreamPort := rig.FreePort(t), rig.FreePort(t), rig.FreePort(t), rig.FreePort(t), rig.FreePort(t)
	gate, issuer, upstream := "http://127.0.0.1:"+gatePort, "http://127.0.0.1:"+publicPort, "http://127.0.0.1:"+upstreamPort+"/mcp"
	g := readGuide(t, "hydra.md", "http://127.0.0.1:8080", gate, "http://127.0.0.1:4444", issuer, "port: 4444", "port: "+publicPort,
		"port: 4445", "port: "+adminPort, "http://127.0.0.1:3000", "http://127.0.0.1:"+appPort)
	g.installs("@modelcontextprotocol/server-everything")
	if !strings.Contains(g.text, "version "+strings.TrimPrefix(r.version, "v")+",") {
		t.Errorf("the guide was run with another version than %s", r.version)
	}
	env := []string{"GATE=" + gate, "ISSUER=" + issuer, "UPSTREAM=" + upstream, "APP=http://127.0.0.1:" + appPort, "HYDRA_ADMIN=http://127.0.0.1:" + adminPort, loginSecret}
	startNode(t, upstreamPort, []string{"PORT=" + upstreamPort}, module(t, "@modelcontextprotocol/server-everything/dist/index.js"), "streamableHttp")
	hydra := g.start([]string{"SECRETS_SYSTEM=of-the-tokens-of-hydra-in-the-lab"}, filepath.Join(tools(t), "servers", "hydra"), "serve", "all", "--dev", "--config", "hydra.yml")
	hydra.WaitFor(t, "http://127.0.0.1:"+adminPort+"/health/ready")
	hydra.WaitFor(t, issuer+"/health/ready")
	g.start(env, node(t), "app.mjs").WaitForListener(t, "127.0.0.1:"+appPort)
	if output, err := g.script(env, "clients"); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	durward := g.gateway(gate)

	app := forms{gate: gate, fill: func(user string) map[string]string { return map[string]string{"user": user} }}
	root, alice := g.login(env, "root", app.browse), g.login(env, "alice", app.browse)
	g.firstCall(env, gate, durward, root, alice)
	app.visit(t, "alice", "alice@example.test")

	app.letsIn(t, "alice")
	if t.Failed() {
		t.Log(rig.Tail(durward.Output.String(), 3_000))
	}
}
