package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/durward-gateway/durward/integration/rig"
)

// collectorSources is a module of its own: nothing of the collector is among the gateway's dependencies.
const collectorSources = "collector"

// builtCollector compiles the collector once.
var builtCollector = sync.OnceValues(func() (string, error) {
	directory, err := os.MkdirTemp("", "durward-collector-")
	if err != nil {
		return "", err
	}
	program := filepath.Join(directory, "collector")
	if output, err := exec.Command("go", "build", "-C", collectorSources, "-o", program, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the collector: %w\n%s", err, output)
	}
	return program, nil
})

// collector is an OpenTelemetry receiver that keeps what it gets.
type collector struct {
	*process
	t          *testing.T
	grpc, http string // its addresses
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	program, err := builtCollector()
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{t: t, grpc: "127.0.0.1:" + freePort(t), http: "127.0.0.1:" + freePort(t)}
	c.process = startProcessWith(t, nil, t.TempDir(), nil, program, "-grpc", c.grpc, "-http", c.http)
	rig.Eventually(t, "the collector to be ready", func() bool { return strings.Contains(c.output.String(), "ready\n") })
	return c
}

// over returns the environment of a gateway that sends to the collector at once.
func (c *collector) over(protocol string) []string {
	address := c.http
	if protocol == "grpc" {
		address = c.grpc
	}
	return []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://" + address, "OTEL_EXPORTER_OTLP_PROTOCOL=" + protocol, "OTEL_BSP_SCHEDULE_DELAY=20", "OTEL_SERVICE_NAME=durward"}
}

// span is a span as the collector got it.
type span struct {
	TraceID      string `json:"traceId"`
	ID           string `json:"spanId"`
	ParentID     string `json:"parentSpanId"`
	Name         string `json:"name"`
	Kind         int    `json:"kind"` // 1: internal, 2: server, 3: client
	RawAttribute []struct {
		Key   string                     `json:"key"`
		Value map[string]json.RawMessage `json:"value"`
	} `json:"attributes"`
	Links []struct {
		TraceID string `json:"traceId"`
	} `json:"links"`
	Status struct {
		Code int `json:"code"` // 2: error
	} `json:"status"`
}

// attribute returns an attribute as text; "" when there is none.
func (s *span) attribute(name string) string {
	for _, a := range s.RawAttribute {
		for _, value := range a.Value {
			if a.Key == name {
				return strings.Trim(string(value), `"`)
			}
		}
	}
	return ""
}

// spans returns the spans of a trace, until now.
func (c *collector) spans(trace string) (found []span) {
	for line := range strings.Lines(c.output.String()) {
		var got struct {
			ResourceSpans []struct {
				ScopeSpans []struct {
					Spans []span `json:"spans"`
				} `json:"scopeSpans"`
			} `json:"resourceSpans"`
		}
		if !strings.HasPrefix(line, "{") || !strings.HasSuffix(line, "\n") {
			continue
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			c.t.Fatal(err)
		}
		for _, resource := range got.ResourceSpans {
			for _, scope := range resource.ScopeSpans {
				for _, s := range scope.Spans {
					if s.TraceID == trace {
						found = append(found, s)
					}
				}
			}
		}
	}
	return found
}

// whole waits for the span of the request of a trace, and returns it with its children. The last one to end is the
// request's.
func (c *collector) whole(trace string) (request span, steps []span) {
	c.t.Helper()
	rig.Eventually(c.t, "the spans of "+trace, func() bool {
		return slices.ContainsFunc(c.spans(trace), func(s span) bool { return s.Kind == 2 })
	})
	for _, s := range c.spans(trace) {
		if s.Kind == 2 {
			request = s
		} else {
			steps = append(steps, s)
		}
	}
	for _, s := range steps {
		if s.ParentID != request.ID {
			c.t.Errorf("the parent of %s is not the request", s.Name)
		}
	}
	return request, steps
}

