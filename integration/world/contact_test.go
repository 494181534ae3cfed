package world

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

// TestFirstContact: W20, W21, W31: a client that is given nothing but an address logs its user in at an identity provider of
// others, is led to the page on which the account is connected, and goes on in the same conversation. Provider and gateway are
// those of docs/identity/oidc-provider.md.
func TestFirstContact(t *testing.T) {
	lab(t)
	gatePort, issuerPort := rig.FreePort(t), rig.FreePort(t)
	gate, issuer := "http://127.0.0.1:"+gatePort, "http://127.0.0.1:"+issuerPort
	g := readGuide(t, "oidc-provider.md", "http://127.0.0.1:8080", gate, "http://127.0.0.1:9000", issuer, "http 127.0.0.0/8", "http 127.0.0.0/8 ::1/128")
	g.start([]string{loginSecret}, node(t), "provider.mjs").WaitForListener(t, "127.0.0.1:"+issuerPort)
	durward := g.gateway(gate)
	root := g.login([]string{"GATE=" + gate, "ISSUER=" + issuer}, "root", browseOIDCProvider)
	for i, c := range []struct {
		name, software, remark string
		short                  bool
	}{
		{name: "sdk 1", software: sdk1, short: true},
		{name: "sdk 2", software: "@modelcontextprotocol/client", remark: "2025 era."},
		{name: "sdk 2 modern", software: "@modelcontextprotocol/client", remark: "Asks for 2026-07-28, and speaks 2025 with this server."},
		{name: "mcp-remote", software: "mcp-remote", short: true},
		{name: "inspector", software: "@modelcontextprotocol/inspector", remark: "Its command line, which begins a conversation for each command."},
	} {
		if form == short && !c.short {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			record(t, &row{section: mcpClients, software: c.software, version: version(t, c.software), remark: c.remark,
				tried: c.name + ": login from the address alone, registered by itself; led to connect an account; the same conversation goes on"})
			slug := fmt.Sprint("account-", i)
			administer := administrator{t: t, gate: gate, token: root}
			administer.serve(slug, example(t, "simpleStreamableHttp", "localhost", "--oauth"))
			jar, err := cookiejar.New(nil)
			if err != nil {
				t.Fatal(err)
			}
			browser := &http.Client{Jar: jar}
			var opened []string
			got := contact(t, c.name, gate+"/mcp/"+slug, func(address string) {
				opened = append(opened, address)
				page := passOIDCProvider(t, browser, address, "alice")
				if strings.Contains(address, "/connect/") && !strings.Contains(page, "is connected") {
					t.Errorf("%s ends on %s", address, rig.Tail(page, 3_000))
				}
			})
			if len(opened) != 2 || !strings.HasPrefix(opened[0], issuer) || opened[1] != gate+"/connect/"+slug {
				t.Errorf("the user was led to %q", opened)
			}
			if !slices.Equal(got.Before, []string{"connect_account"}) || !slices.Contains(got.After, "greet") || slices.Contains(got.After, "connect_account") {
				t.Errorf("tools/list: %q, then %q", got.Before, got.After)
			}
			if !strings.Contains(got.Result, "Hello, Alice!") {
				t.Errorf("the call after it: %s\n%s", got.Result, rig.Tail(durward.Output.String(), 3_000))
			}
		})
	}
}

// administrator makes what a guide's gateway needs.
type administrator struct {
	t           *testing.T
	gate, token string
}

// serve makes a server that needs an account of each user, on which everybody may do everything.
func (a administrator) serve(name, upstream string) {
	a.t.Helper()
	entry := a.post("/api/server-directory", map[string]any{"name": name, "url": upstream, "provider": "oauth2"})
	server := a.post("/api/servers", map[string]any{"name": name, "mcp_server_directory_id": entry})
	a.post("/api/policy", map[string]any{"name": name, "mcp_server_id": server, "status": "ACTIVE", "rules": []any{map[string]any{"name": "all", "authorized": true}}})
}

func (a administrator) post(path string, body any) (id string) {
	a.t.Helper()
	request, err := rig.NewRequest(a.t.Context(), http.MethodPost, a.gate+path, a.token, body)
	if err != nil {
		a.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		a.t.Fatal(err)
	}
	defer response.Body.Close()
	var made struct{ ID string }
	if err := json.NewDecoder(response.Body).Decode(&made); err != nil || response.StatusCode/100 != 2 {
		a.t.Fatalf("%s: status %d, %v", path, response.StatusCode, err)
	}
	return made.ID
}

// contacted holds the findings of contact.mjs.
type contacted struct {
	Before, After []string
	Led, Result   string
}

// contact runs contact.mjs; open is told of each page that the client's user opens.
func contact(t *testing.T, name, address string, open func(address string)) contacted {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), scriptTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, node(t), nodeArguments(t, "contact.mjs", name)...)
	command.Env = environment(t)
	var complaint rig.Transcript
	command.Stderr = &complaint
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	plan, err := json.Marshal(map[string]string{"url": address, "modules": filepath.Dir(module(t, "x"))})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = fmt.Fprintf(input, "%s\n", plan)
	var last string
	for lines := bufio.NewScanner(output); lines.Scan(); {
		last = lines.Text()
		var asks struct{ Open string }
		if json.Unmarshal([]byte(last), &asks) == nil && asks.Open != "" {
			open(asks.Open)
			_, _ = fmt.Fprintln(input, "opened")
		}
	}
	if err := command.Wait(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, rig.Tail(complaint.String(), 5_000))
	}
	var got contacted
	if err := json.Unmarshal([]byte(last), &got); err != nil {
		t.Fatalf("%s wrote %q: %v\n%s", name, last, err, rig.Tail(complaint.String(), 5_000))
	}
	return got
}
