package integration

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

// commands is a directory in which a test runs commands: it has Caddyfiles, and no gateway.
type commands struct {
	t         *testing.T
	directory string
	env       []string
}

// command runs the binary to its end and returns its output and exit status.
func (b commands) command(arguments ...string) (string, int) {
	b.t.Helper()
	p := startProcess(b.t, b.directory, b.env, durward(b.t), arguments...)
	<-p.exited
	return p.output.String(), exitCode(p.Err)
}

func (b commands) write(name, content string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.directory, name), []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// TestSamples checks that the Caddyfiles that ship are formatted, adapt without a warning, validate, run and reload.
func TestSamples(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"dev.caddyfile", "edge.caddyfile", "cluster.caddyfile"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			port := freePort(t)
			data := t.TempDir()
			provider := newIdentityProvider(t)
			b := commands{t, t.TempDir(), []string{"DURWARD_DATA=" + data, "DURWARD_PORT=" + port}}
			address := "http://127.0.0.1:" + port
			content := strings.NewReplacer("/run/durward", data, "/var/lib/durward", data, "/run/secrets", data,
				"https://id.example.com", provider.issuer(), "https://gate.example.com", address,
				"\ngate.example.com {", "\n"+address+" {\n\tbind 127.0.0.1", "\nhttp://:8080 {", "\n"+address+" {\n\tbind 127.0.0.1").Replace(sample(t, name))
			if name == "cluster.caddyfile" {
				if err := os.WriteFile(filepath.Join(data, "durward_database"), []byte(pgtest.Database(t)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if name != "dev.caddyfile" { // the provider of the test speaks plain http
				content = strings.Replace(content, "\t\treturn_url", "\t\tegress {\n\t\t\thttp 127.0.0.0/8\n\t\t}\n\t\treturn_url", 1)
				if err := os.WriteFile(filepath.Join(data, "durward_key"), []byte(hex.EncodeToString(masterKey(newSweep()))), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			b.write("Caddyfile", content)

			formatted, code := b.command("fmt", "Caddyfile")
			if diff := cmp.Diff(content, formatted); code != 0 || diff != "" {
				t.Errorf("fmt: status %d (-sample +formatted):\n%s", code, diff)
			}
			adapted, code := b.command("adapt", "--config", "Caddyfile", "--adapter", "caddyfile")
			var config map[string]any
			if err := json.Unmarshal([]byte(adapted[strings.Index(adapted, "{\"admin\""):]), &config); code != 0 || err != nil || strings.Contains(adapted, "WARN") {
				t.Errorf("adapt: status %d, %v: %s", code, err, adapted)
			}
			if output, code := b.command("validate", "--config", "Caddyfile", "--adapter", "caddyfile"); code != 0 || !strings.Contains(output, "Valid configuration") {
				t.Errorf("validate: status %d: %s", code, output)
			}
			// JSON can say the same as the Caddyfile.
			b.write("caddy.json", adapted[strings.Index(adapted, "{\"admin\""):])
			running := startProcess(t, b.directory, b.env, durward(t), "run", "--config", "caddy.json")
			running.waitFor(t, address+"/readyz")
			if name != "dev.caddyfile" {
				wantOrdinaryTokens(t, provider, address)
			}
			if output, code := b.command("reload", "--config", "Caddyfile", "--adapter", "caddyfile", "--force"); code != 0 {
				t.Errorf("reload: status %d: %s", code, output)
			}
			running.waitFor(t, address+"/readyz")
			running.stop(t)
			running.checkLog(t)
			if code := exitCode(running.Err); code != 0 {
				t.Errorf("status %d at the end", code)
			}
		})
	}
}

// wantOrdinaryTokens: W20 and W22, with a sample as it ships tokens are good that name no organization, and roles make an
// administrator where the default claims say so.
func wantOrdinaryTokens(t *testing.T, provider *identityProvider, address string) {
	t.Helper()
	g := &gateway{t: t, url: address, identity: provider, client: newClient(t)}
	entry := map[string]any{"name": "Notes", "description": "", "url": "https://mcp.example.com/mcp", "provider": "none"}
	for name, c := range map[string]struct {
		claims claims
		status int
	}{
		"a user":                  {claims{"sub": "alice"}, http.StatusForbidden},
		"an administrator":        {claims{"sub": "root", "roles": []string{"admin"}}, http.StatusOK},
		"one of Keycloak":         {claims{"sub": "root", "realm_access": map[string]any{"roles": []string{"admin"}}}, http.StatusOK},
		"of another organization": {claims{"sub": "root", "roles": []string{"admin"}, "org_id": "other"}, http.StatusForbidden},
	} {
		token := g.token(c.claims)
		if a := g.send(http.MethodPost, "/api/server-directory", token, entry); a.status != c.status {
			t.Errorf("%s: %d: %s", name, a.status, a.body)
		}
	}
}

// TestConfigurationErrors checks that an error in a Caddyfile is named with its file and line, and the right form.
func TestConfigurationErrors(t *testing.T) {
	t.Parallel()
	const option = "{\n\tpersist_config off\n\tadmin off\n\tdurward {\n\t\tstore sqlite d.db\n\t\tidentity dev\n\t\t%\n\t}\n}\n\nhttp://:1 {\n\tbind 127.0.0.1\n\tdurward\n}\n"
	const site = "{\n\tpersist_config off\n\tadmin off\n\tdurward {\n\t\tstore sqlite d.db\n\t\tidentity dev\n\t}\n}\n\nhttp://:1 {\n\tbind 127.0.0.1\n\t%\n}\n"
	b := commands{t, t.TempDir(), nil}
	for i, test := range []struct{ around, line, says string }{
		{option, "pubic_url https://gate.example", "public_url"},
		{option, "public_url", "wrong argument count"},
		{option, "public_url https://a.example https://b.example", "wrong argument count"},
		{option, "store sqlite other.db", "once"},
		{option, "identity saml https://id.example", "saml"},
		{option, "master_key 5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a", "{env.NAME}"},
		{option, "sizes {\n\t\t\tapi many\n\t\t}", "many"},
		{option, "egress 10.0.0.0/8", "wrong argument count"},
		{site, "durward everything", "platform"},
		{site, "durward mcp {\n\t\tfast\n\t}", "block"},
		{site, "durward_mcp {\n\t\ttransport {\n\t\t\ttls_insecure_skip_verify now\n\t\t}\n\t}", "wrong argument count"},
		{site, "durward_auth strictly", "wrong argument count"},
	} {
		b.write("Caddyfile", strings.Replace(test.around, "%", test.line, 1))
		output, code := b.command("adapt", "--config", "Caddyfile", "--adapter", "caddyfile")
		output = strings.ReplaceAll(output, `\"`, `"`)
		first := strings.Count(strings.SplitN(test.around, "%", 2)[0], "\n") + 1
		named := false
		for line := first; line <= first+strings.Count(test.line, "\n"); line++ {
			named = named || strings.Contains(output, "Caddyfile:"+strconv.Itoa(line))
		}
		if code == 0 || !named || !strings.Contains(strings.ToLower(output), strings.ToLower(test.says)) {
			t.Errorf("%d, %q: status %d, line %d named: %v: %s", i, test.line, code, first, named, output)
		}
	}
}