// traceID returns the id of the n-th trace of a test, and parentOf the header with which a client begins it.
func traceID(n int) string { return fmt.Sprintf("%032x", 0xabcdef00+n) }

func parentOf(n int) []string {
	return []string{"Traceparent", "00-" + traceID(n) + "-b7ad6b7169203331-01", "Tracestate", `vendor=a"b`}
}

// canary marks a text that no collector may get.
func canary(name string) string { return "canary-" + name + "-7f3a" }

// traced is a gateway whose traces go to a collector.
type traced struct {
	*gateway
	collector *collector
	upstream  *upstream
	provider  *llmProvider
	server    server
	user      string
}

// startTraced starts a gateway with an MCP server whose tools are allowed, held, denied and broken, and with a model.
func startTraced(t *testing.T, protocol string, env ...string) *traced {
	t.Helper()
	x := &traced{collector: newCollector(t)}
	x.upstream = newUpstream(t, serveTraced)
	x.provider = newLLMProvider(t, func(w http.ResponseWriter, _ *http.Request, body string) {
		if !strings.Contains(body, `"stream":true`) {
			answerJSON(w, http.StatusOK, strings.Replace(chatAnswer, "Hello", canary("completion"), 1))
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"model":"gpt-real-2026","choices":[{"index":0,"delta":{"content":"`+canary("completion")+`"}}]}`+"\n\n"+
			`data: {"model":"gpt-real-2026","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\n"+
			`data: {"model":"gpt-real-2026","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3}}`+"\n\ndata: [DONE]\n\n")
	})
	x.gateway = startGateway(t, settings{site: "log\ntracing\nmetrics /metrics-of-the-test", env: slices.Concat(x.collector.over(protocol), env, []string{"PROVIDER_KEY=" + canary("provider-key")}),
		option: approvalConsole + `
		provider openai house {
			base_url ` + x.provider.URL + `/v1
			key {env.PROVIDER_KEY}
		}
		alias small {
			target house gpt-real
		}`})
	entry := bearerEntry()
	entry["events_url"] = x.upstream.server.URL + "/events?key=" + canary("query")
	x.server = x.bareServer(x.upstream.url, entry)
	x.govern(x.server, granting("tools/call:echo", "tools/call:broken", "tools/call:wrong"), granting("tools/call:pay:approve"))
	x.user = x.token(alice)
	x.connectBearer(x.user, x.server, canary("bearer"))
	return x
}

// serveTraced serves as an MCP server with a session, and as a stream of events.
func serveTraced(w http.ResponseWriter, r *http.Request, body []byte) {
	if r.URL.Path == "/events" {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: data_update\ndata: {\"text\":\""+canary("event")+"\"}\n\n")
		return
	}
	var message struct {
		ID     json.RawMessage
		Method string
		Params struct{ Name string }
	}
	if json.Unmarshal(body, &message) != nil || message.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	result := `"result":{"content":[{"type":"text","text":"` + canary("result") + `"}]}`
	switch {
	case message.Method == "initialize":
		w.Header().Set("Mcp-Session-Id", canary("session"))
		result = `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"upstream","version":"1"}}`
	case message.Params.Name == "broken":
		result = `"result":{"isError":true,"content":[{"type":"text","text":"` + canary("result") + `"}]}`
	case message.Params.Name == "wrong":
		result = `"error":{"code":-32602,"message":"` + canary("message") + `"}`
	}
	answer := `{"jsonrpc":"2.0","id":` + string(message.ID) + `,` + result + `}`
	if message.Params.Name != "broken" {
		answerJSON(w, http.StatusOK, answer)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, "event: message\ndata: "+answer+"\n\n")
}

// post sends a message with the beginning of the n-th trace.
func (x *traced) post(n int, session, message string, status int) answer {
	x.t.Helper()
	return x.send(http.MethodPost, x.server.path, x.user, message, append(mcpHeader(session), parentOf(n)...)...).want(x.t, status)
}

// expected is a part of the wanted spans of a request.
type expected struct {
	name       string
	failed     bool
	attributes map[string]string
}

