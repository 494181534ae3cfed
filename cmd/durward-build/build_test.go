package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestBuildWithPlugin builds with the shipped manifest and a plugin that is reached through replacements, and
// examines the binary from outside.
func TestBuildWithPlugin(t *testing.T) {
	shipped, err := loadManifest("../../xcaddy.json")
	if err != nil {
		t.Fatalf("the shipped manifest: %v", err)
	}
	plugin, err := filepath.Abs("testdata/plugin")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	manifest := filepath.Join(dir, "xcaddy.json")
	binary := filepath.Join(dir, "gateway")
	write(t, manifest, `{
		"caddy_version": "`+shipped.CaddyVersion+`",
		"plugins": [{"module_path": "example.test/greeting"}],
		"replacements": [{"old": "example.test/greeting", "new": "`+plugin+`"}],
		"build_flags": "'`+strings.Join(shipped.BuildFlags, "' '")+`'"
	}`)

	var progress bytes.Buffer
	if err := run(t.Context(), []string{"--manifest", manifest, "--output", binary}, &progress); err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	left, err := os.ReadDir(tmp)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}

	modules := output(t, binary, "list-modules")
	for _, id := range []string{
		"durward", "durward.identities.dev", "durward.identities.oidc", "durward.stores.sqlite",
		"http.handlers.durward_auth", "http.handlers.durward_credential", "http.handlers.durward_gateway", "http.handlers.durward_mcp",
		"http.handlers.durward_platform", "http.handlers.durward_sse",
		"http.handlers.greeting",
	} {
		if !hasLine(modules, id) {
			t.Errorf("list-modules does not name %s:\n%s", id, modules)
		}
	}
	if config := output(t, binary, "adapt", "--config", "../../caddyfile/dev.caddyfile"); !strings.Contains(config, `"handler":"durward_mcp"`) {
		t.Errorf("dev.caddyfile is adapted to %s", config)
	}
	if help := output(t, binary, "dev", "--help"); !strings.Contains(help, "--listen") {
		t.Errorf("dev --help says %s", help)
	}
	for _, args := range [][]string{{"upgrade"}, {"add-package", "example.com/a"}, {"--keep-backup", "a", "remove-package"}} {
		out, err := exec.CommandContext(t.Context(), binary, args...).CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 1 || !bytes.Contains(out, []byte("not available")) {
			t.Errorf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	if version := output(t, binary, "version"); !strings.HasPrefix(version, "durward (devel), Caddy "+shipped.CaddyVersion+" ") || strings.Count(version, "\n") != 1 {
		t.Errorf("version is %q, the manifest says Caddy %s", version, shipped.CaddyVersion)
	}
}

func TestBuildRefusesAnOlderCaddy(t *testing.T) {
	dir := t.TempDir()
	manifest := filepath.Join(dir, "xcaddy.json")
	write(t, manifest, `{"caddy_version": "v2.11.8"}`)
	err := run(t.Context(), []string{"--manifest", manifest, "--output", filepath.Join(dir, "gateway")}, t.Output())
	if err == nil || !strings.Contains(err.Error(), "caddy_version") {
		t.Errorf("an older Caddy than durward needs: %v", err)
	}
}

func TestInterruptedBuildLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	manifest := filepath.Join(dir, "xcaddy.json")
	write(t, manifest, `{}`)
	ctx, cancel := context.WithCancel(t.Context())
	// The line before the Go toolchain starts resolving is the signal to interrupt.
	progress := writerFunc(func(line []byte) {
		if bytes.Contains(line, []byte("resolving")) {
			cancel()
		}
	})
	err := run(ctx, []string{"--manifest", manifest, "--output", filepath.Join(dir, "gateway")}, progress)
	if err == nil || !strings.Contains(err.Error(), "interrupted") {
		t.Errorf("interrupted build: %v", err)
	}
	for _, at := range []string{tmp, dir} {
		entries, err := os.ReadDir(at)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			if entry.Name() != "xcaddy.json" {
				t.Errorf("left behind: %s", entry.Name())
			}
		}
	}
}

// TestOutputIsReplacedWhole checks that a binary which is there stays until another is complete. A script takes the place
// of the Go command.
func TestOutputIsReplacedWhole(t *testing.T) {
	for ending, want := range map[string]string{"exit 1": "old", "exit 0": "new"} {
		tools, dir := t.TempDir(), t.TempDir()
		t.Setenv("PATH", tools+string(filepath.ListSeparator)+os.Getenv("PATH"))
		script := "#!/bin/sh\ncase $1 in\nenv) echo " + os.DevNull + ";;\nbuild) while [ $1 != -o ]; do shift; done; printf new >$2; " + ending + ";;\nesac\n"
		if err := os.WriteFile(filepath.Join(tools, "go"), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		manifest, binary := filepath.Join(dir, "xcaddy.json"), filepath.Join(dir, "gateway")
		write(t, manifest, `{}`)
		write(t, binary, "old")
		err := run(t.Context(), []string{"--manifest", manifest, "--output", binary}, t.Output())
		if (err != nil) != (want == "old") {
			t.Errorf("%s: %v", ending, err)
		}
		if got, err := os.ReadFile(binary); string(got) != want {
			t.Errorf("%s: the binary is %q, %v", ending, got, err)
		}
		if left, err := os.ReadDir(dir); len(left) != 2 {
			t.Errorf("%s: left behind: %v, %v", ending, left, err)
		}
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func output(t *testing.T, binary string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func hasLine(text, line string) bool {
	for l := range strings.Lines(text) {
		if strings.TrimSpace(l) == line {
			return true
		}
	}
	return false
}
