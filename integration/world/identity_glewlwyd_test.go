package world

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

// glewlwydPassword is that of every user of glewlwyd in the test.
const glewlwydPassword = "of everybody in the lab"

// glewlwydScript matches the address of a script that a page of glewlwyd loads.
var glewlwydScript = regexp.MustCompile(`<script[^>]* src="([^"?]+)`)

// browseGlewlwyd logs a user in and gives consent. The pages of glewlwyd are programs in JavaScript: these are the
// requests that they make.
func browseGlewlwyd(g *guide, browser *http.Client, address, user string) {
	g.t.Helper()
	ask := func(method, to string, body any) (*url.URL, string) {
		encoded, err := json.Marshal(body)
		if err != nil {
			g.t.Fatal(err)
		}
		request, err := http.NewRequestWithContext(g.t.Context(), method, to, bytes.NewReader(encoded))
		if err != nil {
			g.t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := browser.Do(request)
		if err != nil {
			g.t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK {
			g.t.Fatalf("%s %s: status %d, %v: %s", method, to, response.StatusCode, err, rig.Tail(string(text), 2_000))
		}
		return response.Request.URL, string(text)
	}
	page, text := ask(http.MethodGet, address, nil)
	asked := page.Query()
	if !strings.HasSuffix(page.Path, "/login.html") || asked.Get("callback_url") == "" {
		g.t.Fatalf("the login leads to %s", page)
	}
	// A page whose files are missing stays empty in a browser.
	files := [][]string{{"", "config.json"}}
	files = append(files, glewlwydScript.FindAllStringSubmatch(text, -1)...)
	if len(files) < 3 {
		g.t.Fatalf("the login page loads %q: %s", files, text)
	}
	for _, file := range files {
		ask(http.MethodGet, page.JoinPath("..", file[1]).String(), nil)
	}
	api := page.Scheme + "://" + page.Host + "/api"
	ask(http.MethodPost, api+"/auth/", map[string]any{"username": user, "password": glewlwydPassword})
	ask(http.MethodPut, api+"/auth/grant/"+asked.Get("client_id"), map[string]any{"scope": asked.Get("scope")})
	ask(http.MethodGet, asked.Get("callback_url")+"&g_continue", nil)
}

// TestGuideOfGlewlwyd checks that docs/identity/glewlwyd.md leads from Debian's glewlwyd to a first call, with nothing
// but what the page says (W20 to W22).
func TestGuideOfGlewlwyd(t *testing.T) {
	lab(t, all, newest)
	tools(t) // installs it where that is possible
	for _, program := range []string{"glewlwyd", "sqlite3"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is missing. As root on Debian: apt-get install glewlwyd dbconfig-sqlite3", program)
		}
	}
	r := &row{section: identityProviders, software: "glewlwyd", version: debianVersion(t, "glewlwyd"), tried: "docs/identity/glewlwyd.md: log in, administrator by role, a first call"}
	record(t, r)

	gatePort, issuerPort, upstreamPort, callbackPort := rig.FreePort(t), rig.FreePort(t), rig.FreePort(t), rig.FreePort(t)
	gate, origin, upstream := "http://127.0.0.1:"+gatePort, "http://127.0.0.1:"+issuerPort, "http://127.0.0.1:"+upstreamPort+"/mcp"
	g := readGuide(t, "glewlwyd.md", "http://127.0.0.1:8080", gate, "http://127.0.0.1:4593", origin, "port = 4593", "port = "+issuerPort,
		"http://127.0.0.1:9001", "http://127.0.0.1:"+callbackPort)
	g.installs("@modelcontextprotocol/server-everything")
	g.names(r)
	if output, err := g.script(nil, "prepare"); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	startNode(t, upstreamPort, []string{"PORT=" + upstreamPort}, module(t, "@modelcontextprotocol/server-everything/dist/index.js"), "streamableHttp")
	g.start(nil, "glewlwyd", "--config-file=glewlwyd.conf").WaitForListener(t, "127.0.0.1:"+issuerPort)
	setup := g.start([]string{"PASSWORD=" + glewlwydPassword}, node(t), "setup.mjs")
	<-setup.Exited
	if output := setup.Output.String(); output != "" {
		t.Fatalf("setup.mjs: %s", output)
	}
	// MCP clients read these documents before they log in.
	var metadata struct {
		Issuer    string   `json:"issuer"`
		Challenge []string `json:"code_challenge_methods_supported"`
	}
	answer, err := http.Get(origin + "/api/oidc/.well-known/openid-configuration") //nolint:noctx // the test's own
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&metadata); err != nil || metadata.Issuer != origin+"/api/oidc" || strings.Join(metadata.Challenge, " ") != "S256" {
		t.Errorf("the metadata: %v, %+v", err, metadata)
	}
	durward := g.gateway(gate)

	env := []string{"GATE=" + gate, "UPSTREAM=" + upstream}
	root, alice := g.login(env, "root", browseGlewlwyd), g.login(env, "alice", browseGlewlwyd)
	g.firstCall(env, gate, durward, root, alice)
}
