package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// productionPage returns the commands of docs/production.md below one of its headings.
func productionPage(t *testing.T, heading string) (blocks []string) {
	t.Helper()
	page, err := os.ReadFile("../docs/production.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, found := strings.Cut(string(page), "\n## "+heading+"\n")
	part, _, _ = strings.Cut(part, "\n## ")
	for _, block := range shellBlock.FindAllStringSubmatch(part, -1) {
		blocks = append(blocks, block[1])
	}
	if !found || len(blocks) == 0 {
		t.Fatalf("the page has no commands below %q", heading)
	}
	return blocks
}

// TestProductionPage checks that the commands of docs/production.md, pasted one after the other, end in a gateway that
// serves. They run in directories of the test's own; where it runs as root, as another user as they say. The user is
// not made, and the editor is played.
func TestProductionPage(t *testing.T) {
	t.Parallel()
	binary, err := release()
	if err != nil {
		t.Fatal(err)
	}
	root, port, health := t.TempDir(), freePort(t), freePort(t)
	provider := newIdentityProvider(t)
	for _, directory := range []string{"etc", "run", "var/lib", "usr/local/bin"} {
		if err := os.MkdirAll(filepath.Join(root, directory), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, directory := range []string{root, filepath.Dir(root)} {
		if err := os.Chmod(directory, 0o755); err != nil { //nolint:gosec // another user comes by
			t.Fatal(err)
		}
	}
	edit := "sed -i -e 's|/run/durward|" + root + "/run/durward|; s|/var/lib/durward|" + root + "/var/lib/durward|' " +
		"-e 's|https://id.example.com|" + provider.issuer() + "|; s|https://gate.example.com|http://127.0.0.1:" + port + "|; s|^gate.example.com|http://127.0.0.1:" + port + "|; s|:8081|:" + health + "|' " +
		"-e 's|^\\t\\treturn_url .*|\\t\\tegress {\\n\\t\\t\\thttp 127.0.0.0/8\\n\\t\\t}|' /etc/durward/Caddyfile"
	const user = "nobody"
	replacements := []string{
		"make production\n", "", " bin/production/durward ", " " + binary + " ", "useradd --system", "true --system",
		"/etc/durward", root + "/etc/durward", "/var/lib/durward", root + "/var/lib/durward", "/run/durward", root + "/run/durward",
		"/usr/local/bin", root + "/usr/local/bin", "127.0.0.1:8081", "127.0.0.1:" + health, " caddyfile/", " ../caddyfile/",
	}
	if os.Geteuid() == 0 {
		replacements = append(replacements, "-o durward -g durward", "-o "+user+" -g $(id -gn "+user+")", "--reuid durward --regid durward", "--reuid "+user+" --regid $(id -g "+user+")")
	} else {
		replacements = append(replacements, "-o durward -g durward ", "", "setpriv --reuid durward --regid durward --clear-groups \\\n    --inh-caps +net_bind_service --ambient-caps +net_bind_service \\\n    ", "")
	}
	here := strings.NewReplacer(replacements...)
	// The script that replaces the editor names paths of its own.
	script := func(blocks ...string) string {
		text := here.Replace(strings.ReplaceAll(strings.Join(blocks, "\n"), "editor /etc/durward/Caddyfile", "EDITOR"))
		return strings.ReplaceAll(text, "EDITOR", strings.ReplaceAll(edit, " /etc/durward/Caddyfile", " "+root+"/etc/durward/Caddyfile"))
	}
	path := filepath.Join(root, "usr/local/bin") + ":" + os.Getenv("PATH")
	run := func(script string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
		command.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "XDG_") }), "PATH="+path)
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%v:\n%s\n%s", err, script, output)
		}
		return string(output)
	}
	alone := productionPage(t, "Without systemd")
	if len(alone) != 3 {
		t.Fatalf("%d blocks", len(alone))
	}
	output := run(script(append(productionPage(t, "Install"), alone[0], alone[1])...))
	if !strings.Contains(output, "Valid configuration\n") || !strings.Contains(output, "0 errors, 0 warnings, 1 note\n") {
		t.Errorf("validate and doctor say\n%s", output)
	}
	_, function, _ := strings.Cut(alone[1], "as_durward()")
	function, _, _ = strings.Cut(function, "\n}\n")
	gateway := startProcess(t, root, []string{"PATH=" + path}, "bash", "-euc", script("as_durward()"+function+"\n}\n", alone[2]))
	gateway.waitFor(t, "http://127.0.0.1:"+health+"/readyz")
	if output := run(script(productionPage(t, "See that it serves")...)); !strings.Contains(output, `"status"`) {
		t.Errorf("it says %s", output)
	}
	gateway.waitFor(t, "http://127.0.0.1:"+port+"/readyz")
	run(root + "/usr/local/bin/durward stop --config " + root + "/etc/durward/Caddyfile")
	receive(t, gateway.exited, "the end of the gateway")
}
