package integration

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

// TestBrowserApproves checks that a person can open the page whose address an agent got, log in, see the call
// unchanged, and decide by a click.
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
	b := rig.StartBrowser(t)

	address := hold(t, `{"id":4}`)
	p := b.Open(address)
	b.Contains(p, loginTitle, clientUser)
	p = b.Click(clientUser)
	if p.URL != address {
		t.Errorf("the browser ended at %s instead of %s", p.URL, address)
	}
	b.Contains(p, "Approve this tool call?", "delete_issue", "dev-agent", `"id": 4`, "SHA-256", clientUser, "GMT+9")
	b.Picture("approval")
	p = b.Click("Approve this call")
	b.Contains(p, "You have approved this call", "once, for exactly this call", "tell your agent to try again")
	b.Picture("approved")
	form := p.Documents[0]
	if form.Method != http.MethodPost || form.Status != http.StatusSeeOther || form.Origin != "null" || form.Referer != "" {
		t.Errorf("the form was sent like this: %+v", form)
	}
	if got := d.callTool(t, "delete_issue", `{"id":4}`); strings.Contains(got, "isError\":true") || !strings.Contains(got, `"id":4`) {
		t.Errorf("the approved call: %s", got)
	}
	b.Contains(b.Open(address), "has run")

	address = hold(t, `{"id":3}`)
	b.Contains(b.Open(d.url+"/approvals"), "delete_issue")
	b.Picture("approvals")
	b.Open(address)
	b.Contains(b.Click("Deny"), "You have denied this call")
	b.Picture("denied-call")

	t.Run("M17 arguments that pretend to be the page", func(t *testing.T) {
		b.T = t
		p := b.Open(hold(t, deceptive))
		b.Contains(p, "<b>Approve this call</b>", "⟨U+202E⟩gnihton⟨U+202C⟩")
		if strings.ContainsAny(p.Text, "\u202e\u202c\x1b") {
			t.Errorf("something hides: %q", p.Text)
		}
		b.Picture("deception")
	})
	b.Contains(b.Click("Log out"), "You are logged out")
	b.Contains(b.Open(d.url+"/approvals"), loginTitle)
	d.process.stop(t)
	d.process.checkLog(t)
}

// TestBrowserTimes checks that pages show times by the reader's clock, under a policy that lets nothing else run; who
// runs no scripts reads them as the gateway wrote them.
func TestBrowserTimes(t *testing.T) {
	t.Parallel()
	d := newDevHome(t).start(t)
	d.connect(t, d.token(t), clientAccount)
	address := approvalPage.FindString(d.callTool(t, "delete_issue", `{"id":1}`))
	if address == "" {
		t.Fatal("the call was not held")
	}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = io.WriteString(w, `postMessage("elsewhere")`)
	}))
	defer elsewhere.Close()
	times := regexp.MustCompile(`\d{1,2} [A-Z][a-z]+ 20\d\d, \d\d:\d\d:\d\d \S+`)
	for name, start := range map[string]func(testing.TB) *rig.Browser{"scripts": rig.StartBrowser, "no scripts": rig.StartBrowserWithoutScripts} {
		t.Run(name, func(t *testing.T) {
			b := start(t)
			b.Open(address)
			b.Contains(b.Click(clientUser), "Approve this tool call?", "left to decide")
			for page, want := range map[string]int{address: 2, d.url + "/approvals": 1} {
				p := b.Open(page)
				found := times.FindAllString(p.Text, -1)
				if len(found) != want {
					t.Errorf("%s shows the times %q, not %d of them: %s", page, found, want, p.Text)
				}
				for _, found := range found {
					if strings.HasSuffix(found, " GMT+9") != (name == "scripts") {
						t.Errorf("%s shows %s", page, found)
					}
				}
				if name == "scripts" {
					b.Inject(elsewhere.URL + "/script.js")
				}
			}
		})
	}
	d.process.stop(t)
	d.process.checkLog(t)
}

