package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// release returns the path of the binary for production, as `make production` builds it.
var release = sync.OnceValues(func() (string, error) {
	path, err := filepath.Abs("../bin/production/durward")
	if err != nil {
		return "", err
	}
	build := exec.Command("make", "--no-print-directory", "-C", "..", "production", "VERSION=v1.2.3")
	build.Stdout, build.Stderr = os.Stdout, os.Stderr
	return path, build.Run()
})

// TestRelease checks that the binary for production has no development mode, in which anybody can log in as anybody, and
// says where it is. TestProductionPage starts the same binary.
func TestRelease(t *testing.T) {
	t.Parallel()
	binary, err := release()
	if err != nil {
		t.Fatal(err)
	}
	run := func(arguments ...string) (output string, code int) {
		t.Helper()
		said, err := exec.CommandContext(t.Context(), binary, arguments...).CombinedOutput()
		return string(said), exitCode(err)
	}
	if output, code := run("version"); code != 0 || !strings.Contains(output, "durward v1.2.3") {
		t.Errorf("version: %d, %s", code, output)
	}
	for _, command := range []string{"dev", "token", "connect", "tour"} {
		if output, code := run(command, "--data", "x"); code == 0 || !strings.Contains(output, "built for production") || !strings.Contains(output, "cmd/durward@latest dev") {
			t.Errorf("%s: %d, %s", command, code, output)
		}
	}
	if output, _ := run("help"); strings.Contains(output, "development mode") || strings.Contains(output, "durward dev") {
		t.Errorf("help: %s", output)
	}
	modules, _ := run("list-modules")
	whole, err := exec.CommandContext(t.Context(), durward(t), "list-modules").Output()
	if err != nil {
		t.Fatal(err)
	}
	const identity, handler = "durward.identities.dev\n", "http.handlers.durward_dev\n"
	for _, module := range []string{identity, handler} {
		if !strings.Contains(string(whole), module) || strings.Contains(modules, module) {
			t.Errorf("it has the module %s, or no binary has", module)
		}
	}
	config := filepath.Join(t.TempDir(), "Caddyfile")
	if err := os.WriteFile(config, []byte("{\n\tdurward {\n\t\tstore sqlite /nowhere\n\t\tidentity dev\n\t}\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if output, code := run("validate", "--config", config); code == 0 || !strings.Contains(output, config+`:4: unrecognized identity "dev"`) {
		t.Errorf("validate: %d, %s", code, output)
	}
}
