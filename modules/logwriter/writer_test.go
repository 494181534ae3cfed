package logwriter

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	_ "github.com/caddyserver/caddy/v2/modules/logging" // file
	"github.com/prometheus/client_golang/prometheus"

	"github.com/durward-gateway/durward/modules/caddytest"
)

func TestCaddyfile(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"durward", ``},
		{"durward stderr", `{"output":"stderr"}`},
		{"durward stdout", `{"output":"stdout"}`},
		{"durward file /var/log/a.log", `{"filename":"/var/log/a.log","output":"file"}`},
		{"durward file /var/log/a.log {\n\troll_keep 3\n}", `{"filename":"/var/log/a.log","output":"file","roll_keep":3}`},
		{"durward net logs.example.com:514 {\n\tsoft_start\n}", `{"address":"logs.example.com:514","output":"net","soft_start":true}`},
		{"durward stderr again", `error: wrong argument count or unexpected line ending after 'again', at test:1`},
		{"durward stderr {\n\tword\n}", `error: unknown word "word", at test:2`},
		{"durward {\n\tword\n}", `error: unknown word "word", at test:2`},
		{"durward file", `error: wrong argument count or unexpected line ending after 'file', at test:1`},
		{"durward nothing", `error: module not registered`},
	} {
		var w Writer
		err := w.UnmarshalCaddyfile(caddyfile.NewDispenser(tokens(t, c.text)))
		got := string(w.WriterRaw)
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != c.want && (!strings.HasPrefix(c.want, "error: module") || !strings.Contains(got, "module not registered")) {
			t.Errorf("%q: %s, want %s", c.text, got, c.want)
		}
	}
}

func tokens(t *testing.T, text string) []caddyfile.Token {
	t.Helper()
	tokens, err := caddyfile.Tokenize([]byte(text), "test")
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// config returns a configuration whose log goes through the buffer into a file; reload makes it differ from another
// one.
func config(t *testing.T, path string, reload int) []byte {
	t.Helper()
	raw, err := json.Marshal(caddytest.Object{
		"admin": caddytest.Object{"disabled": true, "config": caddytest.Object{"persist": false}},
		"logging": caddytest.Object{"logs": caddytest.Object{"default": caddytest.Object{
			"writer":           caddytest.Object{"output": "durward", "writer": caddytest.Object{"output": "file", "filename": path}},
			"with_caller_skip": reload,
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestReload checks that the writer outlives the configuration, and lines from before, between and after are there in
// their order.
func TestReload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := caddytest.Load(t, config(t, path, 0)); err != nil {
		t.Fatal(err)
	}
	before := caddy.Log()
	before.Info("line one")
	if err := caddytest.Load(t, config(t, path, 1)); err != nil {
		t.Fatal(err)
	}
	before.Info("line two") // of a request that still runs under the old configuration
	caddy.Log().Info("line three")
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rest := string(text)
	for _, line := range []string{"line one", "line two", "line three"} {
		_, after, found := strings.Cut(rest, line)
		if !found {
			t.Fatalf("%q is not where it belongs in\n%s", line, text)
		}
		rest = after
	}
}

func TestKey(t *testing.T) {
	ctx, cancel := caddy.NewContext(caddy.Context{Context: t.Context()})
	defer cancel()
	keys := map[string]string{}
	for _, raw := range []string{"", `{"output":"stdout"}`, `{"output":"file","filename":"a.log"}`, `{"output":"file","filename":"b.log"}`} {
		w := new(Writer)
		if raw != "" {
			w.WriterRaw = json.RawMessage(raw)
		}
		if err := w.Provision(ctx); err != nil {
			t.Fatal(err)
		}
		key := w.WriterKey()
		if other, ok := keys[key]; ok || key == w.opener.WriterKey() {
			t.Errorf("%s and %s: both are %s", raw, other, key)
		}
		keys[key] = raw
		if w.String() != w.opener.String() {
			t.Errorf("%s is called %s", raw, w)
		}
	}
}

// TestMetricIsOfTheProcess checks that two writers of one configuration, and the next configuration, count on.
func TestMetricIsOfTheProcess(t *testing.T) {
	for range 2 {
		registry := prometheus.NewPedanticRegistry()
		for range 2 {
			if err := registerMetrics(registry); err != nil {
				t.Fatal(err)
			}
		}
		countDropped(3)
		families, err := registry.Gather()
		if err != nil || len(families) != 1 || families[0].GetName() != "durward_log_lines_dropped_total" {
			t.Fatalf("%v, %v", families, err)
		}
		if v := families[0].GetMetric()[0].GetCounter().GetValue(); v != 3 && v != 6 {
			t.Errorf("%v", v)
		}
	}
}
