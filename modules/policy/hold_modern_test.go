package policy_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Capabilities of clients of 2026-07-28.
const (
	showsForms = `{"elicitation":{"form":{}}}`
	opensPages = `{"elicitation":{"url":{}}}`
)

// modernCall returns a tools/call of 2026-07-28; more is put into its params.
func modernCall(tool, arguments, capabilities, more string) string {
	if more != "" {
		more = "," + more
	}
	return `{"jsonrpc":"2.0","id":"m1","method":"tools/call","params":{"name":"` + tool + `","arguments":` + arguments +
		`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + capabilities + `}` + more + `}}`
}

// modernRPC posts it.
func (g *pipeline) modernRPC(user, client, body string) object {
	g.Helper()
	var m struct{ Params struct{ Name string } }
	_ = json.Unmarshal([]byte(body), &m)
	_, answer := g.rpc(user, client, body, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", m.Params.Name)
	return answer
}

// asks reads an answer that asks for input.
func asks(t *testing.T, answer object) (question object, state string) {
	t.Helper()
	result, _ := answer["result"].(object)
	requests, _ := result["inputRequests"].(object)
	ours, _ := requests["durward_approval"].(object)
	question, _ = ours["params"].(object)
	state, _ = result["requestState"].(string)
	if result["resultType"] != "input_required" || question == nil || state == "" || ours["method"] != "elicitation/create" {
		t.Fatalf("not a question: %v", answer)
	}
	return question, state
}

// word returns the part of a retry that answers the gateway's question.
func word(action, state string) string {
	encoded, _ := json.Marshal(state)
	return `"inputResponses":{"durward_approval":{"action":"` + action + `","content":{}}},"requestState":` + string(encoded)
}

// TestHoldModern checks that a client of 2026-07-28 asks its user, and repeats the call with the word and our state;
// what is ours never reaches the upstream.
func TestHoldModern(t *testing.T) {
	g := newPipeline(t)
	plain := modernCall("delete", `{"id":1.0}`, showsForms, "")
	question, state := asks(t, g.modernRPC(alice, inBandAgent, plain))
	if question["mode"] != "form" || !strings.Contains(question["message"].(string), "Arguments: {\n  \"id\": 1.0\n}") {
		t.Errorf("%v", question)
	}
	if got := g.calls(); len(got) != 0 {
		t.Fatalf("before the word, the upstream got %v", got)
	}
	answer := g.modernRPC(alice, inBandAgent, modernCall("delete", `{"id":1.0}`, showsForms, word("accept", state)))
	if text, failed := toolText(answer); text != "done" || failed {
		t.Fatalf("%v", answer)
	}
	if got := g.calls(); len(got) != 1 || got[0].body != plain {
		t.Errorf("the upstream got %v", got)
	}

	for _, action := range []string{"decline", "cancel"} {
		_, state = asks(t, g.modernRPC(alice, inBandAgent, plain))
		answer = g.modernRPC(alice, inBandAgent, modernCall("delete", `{"id":1.0}`, showsForms, word(action, state)))
		if text, failed := toolText(answer); !failed || !strings.HasPrefix(text, "Denied: the user") || answer["result"].(object)["resultType"] != "complete" {
			t.Errorf("%s: %v", action, answer)
		}
	}
	// No answer to the question: it is asked again, and is the same question.
	_, state = asks(t, g.modernRPC(alice, inBandAgent, plain))
	encoded, _ := json.Marshal(state)
	asks(t, g.modernRPC(alice, inBandAgent, modernCall("delete", `{"id":1.0}`, showsForms, `"requestState":`+string(encoded))))
	if pending := g.approvals("pending"); len(pending) != 1 {
		t.Errorf("pending: %v", pending)
	}
	if got := g.calls(); len(got) != 0 {
		t.Errorf("the upstream got %v", got)
	}
}

// TestHoldModernUnasked checks that an answer that is none sends the user to the page, in the way that the client knows
// (W30).
func TestHoldModernUnasked(t *testing.T) {
	g := newPipeline(t)
	for _, tc := range []struct{ name, capabilities, answer string }{
		{"an error", showsForms, `{"error":{"code":-32601,"message":"Method not found"}}`},
		{"an action that is none", showsForms, `{"action":"perhaps"}`},
		{"nothing in it", showsForms, `{}`},
		{"it opens pages", `{"elicitation":{"form":{},"url":{}}}`, `{"error":{"code":-32603,"message":"x"}}`},
	} {
		arguments := `{"case":"` + tc.name + `"}`
		_, state := asks(t, g.modernRPC(alice, inBandAgent, modernCall("delete", arguments, tc.capabilities, "")))
		retry := func(state string) object {
			encoded, _ := json.Marshal(state)
			return g.modernRPC(alice, inBandAgent, modernCall("delete", arguments, tc.capabilities,
				`"inputResponses":{"durward_approval":`+tc.answer+`},"requestState":`+string(encoded)))
		}
		answer := retry(state)
		pending := g.approvals("pending")
		if len(pending) != 1 || len(g.approvals("denied")) != 0 {
			t.Fatalf("%s: pending %v", tc.name, pending)
		}
		id := pending[0]["id"].(string)
		page := "https://gate.example.com/approvals/" + id
		if tc.name == "it opens pages" {
			question, state := asks(t, answer)
			if question["mode"] != "url" || question["url"] != page {
				t.Errorf("%s: %v", tc.name, question)
			}
			answer = retry(state) // nor can it open pages
		}
		if text, failed := toolText(answer); !failed || !strings.Contains(text, page) {
			t.Errorf("%s: %v", tc.name, answer)
		}
		g.api(console, http.MethodPost, "/api/approvals/"+id+"/approve", nil)
		answer = g.modernRPC(alice, inBandAgent, modernCall("delete", arguments, tc.capabilities, ""))
		if text, failed := toolText(answer); text != "done" || failed || len(g.calls()) != 1 {
			t.Errorf("%s, approved: %v", tc.name, answer)
		}
	}
}

// TestHoldModernForged checks that states that were changed, are another's, or were used, let nothing pass (M18).
func TestHoldModernForged(t *testing.T) {
	g := newPipeline(t)
	ask := func(user, client, tool, arguments string) string {
		_, state := asks(t, g.modernRPC(user, client, modernCall(tool, arguments, showsForms, "")))
		return state
	}
	state := ask(alice, inBandAgent, "delete", `{}`)
	for _, tc := range []struct {
		name, user, client, tool, arguments, more string
		invalid                                   bool // else the call is asked about, or denied
	}{
		{"M18 changed", alice, inBandAgent, "delete", `{}`, word("accept", state[:len(state)-2]+"AA"), true},
		{"M18 none", alice, inBandAgent, "delete", `{}`, `"inputResponses":{"durward_approval":{"action":"accept"}}`, true},
		{"what nobody asked, before the word", alice, inBandAgent, "delete", `{}`, `"inputResponses":{"reason":{"action":"accept"}}`, true},
		{"what nobody asked, with the word", alice, inBandAgent, "delete", `{}`, strings.Replace(word("accept", state), `{"durward`, `{"reason":{"action":"accept"},"durward`, 1), true},
		{"no object", alice, inBandAgent, "delete", `{}`, `"inputResponses":[]`, true},
		{"connected meanwhile", alice, inBandAgent, "delete", `{}`, `"inputResponses":{"durward_connect":{"action":"accept"}}`, false},
		{"M15 a task", alice, inBandAgent, "delete", `{}`, `"task":{},` + word("accept", state), false},
		{"M18 somebody's own", alice, inBandAgent, "delete", `{}`, word("accept", "e30"), true},
		{"M18 empty", alice, inBandAgent, "delete", `{}`, word("accept", ""), true},
		{"M18 not a string", alice, inBandAgent, "delete", `{}`, `"requestState":{}`, true},
		{"M18 another user's", bob, inBandAgent, "delete", `{}`, word("accept", state), true},
		{"M18 another client's", alice, externalAgent, "delete", `{}`, word("accept", state), true},
		{"M18 another tool", alice, inBandAgent, "purge", `{}`, word("accept", state), false},
		{"M18 other arguments", alice, inBandAgent, "delete", `{"all":true}`, word("accept", state), false},
	} {
		answer := g.modernRPC(tc.user, tc.client, modernCall(tc.tool, tc.arguments, showsForms, tc.more))
		failure, _ := answer["error"].(object)
		if (failure["code"] == -32602.0) != tc.invalid {
			t.Errorf("%s: %v", tc.name, answer)
		}
	}
	if got := g.calls(); len(got) != 0 {
		t.Fatalf("the upstream got %v", got)
	}

	// M15: of 200 retries with one state, in parallel, one is made.
	retry := modernCall("delete", `{}`, showsForms, word("accept", state))
	var wg sync.WaitGroup
	var made atomic.Int64
	for range 20 {
		wg.Go(func() {
			for range 10 {
				if text, failed := toolText(g.modernRPC(alice, inBandAgent, retry)); text == "done" && !failed {
					made.Add(1)
				} else if !failed || !strings.HasPrefix(text, "Denied: ") {
					t.Errorf("%q", text)
				}
			}
		})
	}
	wg.Wait()
	if got := g.calls(); len(got) != 1 || made.Load() != 1 {
		t.Errorf("made %d, the upstream got %v", made.Load(), got)
	}
}

// TestHoldModernMeta checks that the word is for the _meta that was asked about; traces may differ (M15).
func TestHoldModernMeta(t *testing.T) {
	g := newPipeline(t)
	call := func(meta, more string) object {
		return g.modernRPC(alice, inBandAgent, modernCall("delete", `{}`, showsForms+meta, more))
	}
	question, state := asks(t, call(`,"as":"alice","traceparent":"1"`, ""))
	if text, _ := question["message"].(string); !strings.HasSuffix(text, "\nBeside them: {\n  \"_meta\": {\n    \"as\": \"alice\"\n  }\n}") {
		t.Errorf("asked %q", text)
	}
	for _, meta := range []string{``, `,"as":"admin"`, `,"as":"alice","force":true`} {
		if answer := call(meta, word("accept", state)); len(g.calls()) != 0 {
			t.Fatalf("asked about another _meta, and made with %q: %v", meta, answer)
		}
	}
	if text, failed := toolText(call(`,"traceparent":"2","as":"alice"`, word("accept", state))); text != "done" || failed {
		t.Errorf("with the one that was asked about: %q", text)
	}
}

// TestHoldModernUpstreamAsks checks that the upstream's own questions and state pass, inside ours; the user is asked
// once for the call, and each round is good once.
func TestHoldModernUpstreamAsks(t *testing.T) {
	for _, tc := range []struct{ name, state string }{{"with a state", `"requestState":"up\u0073tream",`}, {"without", ``}} {
		for _, streams := range []bool{false, true} {
			t.Run(tc.name, func(t *testing.T) {
				g := newPipeline(t)
				g.answer(func(w http.ResponseWriter, body []byte) {
					answer := `{"jsonrpc":"2.0","id":"m1","result":{"content":[{"type":"text","text":"done"}],"resultType":"complete"}}`
					if !strings.Contains(string(body), `"reason"`) {
						answer = `{"jsonrpc":"2.0","id":"m1","result":{` + tc.state + `"resultType":"input_required","inputRequests":{"reason":{"method":"elicitation/create","params":{"message":"why?"}}}}}`
					}
					if streams {
						w.Header().Set("Content-Type", "text/event-stream")
						_, _ = io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\ndata: "+answer+"\n\n")
						return
					}
					writeJSON(w, answer)
				})
				last := func(body string) object {
					t.Helper()
					if !streams || !strings.Contains(body, "requestState") {
						return g.modernRPC(alice, inBandAgent, body)
					}
					s := g.stream(alice, inBandAgent, body, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "delete")
					s.next()
					return s.next()
				}
				_, state := asks(t, last(modernCall("delete", `{"x":1}`, showsForms, "")))
				answer := last(modernCall("delete", `{"x":1}`, showsForms, word("accept", state)))
				result, _ := answer["result"].(object)
				if diff := cmp.Diff(object{"reason": object{"method": "elicitation/create", "params": object{"message": "why?"}}}, result["inputRequests"]); diff != "" {
					t.Fatalf("%v\n%s", answer, diff)
				}
				wrapped, _ := result["requestState"].(string)
				if wrapped == "" || strings.Contains(wrapped, "upstream") {
					t.Fatalf("state %q", wrapped)
				}
				g.calls()
				const given = `"inputResponses":{"reason":{"action":"accept","content":{"n":1.50}}},"requestState":`
				// Not for another call.
				other := g.modernRPC(alice, inBandAgent, modernCall("delete", `{"x":2}`, showsForms, given+`"`+wrapped+`"`))
				if text, failed := toolText(other); !failed || !strings.HasPrefix(text, "Denied: ") {
					t.Errorf("for another call: %v", other)
				}
				answer = last(modernCall("delete", `{"x":1}`, showsForms, given+`"`+wrapped+`"`))
				if text, failed := toolText(answer); text != "done" || failed {
					t.Fatalf("%v", answer)
				}
				want := modernCall("delete", `{"x":1}`, showsForms, strings.TrimSuffix(given, `,"requestState":`))
				if tc.state != "" {
					want = modernCall("delete", `{"x":1}`, showsForms, given+`"upstream"`)
				}
				if got := g.calls(); len(got) != 1 || got[0].body != want {
					t.Errorf("the upstream got %v, want %s", got, want)
				}
				again := g.modernRPC(alice, inBandAgent, modernCall("delete", `{"x":1}`, showsForms, given+`"`+wrapped+`"`))
				if text, failed := toolText(again); !failed || !strings.HasPrefix(text, "Denied: the approval") || len(g.calls()) != 0 {
					t.Errorf("M15 a round twice: %v", again)
				}
			})
		}
	}
}

// TestHoldModernPage checks that a client that opens pages only is given the page's address, and its retry passes once
// the user has approved there.
func TestHoldModernPage(t *testing.T) {
	g := newPipeline(t)
	for _, client := range []string{inBandAgent, externalAgent, stranger} {
		question, state := asks(t, g.modernRPC(alice, client, modernCall("delete", `{}`, opensPages, "")))
		pending := g.approvals("pending")
		id := pending[0]["id"].(string)
		if question["mode"] != "url" || question["url"] != "https://gate.example.com/approvals/"+id {
			t.Errorf("%v", question)
		}
		retry := modernCall("delete", `{}`, opensPages, word("accept", state))
		done := make(chan object)
		go func() { done <- g.modernRPC(alice, client, retry) }() // "accept" says that the page was opened, and no more
		g.api(console, http.MethodPost, "/api/approvals/"+id+"/approve", nil)
		if text, failed := toolText(<-done); text != "done" || failed {
			t.Errorf("%s: %q", client, text)
		}
		if got := g.calls(); len(got) != 1 {
			t.Errorf("the upstream got %v", got)
		}
	}
	// Its user may say no to the client, which knows nothing of a page then: nobody is made to wait for one, and nothing is
	// left to decide on.
	for _, action := range []string{"decline", "cancel"} {
		for _, client := range []string{inBandAgent, externalAgent} {
			_, state := asks(t, g.modernRPC(alice, client, modernCall("purge", `{}`, opensPages, "")))
			answer := g.modernRPC(alice, client, modernCall("purge", `{}`, opensPages, word(action, state)))
			if text, failed := toolText(answer); !failed || !strings.HasPrefix(text, "Denied: the user did not approve") {
				t.Errorf("%s, %s: %v", client, action, answer)
			}
			if pending := g.approvals("pending"); len(pending) != 0 {
				t.Errorf("%s, %s: %v waits", client, action, pending)
			}
		}
	}
	// A client that declares nothing gets words.
	answer := g.modernRPC(alice, inBandAgent, modernCall("delete", `{}`, `{}`, ""))
	if text, failed := toolText(answer); !failed || !strings.Contains(text, "/approvals/") {
		t.Errorf("%v", answer)
	}
	g.api(console, http.MethodPost, "/api/approvals/"+g.approvals("pending")[0]["id"].(string)+"/approve", nil)
	if text, failed := toolText(g.modernRPC(alice, inBandAgent, modernCall("delete", `{}`, `{}`, ""))); text != "done" || failed {
		t.Errorf("%q", text)
	}
	// M18: external agents may not answer for their users.
	answer = g.modernRPC(alice, externalAgent, modernCall("delete", `{}`, showsForms, ""))
	if text, failed := toolText(answer); !failed || !strings.Contains(text, "/approvals/") {
		t.Errorf("%v", answer)
	}
}

// TestHoldModernUpstreamAsksOften checks that a call has one answer. An upstream that gives more gets no more rounds,
// each of which would be kept.
func TestHoldModernUpstreamAsksOften(t *testing.T) {
	g := newPipeline(t)
	g.answer(func(w http.ResponseWriter, _ []byte) {
		w.Header().Set("Content-Type", "text/event-stream")
		for range 3 {
			_, _ = io.WriteString(w, `data: {"jsonrpc":"2.0","id":"m1","result":{"resultType":"input_required","inputRequests":{"reason":{}}}}`+"\n\n")
		}
	})
	_, state := asks(t, g.modernRPC(alice, inBandAgent, modernCall("delete", `{}`, showsForms, "")))
	s := g.stream(alice, inBandAgent, modernCall("delete", `{}`, showsForms, word("accept", state)),
		"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "delete")
	rounds := 0
	for m := s.next(); m != nil; m = s.next() {
		if result, _ := m["result"].(object); result["requestState"] != nil {
			rounds++
		}
	}
	if kept := g.approvals("approved"); rounds != 1 || len(kept) != 1 {
		t.Errorf("%d rounds, %d of them kept", rounds, len(kept))
	}
}

// TestHoldModernAnother checks that our state is taken out of a call also when it is of another one, and the call is
// approved already.
func TestHoldModernAnother(t *testing.T) {
	g := newPipeline(t)
	_, state := asks(t, g.modernRPC(alice, inBandAgent, modernCall("delete", `{"n":1}`, showsForms, "")))
	g.api(console, http.MethodPost, "/api/approvals/"+g.approvals("pending")[0]["id"].(string)+"/deny", nil)
	asks(t, g.modernRPC(alice, inBandAgent, modernCall("delete", `{"n":2}`, showsForms, "")))
	g.api(console, http.MethodPost, "/api/approvals/"+g.approvals("pending")[0]["id"].(string)+"/approve", nil)
	answer := g.modernRPC(alice, inBandAgent, modernCall("delete", `{"n":2}`, showsForms, word("accept", state)))
	if text, failed := toolText(answer); text != "done" || failed {
		t.Errorf("%v", answer)
	}
	if got := g.calls(); len(got) != 1 || got[0].body != modernCall("delete", `{"n":2}`, showsForms, "") {
		t.Errorf("the upstream got %v", got)
	}
}

// TestHoldModernAllowed checks that a policy that asks no more takes our state for what it is; an upstream's own state
// passes as it is.
func TestHoldModernAllowed(t *testing.T) {
	g := newPipeline(t)
	_, state := asks(t, g.modernRPC(alice, inBandAgent, modernCall("delete", `{}`, showsForms, "")))
	granting := []any{object{"name": "all", "authorized": true, "actions": []string{"*"}}}
	g.api(console, http.MethodPatch, "/api/v2/policies/"+g.policy, object{"rules": granting})
	otherGateways := "dw1.012345678901." + state[len("dw1.012345678901."):]
	for _, tc := range []struct{ name, sent, want string }{
		{"ours", modernCall("delete", `{}`, showsForms, word("accept", state)), modernCall("delete", `{}`, showsForms, "")},
		{"the upstream's", modernCall("delete", `{ }`, showsForms, word("accept", "x\u0079")), modernCall("delete", `{ }`, showsForms, word("accept", "x\u0079"))},
		{"the upstream's, which is a gateway", modernCall("delete", `{}`, showsForms, word("decline", otherGateways)), modernCall("delete", `{}`, showsForms, word("decline", otherGateways))},
	} {
		if text, failed := toolText(g.modernRPC(alice, inBandAgent, tc.sent)); text != "done" || failed {
			t.Errorf("%s: %q", tc.name, text)
		}
		if got := g.calls(); len(got) != 1 || got[0].body != tc.want {
			t.Errorf("%s: the upstream got %v", tc.name, got)
		}
	}
	answer := g.modernRPC(bob, inBandAgent, modernCall("delete", `{}`, showsForms, word("accept", state)))
	if failure, _ := answer["error"].(object); failure["code"] != -32602.0 || len(g.calls()) != 0 {
		t.Errorf("another's: %v", answer)
	}
}

// TestHoldModernAllowedMeanwhile checks that a call that its user refused, at the client or on the page, is not made
// when the policy no longer asks.
func TestHoldModernAllowedMeanwhile(t *testing.T) {
	g := newPipeline(t)
	said := map[string]func(state, id string) string{
		"declined": func(state, _ string) string { return word("decline", state) },
		"canceled": func(state, _ string) string { return word("cancel", state) },
		"denied on the page, and accepted": func(state, id string) string {
			g.api(console, http.MethodPost, "/api/approvals/"+id+"/deny", nil)
			return word("accept", state)
		},
		"denied on the page, and not answered": func(state, id string) string {
			g.api(console, http.MethodPost, "/api/approvals/"+id+"/deny", nil)
			encoded, _ := json.Marshal(state)
			return `"requestState":` + string(encoded)
		},
	}
	retries := make(map[string]string)
	for name, say := range said {
		arguments := `{"n":"` + name + `"}`
		_, state := asks(t, g.modernRPC(alice, inBandAgent, modernCall("delete", arguments, showsForms, "")))
		retries[name] = modernCall("delete", arguments, showsForms, say(state, g.approvals("pending")[0]["id"].(string)))
	}
	granting := []any{object{"name": "all", "authorized": true, "actions": []string{"*"}}}
	g.api(console, http.MethodPatch, "/api/v2/policies/"+g.policy, object{"rules": granting})
	for name, retry := range retries {
		answer := g.modernRPC(alice, inBandAgent, retry)
		if text, failed := toolText(answer); !failed || !strings.HasPrefix(text, "Denied: the user did not approve") {
			t.Errorf("%s: %v", name, answer)
		}
	}
	if got := g.calls(); len(got) != 0 {
		t.Errorf("the upstream got %v", got)
	}
	if denied := g.approvals("denied"); len(denied) != len(retries) {
		t.Errorf("denied: %v", denied)
	}
}
