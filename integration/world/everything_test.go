package world

import (
	"strings"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

const everything = "@modelcontextprotocol/server-everything"

// everythings returns MCP's reference server, over both of its transports.
func everythings() []mcpServer {
	resumption := probe{Name: "resumption", Resume: true, Params: object{"name": "trigger-long-running-operation", "arguments": object{"duration": 1, "steps": 4}}}
	return []mcpServer{
		{
			software: "server-everything", version: everything, clients: []string{"1", "2"}, short: true,
			start:  func(t *testing.T) string { return startEverything(t, "streamableHttp", "/mcp") },
			probes: append(everythingProbes(), resumption), mask: []string{timedBlob},
		},
		{
			software: "server-everything, HTTP+SSE", version: everything, clients: []string{"1"}, transport: "sse", short: true,
			start:  func(t *testing.T) string { return startEverything(t, "sse", "/sse") },
			probes: everythingProbes(), mask: []string{timedBlob},
		},
	}
}

// timedBlob is a resource's content that holds the time, in Base64.
const timedBlob = `UmVzb3VyY2U[A-Za-z0-9+/=]+`

func startEverything(t *testing.T, transport, path string) string {
	t.Helper()
	port := rig.FreePort(t)
	startNode(t, port, []string{"PORT=" + port}, module(t, everything+"/dist/index.js"), transport)
	return "http://127.0.0.1:" + port + path
}

// everythingProbes returns probes that ask for errors last: after one, SDK 1.x resumes the stream that the error came
// on, and this server's store of events then gives it those of all streams again, in place of new ones.
func everythingProbes() []probe {
	large := strings.Repeat("five megabytes ", 200_000)
	gzip := call("gzip-file-as-resource", object{"name": "lab.gz", "data": "data:text/plain;base64," + strings.Repeat("bGFi", 100_000), "outputType": "resource"})
	link := call("gzip-file-as-resource", object{"name": "linked.gz", "data": "data:text/plain,lab", "outputType": "resourceLink"}).waits("notifications/resources/list_changed").named("a resource as a link")
	updates := call("toggle-subscriber-updates", nil).waits("notifications/resources/updated")
	logging := call("toggle-simulated-logging", nil).waits("notifications/message")
	logging.Quiet = true // of any level
	task := probe{Name: "task", Method: "tools/call", Task: true, Params: object{"name": "simulate-research-query", "arguments": object{"topic": "gateways"}}}
	canceled := task
	canceled.Name, canceled.Cancel = "task, canceled", true
	unclear := task
	unclear.Name, unclear.Params = "task that asks", object{"name": "simulate-research-query", "arguments": object{"topic": "python", "ambiguous": true}}
	slow := call("trigger-long-running-operation", object{"duration": 20, "steps": 100}).named("cancel")
	slow.Cancel = true
	return []probe{
		call("echo", object{"message": "Grüße, 世界 \u2028 \\u0000"}),
		call("echo", object{"message": large}).named("a large message"),
		call("echo", nil),
		call("get-sum", object{"a": 1.5, "b": 2}),
		call("get-annotated-message", object{"messageType": "error", "includeImage": true}),
		call("get-resource-links", object{"count": 3}),
		call("get-resource-reference", object{"resourceType": "Text", "resourceId": 1}),
		call("get-resource-reference", object{"resourceType": "Blob", "resourceId": 2}),
		call("get-structured-content", object{"location": "Chicago"}),
		call("get-tiny-image", nil),
		gzip, link, read("demo://resource/session/linked.gz"),
		call("trigger-long-running-operation", object{"duration": 0.5, "steps": 5}).withProgress(),
		call("get-roots-list", nil),
		call("trigger-sampling-request", object{"prompt": "Say something.", "maxTokens": 10}),
		call("trigger-elicitation-request", nil),
		call("trigger-url-elicitation", object{"url": "https://example.test/go", "elicitationId": "lab"}),
		read("demo://resource/dynamic/text/1"), read("demo://resource/dynamic/blob/2"), read("demo://resource/static/document/architecture.md"),
		prompt("simple-prompt", nil), prompt("args-prompt", object{"city": "Vienna"}), prompt("resource-prompt", object{"resourceType": "Text", "resourceId": "1"}),
		complete(object{"type": "ref/prompt", "name": "completable-prompt"}, "department", "S"),
		complete(object{"type": "ref/resource", "uri": "demo://resource/dynamic/text/{resourceId}"}, "resourceId", "1"),
		logLevel("debug"),
		{Name: "subscribe", Method: "resources/subscribe", Params: object{"uri": "demo://resource/dynamic/text/1"}},
		updates,
		{Name: "unsubscribe", Method: "resources/unsubscribe", Params: object{"uri": "demo://resource/dynamic/text/1"}},
		logging,
		task, canceled, unclear,
		call("no-such-tool", nil),
		call("trigger-url-elicitation", object{"url": "https://example.test/go", "elicitationId": "lab2", "errorPath": true}),
		read("demo://no/such"), prompt("no-such-prompt", nil),
		slow,
	}
}
