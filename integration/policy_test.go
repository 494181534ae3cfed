package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// granting returns a rule that grants actions to everybody, denying one that denies them.
func granting(actions ...string) map[string]any {
	return map[string]any{"name": "grant " + strings.Join(actions, " "), "authorized": true, "actions": actions}
}

func denying(actions ...string) map[string]any {
	return map[string]any{"name": "deny " + strings.Join(actions, " "), "authorized": false, "actions": actions}
}

// limited completes a rule with members of its own.
func limited(rule map[string]any, members map[string]any) map[string]any {
	for name, value := range members {
		rule[name] = value
	}
	return rule
}

func when(expr string) map[string]any {
	return map[string]any{"condition": map[string]any{"match": map[string]any{"expr": expr}}}
}

// govern gives a server an active policy with these rules, in place of the one that an earlier call made.
func (g *gateway) govern(s server, rules ...map[string]any) {
	g.t.Helper()
	g.api(g.token(admin), http.MethodPost, "/api/policy", map[string]any{
		"name": "Rules of " + s.Slug, "mcp_server_id": s.ID, "status": "ACTIVE", "rules": rules,
	})
}

// TestPolicies checks that official clients see and call what policies grant, of every era and in every form of answer.
func TestPolicies(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	for _, era := range []struct {
		version string
		options mcp.StreamableHTTPOptions
	}{
		{"2025-03-26", mcp.StreamableHTTPOptions{}},
		{"2025-11-25", mcp.StreamableHTTPOptions{JSONResponse: true}},
		{"2026-07-28", mcp.StreamableHTTPOptions{Stateless: true}},
		{"2026-07-28", mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}},
	} {
		t.Run(eraName(era.version, era.options), func(t *testing.T) {
			t.Parallel()
			s := g.bareServer(newMCPServer(t, &era.options).url, nil)
			token := g.token(alice)
			tools := func() []string {
				client := connectMCP(t, g.url+s.path, token, era.version, nil)
				list, err := client.ListTools(within(t, callTimeout), nil)
				if err != nil {
					t.Fatal(err)
				}
				names := []string{}
				for _, tool := range list.Tools {
					names = append(names, tool.Name)
				}
				slices.Sort(names)
				return names
			}
			client := connectMCP(t, g.url+s.path, token, era.version, nil)
			call := func(name, text string) (string, error) {
				result, err := client.CallTool(within(t, callTimeout), &mcp.CallToolParams{Name: name, Arguments: map[string]any{"text": text}})
				if err != nil {
					return "", err
				}
				return textOf(result), nil
			}
			// The error codes of one that is hidden, and of one that is not there, cannot be told apart.
			unknown := func(name string) {
				t.Helper()
				_, err := call(name, "x")
				var refused *jsonrpc.Error
				if !errors.As(err, &refused) || refused.Code != -32602 || refused.Message != "Unknown tool: "+name {
					t.Errorf("M10 %s: %v", name, err)
				}
			}
			if got := tools(); len(got) != 0 {
				t.Errorf("M02 without a policy the list is %v", got)
			}
			unknown("echo")

			g.govern(s, granting("tools/call:echo"), limited(granting("tools/call:upper"), when(`R.attr.text == "yes"`)))
			if diff := cmp.Diff([]string{"echo", "upper"}, tools()); diff != "" {
				t.Errorf("M11 %s", diff)
			}
			for _, want := range []struct{ tool, text, answer string }{{"echo", "grüezi", "grüezi"}, {"upper", "yes", "YES"}, {"upper", "no", "Denied by policy"}} {
				if got, err := call(want.tool, want.text); err != nil || got != want.answer {
					t.Errorf("%s %s: %q, %v", want.tool, want.text, got, err)
				}
			}
			unknown("wait")
			unknown("missing")
		})
	}
}

