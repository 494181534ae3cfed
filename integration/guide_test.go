package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/durward-gateway/durward/integration/rig"
)

// someTools lets everybody call echo and wait on a server, and see no other tool.
func (g *gateway) someTools(serverID string) {
	g.t.Helper()
	g.api(g.token(admin), http.MethodPost, "/api/policy", map[string]any{
		"name": "Some of " + serverID, "mcp_server_id": serverID, "status": "ACTIVE",
		"rules": []any{map[string]any{"name": "some", "authorized": true, "actions": []string{"tools/call:echo", "tools/call:wait"}}},
	})
}

func toolNames(t *testing.T, c *mcpClient) []string {
	t.Helper()
	list, err := c.ListTools(within(t, callTimeout), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return names
}

// led calls a tool, and wants to be told the address.
func (c *mcpClient) led(t *testing.T, tool, address string) {
	t.Helper()
	result, err := c.CallTool(within(t, callTimeout), &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"text": "x"}})
	if err != nil || !result.IsError || !strings.Contains(textOf(result), address) {
		t.Errorf("%s: %v %v", tool, result, err)
	}
}

// TestUnconnected checks that the conversation of a user who has not connected their account begins, leads them to the
// page, and goes on with the upstream once they have, in every revision with the transport of today (W31).
func TestUnconnected(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	for _, tc := range []struct {
		version string
		options *mcp.StreamableHTTPOptions
	}{
		{"2025-03-26", nil}, {"2025-06-18", nil}, {"2025-11-25", nil},
		{"2025-11-25", &mcp.StreamableHTTPOptions{Stateless: true}}, {"2026-07-28", &mcp.StreamableHTTPOptions{Stateless: true}},
	} {
		name := tc.version
		if tc.options != nil {
			name += " stateless"
		}
		t.Run(name, func(t *testing.T) {
			upstream := newMCPServer(t, tc.options)
			s := g.bareServer(upstream.url, bearerEntry())
			g.someTools(s.ID)
			if tc.version == "2026-07-28" { // the gateway learns of it from any connected user
				g.connectBearer(g.token(admin), s, "token")
				connectMCP(t, g.url+s.path, g.token(admin), tc.version, nil).call(t, "echo", map[string]any{"text": "x"})
			}
			asked, page, changed := upstream.count(http.MethodPost), g.url+"/connect/"+s.Slug, make(chan string, 8)
			c := connectMCP(t, g.url+s.path, g.token(alice), tc.version, &mcp.ClientOptions{ToolListChangedHandler: clientListChanged(changed)})
			if said := c.InitializeResult(); !strings.Contains(said.Instructions, page) || said.ProtocolVersion != tc.version {
				t.Errorf("it begins with %+v", said)
			}
			if diff := cmp.Diff([]string{"connect_account"}, toolNames(t, c)); diff != "" { // a call alone tells of no tools
				t.Error(diff)
			}
			c.led(t, "connect_account", page)
			c.led(t, "echo", page)
			if _, err := c.CallTool(within(t, callTimeout), &mcp.CallToolParams{Name: "upper"}); err == nil || !strings.Contains(err.Error(), "Unknown tool") {
				t.Errorf("a tool that no policy grants: %v", err)
			}
			if n := upstream.count(http.MethodPost) - asked; n != 0 {
				t.Fatalf("the upstream got %d requests", n)
			}

			g.connectBearer(g.token(alice), s, "token")
			if tc.version < "2026-07-28" {
				receive(t, changed, "tools/list_changed")
			}
			if got := c.call(t, "echo", map[string]any{"text": "hello"}); got != "hello" {
				t.Errorf("echo says %q", got)
			}
			if diff := cmp.Diff([]string{"echo", "wait"}, toolNames(t, c)); diff != "" {
				t.Error(diff)
			}
			// A tool that leads to the page is none any more.
			if result, err := c.CallTool(within(t, callTimeout), &mcp.CallToolParams{Name: "connect_account"}); err != nil || result.IsError || !strings.Contains(textOf(result), "connected now") {
				t.Errorf("connect_account: %v %v", result, err)
			}

			// Another user sees the facts that are known by now, as far as they may.
			other := connectMCP(t, g.url+s.path, g.token(bob), tc.version, nil)
			rig.Eventually(t, "the tools to be known", func() bool { return slices.Equal(toolNames(t, other), []string{"echo", "wait"}) }) // they are noted in the background
			other.led(t, "echo", page)

			// A connection that is gone is like none, in the middle of a conversation too.
			session := c.http.sessionID()
			g.api(g.token(alice), http.MethodDelete, "/api/servers/"+s.ID+"/connection", nil)
			if tc.version >= "2026-07-28" {
				c.led(t, "echo", page)
			} else if a := g.mcp(g.token(alice), s, session, toolCall("echo")).want(t, http.StatusOK); !strings.Contains(string(a.body), page) {
				t.Errorf("disconnected: %s", a.body) // this client takes the end of its stream for that of the conversation
			}
		})
	}
}

