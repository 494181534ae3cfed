package world

import (
	"slices"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

const (
	sdk1 = "@modelcontextprotocol/sdk"
	sdk2 = "@modelcontextprotocol/server"
)

// example starts one of the servers that come with SDK 1.x as examples and returns its address under a name of this machine.
func example(t *testing.T, name, host string, arguments ...string) string {
	t.Helper()
	port := rig.FreePort(t)
	env := []string{"PORT=" + port, "MCP_PORT=" + port, "MCP_AUTH_PORT=" + rig.FreePort(t)}
	startNode(t, port, env, append([]string{module(t, sdk1+"/dist/esm/examples/server/"+name+".js")}, arguments...)...)
	return "http://" + host + ":" + port + "/mcp"
}

// fixed does the work of example for servers that listen on a port of their own choice.
func fixed(t *testing.T, name, path string) string {
	t.Helper()
	port := rig.FreePort(t)
	startNode(t, port, []string{"LAB_PORT=" + port}, "--import", module(t, "../lab/relisten.mjs"), module(t, sdk1+"/dist/esm/examples/server/"+name+".js"))
	return "http://127.0.0.1:" + port + path
}

// own starts a small server of the lab's, made with a library of others.
func own(t *testing.T, script string, arguments ...string) string {
	t.Helper()
	port := rig.FreePort(t)
	startNode(t, port, nil, nodeArguments(t, "servers/"+script, append([]string{port}, arguments...)...)...)
	return "http://127.0.0.1:" + port + "/mcp"
}

// sdkServers returns servers that are made with the TypeScript SDKs.
func sdkServers() []mcpServer {
	task := func(tool string, arguments object) probe {
		return probe{Name: "task " + tool, Method: "tools/call", Task: true, Params: object{"name": tool, "arguments": arguments}}
	}
	streamable := []probe{
		call("greet", object{"name": "Alice"}),
		call("multi-greet", object{"name": "Alice"}).waits("notifications/message", "notifications/message", "notifications/message"),
		call("collect-user-info", object{"infoType": "contact"}), call("collect-user-info", object{"infoType": "preferences"}), call("collect-user-info", object{"infoType": "feedback"}),
		call("start-notification-stream", object{"interval": 100, "count": 3}).waits("notifications/message", "notifications/message", "notifications/message"),
		call("list-files", object{"includeDescriptions": true}), prompt("greeting-template", object{"name": "Alice"}),
		read("https://example.com/greetings/default"), read("file:///example/file1.txt"),
		task("delay", object{"duration": 200}), task("collect-user-info-task", object{"infoType": "contact"}),
		{Name: "resumption", Resume: true, Params: object{"name": "start-notification-stream", "arguments": object{"interval": 100, "count": 5}}},
		call("no-such-tool", nil), read("file:///no/such"),
	}
	probes := []probe{
		call("echo", object{"message": "Grüße, 世界"}), call("large", nil), call("structured", object{"city": "Vienna"}), call("progress", nil).withProgress(),
		call("form", nil), call("page", nil), call("sample", nil), call("roots", nil), call("app", nil),
		read("ui://lab/app.html"), read("lab://clock"), read("lab://pixel"), read("lab://notes/alpha"), prompt("greet", object{"whom": "Alice"}),
		complete(object{"type": "ref/prompt", "name": "greet"}, "whom", "A"), complete(object{"type": "ref/resource", "uri": "lab://notes/{name}"}, "name", "b"),
	}
	mistakes := []probe{call("no-such-tool", nil), call("echo", object{"message": 7}), read("lab://no/such"), prompt("greet", nil)}
	sessions := []probe{
		logLevel("debug"), call("log", nil).waits("notifications/message"),
		{Name: "subscribe", Method: "resources/subscribe", Params: object{"uri": "lab://clock"}}, call("tick", nil).waits("notifications/resources/updated"),
		{Name: "resumption", Resume: true, Params: object{"name": "progress"}},
	}
	listen := probe{Name: "subscriptions/listen", Method: "subscriptions/listen", Listen: "tick", Params: object{"notifications": object{"resourceSubscriptions": []string{"lab://clock"}}}}
	return []mcpServer{
		{
			software: "SDK 1.x example simpleStreamableHttp", version: sdk1, clients: []string{"1", "2"}, short: true, probes: streamable,
			start: func(t *testing.T) string { return example(t, "simpleStreamableHttp", "127.0.0.1") },
		},
		{
			software: "SDK 1.x example simpleStreamableHttp, --oauth", version: sdk1, clients: []string{"1"}, probes: streamable, connect: true, short: true,
			start:  func(t *testing.T) string { return example(t, "simpleStreamableHttp", "localhost", "--oauth") },
			plain:  func(t *testing.T) string { return example(t, "simpleStreamableHttp", "localhost") },
			remark: "Connected through its own authorization server; compared with the same server without.",
		},
		{
			software: "SDK 1.x example simpleStreamableHttp, --oauth-strict", version: sdk1, clients: []string{"1"}, probes: streamable[:1], connect: true,
			start: func(t *testing.T) string {
				return example(t, "simpleStreamableHttp", "localhost", "--oauth", "--oauth-strict")
			},
			plain:  func(t *testing.T) string { return example(t, "simpleStreamableHttp", "localhost") },
			remark: "Takes tokens for its own address only (RFC 8707).",
		},
		{
			software: "SDK 1.x example elicitationFormExample", version: sdk1, clients: []string{"1", "2"},
			start:  func(t *testing.T) string { return example(t, "elicitationFormExample", "127.0.0.1") },
			probes: []probe{call("register_user", nil), call("create_event", nil), call("update_shipping_address", nil)},
		},
		{
			software: "SDK 1.x example simpleTaskInteractive", version: sdk1, clients: []string{"1"},
			start:  func(t *testing.T) string { return example(t, "simpleTaskInteractive", "127.0.0.1") },
			probes: []probe{task("confirm_delete", object{"filename": "a.txt"}), task("write_haiku", object{"topic": "gates"})},
		},
		{
			software: "SDK 1.x example jsonResponseStreamableHttp", version: sdk1, clients: []string{"1", "2"},
			start:  func(t *testing.T) string { return fixed(t, "jsonResponseStreamableHttp", "/mcp") },
			probes: []probe{call("greet", object{"name": "Alice"}), call("multi-greet", object{"name": "Alice"}), call("no-such-tool", nil)},
		},
		{
			software: "SDK 1.x example simpleStatelessStreamableHttp", version: sdk1, clients: []string{"1", "2"},
			start:  func(t *testing.T) string { return fixed(t, "simpleStatelessStreamableHttp", "/mcp") },
			probes: []probe{call("start-notification-stream", object{"interval": 50, "count": 3}).waits("notifications/message", "notifications/message", "notifications/message"), read("https://example.com/greetings/default")},
		},
		{
			software: "SDK 1.x example ssePollingExample", version: sdk1, clients: []string{"1"},
			start:  func(t *testing.T) string { return fixed(t, "ssePollingExample", "/mcp") },
			probes: []probe{call("long-task", nil).waits("notifications/message", "notifications/message", "notifications/message", "notifications/message")},
			remark: "Ends the stream of a running call, which the client resumes.",
		},
		{
			software: "SDK 1.x example simpleSseServer", version: sdk1, clients: []string{"1", "2"}, transport: "sse",
			start:  func(t *testing.T) string { return fixed(t, "simpleSseServer", "/mcp") },
			probes: []probe{call("start-notification-stream", object{"interval": 50, "count": 3}).waits("notifications/message", "notifications/message", "notifications/message")},
		},
		{
			software: "SDK 2.x, sessions", version: sdk2, clients: []string{"2", "1"}, short: true, probes: slices.Concat(probes, sessions, mistakes),
			start: func(t *testing.T) string { return own(t, "sdk2.mjs", "sessions") },
		},
		{
			software: "SDK 2.x, createMcpHandler", version: sdk2, clients: []string{"modern"}, short: true, probes: slices.Concat(probes, []probe{listen}, mistakes),
			start: func(t *testing.T) string { return own(t, "sdk2.mjs", "stateless") },
		},
		{
			software: "SDK 2.x, createMcpHandler in the 2025 era", version: sdk2, clients: []string{"2"}, probes: slices.Concat(probes[:4], probes[8:], mistakes),
			start: func(t *testing.T) string { return own(t, "sdk2.mjs", "stateless") },
		},
	}
}