// wants checks the spans of the n-th trace: the request's, and its steps in order.
func (x *traced) wants(n int, request map[string]string, steps ...expected) {
	x.t.Helper()
	whole, got := x.collector.whole(traceID(n))
	if whole.ParentID != "b7ad6b7169203331" {
		x.t.Errorf("%d: the parent of the request is %q", n, whole.ParentID)
	}
	for name, want := range request {
		if said := whole.attribute(name); said != want {
			x.t.Errorf("%d: the request's %s is %q, not %q", n, name, said, want)
		}
	}
	var names, wanted []string
	for _, s := range got {
		names = append(names, s.Name)
	}
	for _, s := range steps {
		wanted = append(wanted, s.name)
	}
	if diff := cmp.Diff(wanted, names); diff != "" {
		x.t.Errorf("%d: spans (-want +got):\n%s", n, diff)
		return
	}
	for i, want := range steps {
		if client := !strings.HasPrefix(want.name, "durward."); client != (got[i].Kind == 3) || want.failed != (got[i].Status.Code == 2) {
			x.t.Errorf("%d: %s has kind %d and status %d", n, want.name, got[i].Kind, got[i].Status.Code)
		}
		for name, value := range want.attributes {
			if said := got[i].attribute(name); said != value {
				x.t.Errorf("%d: %s of %s is %q, not %q", n, name, want.name, said, value)
			}
		}
	}
}

// These are the steps of every call to the server that is let through.
var (
	proven     = expected{name: "durward.authenticate", attributes: map[string]string{"durward.auth.kind": "token", "durward.auth.result": "ok"}}
	looked     = expected{name: "durward.limit", attributes: map[string]string{"durward.limit.where": "look", "durward.limit.result": "ok"}}
	charged    = expected{name: "durward.limit", attributes: map[string]string{"durward.limit.where": "charge", "durward.limit.result": "ok"}}
	credential = expected{name: "durward.credential", attributes: map[string]string{"durward.credential.kind": "bearer_token", "durward.credential.refreshed": "false", "durward.credential.result": "ok"}}
)

func judged(result, rule string) expected {
	e := expected{name: "durward.policy", attributes: map[string]string{"durward.policy.result": result, "durward.policy.rule": rule}}
	if rule != "" {
		e.attributes["durward.policy.revision"] = "1"
	}
	return e
}

