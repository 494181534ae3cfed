package policy_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/storage"
)

const legacy = "2025-11-25"

// TestMethods checks M09: each method is judged by the object that it reaches, and unknown methods are refused.
func TestMethods(t *testing.T) {
	g := newGateway(t, nil, nil)
	g.policy(storage.PolicyActive,
		grant("tools/call:open", "resources/read:file:///pub/*", "prompts/get:greet"),
		when(grant("tools/call:limited"), "R.attr.n < 10"), when(grant("prompts/get:limited"), "R.attr.n < 10"),
		deny("resources/read:file:///pub/secret*"),
	)
	const passes, unknownMethod, hidden = 0, -32601, -32602
	resource := map[string]int{legacy: -32002, modern: -32602}
	for _, tc := range []struct {
		method, params string
		code           int
		only           string // a version
	}{
		{"initialize", "", passes, legacy}, {"ping", "", passes, legacy}, {"logging/setLevel", `{"level":"info"}`, passes, legacy},
		{"server/discover", "", passes, ""}, {"tools/list", "", passes, ""}, {"resources/list", "", passes, ""},
		{"resources/templates/list", "", passes, ""}, {"prompts/list", "", passes, ""}, {"tasks/list", "", passes, legacy},
		{"tools/call", `{"name":"open"}`, passes, ""}, {"tools/call", `{"name":"open","arguments":null}`, passes, legacy},
		{"tools/call", `{"name":"limited","arguments":{"n":9}}`, passes, ""},
		{"tools/call", `{"name":"other"}`, hidden, ""}, {"tools/call", `{"name":"Open"}`, hidden, ""}, {"tools/call", `{"name":"open "}`, hidden, legacy},
		{"tools/call", `{"name":"x:approve"}`, hidden, ""}, {"tools/call", `{"name":"*"}`, hidden, ""}, {"tools/call", `{}`, hidden, legacy},
		{"resources/read", `{"uri":"file:///pub/a"}`, passes, ""}, {"resources/read", `{"uri":"file:///pub/secret.txt"}`, -1, ""},
		{"resources/read", `{"uri":"file:///pub/../etc/passwd"}`, -1, ""}, {"resources/read", `{"uri":"file:///pub/%2e%2e/etc"}`, -1, ""},
		{"resources/read", `{"uri":"file:///pub/a\u0000b"}`, -1, legacy}, {"resources/read", `{}`, -1, legacy},
		{"resources/subscribe", `{"uri":"file:///pub/a"}`, passes, legacy}, {"resources/subscribe", `{"uri":"file:///etc"}`, -1, legacy},
		{"resources/unsubscribe", `{"uri":"file:///pub/a"}`, passes, legacy}, {"resources/unsubscribe", `{"uri":"file:///etc"}`, passes, legacy}, {"resources/unsubscribe", `{"uri":"file:///pub/../etc"}`, -1, legacy},
		{"tools/list", `{"cursor":"secret"}`, hidden, ""}, {"tools/list", `{"cursor":7}`, hidden, ""}, {"tools/list", `{"cursor":null}`, passes, ""}, {"tools/list", `{"cursor":""}`, passes, ""}, {"tools/list", `{"Cursor":"x"}`, -32600, ""}, {"tasks/list", `{"cursor":"x"}`, hidden, legacy},
		{"subscriptions/listen", `{"notifications":{"toolsListChanged":true}}`, passes, modern}, {"subscriptions/listen", ``, passes, modern},
		{"subscriptions/listen", `{"notifications":{"resourceSubscriptions":["file:///pub/a","file:///pub/b"]}}`, passes, modern},
		{"subscriptions/listen", `{"notifications":{"resourceSubscriptions":["file:///pub/a","file:///etc"]}}`, -1, modern},
		{"subscriptions/listen", `{"notifications":{"resourceSubscriptions":["file:///pub/../a"]}}`, -1, modern},
		{"subscriptions/listen", `{"notifications":{"resourceSubscriptions":"file:///etc"}}`, hidden, modern},
		{"subscriptions/listen", `{"notifications":{"resourceSubscriptions":[["file:///etc"]]}}`, hidden, modern},
		{"subscriptions/listen", `{"notifications":{"ResourceSubscriptions":["file:///etc"]}}`, -32600, modern},
		{"prompts/get", `{"name":"greet"}`, passes, ""}, {"prompts/get", `{"name":"limited","arguments":{"n":9}}`, passes, ""},
		{"prompts/get", `{"name":"limited","arguments":{"n":10}}`, -31403, ""}, {"prompts/get", `{"name":"other"}`, hidden, ""},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"limited"}}`, passes, ""},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"other"}}`, hidden, legacy},
		{"completion/complete", `{"ref":{"type":"ref/resource","uri":"file:///pub/{name}"}}`, passes, ""},
		{"completion/complete", `{"ref":{"type":"ref/resource","uri":"file:///etc/{name}"}}`, -1, ""},
		{"completion/complete", `{"ref":{"type":"ref/tool","name":"open"}}`, hidden, legacy}, {"completion/complete", ``, hidden, legacy},
		{"completion/complete", `{"ref":{"type":"ref/prompt","Type":"ref/resource","name":"greet"}}`, -32600, legacy},
		{"tasks/get", `{"taskId":"t"}`, hidden, ""}, {"tasks/result", `{"taskId":"t"}`, hidden, legacy}, {"tasks/cancel", `{"taskId":"t"}`, hidden, ""},
		{"tasks/update", `{"taskId":"t"}`, hidden, modern}, {"tasks/get", ``, hidden, legacy},
		{"sampling/createMessage", "", unknownMethod, ""}, {"elicitation/create", "", unknownMethod, ""}, {"roots/list", "", unknownMethod, ""},
		{"rpc.discover", "", unknownMethod, ""}, {"com.example/run", "", unknownMethod, ""}, {"Tools/call", `{"name":"open"}`, unknownMethod, legacy},
		{"notifications/initialized", "", unknownMethod, ""},                                                                 // with an id
		{"resources/subscribe", `{"uri":"file:///pub/a"}`, unknownMethod, modern}, {"tasks/list", "", unknownMethod, modern}, // taken away
	} {
		for _, version := range []string{legacy, modern} {
			if tc.only != "" && tc.only != version {
				continue
			}
			t.Run(strings.ReplaceAll(fmt.Sprint("M09 ", tc.method, tc.params, " ", version), "/", "_"), func(t *testing.T) {
				a := g.rpc(tc.method, tc.params, version)
				want, status := tc.code, http.StatusOK
				if want == -1 {
					want = resource[version]
				}
				if version == modern && want == unknownMethod {
					status = http.StatusNotFound
				}
				if want == passes {
					if a.passed == nil || a.passed.Decision == nil || a.passed.Decision.Off {
						t.Errorf("%d %s", a.status, a.body)
					}
					return
				}
				if got := a.refusal(t); a.passed != nil || a.status != status || got.Error.Code != want || got.Error.Message == "" || got.ID != float64(1) {
					t.Errorf("%d %s, want %d %d", a.status, a.body, status, want)
				}
			})
		}
	}
	t.Run("a listed tool refused for its arguments", func(t *testing.T) {
		for _, version := range []string{legacy, modern} {
			a := g.rpc("tools/call", `{"name":"limited","arguments":{"n":10}}`, version)
			got := a.refusal(t)
			if a.passed != nil || a.status != http.StatusOK || !got.Result.IsError || got.Result.Content[0].Text != "Denied by policy" || (got.Result.ResultType == "complete") != (version == modern) {
				t.Errorf("%d %s", a.status, a.body)
			}
		}
	})
	t.Run("M09 without an id", func(t *testing.T) {
		for method, want := range map[string]int{
			"notifications/initialized": http.StatusAccepted, "notifications/com.example/x": http.StatusAccepted,
			"tools/call": http.StatusBadRequest, "com.example/run": http.StatusBadRequest, "ping": http.StatusBadRequest,
		} {
			a := g.send(request{body: `{"jsonrpc":"2.0","method":"` + method + `","params":{"name":"open"}}`})
			if a.status != want || (a.passed != nil) != (want == http.StatusAccepted) {
				t.Errorf("%s: %d %s", method, a.status, a.body)
			}
		}
	})
	t.Run("M06 headers of an older revision are nothing", func(t *testing.T) {
		a := g.send(request{
			body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"other"}}`, version: legacy,
			header: []string{"Mcp-Method", "tools/list", "Mcp-Name", "open"},
		})
		if a.passed != nil || a.refusal(t).Error.Code != hidden {
			t.Errorf("M06 %d %s", a.status, a.body)
		}
	})
	t.Run("M06 headers of the newest must agree", func(t *testing.T) {
		a := g.send(request{
			body:    `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"open","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
			version: modern, header: []string{"Mcp-Method", "tools/list", "Mcp-Name", "open"},
		})
		if a.passed != nil || a.status != http.StatusBadRequest || a.refusal(t).Error.Code != -32020 {
			t.Errorf("M06 %d %s", a.status, a.body)
		}
	})
	t.Run("M10 hidden and absent are one answer", func(t *testing.T) {
		g.policyOf(t, "m10", deny("tools/call:there"), grant("tools/call:open"))
		say := func(name string) string {
			return strings.ReplaceAll(g.send(request{path: "/mcp/m10", body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `"}}`}).body, name, "NAME")
		}
		if there, absent := say("there"), say("absent"); there != absent || !strings.Contains(there, "Unknown tool: NAME") {
			t.Errorf("M10 %s\n%s", there, absent)
		}
	})
	t.Run("GET and DELETE need no action", func(t *testing.T) {
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			if a := g.send(request{method: method}); a.passed == nil || a.passed.Decision == nil || (a.passed.Decision.Filter != nil) != (method == http.MethodGet) {
				t.Errorf("%s: %d %s", method, a.status, a.body)
			}
		}
	})
	t.Run("a client's response passes", func(t *testing.T) {
		if a := g.send(request{body: `{"jsonrpc":"2.0","id":"their-own","result":{}}`}); a.passed == nil {
			t.Errorf("%d %s", a.status, a.body)
		}
	})
	t.Run("M24 what is not JSON, or encoded", func(t *testing.T) {
		call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"open"}}`
		for _, header := range [][]string{{"Content-Encoding", "gzip"}, {"Content-Type", "multipart/form-data; boundary=x"}, {"Content-Type", "text/plain"}} {
			if a := g.send(request{body: call, header: header}); a.passed != nil || a.status != http.StatusUnsupportedMediaType {
				t.Errorf("M24 %v: %d %s", header, a.status, a.body)
			}
		}
	})
}

// policyOf makes a server with an active policy.
func (g *gateway) policyOf(t *testing.T, slug string, rules ...storage.Rule) {
	t.Helper()
	was := g.server
	defer func() { g.server = was }()
	g.server = g.createServer(slug)
	g.policy(storage.PolicyActive, rules...)
}

// TestWithoutActivePolicy checks M02: a call that no active policy grants is denied; a conversation can still begin.
func TestWithoutActivePolicy(t *testing.T) {
	g := newGateway(t, nil, nil)
	g.policy(storage.PolicyDraft, grant("*"))
	off := g.policy(storage.PolicyActive, grant("*"))
	g.update(off, func(p *storage.Policy) { p.Status = storage.PolicyInactive })
	gone := g.policy(storage.PolicyActive, grant("*"))
	g.update(gone, func(p *storage.Policy) { p.Status = storage.PolicyArchived })

	for _, method := range []string{"initialize", "ping", "tools/list"} {
		if a := g.rpc(method, "", legacy); a.passed == nil {
			t.Errorf("M02 %s: %d %s", method, a.status, a.body)
		}
	}
	if a := g.rpc("tools/call", `{"name":"x"}`, legacy); a.passed != nil || a.refusal(t).Error.Message != "Unknown tool: x" {
		t.Errorf("M02 %d %s", a.status, a.body)
	}
	listed := g.open(message("tools/list", "", legacy)).Decision.Filter
	got, err := listed.Message([]byte(`{"result":{"tools":[{"name":"x"}]}}`))
	if err != nil || string(got) != `{"result":{"tools":[]}}` {
		t.Errorf("M02 %s, %v", got, err)
	}
}

// TestBatches checks M03: nothing of a batch is forwarded when one of its messages is refused.
func TestBatches(t *testing.T) {
	g := newGateway(t, nil, nil)
	g.policy(storage.PolicyActive, grant("tools/call:open"), grant("tools/call:ask:approve"))
	call := func(id, tool string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `"}}`
	}
	batch := func(messages ...string) answer {
		return g.send(request{body: "[" + strings.Join(messages, ",") + "]", version: "2025-03-26"})
	}
	initialized := `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	open := batch(call("1", "open"), initialized, call("2", "open"))
	if open.passed == nil || len(open.passed.Judged) != 2 {
		t.Fatalf("M03 %d %s", open.status, open.body)
	}
	for name, a := range map[string]answer{
		"one is hidden": batch(call("1", "open"), initialized, call(`"b"`, "other")), "one asks": batch(call("1", "open"), call(`"b"`, "ask")),
		"one is no method": batch(call("1", "open"), `{"jsonrpc":"2.0","id":"b","method":"x"}`),
	} {
		var answers []refusal
		if err := json.Unmarshal([]byte(a.body), &answers); err != nil || a.passed != nil || a.status != http.StatusOK || len(answers) != 2 {
			t.Fatalf("M03 %s: %d %s", name, a.status, a.body)
		}
		if answers[0].ID != float64(1) || answers[0].Error.Code != -31403 || answers[1].ID != "b" || answers[1].Error.Code == 0 && !answers[1].Result.IsError {
			t.Errorf("M03 %s: %s", name, a.body)
		}
	}
	if a := batch(initialized, `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"open"}}`); a.passed != nil || a.refusal(t).Error.Code != -32600 {
		t.Errorf("M03 nobody to answer: %d %s", a.status, a.body)
	}
	for _, body := range []string{"[]", "[[" + call("1", "open") + "]]", "[" + strings.Repeat(call("1", "open")+",", 10_000) + call("1", "open") + "]"} {
		if a := g.send(request{body: body, version: "2025-03-26"}); a.passed != nil || a.status != http.StatusBadRequest {
			t.Errorf("M03 %.40s: %d", body, a.status)
		}
	}
	if a := g.send(request{body: "[" + call("1", "open") + "]", version: legacy}); a.passed != nil || a.status != http.StatusBadRequest {
		t.Errorf("M03 a revision without batches: %d %s", a.status, a.body)
	}
	asked, err := open.passed.Core.Asks.Ask(newID(), approval.Asker{})
	if err != nil {
		t.Fatal(err)
	}
	for id, goesOn := range map[string]bool{asked: false, "gw-1": true} {
		if a := batch(call("1", "open"), `{"jsonrpc":"2.0","id":"`+id+`","result":{}}`); (a.passed != nil) != goesOn {
			t.Errorf("the answer to %s in a batch: %d %s", id, a.status, a.body)
		}
	}
}

// TestTasks checks O14: a task belongs to the user, agent and server of the call that created it.
func TestTasks(t *testing.T) {
	g := newGateway(t, nil, nil)
	g.policy(storage.PolicyActive, grant("tools/call:open"))
	g.policyOf(t, "other", grant("*"))
	g.then = func(call *app.Call, w http.ResponseWriter, _ *http.Request) {
		if filter := call.Decision.Filter; filter != nil && call.Log.Tool == "open" {
			if _, err := filter.Message([]byte(`{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"t-1","status":"working"}}}`)); err != nil {
				t.Error(err)
			}
		}
		w.WriteHeader(http.StatusAccepted)
	}
	get := `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"t-1"}}`
	before := g.send(request{body: get})
	if a := g.rpc("tools/call", `{"name":"open","task":{"ttl":1000}}`, legacy); a.passed == nil || a.passed.Decision.Filter == nil {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if a := g.send(request{body: get}); a.passed == nil {
		t.Errorf("its own task: %d %s", a.status, a.body)
	}
	for name, q := range map[string]request{
		"another user":   {body: get, claims: object{"sub": "0192f0c1-5bd2-7000-8000-00000000b0b0"}},
		"another agent":  {body: get, claims: object{"azp": "another"}},
		"another server": {body: get, path: "/mcp/other"},
	} {
		if a := g.send(q); a.passed != nil || a.body != before.body {
			t.Errorf("O14 %s: %d %s, want %s", name, a.status, a.body, before.body)
		}
	}
	list := g.open(message("tasks/list", "", legacy)).Decision.Filter
	got, err := list.Message([]byte(`{"result":{"tasks":[{"taskId":"t-2"},{"taskId":"t-1"}]}}`))
	if err != nil || string(got) != `{"result":{"tasks":[{"taskId":"t-1"}]}}` {
		t.Errorf("O14 %s, %v", got, err)
	}
	if a := g.rpc("tools/call", `{"name":"open"}`, legacy); a.passed == nil || a.passed.Decision.Filter.Created != nil {
		t.Error("the answer to a plain call is searched for tasks")
	}
}

// TestStrayList checks M11: a client that reuses the id of a running list request for another request gets the list as
// that request's answer, from servers that tell requests apart by their ids alone. It is filtered there, too.
func TestStrayList(t *testing.T) {
	g := newGateway(t, nil, nil)
	g.policy(storage.PolicyActive, grant("tools/call:open"))
	for _, method := range []string{"ping", "initialize", "tools/call"} {
		got := ""
		g.then = func(call *app.Call, w http.ResponseWriter, _ *http.Request) {
			text, err := call.Decision.Filter.Message([]byte(`{"result":{"tools":[{"name":"hidden"},{"name":"open"}]},"jsonrpc":"2.0","id":1}`))
			if err != nil {
				t.Error(err)
			}
			got = string(text)
			w.WriteHeader(http.StatusAccepted)
		}
		g.rpc(method, `{"name":"open"}`, legacy)
		if want := `{"result":{"tools":[{"name":"open"}]},"jsonrpc":"2.0","id":1}`; got != want {
			t.Errorf("M11 %s: %s", method, got)
		}
	}
	g.then = func(call *app.Call, w http.ResponseWriter, _ *http.Request) {
		if _, err := call.Decision.Filter.Message([]byte(`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"hidden"}],"a":"\ud800"}}`)); err == nil || !strings.Contains(string(call.Decision.Filter.Refusal()), `"id":1,"error":{"code":-32603`) {
			t.Errorf("M11 unreadable: %v, %s", err, call.Decision.Filter.Refusal())
		}
		w.WriteHeader(http.StatusAccepted)
	}
	g.rpc("tools/call", `{"name":"open"}`, legacy)
	g.then = nil
	if a := g.rpc("tools/call", `{"name":"open"}`, modern); a.passed == nil || a.passed.Decision.Filter != nil {
		t.Error("answers of a revision without sessions are looked at")
	}
}

// TestM11Pages checks that a client gets cursors that say nothing and are good for nobody else, and the upstream gets
// back its own.
func TestM11Pages(t *testing.T) {
	g := newGateway(t, nil, nil)
	g.policy(storage.PolicyActive, grant("tools/call:open"))
	const page = `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"hidden"}],"nextCursor":"after <hidden>"}}`
	var cursor string
	g.then = func(call *app.Call, w http.ResponseWriter, _ *http.Request) {
		text, err := call.Decision.Filter.Message([]byte(page))
		var read struct {
			Result struct{ NextCursor, CacheScope string }
		}
		if err != nil || json.Unmarshal(text, &read) != nil || strings.Contains(string(text), "hidden") || read.Result.NextCursor == "" {
			t.Errorf("M11 %s, %v", text, err)
		}
		if modern := call.Decision.Filter.Private; modern != (read.Result.CacheScope == "private") {
			t.Errorf("cacheScope %q, %v", read.Result.CacheScope, modern)
		}
		cursor = read.Result.NextCursor
		w.WriteHeader(http.StatusAccepted)
	}
	for _, version := range []string{legacy, modern} {
		g.rpc("tools/list", "", version)
		if next := g.rpc("tools/list", `{"cursor":"`+cursor+`"}`, version); next.passed == nil {
			t.Errorf("M11 a cursor is refused: %s", next.body)
		}
	}
	for _, q := range []request{
		{body: `{"jsonrpc":"2.0","id":1,"method":"prompts/list","params":{"cursor":"` + cursor + `"}}`},
		{body: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"` + cursor + `"}}`, claims: object{"sub": "bob"}},
		{body: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"` + cursor + `"}}`, claims: object{"azp": "another-agent"}},
	} {
		if a := g.send(q); a.passed != nil || a.refusal(t).Error.Code != -32602 || a.refusal(t).Error.Message != "Invalid cursor" {
			t.Errorf("M11 %s: %s", q.body, a.body)
		}
	}
}

// TestM13PinsOfWhoMaySee checks that a definition that an upstream sends to a caller who may not see the tool is not
// pinned, and does not change an existing pin.
func TestM13PinsOfWhoMaySee(t *testing.T) {
	g := newGateway(t, nil, object{"pin": object{"enforce": true}})
	insiders := grant("tools/call:secret")
	insiders.RolesGroups = []string{"group:insiders"}
	g.policy(storage.PolicyActive, insiders, grant("tools/call:open"))
	list := func(claims object, secret string) string {
		t.Helper()
		g.then = func(call *app.Call, w http.ResponseWriter, _ *http.Request) {
			shown, err := call.Decision.Filter.Message([]byte(`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"open","description":"d"},{"name":"secret","description":"` + secret + `"}]}}`))
			if err != nil {
				t.Error(err)
			}
			_, _ = w.Write(shown)
		}
		return g.send(request{body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, claims: claims}).body
	}
	inside := object{"groups": []string{"insiders"}}
	if got := list(nil, "poisoned"); strings.Contains(got, "secret") || !strings.Contains(got, "open") {
		t.Error(got)
	}
	if got := list(inside, "honest"); !strings.Contains(got, "honest") {
		t.Errorf("M13 somebody who may not see the tool pinned it: %s", got)
	}
	list(nil, "in another language")
	if got := list(inside, "honest"); !strings.Contains(got, "honest") {
		t.Errorf("M13 somebody who may not see the tool withheld it: %s", got)
	}
	g.then = nil
	if a := g.send(request{body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"secret"}}`, claims: inside}); a.passed == nil {
		t.Errorf("M13 and its calls: %s", a.body)
	}
	if got := list(inside, "changed"); strings.Contains(got, "secret") {
		t.Errorf("M13 a changed tool is shown: %s", got)
	}
}

