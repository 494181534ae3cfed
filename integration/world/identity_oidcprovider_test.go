package world

import (
	"crypto/rand"
	"encoding/base64"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

// block is a code block of a guide that has a name beside its language.
var block = regexp.MustCompile("(?ms)^```[a-z]+ ([A-Za-z.-]+)\n(.*?)^```$")

// guide is a page of docs/identity, laid out as its reader would: each named block in a file of its name.
type guide struct {
	t         *testing.T
	directory string
	text      string
	blocks    map[string]string
}

// readGuide lays out a guide in a directory that finds the installed packages. changes are pairs of texts as in
// strings.NewReplacer: the ports of the page may be taken.
func readGuide(t *testing.T, name string, changes ...string) *guide {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs/identity", name))
	if err != nil {
		t.Fatal(err)
	}
	g := &guide{t: t, directory: t.TempDir(), text: string(text), blocks: make(map[string]string)}
	for _, found := range block.FindAllStringSubmatch(g.text, -1) {
		g.blocks[found[1]] = strings.NewReplacer(changes...).Replace(found[2])
		if err := os.WriteFile(filepath.Join(g.directory, found[1]), []byte(g.blocks[found[1]]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(module(t, ""), filepath.Join(g.directory, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return g
}

// start starts a program in the guide's directory.
func (g *guide) start(env []string, program string, arguments ...string) *rig.Process {
	g.t.Helper()
	return rig.Start(g.t, nil, g.directory, append([]string{"PATH=" + filepath.Dir(node(g.t)) + ":" + os.Getenv("PATH"), "NO_COLOR=1"}, env...), program, arguments...)
}

var shownAddress = regexp.MustCompile(`Log in at (http\S+)`)

// login runs the guide's login.mjs and is the user at the address that it shows.
func (g *guide) login(env []string, user string) (token string) {
	g.t.Helper()
	p := g.start(env, node(g.t), "login.mjs")
	var address string
	rig.Eventually(g.t, "login.mjs shows an address", func() bool {
		found := shownAddress.FindStringSubmatch(p.Output.String())
		if found != nil {
			address = found[1]
		}
		return found != nil
	})
	g.browse(address, user)
	<-p.Exited
	for line := range strings.Lines(p.Output.String()) {
		if strings.HasPrefix(line, "ey") {
			return strings.TrimSpace(line)
		}
	}
	g.t.Fatalf("login.mjs prints no token: %s", p.Output.String())
	return ""
}

var (
	formAction = regexp.MustCompile(`<form[^>]* action="([^"]+)"`)
	formPrompt = regexp.MustCompile(`name="prompt" value="([a-z]+)"`)
)

// browse logs a user in and agrees to what is asked, on the pages that oidc-provider has for trying it out.
func (g *guide) browse(address, user string) {
	g.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		g.t.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
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
	for _, name := range []string{"oidc-provider", "@modelcontextprotocol/server-everything"} {
		if pinned := name + "@" + version(t, name); form != newest && !strings.Contains(g.text, pinned) {
			t.Errorf("the guide does not install %s", pinned)
		}
	}
	startNode(t, upstreamPort, []string{"PORT=" + upstreamPort}, module(t, "@modelcontextprotocol/server-everything/dist/index.js"), "streamableHttp")
	g.start(nil, node(t), "provider.mjs").WaitForListener(t, "127.0.0.1:"+issuerPort)
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	durward := g.start([]string{"DURWARD_KEY=" + base64.StdEncoding.EncodeToString(key)}, rig.Durward(t), "run", "--config", "Caddyfile", "--adapter", "caddyfile")
	t.Cleanup(func() {
		durward.Stop(t)
		durward.CheckLog(t)
	})
	durward.WaitFor(t, gate+"/readyz")

	env := []string{"GATE=" + gate, "ISSUER=" + issuer, "UPSTREAM=" + upstream}
	root, alice := g.login(env, "root"), g.login(env, "alice")
	command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "calls")
	command.Dir = g.directory
	command.Env = append(environment(t, env...), "ADMIN="+root, "ALICE="+alice)
	if output, err := command.CombinedOutput(); err != nil || !strings.Contains(string(output), "Echo: hello") {
		t.Errorf("the first call: %v\n%s\n%s", err, output, rig.Tail(durward.Output.String(), 3_000))
	}
	// alice is no administrator.
	request, err := rig.NewRequest(t.Context(), http.MethodPost, gate+"/api/server-directory", alice, map[string]any{"name": "x", "url": "https://mcp.example.com/", "provider": "none"})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusForbidden {
		t.Errorf("a user without the role: %d", answer.StatusCode)
	}
}
