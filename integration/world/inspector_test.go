package world

import (
	"regexp"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

var inspectorPage = regexp.MustCompile(`http://127\.0\.0\.1:\d+\?MCP_INSPECTOR_API_TOKEN=\w+`)

// TestInspectorPage checks W31 in the inspector's own page, in a Chromium: its user logs in, is led to connect by the
// buttons of its dialog, and calls the tool in the same conversation.
func TestInspectorPage(t *testing.T) {
	lab(t, all, newest)
	record(t, &row{
		section: mcpClients, software: inspector, version: version(t, inspector), remark: "Its user clicks in a Chromium.",
		tried: "inspector, its page: login from the address alone, registered by itself; led to connect an account (-32042); the same conversation calls the tool",
	})
	at := startProvided(t, "")
	const slug = "account"
	at.serve(t, slug, example(t, "simpleStreamableHttp", "localhost", "--oauth"), "oauth2")
	port := rig.FreePort(t)
	web := startNode(t, port, []string{"CLIENT_PORT=" + port, "MCP_SANDBOX_PORT=" + rig.FreePort(t), "MCP_AUTO_OPEN_ENABLED=false", "MCP_INSPECTOR_SECRET_STORE=file"},
		module(t, "@modelcontextprotocol/inspector/clients/launcher/build/index.js"), "--web", "--transport", "http", "--server-url", at.gate+"/mcp/"+slug)
	var address string
	rig.Eventually(t, "the inspector says where its page is", func() bool {
		address = inspectorPage.FindString(web.Output.String())
		return address != ""
	})

	b := rig.StartBrowser(t)
	b.Mind(at.gate)
	b.Open(address)
	b.Toggle("Connect or disconnect")
	b.Contains(at.pass(b, b.Until("Sign-in"), "alice"), "MCP Inspector")
	b.Until("2025-11-25") // it is connected
	b.Pick("Tools")
	b.Press("connect_account")
	b.Press("Execute Tool")
	b.Contains(b.Until("Elicitation Request"), at.gate+"/connect/"+slug)
	b.Contains(at.pass(b, b.Popup("Open in Browser"), "alice"), "is connected")
	b.Leave()
	// It goes on by itself: the gateway tells it that its user has visited the page.
	b.Until("The account is connected now")
	b.Press("Refresh")
	b.Press("Greeting Tool")
	b.Fill("name", "Alice")
	b.Press("Execute Tool")
	b.Until("Hello, Alice!")
	if begun := at.begun(t, slug); begun != 1 {
		t.Errorf("it began %d conversations", begun)
	}
}
