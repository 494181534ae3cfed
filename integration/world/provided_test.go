package world

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

// provided holds a gateway whose users log in at oidc-provider, both from the text of docs/identity/oidc-provider.md.
type provided struct {
	gate, issuer string
	login        string // where clients log their users in
	root         string // token of the administrator
	accesses     string // file of the gateway's access log
	durward      *rig.Process
}

// startProvided starts it. options are lines for the option `durward`, besides those of the guide.
func startProvided(t *testing.T, options string) *provided {
	t.Helper()
	gatePort, issuerPort := rig.FreePort(t), rig.FreePort(t)
	p := &provided{gate: "http://127.0.0.1:" + gatePort, issuer: "http://127.0.0.1:" + issuerPort}
	if p.login = p.gate + "/oauth/authorize?"; strings.Contains(options, "authorization_server off") {
		p.login = p.issuer
	}
	g := p.guide(t, "\t\tegress {", options+"\n\t\tegress {")
	g.start([]string{loginSecret}, node(t), "provider.mjs").WaitForListener(t, "127.0.0.1:"+issuerPort)
	p.durward = g.gateway(p.gate)
	p.root = g.login([]string{"GATE=" + p.gate, "ISSUER=" + p.issuer}, "root", pagesOfOIDCProvider(p.gate).browse)
	return p
}

// guide lays the guide out for these addresses, with an access log. changes go before its own.
func (p *provided) guide(t *testing.T, changes ...string) *guide {
	t.Helper()
	g := readGuide(t, "oidc-provider.md", append(changes, "http://127.0.0.1:8080", p.gate, "http://127.0.0.1:9000", p.issuer, "http 127.0.0.0/8", "http 127.0.0.0/8 ::1/128",
		"\n\tdurward\n}", "\n\tdurward\n\tlog {\n\t\toutput file access.log\n\t}\n}")...)
	p.accesses = filepath.Join(g.directory, "access.log")
	return g
}

// serve makes a server that needs an account of each user, on which everybody may do everything.
func (p *provided) serve(t *testing.T, name, upstream, provider string) {
	t.Helper()
	entry := p.post(t, "/api/server-directory", object{"name": name, "url": upstream, "provider": provider})
	server := p.post(t, "/api/servers", object{"name": name, "mcp_server_directory_id": entry})
	p.post(t, "/api/policy", object{"name": name, "mcp_server_id": server, "status": "ACTIVE", "rules": []any{object{"name": "all", "authorized": true}}})
}

// serveModern serves a server of 2026-07-28, and has the gateway see that it is one: the administrator connects an account, and
// lists the tools. Its accounts are tokens, or those of an oidc-provider.
func (p *provided) serveModern(t *testing.T, name string, account bool) {
	t.Helper()
	if account {
		port := rig.FreePort(t)
		startNode(t, port, nil, nodeArguments(t, "servers/account.mjs", port)...)
		p.serve(t, name, own(t, "sdk2.mjs", "stateless", "http://localhost:"+port), "oauth2")
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		if page := pagesOfOIDCProvider(p.gate).pass(t, &http.Client{Jar: jar}, p.gate+"/connect/"+name, "root"); !strings.Contains(page, "is connected") {
			t.Fatalf("connecting ends on %s", rig.Tail(page, 3_000))
		}
	} else {
		p.serve(t, name, own(t, "sdk2.mjs", "stateless"), "bearer_token")
		p.post(t, "/api/servers/"+name+"/connect", object{"bearer_token": "any"})
	}
	run(t, object{"url": p.gate + "/mcp/" + name, "token": p.root, "probes": []any{}}, "probe.mjs", "modern")
}

func (p *provided) post(t *testing.T, path string, body any) (made string) {
	t.Helper()
	var answer struct{ ID, Key string } // a key is shown once, here
	api(t, http.MethodPost, p.gate+path, p.root, body, &answer)
	return cmp.Or(answer.Key, answer.ID)
}

// begun counts the conversations that clients began with a server: the accepted requests without the id of a session.
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

// visit lets a user open an address in their browser, log in at oidc-provider on its pages for trials, give consent there
// and at the gateway, leave the account for later, and type a token where the gateway's page asks for one. It returns the
// page that comes after.
func (p *provided) visit(b *rig.Browser, address, user string) rig.Page {
	b.T.Helper()
	return p.pass(b, b.Open(address), user)
}

// pass does the work of visit from the page on which the browser is.
func (p *provided) pass(b *rig.Browser, page rig.Page, user string) rig.Page {
	b.T.Helper()
	for range 8 {
		asks := strings.Contains(page.URL, "/interaction/") // of oidc-provider
		switch {
		case asks && strings.Contains(page.Text, "Sign-in"):
			b.Fill("Enter any login", user)
			b.Fill("and password", "any")
			page = b.Click("Sign-in")
		case asks:
			page = b.Click("Continue")
		case strings.HasPrefix(page.URL, p.login) && strings.Contains(page.Text, "Later"):
			page = b.Click("Later")
		case strings.HasPrefix(page.URL, p.login):
			page = b.Click("Let it act for me")
		case strings.HasPrefix(page.URL, p.gate+"/connect/") && strings.Contains(page.Text, "Your token"):
			b.Fill("Your token", "any")
			page = b.Click("Connect")
		default:
			return page
		}
	}
	b.T.Fatalf("it leads on and on, to %s: %s", page.URL, page.Text)
	return page
}
