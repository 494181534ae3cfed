package caddyfile

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	syntax "github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/app"
)

// adapt turns a Caddyfile into a configuration; warnings are mistakes.
func adapt(t *testing.T, text []byte) []byte {
	t.Helper()
	adapted, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt(text, map[string]any{"filename": "Caddyfile"})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range warnings {
		t.Errorf("warning: %v", w)
	}
	return adapted
}

func validate(t *testing.T, config []byte) error {
	t.Helper()
	var c caddy.Config
	if err := caddy.StrictUnmarshalJSON(config, &c); err != nil {
		return err
	}
	return caddy.Validate(&c)
}

func TestSamplesAreFormatted(t *testing.T) {
	for name, text := range map[string][]byte{"dev": Dev, "edge": Edge, "cluster": Cluster} {
		if diff := cmp.Diff(string(syntax.Format(text)), string(text)); diff != "" {
			t.Errorf("%s.caddyfile (-formatted +kept)\n%s", name, diff)
		}
	}
}

func TestDevSampleRuns(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("DURWARD_DATA", dir)
	t.Setenv("DURWARD_PORT", "18080")
	if err := validate(t, adapt(t, Dev)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DURWARD_HOST", "0.0.0.0")
	if err := validate(t, adapt(t, Dev)); err == nil || !strings.Contains(err.Error(), "which others can reach") {
		t.Errorf("on every address: %v", err)
	}
}

func TestEdgeSampleRuns(t *testing.T) {
	dir := t.TempDir()
	adapt(t, Edge)
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte(seal.NewMasterKey().Reveal()), 0o600); err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("/run/secrets/durward_key", filepath.Join(dir, "key"), "/var/lib/durward", dir, "/run/durward", dir).Replace(string(Edge))
	if err := validate(t, adapt(t, []byte(text))); err != nil {
		t.Fatal(err)
	}
}

// TestHealthAddress checks that the image's health check and the page about production ask the sample's health site,
// and no other site of the sample has its port.
func TestHealthAddress(t *testing.T) {
	found := regexp.MustCompile(`(?m)^(http://127\.0\.0\.1:(\d+)) \{\n\tbind 127\.0\.0\.1\n\tdurward_auth\n\tdurward_platform health_only\n\}`).FindSubmatch(Edge)
	if found == nil || strings.Count(string(Edge), ":"+string(found[2])) != 1 {
		t.Fatal("the sample has no health site with a port of its own")
	}
	address := string(found[1])
	for name, want := range map[string][]string{
		"../Dockerfile":         {"DURWARD_HEALTH_URL=" + address + "/healthz\n", "#   " + address + " {\n"},
		"../docs/production.md": {" " + address + "/readyz\n", "Port " + string(found[2]) + " "},
		"../docs/local.md":      {" " + address + "/readyz\n"},
	} {
		for _, text := range want {
			if !strings.Contains(file(t, name), text) {
				t.Errorf("%s does not have %q", name, text)
			}
		}
	}
}

func TestTwoSitesNeedAPublicURL(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte(seal.NewMasterKey().Reveal()), 0o600); err != nil {
		t.Fatal(err)
	}
	text := func(option string) []byte {
		return []byte("{\n\tpersist_config off\n\tauto_https disable_certs\n\tdurward {\n\t\tstore sqlite " + t.TempDir() + "/durward.db\n\t\tmaster_key {file." + key +
			"}\n\t\tidentity oidc https://id.example.com\n" + option + "\t}\n}\na.example.com {\n\tdurward mcp\n}\nb.example.com {\n\tdurward platform\n}\n")
	}
	if err := validate(t, adapt(t, text(""))); err == nil || !strings.Contains(err.Error(), "set public_url in the durward option: the gateway is part of several sites") {
		t.Error(err)
	}
	if err := validate(t, adapt(t, text("\t\tpublic_url https://a.example.com\n"))); err != nil {
		t.Error(err)
	}
}

// TestWhatTheCaddyfileSaysJSONCanSay checks that the fixture with every word becomes the app's own structure and
// comes out the same, and every member of the app is in it.
func TestWhatTheCaddyfileSaysJSONCanSay(t *testing.T) {
	content, err := os.ReadFile("testdata/adapt/option_everything.caddyfiletest")
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := bytes.Cut(content, []byte(separator))
	var config struct {
		Apps struct{ Durward json.RawMessage }
	}
	if err := json.Unmarshal(adapt(t, text), &config); err != nil {
		t.Fatal(err)
	}
	var decoded app.App
	if err := caddy.StrictUnmarshalJSON(config.Apps.Durward, &decoded); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(&decoded)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(config.Apps.Durward), string(again)); diff != "" {
		t.Errorf("(-adapted +again)\n%s", diff)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(config.Apps.Durward, &members); err != nil {
		t.Fatal(err)
	}
	for _, member := range []string{"public_url", "store", "master_key", "identity", "origins", "return_url", "egress", "directory", "sizes"} {
		if members[member] == nil {
			t.Errorf("the fixture does not have %s", member)
		}
	}
	if len(members) != len(words) {
		t.Errorf("%d members, %d words", len(members), len(words))
	}
}

// TestHandlersInTheWrongOrderRefuse checks that our handlers answer, and let no caller in, without durward_auth
// before them.
func TestHandlersInTheWrongOrderRefuse(t *testing.T) {
	for _, d := range pipeline {
		if d.name == "durward_auth" || d.name == "durward_dev" || d.name == "durward_session" {
			continue // these come first
		}
		for _, path := range []string{"/mcp/demo", "/sse/demo", "/api/servers", "/healthz", "/api/oauth/callback"} {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodGet, path, nil)
			passed := false
			next := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { passed = true; return nil })
			if err := d.make().ServeHTTP(w, r, next); err != nil {
				t.Errorf("%s %s: %v", d.name, path, err)
			}
			if !passed && w.Code != http.StatusUnauthorized && w.Code != http.StatusNotFound {
				t.Errorf("%s %s: %d %s", d.name, path, w.Code, w.Body)
			}
		}
	}
}
