package caddyfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	syntax "github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

// TestDeployedCaddyfiles checks that the Caddyfiles of the compose file and of the chart's manifests are formatted,
// adapt without a warning, and load.
func TestDeployedCaddyfiles(t *testing.T) {
	t.Setenv("DURWARD_PUBLIC_URL", "https://gate.example.com")
	t.Setenv("DURWARD_ISSUER", "https://id.example.com")
	t.Setenv("DURWARD_ORGANIZATION", "acme")
	t.Setenv("OPENAI_API_KEY", "key-of-the-test")
	files := map[string]string{}
	for _, name := range []string{"node.Caddyfile", "lb.Caddyfile"} {
		files[name] = file(t, "../deploy/compose/"+name)
	}
	for _, values := range []string{"minimal", "full"} {
		files[values] = chartCaddyfile(t, file(t, "../deploy/helm/testdata/"+values+".golden.yaml"))
	}
	for name, text := range files {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(string(syntax.Format([]byte(text))), text); diff != "" {
				t.Errorf("(-formatted +kept)\n%s", diff)
			}
			if name == "lb.Caddyfile" { // Caddy's own; it takes certificates from its data directory
				adapt(t, []byte(text))
				return
			}
			dir := t.TempDir()
			for _, key := range []string{"durward_key", "key_2026_11", "key_2026_05"} {
				write(t, filepath.Join(dir, key), seal.NewMasterKey().Reveal())
			}
			database := pgtest.Database(t)
			write(t, filepath.Join(dir, "durward_database"), database)
			write(t, filepath.Join(dir, "url"), database)
			// No server answers there: a node that starts alone counts alone.
			for _, key := range []string{"durward_valkey", "counters"} {
				write(t, filepath.Join(dir, key), "valkey://127.0.0.1:1")
			}
			// The test's database is empty: the test has to make the schema.
			text = strings.NewReplacer("/run/secrets", dir, "/run/durward", dir, "migrate off", "migrate on").Replace(text)
			if err := validate(t, adapt(t, []byte(text))); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// chartCaddyfile returns the Caddyfile in the ConfigMap of rendered manifests.
func chartCaddyfile(t *testing.T, manifests string) string {
	t.Helper()
	decoder := yaml.NewDecoder(strings.NewReader(manifests))
	for {
		var manifest struct {
			Kind string            `yaml:"kind"`
			Data map[string]string `yaml:"data"`
		}
		if err := decoder.Decode(&manifest); err != nil {
			t.Fatal("looking for the ConfigMap: ", err)
		}
		if manifest.Kind == "ConfigMap" {
			return manifest.Data["Caddyfile"]
		}
	}
}

func file(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
