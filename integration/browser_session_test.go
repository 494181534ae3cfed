package integration

import (
	"net/http"
	"strings"
	"testing"
)

// until waits until the page, or one that it leads on to by itself, shows a text.
func (b *browser) until(text string) page {
	b.t.Helper()
	return b.command(map[string]string{"do": "until", "text": text})
}

// TestBrowserApproves: a person opens the page that an agent was told, logs in, sees the call as it is, and decides by a
// click.
func TestBrowserApproves(t *testing.T) {
	t.Parallel()
	d := newDevHome(t).start(t)
	token := d.token(t)
	d.connect(t, token, clientAccount)
	const deceptive = `{"id":1,"title":"<b>Approve this call</b> \u202Egnihton\u202C \u001b[2J"}`
	hold := func(t *testing.T, arguments string) string {
		t.Helper()
		got := d.callTool(t, "delete_issue", arguments)
		address := approvalPage.FindString(got)
		if address == "" {
			t.Fatalf("the call was not held: %s", got)
		}
		return address
	}
	if got := d.callTool(t, "create_issue", `{"title":"A fourth one"}`); !strings.Contains(got, `"id":4`) {
		t.Fatal(got)
	}
	b := startBrowser(t)

	address := hold(t, `{"id":4}`)
	p := b.open(address)
	b.contains(p, "Development console", clientUser)
	p = b.click(clientUser)
	if p.URL != address {
		t.Errorf("the browser ended at %s instead of %s", p.URL, address)
	}
	b.contains(p, "Approve this tool call?", "delete_issue", "dev-agent", `"id": 4`, "SHA-256", clientUser)
	b.picture("approval")
	p = b.click("Approve this call")
	b.contains(p, "You have approved this call", "once, for exactly this call", "tell your agent to try again")
	b.picture("approved")
	form := p.Documents[0]
	if form.Method != http.MethodPost || form.Status != http.StatusSeeOther || form.Origin != "null" || form.Referer != "" {
		t.Errorf("the form was sent like this: %+v", form)
	}
	if got := d.callTool(t, "delete_issue", `{"id":4}`); strings.Contains(got, "isError\":true") || !strings.Contains(got, `"id":4`) {
		t.Errorf("the approved call: %s", got)
	}
	b.contains(b.open(address), "has run")

	address = hold(t, `{"id":3}`)
	b.contains(b.open(d.url+"/approvals"), "delete_issue")
	b.picture("approvals")
	b.open(address)
	b.contains(b.click("Deny"), "You have denied this call")
	b.picture("denied-call")

	t.Run("M17 arguments that pretend to be the page", func(t *testing.T) {
		b.t = t
		p := b.open(hold(t, deceptive))
		b.contains(p, "<b>Approve this call</b>", "⟨U+202E⟩gnihton⟨U+202C⟩")
		if strings.ContainsAny(p.Text, "\u202e\u202c\x1b") {
			t.Errorf("something hides: %q", p.Text)
		}
		b.picture("deception")
	})
	b.contains(b.click("Log out"), "You are logged out")
	b.contains(b.open(d.url+"/approvals"), "Development console")
	d.process.stop(t)
	d.process.checkLog(t)
}

