package world

import (
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"net/http/cookiejar"
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

// readGuide lays out a guide, and the page before it, in a directory that finds the installed packages. changes are pairs of
// texts as in strings.NewReplacer: the ports of the page may be taken.
func readGuide(t *testing.T, name string, changes ...string) *guide {
	t.Helper()
	g := &guide{t: t, directory: t.TempDir(), blocks: make(map[string]string)}
	for _, page := range []string{"README.md", name} {
		text, err := os.ReadFile(filepath.Join("../../docs/identity", page))
		if err != nil {
			t.Fatal(err)
		}
		g.text = string(text)
		for _, found := range block.FindAllStringSubmatch(g.text, -1) {
			g.blocks[found[1]] = strings.NewReplacer(changes...).Replace(found[2])
			if err := os.WriteFile(filepath.Join(g.directory, found[1]), []byte(g.blocks[found[1]]), 0o600); err != nil {
				t.Fatal(err)
			}
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

// login runs the guide's login.mjs and has a browser log the user in at the address that it shows.
func (g *guide) login(env []string, user string, browse func(g *guide, browser *http.Client, address, user string)) (token string) {
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
	jar, err := cookiejar.New(nil)
	if err != nil {
		g.t.Fatal(err)
	}
	browse(g, &http.Client{Jar: jar}, address, user)
	<-p.Exited
	for line := range strings.Lines(p.Output.String()) {
		if strings.HasPrefix(line, "ey") {
			return strings.TrimSpace(line)
		}
	}
	g.t.Fatalf("login.mjs prints no token: %s", p.Output.String())
	return ""
}

// installs checks that the guide installs the versions of npm packages that the lab runs.
func (g *guide) installs(names ...string) {
	g.t.Helper()
	for _, name := range names {
		if pinned := name + "@" + version(g.t, name); form != newest && !strings.Contains(g.text, pinned) {
			g.t.Errorf("the guide does not install %s", pinned)
		}
	}
}

// loginSecret is that of the gateway's own client, where a guide has one.
const loginSecret = "LOGIN_SECRET=the-secret-of-the-pages-in-the-lab"

// gateway starts the gateway with the guide's Caddyfile.
func (g *guide) gateway(address string) *rig.Process {
	g.t.Helper()
	return g.gatewayWith(address, masterKey())
}

// masterKey makes a key, in the form of the variable that guides name.
func masterKey() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	return "DURWARD_KEY=" + base64.StdEncoding.EncodeToString(key)
}

// gatewayWith does the work of gateway, with the values that the nodes of one gateway share: a key, and a database.
func (g *guide) gatewayWith(address string, env ...string) *rig.Process {
	g.t.Helper()
	durward := g.start(append(env, loginSecret), rig.Durward(g.t), "run", "--config", "Caddyfile", "--adapter", "caddyfile")
	g.t.Cleanup(func() {
		durward.Stop(g.t)
		durward.CheckLog(g.t)
	})
	durward.WaitFor(g.t, address+"/readyz")
	return durward
}

// script runs a block of the guide with bash and returns its output.
func (g *guide) script(env []string, name string) (output string, err error) {
	g.t.Helper()
	command := exec.CommandContext(g.t.Context(), "bash", "-euo", "pipefail", name)
	command.Dir = g.directory
	command.Env = environment(g.t, env...)
	written, err := command.CombinedOutput()
	return string(written), err
}

// firstCall runs the guide's calls, and checks the results that the guide shows: root is an administrator, alice is
// not.
func (g *guide) firstCall(env []string, gate string, durward *rig.Process, root, alice string) {
	g.t.Helper()
	output, err := g.script(append(env, "ADMIN="+root, "ALICE="+alice), "calls")
	if err != nil || !strings.Contains(output, "Echo: hello") {
		g.t.Errorf("the first call: %v\n%s\n%s", err, output, rig.Tail(durward.Output.String(), 3_000))
	}
	request, err := rig.NewRequest(g.t.Context(), http.MethodPost, gate+"/api/server-directory", alice, map[string]any{"name": "x", "url": "https://mcp.example.com/", "provider": "none"})
	if err != nil {
		g.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		g.t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusForbidden {
		g.t.Errorf("a user without the role: %d", answer.StatusCode)
	}
}

// debianVersion returns the version of an installed package of Debian.
func debianVersion(t testing.TB, name string) string {
	t.Helper()
	installed, err := exec.CommandContext(t.Context(), "dpkg-query", "--show", "--showformat=${Version}", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(installed)
}

// names notes in the row that the guide was run with another version than this Debian has: this is no failure.
func (g *guide) names(r *row) {
	released, _, _ := strings.Cut(r.version, "-")
	released, _, _ = strings.Cut(released, "+") // the part that Debian left out of it
	if !strings.Contains(g.text, "version "+released+" ") {
		r.remark = "The guide names another version."
	}
}
