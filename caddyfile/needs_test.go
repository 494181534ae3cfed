package caddyfile

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	syntax "github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/seal"
)

// TestHandlersThatRefuseEverything: a configuration in which a handler misses one that it needs is valid, and is warned of.
func TestHandlersThatRefuseEverything(t *testing.T) {
	for name, test := range map[string]struct {
		directives string
		want       []string // handler needs handler
	}{
		"carrier alone": {"durward_mcp", []string{"durward_mcp durward_auth", "durward_mcp durward_policy", "durward_mcp durward_credential"}},
		"models alone":  {"durward_llm", []string{"durward_llm durward_auth"}},
		"no policy":     {"durward_auth\ndurward_credential\ndurward_sse", []string{"durward_sse durward_policy"}},
		"whole":         {"durward", nil},
		"health only":   {"durward_platform health_only", nil},
		"by hand":       {"durward_auth\ndurward_policy\ndurward_credential\ndurward_mcp\ndurward_platform", nil},
		// Caddy puts handle before the gateway's directives.
		"apart, which is before": {"durward_auth\nhandle /mcp/* {\ndurward_policy\ndurward_credential\ndurward_mcp\n}",
			[]string{"durward_policy durward_auth", "durward_credential durward_auth", "durward_mcp durward_auth"}},
		"in the wrong order": {"route {\ndurward_policy off\ndurward_auth\ndurward_credential\ndurward_mcp\n}", []string{"durward_policy durward_auth"}},
		"from a named route": {"invoke proven\ndurward_llm", nil},
		"administration":     {"durward_gateway", []string{"durward_gateway durward_auth"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "key"), []byte(seal.NewMasterKey().Reveal()), 0o600); err != nil {
				t.Fatal(err)
			}
			log := filepath.Join(dir, "log")
			text := "{\n\tpersist_config off\n\tauto_https disable_certs\n\tlog {\n\t\toutput file " + log + "\n\t\tformat json\n\t}\n\tdurward {\n\t\tpublic_url https://a.example.com\n" +
				"\t\tstore sqlite " + dir + "/durward.db\n\t\tmaster_key {file." + dir + "/key}\n\t\tidentity oidc https://id.example.com\n\t}\n}\n" +
				"&(proven) {\n\tdurward_auth\n}\na.example.com {\n" + test.directives + "\n}\n"
			if name != "from a named route" {
				text = strings.Replace(text, "&(proven) {\n\tdurward_auth\n}\n", "", 1)
			}
			if err := validate(t, adapt(t, syntax.Format([]byte(text)))); err != nil {
				t.Fatal(err)
			}
			logged, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for line := range strings.Lines(string(logged)) {
				var entry struct{ Level, Msg, Handler, Needs string }
				if err := json.Unmarshal([]byte(line), &entry); err != nil {
					t.Fatal(err)
				}
				if entry.Needs != "" && entry.Level == "warn" {
					got = append(got, entry.Handler+" "+entry.Needs)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
