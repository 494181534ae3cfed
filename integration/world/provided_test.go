package world

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

// provided holds a gateway whose users log in at oidc-provider, both from the text of docs/identity/oidc-provider.md.
type provided struct {
	gate, issuer string
	root         string // token of the administrator
	accesses     string // file of the gateway's access log
	durward      *rig.Process
}

// startProvided starts it. options are lines for the option `durward`, besides those of the guide.
func startProvided(t *testing.T, options string) *provided {
	t.Helper()
	gatePort, issuerPort := rig.FreePort(t), rig.FreePort(t)
	p := &provided{gate: "http://127.0.0.1:" + gatePort, issuer: "http://127.0.0.1:" + issuerPort}
	g := readGuide(t, "oidc-provider.md", "http://127.0.0.1:8080", p.gate, "http://127.0.0.1:9000", p.issuer, "http 127.0.0.0/8", "http 127.0.0.0/8 ::1/128",
		"\t\tegress {", options+"\n\t\tegress {", "\n\tdurward\n}", "\n\tdurward\n\tlog {\n\t\toutput file access.log\n\t}\n}")
	p.accesses = filepath.Join(g.directory, "access.log")
	g.start([]string{loginSecret}, node(t), "provider.mjs").WaitForListener(t, "127.0.0.1:"+issuerPort)
	p.durward = g.gateway(p.gate)
	p.root = g.login([]string{"GATE=" + p.gate, "ISSUER=" + p.issuer}, "root", browseOIDCProvider)
	return p
}

// serve makes a server that needs an account of each user, on which everybody may do everything.
func (p *provided) serve(t *testing.T, name, upstream, provider string) {
	t.Helper()
	entry := p.post(t, "/api/server-directory", object{"name": name, "url": upstream, "provider": provider})
	server := p.post(t, "/api/servers", object{"name": name, "mcp_server_directory_id": entry})
	p.post(t, "/api/policy", object{"name": name, "mcp_server_id": server, "status": "ACTIVE", "rules": []any{object{"name": "all", "authorized": true}}})
}

// seen has the gateway see that a server speaks 2026-07-28: the administrator connects a token, and lists the tools.
func (p *provided) seen(t *testing.T, name string) {
	t.Helper()
	p.post(t, "/api/servers/"+name+"/connect", object{"bearer_token": "any"})
	run(t, object{"url": p.gate + "/mcp/" + name, "token": p.root, "probes": []any{}}, "probe.mjs", "modern")
}

func (p *provided) post(t *testing.T, path string, body any) (made string) {
	t.Helper()
	var answer struct{ ID, Key string } // a key is shown once, here
	api(t, http.MethodPost, p.gate+path, p.root, body, &answer)
	return cmp.Or(answer.Key, answer.ID)
}

// begun counts the conversations that clients began with a server: what was sent without the id of a session, and let in.
func (p *provided) begun(t *testing.T, name string) (count int) {
	t.Helper()
	text, err := os.ReadFile(p.accesses)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var access struct {
			Status  int
			Request struct {
				Method, URI string
				Headers     http.Header
			}
			Answer http.Header `json:"resp_headers"`
		}
		if err := json.Unmarshal([]byte(line), &access); err != nil {
			t.Fatal(err)
		}
		if access.Request.Method == http.MethodPost && access.Request.URI == "/mcp/"+name && access.Status == http.StatusOK && access.Request.Headers.Get("Mcp-Session-Id") == "" && access.Answer.Get("Mcp-Session-Id") != "" {
			count++
		}
	}
	return count
}

var formHidden = regexp.MustCompile(`name="form" value="([^"]+)"`)

// giveToken fills in the gateway's page for a server that takes a token.
func giveToken(t *testing.T, browser *http.Client, gate, page string) string {
	t.Helper()
	action, hidden := formAction.FindStringSubmatch(page[max(strings.Index(page, `autocomplete="off"`)-200, 0):]), formHidden.FindAllStringSubmatch(page, -1)
	if action == nil || hidden == nil {
		t.Fatalf("no form: %s", rig.Tail(page, 3_000))
	}
	response, err := browser.PostForm(gate+action[1], url.Values{"form": {hidden[len(hidden)-1][1]}, "bearer_token": {"any"}})
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}