// TestBrowserLooksAround: W32: a person opens addresses of the gateway in a browser, without knowing what they are.
func TestBrowserLooksAround(t *testing.T) {
	t.Parallel()
	d := newDevHome(t).start(t)
	b := startBrowser(t)
	b.contains(b.open(d.url+"/"), "durward is running in development mode", "Look around", "Pending approvals", "alice@example.test", "claude mcp add --transport http demo")
	b.picture("welcome")
	b.contains(b.follow("Demo MCP server"), "Add this address to your MCP client", "Claude Code", "VS Code", "Cursor", "Codex", "mcp-remote")
	b.picture("server-unknown")
	b.contains(b.follow("Log in"), "Log in as one of these users")
	p := b.click(clientUser)
	b.contains(p, "not connected yet", "Connect your account", clientUser, "claude mcp add --transport http demo "+d.url+"/mcp/demo")
	if p.URL != d.url+"/mcp/demo" {
		t.Errorf("the browser ended at %s", p.URL)
	}
	b.picture("server")
	d.connect(t, d.token(t), clientAccount)
	b.contains(b.open(d.url+"/mcp/demo"), "Your account is connected")
	b.contains(b.open(d.url+"/"), clientUser, "You are logged in as", "Log out")
	b.picture("welcome-logged-in")
	b.contains(b.follow("Servers"), "Your MCP servers", "✓ connected", "Disconnect")
	b.picture("servers")
	b.contains(b.open(d.url+"/connect/demo"), "Demo is connected")
	b.picture("connected")
	b.contains(b.follow("Disconnect"), "Disconnect your account at Demo?", "Keep it connected")
	b.picture("disconnect")
	if got := d.connection(t, d.token(t)); got != "connected" {
		t.Errorf("the question alone leaves the connection %s", got)
	}
	b.contains(b.click("Disconnect"), "Demo is disconnected", "no longer holds")
	b.picture("disconnected")
	if got := d.connection(t, d.token(t)); got != "available" {
		t.Errorf("the connection is %s", got)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.url+"/api/audit?limit=20", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+d.tokenOf(t, "admin@example.test"))
	status, body := devAnswer(t, request)
	if _, record, found := strings.Cut(body, `"event":"credential.deleted"`); status != http.StatusOK || !found || !strings.Contains(record[:min(len(record), 200)], `"client":"dev-console"`) {
		t.Errorf("the audit log has it not, or not by whom: %d %s", status, body)
	}
	b.contains(b.follow("Your MCP servers"), "not connected", "Connect your account")
	b.picture("servers-not-connected")
	b.contains(b.open(d.url+"/mcp/another"), "There is no such server")
	b.picture("server-missing")
	for path, want := range map[string]string{
		"/api/servers": "This address is for programs", "/nothing": "This address is for programs", "/.well-known/nothing": "There is no such page",
		"/approvals/nothing": "There is no such call", "/login/callback": "This login was not begun with this browser",
	} {
		b.contains(b.open(d.url+path), want)
	}
	b.open(d.url + "/api/servers")
	b.picture("error")
	b.contains(b.open(d.url+"/approvals"), "Pending approvals", "Nothing waits for you")
	b.picture("approvals-none")
	b.contains(b.follow("durward"), "durward is running", clientUser)
	b.contains(b.click("Log out"), "You are logged out")
	if p := b.open(d.url + "/"); strings.Contains(p.Text, "Log out") || !strings.Contains(p.Text, "Log in") {
		t.Errorf("logged out, the page says %s", p.Text)
	}
	d.process.stop(t)
	d.process.checkLog(t)
}

// TestBrowserLogsInToConnect: a person comes back from a provider, logs in, and is connected; somebody else is not.
func TestBrowserLogsInToConnect(t *testing.T) {
	t.Parallel()
	d := devGateway(t, "{\n connect_check login\n }", "")
	alice := d.token(t)
	b := startBrowser(t)
	landing := newLanding(t)

	b.open(d.authURL(t, alice, ""))
	b.click("Connect")
	p := b.until("Development console")
	b.contains(p, "bob@example.test")
	b.contains(b.click("bob@example.test"), "The account was not connected", "nothing was stored")
	b.picture("somebody-else")
	if got := d.connection(t, alice); got == "connected" {
		t.Errorf("A02 the connection is %s", got)
	}
	b.contains(b.open(d.url+"/approvals"), "bob@example.test")
	b.click("Log out")

	b.open(d.authURL(t, alice, landing+"/app"))
	b.click("Connect")
	b.until("Development console")
	p = b.click(clientUser)
	if p.URL != landing+"/app?status=connected&server=demo" {
		t.Errorf("the browser ended at %s", p.URL)
	}
	if got := d.connection(t, alice); got != "connected" {
		t.Errorf("the connection is %s", got)
	}
}