// TestApproval checks that a call that needs approval goes nowhere without it, and a machine, whom nobody can ask, is
// denied (M08).
func TestApproval(t *testing.T) {
	g := newGateway(t, nil, nil)
	g.policy(storage.PolicyActive, grant("tools/call:both"), grant("tools/call:both:approve"))
	if a := g.rpc("tools/call", `{"name":"both"}`, legacy); a.passed != nil || !a.refusal(t).Result.IsError {
		t.Errorf("M08 %d %s", a.status, a.body)
	}
	machine := object{"azp": nil, "client_id": "job", "sub": "job"}
	a := g.send(request{body: `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"both"}}`, claims: machine})
	if got := a.refusal(t); a.passed != nil || !got.Result.IsError || !strings.Contains(got.Result.Content[0].Text, "there is nobody to ask") {
		t.Errorf("a machine: %d %s", a.status, a.body)
	}
}

// TestChanges checks M22: a change of policies is in force for the next call once it is stored, and for lists on open
// streams.
func TestChanges(t *testing.T) {
	g := newGateway(t, nil, nil)
	p := g.policy(storage.PolicyActive, grant("tools/call:a"))
	stream := g.open(request{method: http.MethodGet}).Decision.Filter
	allowed := func(tool string) bool { return g.rpc("tools/call", `{"name":"`+tool+`"}`, legacy).passed != nil }
	listed := func() string {
		got, err := stream.Message([]byte(`{"result":{"tools":[{"name":"a"},{"name":"b"}]}}`))
		if err != nil {
			t.Error(err)
		}
		return string(got)
	}
	if !allowed("a") || allowed("b") || listed() != `{"result":{"tools":[{"name":"a"}]}}` {
		t.Fatalf("before: %v %v %s", allowed("a"), allowed("b"), listed())
	}
	for i := range 20 {
		tool, other := "ab"[i%2:i%2+1], "ab"[(i+1)%2:(i+1)%2+1]
		g.update(p, func(p *storage.Policy) { p.Rules = []storage.Rule{grant("tools/call:" + tool)} })
		if !allowed(tool) || allowed(other) || listed() != `{"result":{"tools":[{"name":"`+tool+`"}]}}` {
			t.Fatalf("M22 after change %d: %v %v %s", i, allowed(tool), allowed(other), listed())
		}
	}
	g.update(p, func(p *storage.Policy) { p.Status = storage.PolicyInactive })
	if allowed("a") || allowed("b") || listed() != `{"result":{"tools":[]}}` {
		t.Error("M22 a policy that was disabled decides")
	}
}