// TestUnconnectedFirst checks that the first to connect at a server learns of it on a stream that was open before,
// while the server was still pending (W31). A model that calls the gateway's own tool once more is told, also where
// policies grant every tool.
func TestUnconnectedFirst(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	_, s := g.oauthParty(traits{}, nil)
	changed := make(chan string, 8)
	c := connectMCP(t, g.url+s.path, g.token(alice), "2025-11-25", &mcp.ClientOptions{ToolListChangedHandler: clientListChanged(changed)})
	if diff := cmp.Diff([]string{"connect_account"}, toolNames(t, c)); diff != "" {
		t.Error(diff)
	}
	g.connectOAuth(g.token(alice), s).want(t, http.StatusOK)
	receive(t, changed, "tools/list_changed")
	result, err := c.CallTool(within(t, callTimeout), &mcp.CallToolParams{Name: "connect_account"})
	if err != nil || result.IsError || !strings.Contains(textOf(result), "connected now") {
		t.Errorf("connect_account: %v %v", result, err)
	}
}

// ledToConnect lets alice begin a conversation with an upstream whose tools answer with no content, and connect their
// account. It returns once the conversation goes on.
func (g *gateway) ledToConnect(u *upstream) (s server, token, session string) {
	g.t.Helper()
	s, token = g.createServer(u.url, bearerEntry()), g.token(alice)
	session = g.initialize(token, s)
	g.connectBearer(token, s, "token")
	rig.Eventually(g.t, "the conversation to go on", func() bool {
		return strings.Contains(string(g.mcp(token, s, session, toolCall("echo")).want(g.t, http.StatusOK).body), `"content":[]`)
	})
	return s, token, session
}