// TestTraces checks the spans of each kind of call, as a collector gets them, that each upstream gets the place of its
// own span, and that nothing that is secret or an argument is in them.
func TestTraces(t *testing.T) {
	t.Parallel()
	x := startTraced(t, "grpc")
	host := strings.TrimPrefix(x.upstream.server.URL, "http://127.0.0.1:")

	session := x.initialized(0)
	const granted, asking = "grant tools/call:echo tools/call:broken tools/call:wrong", "grant tools/call:pay:approve"
	arguments := func(tool string) string { return toolCallWith(tool, `{"to":"`+canary("argument")+`"}`) }
	call := func(name string, attributes map[string]string) expected {
		all := map[string]string{
			"mcp.method.name": "tools/call", "gen_ai.tool.name": name, "gen_ai.operation.name": "execute_tool", "jsonrpc.request.id": "7",
			"mcp.protocol.version": "2025-11-25", "server.address": "127.0.0.1", "server.port": host, "http.response.status_code": "200",
		}
		for name, value := range attributes {
			all[name] = value
		}
		return expected{"tools/call " + name, all["error.type"] != "", all}
	}

	x.post(1, session, arguments("echo"), http.StatusOK)
	x.sentFrom(1, "tools/call echo")
	x.wants(1, map[string]string{"durward.server": x.server.Slug, "durward.outcome": "ok", "mcp.method.name": "tools/call", "gen_ai.tool.name": "echo"},
		proven, looked, judged("allow", granted), charged, credential, call("echo", map[string]string{"durward.outcome": "ok"}))
	x.post(2, session, arguments("broken"), http.StatusOK)
	x.wants(2, nil, proven, looked, judged("allow", granted), charged, credential, call("broken", map[string]string{"error.type": "tool_error"}))
	x.post(3, session, arguments("wrong"), http.StatusOK)
	x.wants(3, nil, proven, looked, judged("allow", granted), charged, credential, call("wrong", map[string]string{"error.type": "-32602", "rpc.response.status_code": "-32602"}))
	x.post(4, session, arguments("drop"), http.StatusOK)
	x.wants(4, map[string]string{"durward.outcome": "denied"}, proven, looked, judged("deny", ""))

	// Held, approved on the page, and made: the marks of the gateway are not among the bytes that the approval is for, nor
	// is a place in a trace that the client names itself.
	x.post(5, session, arguments("pay"), http.StatusOK)
	held := expected{name: "durward.approval", attributes: map[string]string{"durward.approval.result": "held"}}
	x.wants(5, map[string]string{"durward.outcome": "held"}, proven, looked, judged("ask", asking), held)
	console := x.consoleToken(alice)
	pending := x.object(console, http.MethodGet, "/api/approvals?status=pending", nil)["data"].([]any)
	if len(pending) != 1 {
		t.Fatalf("pending: %v", pending)
	}
	id := pending[0].(members)["id"].(string)
	x.api(console, http.MethodPost, "/api/approvals/"+id+"/approve", nil)
	named := strings.Replace(arguments("pay"), `"arguments"`, `"_meta":{"traceparent":"00-`+traceID(99)+`-b7ad6b7169203331-01","tracestate":{"no":"text"}},"arguments"`, 1)
	x.post(6, session, named, http.StatusOK)
	x.sentFrom(6, "tools/call pay")
	approved := expected{name: "durward.approval", attributes: map[string]string{"durward.approval.result": "approved", "durward.approval.id": id}}
	x.wants(6, nil, proven, looked, judged("ask", asking), approved, charged, credential, call("pay", nil))
	if whole, _ := x.collector.whole(traceID(6)); len(whole.Links) != 1 || whole.Links[0].TraceID != traceID(99) {
		t.Errorf("the client's message is not linked: %v", whole.Links)
	}

	x.listened(7, session)
	events := x.listen(http.MethodGet, "/sse/"+x.server.Slug, x.user, nil, parentOf(8)...)
	events.ended()
	x.wants(8, map[string]string{"durward.server": x.server.Slug}, proven, looked, expected{name: "durward.policy", attributes: map[string]string{"durward.policy.result": "allow"}}, charged, credential,
		expected{"GET", false, map[string]string{"http.request.method": "GET", "server.port": host, "http.response.status_code": "200"}})

	x.asked(9, `{"model":"small","messages":[{"role":"user","content":"`+canary("prompt")+`"}]}`, "gpt-real")
	x.asked(10, `{"model":"small","stream":true,"messages":[{"role":"user","content":"`+canary("prompt")+`"}]}`, "gpt-real-2026")
	x.send(http.MethodPost, x.server.path, canary("token"), toolCall("echo"), append(mcpHeader(""), parentOf(11)...)...).want(t, http.StatusUnauthorized)
	x.wants(11, nil, expected{name: "durward.authenticate", attributes: map[string]string{"durward.auth.result": "invalid"}})
	// Caddy's own span has the path of a request, and not the query.
	x.send(http.MethodGet, "/api/oauth/callback?code="+canary("code")+"&state="+canary("state"), "", nil, parentOf(12)...)
	if whole, _ := x.collector.whole(traceID(12)); whole.attribute("url.path") != "/api/oauth/callback" {
		t.Errorf("the span of a login's answer: %v", whole)
	}

	x.elicited()
	x.logged(1)
	x.exemplary()
	x.silent(session, x.user, console)
}

