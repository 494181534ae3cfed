package integration

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// run runs a command of the binary in a gateway's directory and returns its output.
func (g *gateway) run(arguments ...string) (string, error) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, durward(g.t), arguments...)
	command.Dir, command.Env = g.directory, g.command.Env
	output, err := command.CombinedOutput()
	return string(output), err
}

// reload makes the gateway load a Caddyfile.
func (g *gateway) reload(config string) (string, error) {
	g.t.Helper()
	// A call on a connection that the old configuration is about to close would fail (docs/operating.md).
	g.client.CloseIdleConnections()
	path := filepath.Join(g.directory, "Caddyfile.new")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		g.t.Fatal(err)
	}
	return g.run("reload", "--force", "--config", path, "--adapter", "caddyfile", "--address", "unix/"+g.adminSocket())
}

// mustReload is reload for configurations that must load.
func (g *gateway) mustReload(config string) {
	g.t.Helper()
	if output, err := g.reload(config); err != nil {
		g.t.Fatalf("reload: %v\n%s", err, output)
	}
}

// written is the gateway's Caddyfile as it was started with.
func (g *gateway) written() string {
	g.t.Helper()
	content, err := os.ReadFile(g.config)
	if err != nil {
		g.t.Fatal(err)
	}
	return string(content)
}

func (g *gateway) adminSocket() string { return filepath.Join(g.directory, "admin.sock") }

// written returns the Caddyfile with which the gateway was started.
func (g *gateway) admin(path string) string {
	g.t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", g.adminSocket())
	}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport, Timeout: callTimeout}).Get("http://127.0.0.1" + path)
	if err != nil {
		g.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		g.t.Fatalf("GET %s on the admin endpoint: %s, %v", path, response.Status, err)
	}
	return string(content)
}

// metric returns the value of a series in the metrics; "" when there is none. series is its name with all its labels.
func (g *gateway) metric(series string) string {
	g.t.Helper()
	for line := range strings.Lines(g.admin("/metrics")) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// sample reads a sample Caddyfile that ships with the gateway.
func sample(t testing.TB, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("..", "caddyfile", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
