package world

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

// generator is the command that makes a client in Go.
const generator = "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen"

// generating holds a folder with the description of a gateway's API, and with the programs of the folder generated.
type generating struct {
	t      *testing.T
	g      *gateway
	folder string
}

// run runs a command in the folder and returns its standard output. Go says on the other one what it downloads.
func (c *generating) run(name string, arguments ...string) string {
	c.t.Helper()
	command := exec.CommandContext(c.t.Context(), name, arguments...)
	command.Dir = c.folder
	command.Env = append(os.Environ(), "GOFLAGS=-trimpath", "GOWORK=off", "NO_COLOR=1")
	var problems strings.Builder
	command.Stderr = &problems
	output, err := command.Output()
	if err != nil {
		c.t.Fatalf("%s %s: %v\n%s\n%s", name, strings.Join(arguments, " "), err, rig.Tail(string(output), 5_000), rig.Tail(problems.String(), 5_000))
	}
	return strings.TrimSpace(string(output))
}

// TestGeneratedClients checks that clients which others' generators make of /openapi.json can be built, and do what they
// promise.
func TestGeneratedClients(t *testing.T) {
	lab(t, all, newest)
	g := startGateway(t, "")
	c := &generating{t: t, g: g, folder: t.TempDir()}
	if err := os.CopyFS(c.folder, os.DirFS("generated")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(module(t, ""), filepath.Join(c.folder, "node_modules")); err != nil {
		t.Fatal(err)
	}
	response, err := http.Get(g.url + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	description, err := io.ReadAll(response.Body)
	if err == nil {
		err = os.WriteFile(filepath.Join(c.folder, "openapi.json"), description, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	token := g.token(admin)

	t.Run("Go", func(t *testing.T) {
		c := &generating{t: t, g: g, folder: c.folder}
		if err := os.Mkdir(filepath.Join(c.folder, "api"), 0o700); err != nil {
			t.Fatal(err)
		}
		c.run("go", "tool", generator, "-generate", "types,client", "-package", "api", "-o", "api/api.go", "openapi.json")
		if slug := c.run("go", "run", ".", g.url, token); !strings.HasPrefix(slug, "made-by-go") {
			t.Errorf("it made %q", slug)
		}
	})
	t.Run("TypeScript", func(t *testing.T) {
		c := &generating{t: t, g: g, folder: c.folder}
		c.run(node(t), "node_modules/openapi-typescript/bin/cli.js", "openapi.json", "-o", "api.d.ts")
		c.run(node(t), "node_modules/typescript/bin/tsc", "--noEmit", "--strict", "--module", "esnext", "--moduleResolution", "bundler",
			"--target", "es2022", "--lib", "es2022,dom", "--skipLibCheck", "use.ts")
		if slug := c.run(node(t), "use.ts", g.url, token); !strings.HasPrefix(slug, "made-by-typescript") {
			t.Errorf("it made %q", slug)
		}
	})
}
