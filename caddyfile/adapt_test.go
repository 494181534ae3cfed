package caddyfile

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard" // what the shipped binary links
	"github.com/google/go-cmp/cmp"

	_ "github.com/durward-gateway/durward/modules/standard" // the guests
)

// separator stands between a Caddyfile and what the adapter makes of it.
const separator = "----------\n"

// TestAdapt checks the adapter with testdata/adapt/*.caddyfiletest: a Caddyfile, a line of ten dashes, and the JSON
// that it becomes or the error that it gets.
func TestAdapt(t *testing.T) {
	files, err := filepath.Glob("testdata/adapt/*.caddyfiletest")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".caddyfiletest")
		t.Run(name, func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			config, want, found := strings.Cut(string(content), separator)
			if !found {
				t.Fatal("the fixture has no line of ten dashes")
			}
			got := adaptText(t, []byte(config))
			if strings.HasPrefix(want, "{") == strings.HasPrefix(name, "error_") {
				t.Error("names of fixtures that end in an error begin with error_, others do not")
			}
			if diff := cmp.Diff(strings.TrimSpace(want), got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// adaptText returns the indented JSON of a Caddyfile, or the text of its error.
func adaptText(t *testing.T, config []byte) string {
	t.Helper()
	adapted, _, err := caddyconfig.GetAdapter("caddyfile").Adapt(config, map[string]any{"filename": "Caddyfile"})
	if err != nil {
		return err.Error()
	}
	var out bytes.Buffer
	if err := json.Indent(&out, adapted, "", "\t"); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
