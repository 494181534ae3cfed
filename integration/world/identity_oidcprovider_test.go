package world

import (
	"strings"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

// pagesOfOIDCProvider returns the pages that oidc-provider has for trials: any name is accepted, with any password.
func pagesOfOIDCProvider(gate string) forms {
	return forms{gate: gate, fill: func(user string) map[string]string { return map[string]string{"login": user, "password": "any"} }}
}

// TestGuideOfOIDCProvider checks that docs/identity/oidc-provider.md leads from an unmodified provider to a first call,
// with nothing but what the page says (W20 to W22).
func TestGuideOfOIDCProvider(t *testing.T) {
	lab(t)
	r := &row{section: identityProviders, software: "oidc-provider", version: version(t, "oidc-provider"), tried: "docs/identity/oidc-provider.md: log in, administrator by role, a first call"}
	record(t, r)
	gatePort, issuerPort, upstreamPort := rig.FreePort(t), rig.FreePort(t), rig.FreePort(t)
	gate, issuer, upstream := "http://127.0.0.1:"+gatePort, "http://127.0.0.1:"+issuerPort, "http://127.0.0.1:"+upstreamPort+"/mcp"
	g := readGuide(t, "oidc-provider.md", "http://127.0.0.1:8080", gate, "http://127.0.0.1:9000", issuer)
	g.installs("oidc-provider", "@modelcontextprotocol/server-everything")
	startNode(t, upstreamPort, []string{"PORT=" + upstreamPort}, module(t, "@modelcontextprotocol/server-everything/dist/index.js"), "streamableHttp")
	g.start([]string{loginSecret}, node(t), "provider.mjs").WaitForListener(t, "127.0.0.1:"+issuerPort)
	durward := g.gateway(gate)

	env := []string{"GATE=" + gate, "ISSUER=" + issuer, "UPSTREAM=" + upstream}
	pages := pagesOfOIDCProvider(gate)
	root, alice := g.login(env, "root", pages.browse), g.login(env, "alice", pages.browse)
	g.firstCall(env, gate, durward, root, alice)

	// The gateway's own login reads the claims that the ID token lacks from userinfo.
	pages.visit(t, "alice", "alice@example.test")
	if log := durward.Output.String(); strings.Contains(log, "userinfo cannot be read") {
		t.Errorf("the gateway says %s", rig.Tail(log, 3_000))
	}
}
