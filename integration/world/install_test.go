package world

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// setup installs the programs that the form needs, once, and returns their directory.
var setup = sync.OnceValues(func() (string, error) {
	output, err := exec.Command("./setup", form).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("installing the lab: %w\n%s", err, output)
	}
	return filepath.Abs(filepath.Join("../../bin/world", form))
})

// tools returns the directory that holds node_modules and servers.
func tools(t testing.TB) string {
	t.Helper()
	directory, err := setup()
	if err != nil {
		t.Fatal(err)
	}
	return directory
}

// module returns a path inside an installed npm package.
func module(t testing.TB, path string) string {
	t.Helper()
	return filepath.Join(tools(t), "node_modules", path)
}

// node returns the Node that npm installed; some packages need one that is newer than Debian's.
func node(t testing.TB) string { t.Helper(); return module(t, "node/bin/node") }

// version of an installed npm package.
func version(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(module(t, filepath.Join(name, "package.json")))
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		t.Fatal(err)
	}
	return manifest.Version
}