// TestChangesOfAgent checks M22 for the caller's agent: a client that becomes an agent while its stream is open then
// sees the objects that the policy for that agent grants.
func TestChangesOfAgent(t *testing.T) {
	g := newGateway(t, nil, nil)
	g.policy(storage.PolicyActive, grant("tools/call:a"))
	scoped := g.policy(storage.PolicyDraft, grant("tools/call:b"))
	now := time.Now().UTC()
	agent := storage.Agent{ID: newID(), OrganizationID: organization, CreatedAt: now, UpdatedAt: now, Application: storage.Application{
		ID: newID(), OrganizationID: organization, Issuer: g.issuer.URL, ExternalID: "agent", Name: "Agent",
	}}
	g.then = func(call *app.Call, w http.ResponseWriter, _ *http.Request) { // while the stream is open
		want := func(names string) {
			got, err := call.Decision.Filter.Message([]byte(`{"result":{"tools":[{"name":"a"},{"name":"b"}]}}`))
			if err != nil || string(got) != `{"result":{"tools":[`+names+`]}}` {
				t.Errorf("M22 %s, %v", got, err)
			}
		}
		want(`{"name":"a"}`)
		if err := g.store.CreateAgent(t.Context(), agent); err != nil {
			t.Error(err)
		}
		_, err := g.store.UpdatePolicy(t.Context(), organization, scoped.ID, "", now, func(p *storage.Policy) error {
			p.ApplicationIDs, p.Status = []string{agent.ID}, storage.PolicyActive
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		want(`{"name":"b"}`)
		if err := g.store.DeleteAgent(t.Context(), organization, agent.ID, "", now); err != nil {
			t.Error(err)
		}
		want(`{"name":"a"}`)
		w.WriteHeader(http.StatusAccepted)
	}
	if a := g.send(request{method: http.MethodGet}); a.status != http.StatusAccepted {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestOff checks that the setting `off` is noted on the call, so that nobody takes it for a decision that was
// forgotten.
func TestOff(t *testing.T) {
	g := newGateway(t, object{"off": true}, nil)
	if a := g.rpc("tools/call", `{"name":"anything"}`, legacy); a.passed == nil || a.passed.Decision == nil || !a.passed.Decision.Off {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// TestClaims checks that policies see what the verified token says, and its agent.
func TestClaims(t *testing.T) {
	g := newGateway(t, nil, nil)
	g.policy(storage.PolicyActive, when(grant("tools/call:open"), `P.attr.department == "sales" && P.attr.level >= 3`))
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"open"}}`
	for _, tc := range []struct {
		claims object
		want   bool
	}{
		{object{"department": "sales", "level": 3}, true}, {object{"department": "sales", "level": 2}, false},
		{object{"department": "Sales", "level": 3}, false}, {object{}, false}, {object{"department": []string{"sales"}, "level": 3}, false},
	} {
		if a := g.send(request{body: call, claims: tc.claims}); (a.passed != nil) != tc.want {
			t.Errorf("%v: %d %s", tc.claims, a.status, a.body)
		}
	}
}