// TestBrowserLooksAround checks the addresses of the gateway for a person who opens them in a browser without knowing
// them (W32).
func TestBrowserLooksAround(t *testing.T) {
	t.Parallel()
	d := newDevHome(t).start(t)
	b := rig.StartBrowser(t)
	b.Contains(b.Open(d.url+"/"), "durward is running in development mode", "Look around", "Pending approvals", "alice@example.test", "claude mcp add --transport http demo")
	b.Picture("welcome")
	b.Contains(b.Follow("Demo MCP server"), "Add this address to your MCP client", "Claude Code", "VS Code", "Cursor", "Codex", "mcp-remote")
	b.Picture("server-unknown")
	p := b.Follow("Log in")
	b.Contains(p, "Log in as one of these users")
	at, err := url.Parse(p.URL)
	if err != nil {
		t.Fatal(err)
	}
	refusal := url.Values{"error": {"access_denied"}, "error_description": {"Call +1 555 0100"}, "state": {at.Query().Get("state")}, "iss": {d.url + "/dev/idp"}}
	p = b.Open(d.url + "/login/callback?" + refusal.Encode())
	b.Contains(p, "access was denied there", "ask whoever gives access to it", "Try again")
	if strings.Contains(p.Text, "555") {
		t.Errorf("the page shows what anybody can write into its address: %s", p.Text)
	}
	b.Picture("login-denied")
	b.Contains(b.Follow("Try again"), "Log in as one of these users")
	p = b.Click(clientUser)
	b.Contains(p, "not connected yet", "Connect your account", clientUser, "claude mcp add --transport http demo "+d.url+"/mcp/demo")
	if p.URL != d.url+"/mcp/demo" {
		t.Errorf("the browser ended at %s", p.URL)
	}
	b.Picture("server")
	d.connect(t, d.token(t), clientAccount)
	b.Contains(b.Open(d.url+"/mcp/demo"), "Your account is connected")
	b.Contains(b.Open(d.url+"/"), clientUser, "You are logged in as", "Log out")
	b.Picture("welcome-logged-in")
	b.Contains(b.Follow("Servers"), "Your MCP servers", "✓ connected", "Disconnect")
	b.Picture("servers")
	b.Contains(b.Open(d.url+"/connect/demo"), "Demo is connected")
	b.Picture("connected")
	b.Contains(b.Follow("Disconnect"), "Disconnect your account at Demo?", "Keep it connected")
	b.Picture("disconnect")
	if got := d.connection(t, d.token(t)); got != "connected" {
		t.Errorf("the question alone leaves the connection %s", got)
	}
	b.Contains(b.Click("Disconnect"), "Demo is disconnected", "no longer holds")
	b.Picture("disconnected")
	if got := d.connection(t, d.token(t)); got != "available" {
		t.Errorf("the connection is %s", got)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.url+"/api/audit?limit=20", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+d.tokenOf(t, "admin@example.test"))
	status, body := devAnswer(t, request)
	if _, record, found := strings.Cut(body, `"event":"credential.deleted"`); status != http.StatusOK || !found || !strings.Contains(record[:min(len(record), 200)], `"client":"durward"`) {
		t.Errorf("the audit log has it not, or not by whom: %d %s", status, body)
	}
	b.Contains(b.Follow("Your MCP servers"), "not connected", "Connect your account")
	b.Picture("servers-not-connected")
	b.Contains(b.Open(d.url+"/mcp/another"), "There is no such server")
	b.Picture("server-missing")
	for path, want := range map[string]string{
		"/api/servers": "This address is for programs", "/nothing": "This address is for programs", "/.well-known/nothing": "There is no such page",
		"/approvals/nothing": "There is no such call", "/login/callback": "This login was not begun with this browser",
	} {
		b.Contains(b.Open(d.url+path), want)
	}
	b.Open(d.url + "/api/servers")
	b.Picture("error")
	b.Contains(b.Open(d.url+"/approvals"), "Pending approvals", "Nothing waits for you")
	b.Picture("approvals-none")
	b.Contains(b.Follow("durward"), "durward is running", clientUser)
	b.Contains(b.Click("Log out"), "You are logged out")
	if p := b.Open(d.url + "/"); strings.Contains(p.Text, "Log out") || !strings.Contains(p.Text, "Log in") {
		t.Errorf("logged out, the page says %s", p.Text)
	}
	d.process.stop(t)
	d.process.checkLog(t)
}