// TestUnconnectedOlder checks that a conversation that the gateway began goes on with a server that refuses the
// client's revision instead of answering with one that it knows.
func TestUnconnectedOlder(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	versions := make(chan string, 8)
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		switch text := string(body); {
		case strings.Contains(text, "2025-11-25") || r.Header.Get("MCP-Protocol-Version") == "2025-11-25":
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"Unsupported protocol version"}}`)
		case strings.Contains(text, `"initialize"`):
			answerTo(w, body, `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"older","version":"1"}}`)
		case strings.Contains(text, "notifications/"):
			w.WriteHeader(http.StatusAccepted)
		default:
			versions <- r.Header.Get("MCP-Protocol-Version")
			answerTo(w, body, `{"content":[]}`)
		}
	})
	g.ledToConnect(upstream)
	if version := <-versions; version != "2025-06-18" {
		t.Errorf("the server is called with %q", version)
	}
}

// TestUnconnectedLost checks that a conversation that the gateway began is over when the server has lost its session,
// and the client is told so in the way that makes it begin anew.
func TestUnconnectedLost(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	lost := make(chan struct{})
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		gone := false
		select {
		case <-lost:
			gone = r.Header.Get("Mcp-Session-Id") == "first"
		default:
		}
		switch text := string(body); {
		case gone:
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}`)
		case strings.Contains(text, `"initialize"`):
			w.Header().Set("Mcp-Session-Id", "first")
			select {
			case <-lost:
				w.Header().Set("Mcp-Session-Id", "second")
			default:
			}
			answerTo(w, body, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"forgetful","version":"1"}}`)
		case strings.Contains(text, "notifications/"):
			w.WriteHeader(http.StatusAccepted)
		default:
			answerTo(w, body, `{"content":[]}`)
		}
	})
	s, token, session := g.ledToConnect(upstream)
	close(lost)
	if a := g.mcp(token, s, session, toolCall("echo")); a.status != http.StatusNotFound {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := g.mcp(token, s, g.initialize(token, s), toolCall("echo")).want(t, http.StatusOK); !strings.Contains(string(a.body), `"content":[]`) {
		t.Errorf("begun anew: %s", a.body)
	}
}

// TestUnconnectedModernOnly checks a server that speaks 2026-07-28 alone. The first to connect at it began in a
// session, and is told in the way that makes a client begin anew. Who comes after them, at any node, is offered the
// revision that the server speaks.
func TestUnconnectedModernOnly(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{postgres: true})
	n := g.twin()
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		if r.Header.Get("MCP-Protocol-Version") != "2026-07-28" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":"durward-initialize","error":{"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28"],"requested":"2025-11-25"}}}`)
			return
		}
		answerTo(w, body, `{"resultType":"complete","content":[],"supportedVersions":["2026-07-28"],"capabilities":{}}`)
	})
	offered := func(g *gateway, token string, s server) string {
		const discover = `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
		a := g.send(http.MethodPost, s.path, token, discover, append(mcpHeader(""), "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "server/discover")...)
		return string(a.want(t, http.StatusOK).body)
	}
	s, token := g.createServer(upstream.url, bearerEntry()), g.token(alice)
	session := g.initialize(token, s)
	if got := offered(g, g.token(bob), s); strings.Contains(got, `"2026-07-28"`) {
		t.Errorf("nobody knows what the server speaks: %s", got)
	}
	g.connectBearer(token, s, "token")
	rig.Eventually(t, "the client to begin anew", func() bool {
		a := g.mcp(token, s, session, toolCall("echo"))
		return a.status == http.StatusNotFound && strings.Contains(string(a.body), "server/discover")
	})
	for name, node := range map[string]*gateway{"this node": g, "the other node": n} {
		rig.Eventually(t, name+" to offer the server's revision", func() bool { return strings.Contains(offered(node, g.token(bob), s), `"2026-07-28"`) })
	}

	tested := g.createServer(upstream.url, bearerEntry())
	g.api(g.token(admin), http.MethodPost, "/api/servers/"+tested.ID+"/test", nil)
	if got := offered(n, g.token(bob), tested); !strings.Contains(got, `"2026-07-28"`) {
		t.Errorf("after a test: %s", got)
	}
}

// TestUnconnectedWithoutPages checks that where no browser can log in, the page says how to connect by the API, and
// doctor warns.
func TestUnconnectedWithoutPages(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	s := g.createServer("https://mcp.example.test/mcp", bearerEntry())
	a := g.send(http.MethodGet, "/connect/"+s.Slug, "", nil, "Accept", "text/html").want(t, http.StatusNotFound)
	for _, says := range []string{"login_client", "POST " + g.url + "/api/servers/by-slug/" + s.Slug + "/connect"} {
		if !strings.Contains(string(a.body), says) {
			t.Errorf("the page lacks %q: %s", says, a.body)
		}
	}
	if output, _ := g.run("doctor", "--config", g.config, "--adapter", "caddyfile"); !strings.Contains(output, "no browser can log in to connect one") {
		t.Errorf("doctor says %s", output)
	}
}

// TestUnconnectedRefused checks that clients of 2024-11-05, which begin with GET, are refused as with `unconnected
// refuse`.
func TestUnconnectedRefused(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	upstream := answering(t)
	s := g.createServer(upstream.url, bearerEntry())
	g.send(http.MethodGet, s.path, g.token(alice), nil, "Accept", "text/event-stream").wantError(t, http.StatusForbidden, "ServerNotConnected")
	upstream.wantNothing(t)
}

// TestUnconnectedOnNodes checks that a conversation that one node began goes on at another, in one session of the
// upstream's.
func TestUnconnectedOnNodes(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{postgres: true})
	n := g.twin()
	party := newThirdParty(t)
	s := g.createServer(party.url()+"/open", bearerEntry())
	token := g.token(alice)
	session := g.initialize(token, s)
	if a := n.mcp(token, s, session, toolCall("echo")).want(t, http.StatusOK); !strings.Contains(string(a.body), g.url+"/connect/"+s.Slug) {
		t.Errorf("the other node: %s", a.body)
	}
	if reached(party) != 0 {
		t.Fatal("the upstream was asked")
	}
	g.connectBearer(token, s, "token")
	rig.Eventually(t, "the other node goes on with the upstream", func() bool {
		return strings.Contains(string(n.mcp(token, s, session, toolCall("echo")).want(t, http.StatusOK).body), `"done"`)
	})
	header, _ := party.lastSeen()
	first := header.Get("Mcp-Session-Id")
	if a := g.mcp(token, s, session, toolCall("echo")).want(t, http.StatusOK); !strings.Contains(string(a.body), `"done"`) {
		t.Errorf("the first node: %s", a.body)
	}
	if header, _ = party.lastSeen(); first == "" || header.Get("Mcp-Session-Id") != first {
		t.Errorf("the upstream's sessions are %q and %q", first, header.Get("Mcp-Session-Id"))
	}
	// Nobody else goes on with it.
	if a := g.mcp(g.token(bob), s, session, toolCall("echo")); a.status != http.StatusNotFound {
		t.Errorf("another user: %d", a.status)
	}
	n.send(http.MethodDelete, s.path, token, nil, mcpHeader(session)...).want(t, http.StatusNoContent)
}

