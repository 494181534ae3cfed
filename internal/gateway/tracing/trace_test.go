package tracing

import (
	"context"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// begun begins the span of a request.
func begun(t *testing.T, sampler sdk.Sampler) (context.Context, trace.Span, *tracetest.SpanRecorder) {
	t.Helper()
	seen := tracetest.NewSpanRecorder()
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(seen), sdk.WithSampler(sampler))
	ctx, span := provider.Tracer("caddy").Start(t.Context(), "handler")
	return ctx, span, seen
}

// attributes returns the attributes of a span as text.
func attributes(span sdk.ReadOnlySpan) map[string]string {
	all := make(map[string]string)
	for _, a := range span.Attributes() {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

func mustURL(t testing.TB, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestSpans(t *testing.T) {
	ctx, whole, seen := begun(t, sdk.AlwaysSample())
	x := Of(ctx)
	x.Authenticate().Authenticated("token", "ok")
	x.Limit().Limited(Look, false, nil)
	x.Policy().Decided("ask", "policy-1", 3, "rule")
	x.Policy().Decided("allow", "", 0, "")
	wait := x.Approval()
	wait.About("approval-1")
	wait.Waited("approved")
	wait.Waited("held") // the first end counts
	x.Credential().Got("oauth2", true, "ok")
	message := x.Message(Message{
		Method: "tools/call", Name: "echo", ID: []byte(`"seven"`), Version: "2025-11-25", Session: "a-session-that-opens-doors",
		Server: mustURL(t, "https://user:pass@mcp.example:8443/path?key=secret"),
	})
	message.End("ok", 200)
	failed := x.Message(Message{Method: "prompts/get", Name: "p", ID: []byte(`7`), Server: mustURL(t, "http://mcp.example/")})
	failed.Failed("-32602")
	failed.End("ok", 200)
	question := x.Question(Question{Operation: "chat", Provider: "openai", Model: "small", Server: mustURL(t, "https://models.example/v1")})
	question.Used(Usage{Model: "small-2026"})
	question.Used(Usage{Input: 5, Output: 7, Estimated: true})
	question.End("upstream_error", 502)
	x.Request("GET", mustURL(t, "https://events.example/e")).End("ended", 0)
	x.Asks("alias")
	x.Describe(Call{Server: "s", Method: "tools/call", Tool: "echo", Outcome: "ok"})
	whole.End()

	type span struct {
		Name, Kind, Status string
		Attributes         map[string]string
	}
	var got []span
	for _, s := range seen.Ended() {
		got = append(got, span{s.Name(), s.SpanKind().String(), s.Status().Code.String(), attributes(s)})
		if s.Name() != "handler" && s.Parent().SpanID() != whole.SpanContext().SpanID() {
			t.Errorf("%s has another parent", s.Name())
		}
	}
	ok, bad, inside, out := codes.Unset.String(), codes.Error.String(), "internal", "client"
	want := []span{
		{"durward.authenticate", inside, ok, map[string]string{"durward.auth.kind": "token", "durward.auth.result": "ok"}},
		{"durward.limit", inside, ok, map[string]string{"durward.limit.where": "look", "durward.limit.result": "ok"}},
		{"durward.policy", inside, ok, map[string]string{"durward.policy.result": "ask", "durward.policy.id": "policy-1", "durward.policy.revision": "3", "durward.policy.rule": "rule"}},
		{"durward.policy", inside, ok, map[string]string{"durward.policy.result": "allow"}},
		{"durward.approval", inside, ok, map[string]string{"durward.approval.id": "approval-1", "durward.approval.result": "approved"}},
		{"durward.credential", inside, ok, map[string]string{"durward.credential.kind": "oauth2", "durward.credential.refreshed": "true", "durward.credential.result": "ok"}},
		{"tools/call echo", out, ok, map[string]string{
			"mcp.method.name": "tools/call", "gen_ai.tool.name": "echo", "gen_ai.operation.name": "execute_tool", "jsonrpc.request.id": "seven",
			"mcp.protocol.version": "2025-11-25", "mcp.session.id": digest("a-session-that-opens-doors"), "server.address": "mcp.example", "server.port": "8443",
			"durward.outcome": "ok", "http.response.status_code": "200",
		}},
		{"prompts/get p", out, bad, map[string]string{
			"mcp.method.name": "prompts/get", "gen_ai.prompt.name": "p", "jsonrpc.request.id": "7", "server.address": "mcp.example", "server.port": "80",
			"durward.outcome": "ok", "http.response.status_code": "200", "error.type": "-32602", "rpc.response.status_code": "-32602",
		}},
		{"chat small", out, bad, map[string]string{
			"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "small", "gen_ai.response.model": "small-2026",
			"gen_ai.usage.input_tokens": "5", "gen_ai.usage.output_tokens": "7", "durward.usage.estimated": "true", "server.address": "models.example", "server.port": "443",
			"durward.outcome": "upstream_error", "http.response.status_code": "502", "error.type": "upstream_error",
		}},
		{"GET", out, bad, map[string]string{"http.request.method": "GET", "server.address": "events.example", "server.port": "443", "durward.outcome": "ended", "error.type": "ended"}},
		{"handler", inside, ok, map[string]string{"durward.model": "alias", "durward.server": "s", "mcp.method.name": "tools/call", "gen_ai.tool.name": "echo", "durward.outcome": "ok"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
}

// TestLongTexts checks that texts of a client are cut off.
func TestLongTexts(t *testing.T) {
	ctx, whole, seen := begun(t, sdk.AlwaysSample())
	long := strings.Repeat("x", 10_000)
	Of(ctx).Message(Message{Method: long, Name: long, ID: []byte(`"` + long + `"`), Version: long, Session: long}).End("ok", 0)
	Of(ctx).Describe(Call{Method: long, Tool: long})
	whole.End()
	for _, s := range seen.Ended() {
		if len(s.Name()) > 600 {
			t.Errorf("a name of %d bytes", len(s.Name()))
		}
		for name, value := range attributes(s) {
			if len(value) > 256 {
				t.Errorf("%s has %d bytes", name, len(value))
			}
		}
	}
}

func TestContext(t *testing.T) {
	ctx, whole, _ := begun(t, sdk.AlwaysSample())
	at := Of(ctx).Request("GET", nil)
	said := at.Context()
	if want := "00-" + whole.SpanContext().TraceID().String() + "-" + at.span.SpanContext().SpanID().String() + "-01"; said.Parent != want {
		t.Errorf("%s, not %s", said.Parent, want)
	}
	marked := said.Mark([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"traceparent":"the client's","x":1}}}`))
	if want := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"traceparent":"` + said.Parent + `","tracestate":"","x":1}}}`; string(marked) != want {
		t.Errorf("%s, not\n%s", marked, want)
	}
	if batch := `[{"params":{}}]`; string(said.Mark([]byte(batch))) != batch {
		t.Error("a batch was marked")
	}

	// A state may hold what JSON escapes.
	state, err := trace.ParseTraceState(`vendor=a"b\c`)
	if err != nil {
		t.Fatal(err)
	}
	remote := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceState: state})
	unrecorded := Of(trace.ContextWithRemoteSpanContext(t.Context(), remote))
	if unrecorded.Recorded() || unrecorded.Sampled() != "" {
		t.Error("a trace that is not recorded says otherwise")
	}
	said = unrecorded.Request("GET", nil).Context()
	if said.Parent != "00-01000000000000000000000000000000-0200000000000000-00" || said.State != `vendor=a"b\c` {
		t.Errorf("the context of the request was not passed on: %+v", said)
	}
	if _, err := jsonrpc.Parse(said.Mark([]byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)), strictjson.Limits{}); err != nil {
		t.Error(err)
	}
}

// TestLink checks that the place in a trace that a message names is linked, and nothing else that it may say there.
func TestLink(t *testing.T) {
	const theirs = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for meta, want := range map[string]string{
		`{"traceparent":"` + theirs + `","tracestate":"a=1"}`: "0af7651916cd43dd8448eb211c80319c",
		`{"traceparent":"nonsense"}`:                          "",
		`{"traceparent":["` + theirs + `"]}`:                  "",
		`{"progressToken":1}`:                                 "",
	} {
		ctx, whole, seen := begun(t, sdk.AlwaysSample())
		Of(ctx).Link(&jsonrpc.Message{Meta: []byte(meta)})
		whole.End()
		got := ""
		for _, link := range seen.Ended()[0].Links() {
			got += link.SpanContext.TraceID().String()
		}
		if got != want {
			t.Errorf("%s: %q", meta, got)
		}
	}
}

// TestAllocationsWithoutTrace checks that a call that is not traced pays nothing.
func TestAllocationsWithoutTrace(t *testing.T) {
	body := []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`)
	server, ctx := mustURL(t, "https://mcp.example/"), t.Context()
	message := &jsonrpc.Message{Meta: []byte(`{}`)}
	allocs := testing.AllocsPerRun(100, func() {
		x := Of(ctx)
		x.Authenticate().Authenticated("token", "ok")
		x.Limit().Limited(Look, false, nil)
		x.Policy().Decided("allow", "policy", 1, "rule")
		wait := x.Approval()
		wait.About("id")
		wait.Waited("approved")
		x.Credential().Got("oauth2", false, "ok")
		x.Link(message)
		request := x.Message(Message{Method: "tools/call", Name: "a", ID: body[:1], Server: server})
		if sent := request.Context().Mark(body); &sent[0] != &body[0] {
			t.Error("the body was written anew")
		}
		request.Failed("1")
		request.End("ok", 200)
		question := x.Question(Question{Operation: "chat", Model: "m", Server: server})
		question.Used(Usage{Input: 1})
		question.End("ok", 200)
		x.Request("GET", server).End("ok", 200)
		x.Asks("alias")
		x.Routed("alias", "reason")
		x.Describe(Call{Method: "tools/call"})
		if x.Sampled() != "" {
			t.Error("it is traced")
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// TestDocumented checks that the page has every name, and no other.
func TestDocumented(t *testing.T) {
	code, err := os.ReadFile("names.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/observability.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, name := range regexp.MustCompile(`(?:span|attr)\w+ += "([^"]+)"`).FindAllSubmatch(code, -1) {
		want = append(want, string(name[1]))
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+\\.[a-z_.]+)` \\|").FindAllSubmatch(page, -1) {
		got = append(got, string(row[1]))
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("names in docs/observability.md (-want +got):\n%s", diff)
	}
}