// initialized begins a session.
func (x *traced) initialized(n int) string {
	a := x.post(n, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`, http.StatusOK)
	x.wants(n, nil, proven, looked, judged("allow", ""), charged, credential, expected{name: "initialize", attributes: map[string]string{"mcp.method.name": "initialize", "gen_ai.operation.name": ""}})
	return a.header.Get("Mcp-Session-Id")
}

// listened opens and leaves the stream of a session.
func (x *traced) listened(n int, session string) {
	x.t.Helper()
	x.send(http.MethodGet, x.server.path, x.user, nil, append(mcpHeader(session), parentOf(n)...)...)
	_, steps := x.collector.whole(traceID(n))
	if last := steps[len(steps)-1]; last.Name != "GET" || last.Kind != 3 {
		x.t.Errorf("the stream's request is %v", last)
	}
}

// sentFrom checks that the upstream got the place of its request's span, in header and message.
func (x *traced) sentFrom(n int, name string) {
	x.t.Helper()
	_, steps := x.collector.whole(traceID(n))
	at := slices.IndexFunc(steps, func(s span) bool { return s.Name == name })
	if at < 0 {
		x.t.Fatalf("%d: there is no %s", n, name)
	}
	got, want := x.upstream.last(x.t), "00-"+traceID(n)+"-"+steps[at].ID+"-01"
	var message struct {
		Params struct {
			Meta      map[string]any `json:"_meta"`
			Arguments map[string]any
		}
	}
	if err := json.Unmarshal([]byte(got.body), &message); err != nil {
		x.t.Fatal(err)
	}
	if diff := cmp.Diff([]string{want}, got.header["Traceparent"]); diff != "" || got.header.Get("Tracestate") != `vendor=a"b` {
		x.t.Errorf("%d: headers %v", n, got.header)
	}
	if diff := cmp.Diff(map[string]any{"traceparent": want, "tracestate": `vendor=a"b`}, message.Params.Meta); diff != "" {
		x.t.Errorf("%d: _meta (-want +got):\n%s", n, diff)
	}
	if message.Params.Arguments["to"] != canary("argument") {
		x.t.Errorf("%d: the arguments are %v", n, message.Params.Arguments)
	}
}

// asked asks the model.
func (x *traced) asked(n int, body, model string) {
	x.t.Helper()
	x.send(http.MethodPost, chatPath, x.user, body, parentOf(n)...).want(x.t, http.StatusOK)
	x.wants(n, map[string]string{"durward.model": "small", "durward.outcome": "ok"}, proven, looked, charged, expected{"chat gpt-real", false, map[string]string{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-real", "gen_ai.response.model": model,
		"gen_ai.usage.input_tokens": "9", "gen_ai.usage.output_tokens": "3", "server.address": "127.0.0.1", "durward.outcome": "ok",
	}})
	if got := x.provider.last(x.collector.t).header.Get("Traceparent"); !strings.HasPrefix(got, "00-"+traceID(n)+"-") || strings.Contains(got, "b7ad6b7169203331") {
		x.t.Errorf("the provider got %q", got)
	}
}

// elicited has an official client, whose user is asked on the call's own stream, make a call.
func (x *traced) elicited() {
	x.t.Helper()
	x.registerAgent(admin, "test-client") // whose user may be asked there
	client := connectMCP(x.t, x.url+x.server.path, x.user, "2025-11-25", &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
		},
	})
	if a, err := client.CallTool(within(x.t, callTimeout), &mcp.CallToolParams{Name: "pay", Arguments: map[string]any{"to": canary("argument")}}); err != nil || a.IsError {
		x.t.Fatal(a, err)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(x.upstream.last(x.t).body), &got); err != nil {
		x.t.Fatal(err)
	}
	meta, _ := got["params"].(map[string]any)["_meta"].(map[string]any)
	parent, _ := meta["traceparent"].(string)
	if len(parent) != 55 {
		x.t.Fatalf("the upstream got %v", got)
	}
	_, steps := x.collector.whole(parent[3:35])
	at := slices.IndexFunc(steps, func(s span) bool { return s.Name == "durward.approval" })
	if at < 0 || steps[at].attribute("durward.approval.result") != "approved" || steps[len(steps)-1].ID != parent[36:52] {
		x.t.Errorf("the held call's spans are %v", steps)
	}
}

