package integration

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// declaredModels are the models of the configuration that declaredText refers to.
const declaredModels = `
		provider openai house {
			key {env.HOUSE_KEY}
		}
		alias small {
			target house small-1
		}
		alias large {
			target house large-1
		}
`

const declaredText = `organization: acme
servers:
  - name: Issues
    directory: issues
    client_id: gate
    client_secret: "{env.ISSUES_CLIENT_SECRET}"
agents:
  - name: robot
    issuer: ISSUER
    external_id: robot-1
policies:
  - name: Reads only
    server: Issues
    agents: [robot]
    status: ACTIVE
    rules:
      - name: reads
        authorized: true
        actions: ["tools/call:read_*"]
        condition: {match: {expr: "R.attr.n < 9007199254740993"}}
providers:
  - name: Company
    kind: openai
    base_url: https://models.example.com/v1
    api_key: "{env.COMPANY_API_KEY}"
model_mappings:
  - model_alias: fast
    targets: [{provider: Company, model: m}, {provider: house, model: small}]
    fallbacks: [slow, small]
  - model_alias: slow
    targets: [{provider: Company, model: l}]
    fallbacks: [fast]
smart_models:
  - model_alias: choosing
    determiner_model_alias: fast
    slots: [{model_alias: fast, label: easy}, {model_alias: large}]
rate_limits:
  - {name: robot, scope_type: agent, subject: robot, requests_per_minute: 60}
  - {name: issues, scope_type: mcp_server, subject: Issues, traffic_type: mcp, requests_per_minute: 60}
budgets:
  - {name: company, scope_type: llm_provider, subject: Company, period: month, amount: 0.1}
`

// declares runs a command about files and returns its output and exit code.
func (g *gateway) declares(arguments ...string) (output string, code int) {
	g.t.Helper()
	output, err := g.run(arguments...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return output, exit.ExitCode()
	}
	if err != nil {
		g.t.Fatal(err)
	}
	return output, 0
}

// wantDeclared checks the exit code and a part of the output of a command about files.
func (g *gateway) wantDeclared(code int, says string, arguments ...string) string {
	g.t.Helper()
	output, got := g.declares(arguments...)
	if got != code || !strings.Contains(output, says) {
		g.t.Fatalf("%q: exit code %d, not %d with %q:\n%s", arguments, got, code, says, output)
	}
	return output
}

func (g *gateway) file(name, text string) string {
	g.t.Helper()
	path := filepath.Join(g.directory, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		g.t.Fatal(err)
	}
	return path
}

// text returns what a file contains.
func (g *gateway) text(path string) string {
	g.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		g.t.Fatal(err)
	}
	return string(text)
}