// TestUnconnectedClients checks W31 with the clients that people have. Their user is led to a page, connects in a
// browser, and the same conversation calls the tool.
func TestUnconnectedClients(t *testing.T) {
	t.Parallel()
	tools, clients := conformanceTools(t), officialClients(t)
	d := newDevHome(t).start(t)
	token := d.token(t)
	b := rig.StartBrowser(t)
	disconnect := func() {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, d.url+"/api/servers/demo/connection", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		if status, body := devAnswer(t, request); status != http.StatusNoContent {
			t.Fatalf("disconnecting: %d %s", status, body)
		}
	}
	d.connect(t, token, clientAccount)
	runNode(t, tools, "clients/login.mjs", d.url+"/mcp/demo", clientUser, clients, "modern") // the gateway learns that the server speaks 2026-07-28
	disconnect()
	for _, tc := range []struct{ era, mode, led string }{
		{"legacy", "text", "isError"}, {"legacy", "url", "-32042"}, {"modern", "text", "isError"}, {"modern", "url", "input_required"},
	} {
		t.Run(tc.era+" "+tc.mode, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), suiteTimeout)
			defer cancel()
			command := exec.CommandContext(ctx, filepath.Join(tools, "node/node_modules/.bin/node"), "clients/guide.mjs", d.url+"/mcp/demo", token, clients, tc.era, tc.mode)
			command.Env, command.Stderr, command.WaitDelay = append(os.Environ(), "NODE_OPTIONS="), os.Stderr, callTimeout
			input, output := rig.Pipes(t, command)
			said := bufio.NewReader(output)
			address, err := said.ReadString('\n')
			if address = strings.TrimSpace(address); err != nil || address != d.url+"/connect/demo" {
				t.Fatalf("led to %q, %v", address, err)
			}
			p := b.Open(address)
			if strings.Contains(p.Text, loginTitle) {
				p = b.Click(clientUser)
			}
			b.Contains(p, "Connect")
			b.Contains(b.Click("Connect"), "is connected", "Go back to your client")
			b.Picture("connected-" + tc.era + "-" + tc.mode)
			if _, err := io.WriteString(input, "\n"); err != nil {
				t.Fatal(err)
			}
			rest, err := io.ReadAll(said)
			if err := command.Wait(); err != nil {
				t.Fatal(err)
			}
			var saw struct {
				Instructions, Led, Result, Version string
				Before, After                      []string
				IsError, Changed                   bool
			}
			if err != nil || json.Unmarshal(rest, &saw) != nil {
				t.Fatalf("%v: %s", err, rest)
			}
			if saw.IsError || saw.Led != tc.led || !strings.HasPrefix(saw.Result, "demo-") || !strings.Contains(saw.Instructions, address) {
				t.Errorf("%+v", saw)
			}
			if tc.era == "legacy" && !saw.Changed || tc.era == "modern" && saw.Version != "2026-07-28" {
				t.Errorf("%+v", saw)
			}
			if !slices.Contains(saw.After, "whoami") || slices.Contains(saw.After, "connect_account") {
				t.Errorf("%+v", saw)
			}
			disconnect()
		})
	}
	d.process.stop(t)
	d.process.checkLog(t)
}