// TestPolicyOfEach checks M12 and O10: rules are those of the server and of the caller, also where an answer was given
// before to another user.
func TestPolicyOfEach(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	upstream := newMCPServer(t, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	one, other := g.bareServer(upstream.url, nil), g.bareServer(upstream.url, nil)
	g.govern(one, limited(granting("tools/call:echo"), map[string]any{"roles_groups": []string{"group:sales"}}),
		limited(granting("tools/call:upper"), map[string]any{"roles_groups": []string{"group:engineering"}}))
	g.govern(other, granting("tools/call:wait"))
	list := func(who claims, s server) string {
		a := g.mcp(g.token(who), s, "", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`).want(t, http.StatusOK)
		var answer struct {
			Result struct{ Tools []struct{ Name string } }
		}
		a.decode(t, &answer)
		var names []string
		for _, tool := range answer.Result.Tools {
			names = append(names, tool.Name)
		}
		return strings.Join(names, " ")
	}
	for range 2 {
		for _, tc := range []struct {
			who  claims
			s    server
			want string
		}{{alice, one, "upper"}, {bob, one, "echo"}, {admin, one, ""}, {alice, other, "wait"}, {bob, other, "wait"}} {
			if got := list(tc.who, tc.s); got != tc.want {
				t.Errorf("O10, M12 %s on %s: %q, want %q", tc.who["email"], tc.s.Slug, got, tc.want)
			}
		}
	}
	if a := g.callTool(g.token(alice), one, "", "wait").want(t, http.StatusOK); !strings.Contains(string(a.body), "Unknown tool: wait") {
		t.Errorf("M12 %s", a.body)
	}
}

// unsealed returns an answer with a fixed word in the place of the cursors that the gateway has sealed.
func unsealed(body []byte) string {
	return sealedCursor.ReplaceAllString(string(body), `"nextCursor":"sealed"`)
}

var sealedCursor = regexp.MustCompile(`"nextCursor":"[A-Za-z0-9_-]{48,}"`)

// TestFilteredAnswers checks that an upstream's text stays unchanged except for the parts that are cut out, on every
// way on which a list comes.
func TestFilteredAnswers(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	const list = `{ "jsonrpc":"2.0", "id":1, "result": {"tools": [ {"name":"secret","x":1},  {"name":"open","n":1.50e2,"é":"\u00e9"} ,{"name":"secret2"}],"nextCursor":"c+/=","cacheScope":"public","ttlMs":300000.0} }`
	const kept = `{ "jsonrpc":"2.0", "id":1, "result": {"tools": [{"name":"open","n":1.50e2,"é":"\u00e9"}],"nextCursor":"sealed","cacheScope":"private","ttlMs":300000.0} }`
	const list2 = `{ "jsonrpc":"2.0", "id":2, "result": {"tools": [ {"name":"secret","x":1},  {"name":"open"} ,{"name":"secret2"}],"cacheScope":"private"} }`
	const kept2 = `{ "jsonrpc":"2.0", "id":2, "result": {"tools": [{"name":"open"}],"cacheScope":"private"} }`
	const other = `{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"{\"tools\":[{\"name\":\"secret\"}]}"}]}}`
	events := func(of string) string {
		return ": hello\n\nid: 1\ndata:\n\nevent: message\r\nid: 2\r\ndata: " + of + "\r\n\r\nid: 3\nretry: 7\ndata: " + other + "\n\n"
	}
	answers := map[string]func(w http.ResponseWriter){
		"json": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, list)
		},
		"json2": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, list2)
		},
		"batch": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "["+other+", "+list+"]")
		},
		"events": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			for part := range slices.Chunk([]byte(events(list)), 7) {
				_, _ = w.Write(part)
				_ = http.NewResponseController(w).Flush()
			}
		},
		"twice": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"tools":[],"tools":[{"name":"secret"}]}}`)
		},
		"error": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, list)
		},
		"many": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"tools":[`)
			for i := range 4_999 {
				_, _ = fmt.Fprintf(w, `{"name":"secret%d"},{"name":"open%d"},`, i, i)
			}
			_, _ = io.WriteString(w, `{"name":"open","description":"`+strings.Repeat("<IMPORTANT>", 100_000)+`"}]}}`)
		},
	}
	up := newUpstream(t, func(w http.ResponseWriter, r *http.Request, _ []byte) { answers[r.Header.Get("Baggage")](w) })
	s := g.bareServer(up.url, nil)
	g.govern(s, granting("tools/call:open*"))
	ask := func(method, message, answer string, header ...string) answer {
		return g.send(method, s.path, g.token(alice), message, append([]string{"Accept", acceptBoth, "Baggage", answer}, header...)...)
	}
	const tools, open = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"open"}}`
	const modern = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"open","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	// An answer to another request is dropped, and the client's place in the stream stays.
	const noFirst, noSecond = "event: message\nid: 2\ndata: " + kept + "\n", "data: " + other + "\n"
	keptEvents := strings.Replace(strings.Replace(events(kept), "event: message\r\nid: 2\r\n", "event: message\nid: 2\n", 1), "}\r\n\r\n", "}\n\n", 1)
	for _, tc := range []struct {
		name string
		got  answer
		want string
	}{
		{"JSON", ask(http.MethodPost, tools, "json"), kept},
		{"an event stream in pieces", ask(http.MethodPost, "["+open+","+tools+"]", "events"), keptEvents},
		{"an event stream with another's answer", ask(http.MethodPost, tools, "events"), strings.Replace(keptEvents, noSecond, "", 1)},
		{"M25 a stream that is resumed without a session", ask(http.MethodGet, "", "events", "Last-Event-ID", "1"), strings.Replace(strings.Replace(keptEvents, noSecond, "", 1), noFirst, "id: 2\n", 1)},
		{"a POST that resumes", ask(http.MethodPost, open, "events", "Last-Event-ID", "1"), strings.Replace(keptEvents, noFirst, "id: 2\n", 1)},
		{"a batch", ask(http.MethodPost, "["+open+","+tools+"]", "batch"), "[" + other + ", " + kept + "]"},
		{"M11 a list in another method's answer", ask(http.MethodPost, open, "json2"), kept2},
		{"another method's answer passes untouched in 2026-07-28", ask(http.MethodPost, modern, "json2",
			"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "open"), list2},
	} {
		if unsealed(tc.got.body) != tc.want || tc.got.status != http.StatusOK {
			t.Errorf("%s: %d\n got %q\nwant %q", tc.name, tc.got.status, tc.got.body, tc.want)
		}
	}
	if a := ask(http.MethodPost, tools, "error"); a.status != http.StatusBadRequest || unsealed(a.body) != kept {
		t.Errorf("an error with a list: %d %s", a.status, a.body)
	}
	if a := ask(http.MethodPost, tools, "twice"); a.status != http.StatusOK || strings.Contains(string(a.body), "secret") || !strings.Contains(string(a.body), `"id":1,"error":{"code":-32603`) {
		t.Errorf("a list with two readings: %d %s", a.status, a.body)
	}
	many := ask(http.MethodPost, tools, "many")
	var answer struct {
		Result struct{ Tools []struct{ Name string } }
	}
	if err := json.Unmarshal(many.body, &answer); err != nil || len(answer.Result.Tools) != 5_000 || strings.Contains(string(many.body), "secret") {
		t.Errorf("M14 %v, %d tools", err, len(answer.Result.Tools))
	}
}

// TestFilteredLegacySSE checks that lists come on the stream of revision 2024-11-05, and are filtered there.
func TestFilteredLegacySSE(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	s := g.bareServer(newLegacyServer(t).url, nil)
	g.govern(s, granting("tools/call:echo"))
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(within(t, callTimeout), &mcp.SSEClientTransport{
		Endpoint: g.url + s.path, HTTPClient: &http.Client{Transport: &withToken{token: g.token(alice), base: transport}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	list, err := client.ListTools(within(t, callTimeout), nil)
	if err != nil || len(list.Tools) != 1 || list.Tools[0].Name != "echo" {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := client.CallTool(within(t, callTimeout), &mcp.CallToolParams{Name: "steps"}); err == nil || !strings.Contains(err.Error(), "Unknown tool") {
		t.Errorf("a hidden tool: %v", err)
	}
	if result, err := client.CallTool(within(t, callTimeout), &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "hi"}}); err != nil || textOf(result) != "hi" {
		t.Errorf("%v, %v", result, err)
	}
}

// TestPolicyChanges checks M22 and W07: a change is in force for the next call once the API has answered, and streams
// whose right has ended are closed, with the reason.
func TestPolicyChanges(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	up := newUpstream(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
		if r.URL.Path == "/events" || strings.Contains(r.Header.Get("Mcp-Method"), "listen") {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: "+news("1")+"\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":7,"result":{"content":[]}}`)
	})
	s := g.bareServer(up.url, map[string]any{"events_url": up.server.URL + "/events"})
	token := g.token(alice)
	for i := range 20 {
		now, before := fmt.Sprint("tool", i%2), fmt.Sprint("tool", (i+1)%2)
		g.govern(s, granting("tools/call:"+now))
		allowed, refused := g.callTool(token, s, "", now), g.callTool(token, s, "", before)
		if !strings.Contains(string(allowed.body), "content") || !strings.Contains(string(refused.body), "Unknown tool") {
			t.Fatalf("M22 change %d: %s, %s", i, allowed.body, refused.body)
		}
	}

	g.govern(s, granting("resources/read:a:*"))
	listen := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["a:1"]},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	events := g.listen(http.MethodGet, "/sse/"+s.Slug, token, nil)
	subscription := g.listen(http.MethodPost, s.path, token, listen, "Accept", acceptBoth, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen")
	if e := events.next(); e.name != "connected" {
		t.Errorf("the first event is %+v", e)
	}
	events.next()
	subscription.next()
	g.govern(s, granting("resources/read:b:*")) // takes the subscription's right, and leaves that of the stream
	changed := time.Now()
	told := subscription.ended()
	if len(told) != 1 || !strings.Contains(told[0].data, `"id":1,"error":{"code":-31403`) || !strings.Contains(told[0].data, `"reason":"policy"`) {
		t.Errorf("W07 the subscription ended with %+v", told)
	}
	inTime := func(what string) {
		t.Helper()
		if took := time.Since(changed); took > allowed(time.Second) {
			t.Errorf("W07 %s ended %v after the change", what, took)
		} else {
			t.Logf("W07 %s ended %v after the change", what, took)
		}
	}
	inTime("the subscription")
	g.govern(s, denying("sse/stream"))
	changed = time.Now()
	last := events.ended()
	inTime("the stream")
	if len(last) != 1 || last[0].name != "status_change" || last[0].data != `{"reason":"policy","status":"disconnected"}` {
		t.Errorf("W07 the stream ended with %+v", last)
	}
	if a := g.send(http.MethodGet, "/sse/"+s.Slug, token, nil); a.status != http.StatusForbidden {
		t.Errorf("the stream opens again: %d %s", a.status, a.body)
	}
}