// TestDeclared checks configuration as code: through the API of a gateway on SQLite, on the PostgreSQL store of another one
// that runs, and on the SQLite store once its gateway is stopped.
func TestDeclared(t *testing.T) {
	t.Parallel()
	env := []string{"ISSUES_CLIENT_SECRET=geheim-17", "COMPANY_API_KEY=geheim-18", "HOUSE_KEY=geheim-19"}
	g := startGateway(t, settings{env: env, option: declaredModels})
	acme := admin.with(claims{"organization_slug": "acme"})
	entry := members{"name": "Issues", "url": "https://mcp.example.com/mcp", "provider": "oauth2"}
	g.api(g.token(acme), http.MethodPost, "/api/server-directory", entry)
	text := strings.Replace(declaredText, "ISSUER", g.identity.issuer(), 1)
	wanted := g.file("wanted.yaml", text)
	online := []string{"--url", g.url, "--token", "{file." + g.file("token", g.token(acme)) + "}"}
	on := func(arguments ...string) []string { return append(arguments, online...) }

	g.wantDeclared(2, "10 to change", on("diff", wanted)...)
	g.wantDeclared(2, `"action":"create","kind":"policy","name":"Reads only"`, on("apply", "--dry-run", "--json", wanted)...)
	g.wantDeclared(0, "10 changed", on("apply", wanted)...)
	g.wantDeclared(0, "nothing to change", on("diff", wanted)...)
	exported := g.wantDeclared(0, "{env.ISSUES_CLIENT_SECRET}", on("export")...)
	if strings.Contains(exported, "geheim") {
		t.Errorf("the export shows a secret:\n%s", exported)
	}
	broken := g.file("broken.yaml", strings.Replace(text, "agents: [robot]", "agents: [robt]", 1))
	g.wantDeclared(1, broken+`:14:14: policies[0].agents[0]: there is no agent of the name "robt"`, on("apply", broken)...)
	user := g.file("user", g.token(alice.with(claims{"organization_slug": "acme"})))
	if refused := g.wantDeclared(1, "403", "apply", wanted, "--url", g.url, "--token", "{file."+user+"}"); strings.Count(strings.TrimSpace(refused), "\n") != 0 {
		t.Errorf("the refusal has several lines:\n%s", refused)
	}

	other := startGateway(t, settings{env: env, option: declaredModels, postgres: true, provider: g.identity})
	other.api(other.token(acme), http.MethodGet, "/api/servers", nil) // which makes the organization
	copied := other.file("copied.yaml", exported)
	store := []string{"--config", other.config, "--adapter", "caddyfile"}
	other.wantDeclared(0, "11 changed", append([]string{"apply", copied}, store...)...)
	if again := other.wantDeclared(0, "", append([]string{"export", "--organization", "acme"}, store...)...); again != exported {
		t.Errorf("exported from PostgreSQL:\n%s\nfrom SQLite:\n%s", again, exported)
	}
	if seen := other.api(other.token(acme), http.MethodGet, "/api/v2/policies", nil); !strings.Contains(string(seen.body), "Reads only") {
		t.Errorf("the gateway that runs has %s", seen.body)
	}

	for _, list := range []string{"providers", "model-mappings", "smart-models", "rate-limits", "budgets"} {
		if seen := g.api(g.token(acme), http.MethodGet, "/api/llm-gateway/admin/"+list, nil); !strings.Contains(string(seen.body), `"managed_by_file":true`) {
			t.Errorf("%s do not say that a file has them: %s", list, seen.body)
		}
	}
	fewer := g.file("fewer.yaml", strings.Replace(text[:strings.Index(text, "rate_limits:")], "agents: [robot]", "agents: []", 1))
	g.api(g.token(acme), http.MethodPost, "/api/llm-gateway/admin/rate-limits", members{"name": "by hand", "scope_type": "org", "requests_per_minute": 1000})
	g.wantDeclared(2, "1 to change", on("diff", fewer)...)
	pruned := g.wantDeclared(2, `delete rate_limit "robot"`, on("diff", "--prune", fewer)...)
	for _, ends := range []string{`delete rate_limit "issues"`, `delete budget "company"`, "4 to change"} {
		if !strings.Contains(pruned, ends) {
			t.Errorf("not %s:\n%s", ends, pruned)
		}
	}
	g.wantDeclared(0, "4 changed", on("apply", "--prune", fewer)...)
	if left := g.wantDeclared(0, "by hand", on("export")...); strings.Contains(left, "scope_type: agent") {
		t.Errorf("after a prune there is:\n%s", left)
	}
	g.wantDeclared(0, "4 changed", on("apply", wanted)...)

	store = []string{"--config", g.config, "--adapter", "caddyfile"}
	renamed := g.file("renamed.yaml", strings.Replace(exported, "  - name: Reads only\n", "  - name: Reading\n    was: Reads only\n", 1))
	g.wantDeclared(2, `update policy "Reading" (was "Reads only"): name`, append([]string{"diff", renamed}, store...)...)
	g.wantDeclared(1, "the store is in use", append([]string{"apply", renamed}, store...)...)
	g.stop(t)
	g.wantDeclared(0, "1 changed", append([]string{"apply", renamed}, store...)...)
	g.wantDeclared(0, `delete agent "robot"`, append([]string{"apply", "--prune", g.file("noagent.yaml",
		strings.NewReplacer("agents: [robot]", "agents: []", "agents:\n  - name: robot\n    issuer: "+g.identity.issuer()+"\n    external_id: robot-1\n", "",
			"  - {name: robot, scope_type: agent, subject: robot, requests_per_minute: 60}\n", "").Replace(text))}, store...)...)
	stranger := g.file("stranger.yaml", "organization: acme\nagents: [{name: x, external_id: x, issuer: 'https://stranger.example'}]\n")
	g.wantDeclared(1, "say which identity provider issues its tokens", append([]string{"apply", stranger}, store...)...)
	unnamed := g.file("unnamed.caddyfile", strings.Replace(g.text(g.config), "public_url "+g.url, "", 1))
	g.wantDeclared(2, "warning: the configuration has no public_url", "diff", stranger, "--config", unnamed, "--adapter", "caddyfile")
	own := g.file("own.yaml", "organization: acme\ndirectory: [{name: Own, url: '"+g.url+"/mcp/issues', provider: none}]\n")
	g.wantDeclared(1, "this is the gateway's own address", append([]string{"apply", own}, store...)...)
	g.mustVerifyAudit()
}