// TestBrowserLogsInToConnect checks that a person who comes back from a provider and logs in is connected, and another
// person is not.
func TestBrowserLogsInToConnect(t *testing.T) {
	t.Parallel()
	d := devGateway(t, "{\n connect_check login\n }", "")
	alice := d.token(t)
	b := rig.StartBrowser(t)
	landing := newLanding(t)

	b.Open(d.authURL(t, alice, ""))
	b.Click("Connect")
	p := b.Until(loginTitle)
	b.Contains(p, "bob@example.test")
	b.Contains(b.Click("bob@example.test"), "The account was not connected", "nothing was stored")
	b.Picture("somebody-else")
	if got := d.connection(t, alice); got == "connected" {
		t.Errorf("A02 the connection is %s", got)
	}
	b.Contains(b.Open(d.url+"/approvals"), "bob@example.test")
	b.Click("Log out")

	b.Open(d.authURL(t, alice, landing+"/app"))
	b.Click("Connect")
	b.Until(loginTitle)
	p = b.Click(clientUser)
	if p.URL != landing+"/app?status=connected&server=demo" {
		t.Errorf("the browser ended at %s", p.URL)
	}
	if got := d.connection(t, alice); got != "connected" {
		t.Errorf("the connection is %s", got)
	}
}

// TestBrowserLetsAClientIn logs in with an OAuth client, and checks that the browser lets the forms of the gateway's pages
// lead on to the client.
func TestBrowserLetsAClientIn(t *testing.T) {
	t.Parallel()
	d := devGateway(t, "", "")
	landing := newLanding(t)
	c := newOAuthClient(t, d.url, landing+"/back")
	b := rig.StartBrowser(t)

	b.Open(c.address(nil))
	p := b.Click(clientUser)
	b.Contains(p, "Let “An <editor>” act for you?", "not verified", "a program on this computer", "see and call the tools")
	b.Picture("consent")
	b.Contains(b.Click("Let it act for me"), "Connect your account at", "Later is fine")
	b.Picture("consent-account")
	if p = b.Click("Later"); !strings.HasPrefix(p.URL, landing+"/back?code=") {
		t.Errorf("the browser ended at %s: %s", p.URL, p.Text)
	}
	if back, err := url.Parse(p.URL); err != nil {
		t.Error(err)
	} else if status, got := c.redeem(back.Query().Get("code"), nil); status != http.StatusOK {
		t.Errorf("the code: %d %v", status, got)
	}

	// With the account connected on the way.
	b.Open(c.address(nil))
	b.Click("Let it act for me")
	b.Follow("Connect your account")
	p = b.Click("Connect")
	for range 4 {
		if strings.HasPrefix(p.URL, landing) {
			break
		}
		p = b.Click(clientUser)
	}
	if !strings.HasPrefix(p.URL, landing+"/back?code=") {
		t.Errorf("the browser ended at %s: %s", p.URL, p.Text)
	}

	b.Contains(b.Open(d.url+"/clients"), "Clients that act for you", "An <editor>", "not verified", "demo: since")
	b.Picture("clients")
	b.Contains(b.Click("Forget"), "No client acts for you")
	b.Picture("clients-none")

	b.Open(c.address(map[string]string{"state": "denied"}))
	if p = b.Click("Deny"); !strings.HasPrefix(p.URL, landing+"/back?error=access_denied") {
		t.Errorf("the browser ended at %s: %s", p.URL, p.Text)
	}
}
