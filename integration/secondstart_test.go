package integration

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestSecondStart checks that a second run of a gateway's configuration ends in one plain line, and the first one goes
// on, with its admin endpoint.
func TestSecondStart(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	for range 2 {
		output, err := g.run("run", "--config", g.config, "--adapter", "caddyfile")
		lines := strings.Split(strings.TrimSpace(output), "\n")
		if exitCode(err) == 0 || len(lines) != 1 || !strings.HasPrefix(output, "Error: the gateway is running already: process "+strconv.Itoa(g.command.Process.Pid)+" ") ||
			!strings.Contains(output, "`durward reload --config "+g.config+"`") || !strings.Contains(output, "`durward stop --config "+g.config+"`") {
			t.Errorf("%v: %s", err, output)
		}
	}
	g.mustReload(g.written())
	g.send(http.MethodGet, "/readyz", "", nil).want(t, http.StatusOK)
}

// TestSecondStartBesideAnother checks that something else at the admin endpoint is not taken for this gateway, and not
// pushed aside.
func TestSecondStartBesideAnother(t *testing.T) {
	t.Parallel()
	other := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(other.Close)
	home := t.TempDir()
	config := filepath.Join(home, "Caddyfile")
	if err := os.WriteFile(config, []byte("{\n\tadmin "+other.Listener.Addr().(*net.TCPAddr).String()+"\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), durward(t), "run", "--config", config)
	output, err := command.CombinedOutput()
	if exitCode(err) == 0 || !strings.HasPrefix(string(output), "Error: something else answers on the admin endpoint") {
		t.Errorf("%v: %s", err, output)
	}
}

// TestSuccessor checks that a gateway that is about to exit lets another one take its place, and ports, while its
// exit_delay runs.
func TestSuccessor(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{option: "streams {\n\t\t\texit_delay 20s\n\t\t}"})
	if err := g.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	g.poll(t, g.url+"/readyz", func() bool { return g.send(http.MethodGet, "/readyz", "", nil).status == http.StatusServiceUnavailable })
	successor := startProcess(t, g.directory, g.env, durward(t), "run", "--config", g.config, "--adapter", "caddyfile")
	successor.poll(t, g.url+"/readyz", func() bool { return strings.Contains(successor.output.String(), "serving initial configuration") })
	successor.stop(t)
}

// TestEmptyStart checks that a start without a configuration ends in one plain line: Caddy would serve nothing, and say
// nothing.
func TestEmptyStart(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), durward(t), "run")
	command.Dir = t.TempDir()
	output, err := command.CombinedOutput()
	text := string(output)
	if exitCode(err) == 0 || !strings.HasPrefix(text, "Error: there is no configuration") || strings.Count(text, "\n") != 1 || !strings.Contains(text, "`durward dev`") {
		t.Errorf("%v: %s", err, text)
	}
}
