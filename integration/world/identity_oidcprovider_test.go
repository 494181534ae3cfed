package world

import (
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
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

// browseOIDCProvider logs a user in for login.mjs.
func browseOIDCProvider(g *guide, browser *http.Client, address, user string) {
	g.t.Helper()
	if page := passOIDCProvider(g.t, browser, address, user); !strings.Contains(page, "You are logged in") {
		g.t.Fatalf("the login ends on %s", rig.Tail(page, 2_000))
	}
}

// passOIDCProvider opens an address, logs a user in and agrees to what is asked, on the pages that oidc-provider has for trying
// it out. It returns the page that comes after.
func passOIDCProvider(t testing.TB, browser *http.Client, address, user string) string {
	t.Helper()
	response, err := browser.Get(address)
	for range 8 {
		if err != nil {
			t.Fatal(err)
		}
		page, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		action, prompt := formAction.FindSubmatch(page), formPrompt.FindSubmatch(page)
		if action == nil || prompt == nil {
			return string(page)
		}
		to, problem := response.Request.URL.Parse(html.UnescapeString(string(action[1])))
		if problem != nil {
			t.Fatal(problem)
		}
		response, err = browser.PostForm(to.String(), url.Values{"prompt": {string(prompt[1])}, "login": {user}, "password": {"any"}})
	}
	t.Fatal("the login does not end")
	return ""
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
	g.start([]string{loginSecret}, node(t), "provider.mjs").WaitForListener(t, "127.0.0.1:"+issuerPort)
	durward := g.gateway(gate)

	env := []string{"GATE=" + gate, "ISSUER=" + issuer, "UPSTREAM=" + upstream}
	root, alice := g.login(env, "root", browseOIDCProvider), g.login(env, "alice", browseOIDCProvider)
	g.firstCall(env, gate, durward, root, alice)

	// The gateway's own login gets from userinfo what the ID token leaves out.
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	if page := passOIDCProvider(t, &http.Client{Jar: jar}, gate+"/approvals", "alice"); !strings.Contains(page, "alice@example.test") {
		t.Errorf("the login leads to %s", rig.Tail(page, 3_000))
	}
	if log := durward.Output.String(); strings.Contains(log, "userinfo cannot be read") {
		t.Errorf("the gateway says %s", rig.Tail(log, 3_000))
	}
}