// logged checks that a call's line in the access log leads to its trace.
func (x *traced) logged(n int) {
	x.t.Helper()
	request, _ := x.collector.whole(traceID(n))
	if line := x.accessLine(`"trace_id":"` + traceID(n) + `"`); line["span_id"] != request.ID || line["tool"] != "echo" {
		x.t.Errorf("the line is %v", line)
	}
}

// exemplary checks that histograms of time have traces as exemplars, in OpenMetrics.
func (x *traced) exemplary() {
	x.t.Helper()
	text := string(x.send(http.MethodGet, "/metrics-of-the-test", "", nil, "Accept", "application/openmetrics-text; version=1.0.0").want(x.t, http.StatusOK).body)
	for _, metric := range []string{"durward_upstream_response_seconds", "mcp_client_operation_duration_seconds", "gen_ai_client_operation_duration_seconds"} {
		found := false
		for line := range strings.Lines(text) {
			found = found || strings.HasPrefix(line, metric+"_bucket") && strings.Contains(line, `# {trace_id="`)
		}
		if !found {
			x.t.Errorf("%s has no trace as an exemplar", metric)
		}
	}
}

// silent checks that nothing secret is in anything that the collector got.
func (x *traced) silent(secrets ...string) {
	x.t.Helper()
	got := x.collector.output.String()
	if strings.Contains(got, "canary-") {
		at := strings.Index(got, "canary-")
		x.t.Errorf("the collector got %s", got[max(at-200, 0):min(at+60, len(got))])
	}
	for _, secret := range secrets {
		if secret == "" || strings.Contains(got, secret) {
			x.t.Errorf("the collector got %q", secret)
		}
	}
}

// TestTracesUnsampled checks that a request that is not recorded passes its context on, so that nobody behind records
// it, and sends the collector nothing.
func TestTracesUnsampled(t *testing.T) {
	t.Parallel()
	x := startTraced(t, "http/protobuf", "OTEL_TRACES_SAMPLER=parentbased_always_on")
	unrecorded := append(mcpHeader(""), "Traceparent", "00-"+traceID(1)+"-b7ad6b7169203331-00")
	x.send(http.MethodPost, x.server.path, x.user, toolCall("echo"), unrecorded...).want(t, http.StatusOK)
	got := x.upstream.last(t)
	if parent := got.header.Get("Traceparent"); !strings.HasPrefix(parent, "00-"+traceID(1)) || !strings.HasSuffix(parent, "-00") || !strings.Contains(got.body, parent) {
		t.Errorf("the upstream got %q and %s", parent, got.body)
	}
	x.post(2, "", toolCall("echo"), http.StatusOK)
	x.collector.whole(traceID(2)) // over HTTP, and after the other
	if spans := x.collector.spans(traceID(1)); len(spans) > 0 {
		t.Errorf("recorded: %v", spans)
	}
}

// TestTracesOff checks that without tracing what the client says of its trace passes as it is.
func TestTracesOff(t *testing.T) {
	t.Parallel()
	up := newUpstream(t, serveTraced)
	g := startGateway(t, settings{site: "log"})
	s := g.createServer(up.url, nil)
	message := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","_meta":{"traceparent":"the client's"}}}`
	g.send(http.MethodPost, s.path, g.token(alice), message, append(mcpHeader(""), parentOf(1)...)...).want(t, http.StatusOK)
	got := up.last(t)
	if got.body != message || got.header.Get("Traceparent") != parentOf(1)[1] {
		t.Errorf("the upstream got %v and %s", got.header, got.body)
	}
	if line := g.accessLine(`"tool":"echo"`); line["trace_id"] != nil {
		t.Errorf("the line is %v", line)
	}
}
