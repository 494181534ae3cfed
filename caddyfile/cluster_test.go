package caddyfile

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

func TestMain(m *testing.M) {
	os.Exit(pgtest.Main{M: m}.Run())
}

func TestClusterSampleRuns(t *testing.T) {
	dir := t.TempDir()
	adapt(t, Cluster)
	for name, content := range map[string]string{"durward_key": seal.NewMasterKey().Reveal(), "durward_database": pgtest.Database(t)} {
		write(t, filepath.Join(dir, name), content)
	}
	text := strings.NewReplacer("/run/secrets", dir, "/run/durward", dir).Replace(string(Cluster))
	if err := validate(t, adapt(t, []byte(text))); err != nil {
		t.Fatal(err)
	}
}

// TestClusterSampleHasTheWholePipeline checks that every handler of the macro is written out in the sample, in its
// order.
func TestClusterSampleHasTheWholePipeline(t *testing.T) {
	var names func(value any) []string
	names = func(value any) (found []string) {
		switch value := value.(type) {
		case []any:
			for _, member := range value {
				found = append(found, names(member)...)
			}
		case map[string]any:
			if name, ok := value["handler"].(string); ok && strings.HasPrefix(name, macroName) {
				found = append(found, name)
			}
			for _, member := range []string{"apps", "http", "servers", "srv0", "routes", "handle"} {
				found = append(found, names(value[member])...)
			}
		}
		return found
	}
	var config any
	if err := json.Unmarshal(adapt(t, Cluster), &config); err != nil {
		t.Fatal(err)
	}
	found := names(config)
	for _, d := range pipeline {
		if d.name != "durward_dev" && !slices.Contains(found, d.name) {
			t.Errorf("%s is not written out", d.name)
		}
	}
	last := ""
	position := func(name string) int {
		return slices.IndexFunc(pipeline, func(d directive) bool { return d.name == name })
	}
	for _, name := range found {
		if last != platformName && position(name) < position(last) {
			t.Errorf("%s comes after %s", name, last)
		}
		last = name
	}
}
