package caddyfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	syntax "github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/durward-gateway/durward/internal/seal"
)

// TestOrder checks D07: a configuration in which one of the handlers can never do its work is refused, with advice;
// one in which it may be able to is accepted.
func TestOrder(t *testing.T) {
	const (
		before = " has to come before it"
		proven = "&(proven) {\n\troute {\n\t\tdurward_auth\n\t\tdurward_limit\n\t}\n}\n"
	)
	for name, test := range map[string]struct {
		named, directives string
		want              string // "": nothing
	}{
		"a carrier alone":       {"", "durward_mcp", "durward_mcp: durward_auth" + before},
		"models alone":          {"", "durward_llm", "durward_llm: durward_auth" + before},
		"administration":        {"", "durward_gateway", "durward_gateway: durward_auth" + before},
		"the API":               {"", "durward_platform", "durward_platform: durward_auth" + before},
		"no policy":             {"", "durward_auth\ndurward_limit\ndurward_credential\ndurward_sse", "durward_sse: durward_policy" + before},
		"no limit":              {"", "durward_auth\ndurward_policy\ndurward_credential\ndurward_mcp\ndurward_platform", "durward_mcp: durward_limit" + before},
		"no limit for models":   {"", "durward_auth\ndurward_llm", "durward_llm: durward_limit" + before},
		"a limit for others":    {"", "durward_auth\ndurward_limit llm\ndurward_policy\ndurward_credential\ndurward_mcp", "durward_mcp: durward_limit" + before},
		"a limit for servers":   {"", "durward_auth\ndurward_limit mcp\ndurward_llm", "durward_llm: durward_limit" + before},
		"the limit behind it":   {"", "route {\ndurward_auth\ndurward_policy\ndurward_credential\ndurward_mcp\ndurward_limit\n}", "durward_mcp: durward_limit" + before},
		"the limit too late":    {"", "route {\ndurward_auth\ndurward_policy\ndurward_credential\ndurward_limit\ndurward_mcp\n}", "durward_mcp: durward_credential" + before},
		"the policy too late":   {"", "route {\ndurward_auth\ndurward_limit\ndurward_credential\ndurward_policy\ndurward_mcp\n}", "durward_mcp: durward_credential" + before},
		"a credential too late": {"", "route {\ndurward_auth\ndurward_limit\ndurward_policy\ndurward_mcp\ndurward_credential\n}", "durward_mcp: durward_credential" + before},
		"policy before auth":    {"", "route {\ndurward_policy off\ndurward_auth\ndurward_limit\ndurward_credential\ndurward_mcp\n}", "durward_policy: durward_auth" + before},
		"auth before session":   {"", "route {\ndurward_auth\ndurward_session\ndurward_platform\n}", "durward_session: it has to come before durward_auth"},
		"behind the last":       {"", "route {\ndurward_auth\ndurward_platform\ndurward_gateway\n}", "durward_gateway: durward_platform answers every request before it"},
		// Caddy puts handle before the gateway's directives.
		"apart, which is before": {"", "durward_auth\nhandle /mcp/* {\ndurward_policy\ndurward_credential\ndurward_mcp\n}", "durward_policy: durward_auth" + before},
		"in another handle":      {"", "route {\nhandle /a/* {\ndurward_auth\ndurward_limit\n}\nhandle {\ndurward_llm\n}\n}", "durward_llm: durward_auth" + before},

		"whole":              {"", "durward", ""},
		"a family":           {"", "durward llm", ""},
		"health only":        {"", "durward_platform health_only", ""},
		"by hand":            {"", "durward_auth\ndurward_limit\ndurward_policy\ndurward_credential\ndurward_mcp\ndurward_sse\ndurward_llm\ndurward_gateway\ndurward_platform", ""},
		"nothing counts":     {"", "durward_auth\ndurward_limit off\ndurward_policy off\ndurward_credential\ndurward_mcp\ndurward_llm", ""},
		"two limits":         {"", "durward_auth\ndurward_limit mcp\ndurward_limit llm off\ndurward_policy\ndurward_credential\ndurward_mcp\ndurward_llm", ""},
		"behind a matcher":   {"", "@x path /mcp/*\nroute {\ndurward_auth @x\ndurward_limit @x\ndurward_llm\n}", ""},
		"in a handle":        {"", "route {\ndurward_auth\nhandle /mcp/* {\ndurward_limit\ndurward_policy\ndurward_credential\ndurward_mcp\n}\ndurward_platform\n}", ""},
		"from a named route": {proven, "invoke proven\ndurward_llm", ""},
		"in a named route":   {proven + "&(models) {\n\tdurward_llm\n}\n", "route {\ninvoke proven\ninvoke models\n}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "key"), []byte(seal.NewMasterKey().Reveal()), 0o600); err != nil {
				t.Fatal(err)
			}
			text := "{\n\tpersist_config off\n\tauto_https disable_certs\n\tdurward {\n\t\tpublic_url https://a.example.com\n" +
				"\t\tstore sqlite " + dir + "/durward.db\n\t\tmaster_key {file." + dir + "/key}\n\t\tidentity oidc https://id.example.com\n\t}\n}\n" +
				test.named + "a.example.com {\n" + test.directives + "\n}\nb.example.com {\n\tdurward\n}\n"
			err := validate(t, adapt(t, syntax.Format([]byte(text))))
			if test.want == "" && err != nil {
				t.Fatal(err)
			}
			if test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}
