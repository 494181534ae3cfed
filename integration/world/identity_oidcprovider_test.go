package world

import (
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

var (
	formAction = regexp.MustCompile(`<form[^>]* action="([^"]+)"`)
	formPrompt = regexp.MustCompile(`name="prompt" value="([a-z]+)"`)
)

// browseOIDCProvider logs a user in and agrees to what is asked, on the pages that oidc-provider has for trying it out.
func browseOIDCProvider(g *guide, browser *http.Client, address, user string) {
	g.t.Helper()
	response, err := browser.Get(address)
	for range 5 {
		if err != nil {
			g.t.Fatal(err)
		}
		page, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if strings.Contains(string(page), "You are logged in") {
			return
		}
		action, prompt := formAction.FindSubmatch(page), formPrompt.FindSubmatch(page)
		if action == nil || prompt == nil {
			g.t.Fatalf("%s: status %d: %s", response.Request.URL.Path, response.StatusCode, rig.Tail(string(page), 2_000))
		}
		to, problem := response.Request.URL.Parse(html.UnescapeString(string(action[1])))
		if problem != nil {
			g.t.Fatal(problem)
		}
		response, err = browser.PostForm(to.String(), url.Values{"prompt": {string(prompt[1])}, "login": {user}, "password": {"any"}})
	}
	g.t.Fatal("the login does not end")
}

// TestGuideOfOIDCProvider: W20 to W22, docs/identity/oidc-provider.md leads from an unmodified provider to a first call, with
// nothing but what the page says.
func TestGuideOfOIDCProvider(t *testing.T) {
	lab(t)
	r := &row{section: identityProviders, software: "oidc-provider", version: version(t, "oidc-provider"), tried: "docs/identity/oidc-provider.md: log in, administrator by role, a first call"}
	record(t, r)
	gatePort, issuerPort, upstreamPort := rig.FreePort(t), rig.FreePort(t), rig.FreePort(t)
	gate, issuer, upstream := "http://127.0.0.1:"+gatePort, "http://127.0.0.1:"+issuerPort, "http://127.0.0.1:"+upstreamPort+"/mcp"
	g := readGuide(t, "oidc-provider.md", "http://127.0.0.1:8080", gate, "http://127.0.0.1:9000", issuer)
	g.installs("oidc-provider", "@modelcontextprotocol/server-everything")
	startNode(t, upstreamPort, []string{"PORT=" + upstreamPort}, module(t, "@modelcontextprotocol/server-everything/dist/index.js"), "streamableHttp")
	g.start(nil, node(t), "provider.mjs").WaitForListener(t, "127.0.0.1:"+issuerPort)
	durward := g.gateway(gate)

	env := []string{"GATE=" + gate, "ISSUER=" + issuer, "UPSTREAM=" + upstream}
	root, alice := g.login(env, "root", browseOIDCProvider), g.login(env, "alice", browseOIDCProvider)
	g.firstCall(env, gate, durward, root, alice)
}
