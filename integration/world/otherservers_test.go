package world

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

const (
	filesystem = "@modelcontextprotocol/server-filesystem"
	memory     = "@modelcontextprotocol/server-memory"
	playwright = "@playwright/mcp"
)

// bridge puts a server that speaks over standard input and output behind supergateway, and returns its address.
func bridge(t *testing.T, path string, env, arguments []string, command ...string) string {
	t.Helper()
	port := rig.FreePort(t)
	startNode(t, port, env, append([]string{module(t, "supergateway/dist/index.js"), "--port", port, "--logLevel", "none", "--stdio", strings.Join(command, " ")}, arguments...)...)
	return "http://127.0.0.1:" + port + path
}

// bridged returns MCP's own servers for programs, behind supergateway.
func bridged() []mcpServer {
	stateful := []string{"--outputTransport", "streamableHttp", "--stateful"}
	startFiles := func(t *testing.T, path string, arguments []string) string {
		directory := t.TempDir()
		for name, content := range map[string]string{"a.txt": "one\ntwo\nthree\n", "large.txt": strings.Repeat("large ", 5_000_000/6), "pixel.png": "\x89PNG\r\n\x1a\n\x00\xff"} {
			if err := os.WriteFile(filepath.Join(directory, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		// The paths are part of the question: relative ones are below the folder that the server runs in.
		return bridge(t, path, nil, arguments, "cd", directory, "&&", node(t), module(t, filesystem+"/dist/index.js"), directory)
	}
	files := []probe{
		call("read_text_file", object{"path": "a.txt"}), call("read_text_file", object{"path": "a.txt", "head": 1}), call("read_text_file", object{"path": "large.txt"}),
		call("read_media_file", object{"path": "pixel.png"}), call("read_multiple_files", object{"paths": []string{"a.txt", "no-such"}}),
		call("write_file", object{"path": "b.txt", "content": "written\n"}), call("edit_file", object{"path": "b.txt", "edits": []object{{"oldText": "written", "newText": "edited"}}}),
		call("create_directory", object{"path": "d"}), call("list_directory_with_sizes", object{"path": "."}), call("search_files", object{"path": ".", "pattern": "*.png"}),
		call("read_text_file", object{"path": "/etc/passwd"}), call("no-such-tool", nil),
	}
	paths := []string{`/tmp/[^"\s,)]*`, `(created|modified|accessed|birthtime): [^\n]*`}
	gate := object{"name": "gate", "entityType": "thing", "observations": []string{"is open"}}
	return []mcpServer{
		{
			software: "server-filesystem behind supergateway, stateful", version: filesystem, clients: []string{"1", "2"}, short: true, probes: files, mask: paths,
			start: func(t *testing.T) string { return startFiles(t, "/mcp", stateful) },
		},
		{
			software: "server-filesystem behind supergateway, stateless", version: filesystem, clients: []string{"1"}, probes: files[:2], mask: paths,
			remark: "It starts a process for each request.",
			start:  func(t *testing.T) string { return startFiles(t, "/mcp", stateful[:2]) },
		},
		{
			software: "server-filesystem behind supergateway, HTTP+SSE", version: filesystem, clients: []string{"1"}, transport: "sse", probes: files, mask: paths,
			start: func(t *testing.T) string { return startFiles(t, "/sse", []string{"--outputTransport", "sse"}) },
		},
		{
			software: "server-memory behind supergateway, stateful", version: memory, clients: []string{"1"}, short: true,
			start: func(t *testing.T) string {
				return bridge(t, "/mcp", []string{"MEMORY_FILE_PATH=" + filepath.Join(t.TempDir(), "memory.jsonl")}, stateful, node(t), module(t, memory+"/dist/index.js"))
			},
			probes: []probe{
				call("create_entities", object{"entities": []object{gate, {"name": "Alice", "entityType": "person", "observations": []string{}}}}),
				call("create_relations", object{"relations": []object{{"from": "Alice", "to": "gate", "relationType": "keeps"}}}),
				call("search_nodes", object{"query": "open"}), call("open_nodes", object{"names": []string{"Alice"}}), call("read_graph", nil),
				// The next client must find the same as the first.
				call("delete_entities", object{"entityNames": []string{"gate", "Alice"}}), call("create_entities", object{"entities": "none"}),
			},
		},
	}
}

// goServers returns examples of Go's SDKs.
func goServers() []mcpServer {
	start := func(t *testing.T, program string, env []string, arguments func(address string) []string) string {
		address := "127.0.0.1:" + rig.FreePort(t)
		p := rig.Start(t, nil, t.TempDir(), append(env, "CONFORMANCE_ADDR="+address), filepath.Join(tools(t), "servers", program), arguments(address)...)
		p.WaitForListener(t, address)
		return "http://" + address + "/mcp"
	}
	conformance := []probe{
		call("test_simple_text", nil), call("test_image_content", nil), call("test_audio_content", nil), call("test_embedded_resource", nil), call("test_multiple_content_types", nil),
		logLevel("debug"),
		call("test_sampling", object{"prompt": "Say something."}), call("test_elicitation", object{"message": "Who?"}), call("test_elicitation_sep1034_defaults", nil), call("test_elicitation_sep1330_enums", nil),
		read("test://static-text"), read("test://static-binary"), read("test://template/7/data"),
		prompt("test_simple_prompt", nil), prompt("test_prompt_with_arguments", object{"arg1": "one", "arg2": "two"}), prompt("test_prompt_with_embedded_resource", object{"resourceUri": "test://x"}), prompt("test_prompt_with_image", nil),
		complete(object{"type": "ref/prompt", "name": "test_prompt_with_arguments"}, "arg1", "o"),
		call("test_error_handling", nil), call("no-such-tool", nil), read("test://no/such"),
	}
	return []mcpServer{
		{
			software: "mcp-go, example conformance", version: goVersion("github.com/mark3labs/mcp-go"), clients: []string{"1", "2"}, short: true, probes: conformance,
			remark: "Its tools that log and tell their progress are left out: it loses some of what they say, asked directly as well.",
			start: func(t *testing.T) string {
				return start(t, "conformance", nil, func(string) []string { return nil })
			},
		},
		{
			software: "go-sdk, example everything", version: goVersion("github.com/modelcontextprotocol/go-sdk"), clients: []string{"1", "2"}, short: true,
			start: func(t *testing.T) string {
				return start(t, "everything", nil, func(address string) []string { return []string{"-http", address} })
			},
			probes: []probe{
				call("greet", object{"name": "Alice"}), call("greet (structured)", object{"name": "Alice"}),
				call("ping", nil), logLevel("debug"), call("log", nil).waits("notifications/message"), call("sample", nil), call("roots", nil),
				prompt("greet", object{"name": "Alice"}), read("embedded:info"), complete(object{"type": "ref/prompt", "name": "greet"}, "name", "x"),
				call("no-such-tool", nil), read("embedded:no-such"),
			},
			differ: []string{"tools/list", `greet (structured) {"name":"Alice"}`},
			why: "Its six tools that are named like `greet (structured)` are hidden, and `Unknown tool`: a name has 1 to 128 of `A-Z a-z 0-9 _ . / -`, so that none reads as another action of a policy (`x:approve`). " +
				"MCP 2025-11-25 and 2026-07-28 say of these characters, without the slash, that names SHOULD have no others, and that they SHOULD NOT have spaces (server/tools, Tool Names).",
		},
		{
			software: "go-sdk, conformance server, stateless", version: goVersion("github.com/modelcontextprotocol/go-sdk"), clients: []string{"modern"}, short: true,
			start: func(t *testing.T) string {
				return start(t, "everything-server", nil, func(address string) []string { return []string{"-http", address, "-stateless"} })
			},
			probes: conformance[:5],
		},
	}
}

// goVersion returns the version of a module in servers/go.mod, or the one that was resolved as the newest.
func goVersion(path string) string {
	if form == newest {
		return moduleVersion("../../bin/world/newest/source", path)
	}
	return moduleVersion("servers", path)
}

// moduleVersion returns the version of a module that the go.mod of a folder names.
func moduleVersion(folder, path string) string {
	list := exec.Command("go", "list", "-m", "-f", "{{.Version}}", path)
	list.Dir = folder
	output, err := list.Output()
	if err != nil {
		return "v?"
	}
	return strings.TrimSpace(string(output))
}

// frameworks returns servers that are made with other projects' frameworks.
func frameworks(t *testing.T) []mcpServer {
	fast := []probe{
		call("add", object{"a": 1, "b": 2}), call("image", nil), call("progress", nil).withProgress(), call("stream", nil).waits("notifications/tool/streamContent", "notifications/tool/streamContent", "notifications/tool/streamContent"),
		call("log", nil).waits("notifications/message", "notifications/message"), call("refuse", nil), call("large", nil), call("several", nil),
		read("file:///log"), read("file:///binary"), read("file:///logs/alpha"), prompt("greet", object{"whom": "Alice"}),
		complete(object{"type": "ref/prompt", "name": "greet"}, "whom", "A"), complete(object{"type": "ref/resource", "uri": "file:///logs/{name}"}, "name", "a"),
		call("no-such-tool", nil), call("add", object{"a": "one"}),
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!doctype html><title>Lab</title><h1>Lab</h1><button onclick='document.title=\"pressed\"'>Press</button>"))
	}))
	t.Cleanup(page.Close)
	return []mcpServer{
		{
			software: "FastMCP", version: "fastmcp", clients: []string{"1", "2"}, short: true, probes: fast,
			start: func(t *testing.T) string { return own(t, "fastmcp.mjs") },
		},
		{
			software: "FastMCP, stateless", version: "fastmcp", clients: []string{"1"}, probes: append(fast[:3:3], fast[5:]...),
			start: func(t *testing.T) string { return own(t, "fastmcp.mjs", "stateless") },
		},
		{
			software: "FastMCP, HTTP+SSE", version: "fastmcp", clients: []string{"1"}, transport: "sse", probes: append(fast[:4:4], fast[5:]...),
			remark: "Its tool that logs is left out: a message that the stream has begun comes before the call or in it.",
			start:  func(t *testing.T) string { return strings.TrimSuffix(own(t, "fastmcp.mjs"), "/mcp") + "/sse" },
		},
		{
			software: "Playwright MCP", version: playwright, clients: []string{"1"},
			start: func(t *testing.T) string { return startPlaywright(t, "/mcp") }, probes: browsing(page.URL), mask: browsed,
		},
		{
			software: "Playwright MCP, HTTP+SSE", version: playwright, clients: []string{"1"}, transport: "sse",
			start: func(t *testing.T) string { return startPlaywright(t, "/sse") }, probes: browsing(page.URL), mask: browsed,
		},
	}
}

// browsed lists the differences in a browser's answers: files that are named by the time, a session's marks of elements, and
// whether a page that failed to load is there already when it is closed.
var browsed = []string{`[\w./-]*(page|console)-[\w.-]+\.(yml|png|log)`, `\bf?\d*e\d+\b`, `(?<=page\.close\(\)[^]*)- Page URL: [^]*`}

func browsing(page string) []probe {
	return []probe{
		call("browser_navigate", object{"url": page}), call("browser_snapshot", nil), call("browser_evaluate", object{"function": "() => document.title"}),
		call("browser_take_screenshot", object{"type": "png"}), call("browser_navigate", object{"url": "http://127.0.0.1:1/"}), call("browser_close", nil),
	}
}

func startPlaywright(t *testing.T, path string) string {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v; `make setup` installs it on Debian", err)
	}
	port := rig.FreePort(t)
	startNode(t, port, nil, module(t, playwright+"/cli.js"), "--host", "127.0.0.1", "--port", port, "--headless", "--isolated", "--no-sandbox", "--executable-path", chromium)
	return "http://localhost:" + port + path // it answers to no other name
}
