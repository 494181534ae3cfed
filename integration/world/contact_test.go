package world

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

// TestFirstContact checks that a client that is given nothing but an address logs its user in at an identity provider
// of others, is led to the page on which the account is connected, and goes on in the same conversation (W20, W21,
// W31). Its user has a Chromium. Provider and gateway are those of docs/identity/oidc-provider.md.
func TestFirstContact(t *testing.T) {
	lab(t)
	model := rig.FreePort(t)
	at := startProvided(t, "\n\t\tauthorization_server off"+modelAt(model))
	key := at.post(t, "/api/llm-gateway/admin/api-keys", object{"name": "Lab"})
	for i, c := range newcomers() {
		if form == short && !c.short {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			record(t, c.row(t))
			c.meets(t, at, fmt.Sprint("account-", i), map[string]any{"model": model, "gateway": at.gate + "/api/llm-gateway", "key": key})
		})
	}
}

// TestFirstContactAtGateway is TestFirstContact where clients log their users in at the gateway, which is the one client of
// the identity provider.
func TestFirstContactAtGateway(t *testing.T) {
	lab(t)
	model := rig.FreePort(t)
	known := func(id, host string) string {
		return "\n\t\t\toauth_client " + id + " {\n\t\t\t\tredirect_uri http://" + host + "/callback\n\t\t\t}"
	}
	at := startProvided(t, "\n\t\tauthorization_server {"+known("first-call", "127.0.0.1")+
		known("https://claude.ai/oauth/claude-code-client-metadata", "localhost")+known("https://chatgpt.com/oauth/codex/client.json", "127.0.0.1")+"\n\t\t}"+modelAt(model))
	key := at.post(t, "/api/llm-gateway/admin/api-keys", object{"name": "Lab"})
	for i, c := range newcomers() {
		if form == short && !c.short {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			r := c.row(t)
			r.tried = strings.Replace(r.tried, ": login", ": login at the gateway", 1)
			if c.described {
				r.tried = strings.Replace(r.tried, ", registered by itself", "", 1)
				r.remark += " Its metadata document is out of the lab's reach: the gateway has it as an `oauth_client`."
			}
			record(t, r)
			c.meets(t, at, fmt.Sprint("account-", i), map[string]any{"model": model, "gateway": at.gate + "/api/llm-gateway", "key": key})
		})
	}
}

// modelAt returns the lines that let clients use a model at a port of this machine.
func modelAt(port string) string {
	return "\n\t\tprovider anthropic {\n\t\t\tbase_url http://127.0.0.1:" + port + "\n\t\t}\n\t\talias claude {\n\t\t\ttarget anthropic real\n\t\t}"
}

// meets lets the client connect to a server, which gets that name, and lets its user connect an account. plan is
// completed.
func (c newcomer) meets(t *testing.T, at *provided, slug string, plan map[string]any) {
	t.Helper()
	plan["url"], plan["modules"], plan["tool"], plan["arguments"] = at.gate+"/mcp/"+slug, filepath.Dir(module(t, "x")), "greet", object{"name": "Alice"}
	tool, said := "greet", "Hello, Alice!"
	if c.modern {
		tool, said = "echo", "Grüezi"
		plan["tool"], plan["arguments"] = tool, object{"message": said}
		at.serveModern(t, slug, c.account)
	} else {
		at.serve(t, slug, example(t, "simpleStreamableHttp", "localhost", "--oauth"), "oauth2")
	}
	browser := rig.StartBrowser(t)
	browser.Mind(at.gate)
	var opened []string
	got := c.contact(t, plan, func(address string) {
		opened = append(opened, address)
		page := at.visit(browser, address, "alice")
		if strings.Contains(address, "/connect/") {
			browser.Contains(page, "is connected")
		}
	})
	if len(opened) != 2 || !strings.HasPrefix(opened[0], at.login) || opened[1] != at.gate+"/connect/"+slug || got.Led != c.led {
		t.Errorf("the user was led to %q, by %s", opened, got.Led)
	}
	if c.modern && got.Version != "2026-07-28" {
		t.Errorf("it speaks %q", got.Version)
	}
	if !c.modern && !slices.Equal(got.Before, []string{"connect_account"}) || !slices.Contains(got.After, tool) || !c.shows && slices.Contains(got.After, "connect_account") {
		t.Errorf("tools/list: %q, then %q", got.Before, got.After)
	}
	if !strings.Contains(got.Result, said) {
		t.Errorf("the call after it: %s\n%s", got.Result, rig.Tail(at.durward.Output.String(), 3_000))
	}
	if begun := at.begun(t, slug); !c.modern && begun != max(c.begins, 1) {
		t.Errorf("it began %d conversations", begun)
	}
}
