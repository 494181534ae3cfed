package policy_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const formCapability = `{"elicitation":{}}`

// TestHoldInBand checks that a client of the revisions with sessions asks its user on the call's own stream, and the
// answer to the call comes on it, whatever the upstream answers with.
func TestHoldInBand(t *testing.T) {
	g := newPipeline(t)
	session := g.session(alice, inBandAgent, "2025-06-18", formCapability)
	for _, tc := range []struct {
		name   string
		word   string
		reply  func(w http.ResponseWriter, body []byte)
		want   string
		failed bool
		made   int
	}{
		{"accept, JSON", yes, nil, "done", false, 1},
		{"accept, a stream", yes, func(w http.ResponseWriter, _ []byte) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, ": hello\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\ndata: \"result\":{\"content\":[{\"type\":\"text\",\"text\":\"streamed\"}]}}\n\n")
		}, "streamed", false, 1},
		{"decline", no, nil, "Denied: the user did not approve", true, 0},
		{"cancel", `"result":{"action":"cancel"}`, nil, "Denied: the user did not approve", true, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g.answer(tc.reply)
			s := g.stream(alice, inBandAgent, toolCall(7, "delete", `{"id":1.0, "a":"b"}`), session...)
			id := s.asked()
			if got := g.calls(); len(got) != 0 {
				t.Fatalf("before the word, the upstream got %v", got)
			}
			if status := g.replyTo(alice, inBandAgent, id, tc.word, session...); status != http.StatusAccepted {
				t.Errorf("answered: %d", status)
			}
			text, failed := toolText(s.next())
			if !strings.HasPrefix(text, tc.want) || failed != tc.failed {
				t.Errorf("%q, %v", text, failed)
			}
			if more := s.next(); more != nil {
				t.Errorf("and then %v", more)
			}
			// Single use: the same answer again changes nothing, and reaches nobody.
			if status := g.replyTo(alice, inBandAgent, id, yes, session...); status != http.StatusAccepted {
				t.Errorf("answered again: %d", status)
			}
			got := g.calls()
			if len(got) != tc.made || tc.made == 1 && got[0].body != toolCall(7, "delete", `{"id":1.0, "a":"b"}`) {
				t.Errorf("the upstream got %v", got)
			}
		})
	}
	if used := g.approvals("used"); len(used) != 2 || used[0]["decided_via"] != "in_band" {
		t.Errorf("used: %v", used)
	}
}

// TestHoldUnasked checks that a client that declares elicitation and answers the question with an error, or with what
// is no answer, has not asked its user: the call waits for the page, nothing is decided, and the client is not asked
// again (W30).
func TestHoldUnasked(t *testing.T) {
	for _, tc := range []struct{ name, version, capabilities, word string }{
		{"method not found", "2025-06-18", formCapability, `"error":{"code":-32601,"message":"Method not found"}`},
		{"invalid request", "2025-11-25", formCapability, `"error":{"code":-32600,"message":"Invalid Request"}`},
		{"internal error", "2025-06-18", formCapability, `"error":{"code":-32603,"message":"x"}`},
		{"a result without an action", "2025-06-18", formCapability, `"result":{}`},
		{"an action that is none", "2025-06-18", formCapability, `"result":{"action":"perhaps"}`},
		{"it opens pages", "2025-11-25", `{"elicitation":{"form":{},"url":{}}}`, `"error":{"code":-32601,"message":"Method not found"}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := newPipeline(t)
			session := g.session(alice, inBandAgent, tc.version, tc.capabilities)
			call := toolCall(7, "delete", `{}`)
			s := g.stream(alice, inBandAgent, call, session...)
			id := s.asked()
			if status := g.replyTo(alice, inBandAgent, id, tc.word, session...); status != http.StatusAccepted {
				t.Fatalf("answered: %d", status)
			}
			pending := g.approvals("pending")
			if len(pending) != 1 || pending[0]["decided_at"] != nil || len(g.approvals("denied")) != 0 {
				t.Fatalf("pending: %v", pending)
			}
			page := "https://gate.example.com/approvals/" + pending[0]["id"].(string)
			sent := func(where string, answer object) {
				t.Helper()
				if tc.name == "it opens pages" {
					failure, _ := answer["error"].(object)
					data, _ := failure["data"].(object)
					elicitations, _ := data["elicitations"].([]any)
					if failure["code"] != -32042.0 || len(elicitations) != 1 || elicitations[0].(object)["url"] != page {
						t.Errorf("%s: %v", where, answer)
					}
					return
				}
				if text, failed := toolText(answer); !failed || !strings.Contains(text, page) {
					t.Errorf("%s: %v", where, answer)
				}
			}
			sent("on the stream", s.next())
			_, again := g.rpc(alice, inBandAgent, call, session...)
			sent("asked again", again)
			// A word that the client brings after all decides nothing: it has said that it asked nobody.
			if status := g.replyTo(alice, inBandAgent, id, yes, session...); status != http.StatusBadRequest {
				t.Errorf("a yes afterwards: %d", status)
			}
			if got := g.calls(); len(got) != 0 {
				t.Fatalf("the upstream got %v", got)
			}
			g.api(console, http.MethodPost, "/api/approvals/"+pending[0]["id"].(string)+"/approve", nil)
			_, answer := g.rpc(alice, inBandAgent, call, session...)
			if text, failed := toolText(answer); text != "done" || failed {
				t.Errorf("approved on the page: %v", answer)
			}
			if used := g.approvals("used"); len(used) != 1 || used[0]["decided_via"] != "out_of_band" {
				t.Errorf("used: %v", used)
			}
		})
	}
}

// TestHoldNotificationForAnswer checks that a client that answers the question with a notification has not answered,
// whatever it says: it is told so where the method is none, nothing is decided and nothing leaves (W30). The call waits
// on, and the page decides.
func TestHoldNotificationForAnswer(t *testing.T) {
	g := newPipeline(t)
	session := g.session(alice, inBandAgent, "2025-11-25", formCapability)
	for decision, want := range map[string]string{"approve": "done", "deny": "Denied: the user did not approve"} {
		s := g.stream(alice, inBandAgent, toolCall(7, "delete", `{}`), session...)
		id := s.asked()
		for method, want := range map[string]int{
			"elicitation/response": http.StatusBadRequest, "notifications/elicitation/response": http.StatusAccepted, "notifications/elicitation/complete": http.StatusAccepted,
		} {
			word := `{"jsonrpc":"2.0","method":"` + method + `","params":{"elicitationId":"` + id + `","action":"accept","content":{}}}`
			if status, answer := g.rpc(alice, inBandAgent, word, session...); status != want {
				t.Errorf("%s: %d %v", method, status, answer)
			}
		}
		pending := g.approvals("pending")
		if got := g.calls(); len(pending) != 1 || pending[0]["decided_at"] != nil || len(got) != 0 {
			t.Fatalf("pending: %v; the upstream got %v", pending, got)
		}
		g.api(console, http.MethodPost, "/api/approvals/"+pending[0]["id"].(string)+"/"+decision, nil)
		answer := s.next()
		if text, failed := toolText(answer); answer["id"] != 7.0 || !strings.HasPrefix(text, want) || failed != (decision == "deny") {
			t.Errorf("%s: %v", decision, answer)
		}
		g.calls()
	}
}

// TestHoldUpstreamRefuses checks that a refusal of a later step becomes an answer on the open stream, and so does a
// notification in place of the answer.
func TestHoldUpstreamRefuses(t *testing.T) {
	const news = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`
	for name, reply := range map[string]func(w http.ResponseWriter, body []byte){
		"a failure":                  func(w http.ResponseWriter, _ []byte) { w.WriteHeader(http.StatusInternalServerError) },
		"W30 a notification in JSON": func(w http.ResponseWriter, _ []byte) { writeJSON(w, news) },
		"W30 a notification, and nothing else": func(w http.ResponseWriter, _ []byte) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: "+news+"\n\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newPipeline(t)
			session := g.session(alice, inBandAgent, "2025-06-18", formCapability)
			g.answer(reply)
			s := g.stream(alice, inBandAgent, toolCall(7, "delete", `{}`), session...)
			g.replyTo(alice, inBandAgent, s.asked(), yes, session...)
			m := s.next()
			if m["method"] == "notifications/message" {
				m = s.next()
			}
			if failure, _ := m["error"].(object); m["id"] != 7.0 || failure["code"] != -32603.0 {
				t.Errorf("%v", m)
			}
			if more := s.next(); more != nil {
				t.Errorf("and then %v", more)
			}
		})
	}
}

// TestHoldPage checks that clients that cannot be asked are sent to the page; the same call passes once its user has
// approved, once.
func TestHoldPage(t *testing.T) {
	g := newPipeline(t)
	for _, tc := range []struct {
		name, client, tool string
		session            []string
	}{
		{"without elicitation", inBandAgent, "delete", g.session(alice, inBandAgent, "2025-06-18", `{}`)},
		{"a revision without elicitation", inBandAgent, "delete", g.session(alice, inBandAgent, "2025-03-26", formCapability)},
		{"no session", inBandAgent, "delete", nil},
		{"M18 an external agent", externalAgent, "delete", g.session(alice, externalAgent, "2025-06-18", formCapability)},
		{"M18 not registered", stranger, "delete", g.session(alice, stranger, "2025-06-18", formCapability)},
		{"a rule that demands it", inBandAgent, "purge", g.session(alice, inBandAgent, "2025-06-18", formCapability)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g.T = t
			body := toolCall(3, tc.tool, `{"n":`+string(rune('0'+len(tc.name)%10))+`}`)
			for range 2 { // nothing new is asked while one is pending
				_, answer := g.rpc(alice, tc.client, body, tc.session...)
				if text, failed := toolText(answer); !failed || !strings.Contains(text, "https://gate.example.com/approvals/") {
					t.Fatalf("%v", answer)
				}
			}
			pending := g.approvals("pending")
			if len(pending) != 1 || pending[0]["tool"] != tc.tool || pending[0]["client"] != tc.client {
				t.Fatalf("pending: %v", pending)
			}
			path := "/api/approvals/" + pending[0]["id"].(string)
			for client, want := range map[string]int{tc.client: http.StatusForbidden, stranger: http.StatusForbidden} {
				if status, answer := g.tryAPI(alice, client, http.MethodPost, path+"/approve", nil); status != want {
					t.Errorf("R04 approved with %s: %d %v", client, status, answer)
				}
			}
			if status, answer := g.tryAPI(bob, console, http.MethodPost, path+"/approve", nil); status != http.StatusNotFound || answer["error"] != "ApprovalNotFound" {
				t.Errorf("R04 approved by another user: %d %v", status, answer)
			}
			g.api(console, http.MethodPost, path+"/approve", nil)
			if status, _ := g.tryAPI(alice, console, http.MethodPost, path+"/deny", nil); status != http.StatusConflict {
				t.Errorf("decided twice: %d", status)
			}
			// Another spelling of the same call is the same call; other arguments are not.
			if _, answer := g.rpc(alice, tc.client, strings.ReplaceAll(body, `"n":`, `"n":1`), tc.session...); answer["result"].(object)["isError"] != true {
				t.Errorf("another call passed: %v", answer)
			}
			if _, answer := g.rpc(bob, tc.client, body); answer["result"].(object)["isError"] != true {
				t.Errorf("another user's call passed: %v", answer)
			}
			if got := g.calls(); len(got) != 0 {
				t.Fatalf("the upstream got %v", got)
			}
			_, answer := g.rpc(alice, tc.client, strings.ReplaceAll(body, `"n":`, `"\u006e" : `), tc.session...)
			if text, failed := toolText(answer); text != "done" || failed {
				t.Errorf("approved: %v", answer)
			}
			_, answer = g.rpc(alice, tc.client, body, tc.session...)
			if _, failed := toolText(answer); !failed {
				t.Errorf("M15 passed twice: %v", answer)
			}
			if got := g.calls(); len(got) != 1 {
				t.Errorf("the upstream got %v", got)
			}
			for _, left := range g.approvals("pending") {
				g.tryAPI(left["user_id"].(string), console, http.MethodPost, "/api/approvals/"+left["id"].(string)+"/deny", nil)
			}
		})
	}
}

// TestHoldURL checks that clients of 2025-11-25 that open pages are given the address in an error that they know.
func TestHoldURL(t *testing.T) {
	g := newPipeline(t)
	session := g.session(alice, externalAgent, "2025-11-25", `{"elicitation":{"url":{}}}`)
	_, answer := g.rpc(alice, externalAgent, toolCall(3, "delete", `{}`), session...)
	failure, _ := answer["error"].(object)
	if failure["code"] != -32042.0 {
		t.Fatalf("%v", answer)
	}
	asked := failure["data"].(object)["elicitations"].([]any)[0].(object)
	id := g.approvals("pending")[0]["id"].(string)
	if asked["mode"] != "url" || asked["url"] != "https://gate.example.com/approvals/"+id || !strings.Contains(asked["message"].(string), `"delete"`) {
		t.Errorf("%v", asked)
	}
}

// TestHoldAnswers checks that answers from elsewhere, and to what nobody asked, are refused and never forwarded (M18).
func TestHoldAnswers(t *testing.T) {
	g := newPipeline(t)
	session := g.session(alice, inBandAgent, "2025-06-18", formCapability)
	s := g.stream(alice, inBandAgent, toolCall(7, "delete", `{}`), session...)
	id := s.asked()
	others := g.session(bob, inBandAgent, "2025-06-18", formCapability)
	for _, tc := range []struct {
		name, user, client, id string
		header                 []string
	}{
		{"M18 another user", bob, inBandAgent, id, others},
		{"M18 another client", alice, externalAgent, id, g.session(alice, externalAgent, "2025-06-18", formCapability)},
		{"M18 no session", alice, inBandAgent, id, nil},
		{"M18 never asked", alice, inBandAgent, ownIDs(id) + "1", session},
		{"M18 changed", alice, inBandAgent, id[:len(id)-2] + "AA", session},
	} {
		if status := g.replyTo(tc.user, tc.client, tc.id, yes, tc.header...); status != http.StatusBadRequest {
			t.Errorf("%s: %d", tc.name, status)
		}
	}
	if got := g.calls(); len(got) != 0 {
		t.Errorf("the upstream got %v", got)
	}
	if status := g.replyTo(alice, inBandAgent, id, yes, session...); status != http.StatusAccepted {
		t.Errorf("the user's own: %d", status)
	}
	if text, failed := toolText(s.next()); text != "done" || failed {
		t.Errorf("%q", text)
	}
	// An id is the same however it is spelled.
	g.calls()
	s = g.stream(alice, inBandAgent, toolCall(7, "delete", `{"again":true}`), session...)
	if status := g.replyTo(alice, inBandAgent, `\u0067`+s.asked()[1:], no, session...); status != http.StatusAccepted || len(g.calls()) != 0 {
		t.Errorf("spelled with an escape: %d", status)
	}
	if text, failed := toolText(s.next()); !failed || !strings.HasPrefix(text, "Denied: the user") {
		t.Errorf("%q", text)
	}
	// The server's own questions are answered to the server, those of one that is a gateway too; what it did not ask is not.
	for _, theirs := range []string{"server-1", "gw-1", "gw-012345678901-" + strings.TrimPrefix(id, ownIDs(id))} {
		g.answer(func(w http.ResponseWriter, _ []byte) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, `data: {"jsonrpc":"2.0","id":"`+theirs+`","method":"elicitation/create","params":{}}`+"\n\n"+
				`data: {"jsonrpc":"2.0","id":8,"result":{"content":[]}}`+"\n\n")
		})
		s := g.stream(alice, inBandAgent, toolCall(8, "list", `{}`), session...)
		asked, _ := s.next()["id"].(string)
		g.answer(func(w http.ResponseWriter, _ []byte) { w.WriteHeader(http.StatusAccepted) })
		g.calls()
		if status := g.replyTo(alice, inBandAgent, theirs, yes, session...); status != http.StatusAccepted || len(g.calls()) != 0 {
			t.Errorf("%s, which nobody was asked under, is answered %d, or reached the upstream", theirs, status)
		}
		if status := g.replyTo(alice, inBandAgent, asked, yes, session...); status != http.StatusAccepted {
			t.Errorf("%s to the server: %d", theirs, status)
		}
		if got := g.calls(); len(got) != 1 || !strings.Contains(got[0].body, `"`+theirs+`"`) {
			t.Errorf("%s: the upstream got %v", theirs, got)
		}
	}
}

// TestHoldGone checks that the request for approval stays when its client goes away; a call that was cancelled is not
// made.
func TestHoldGone(t *testing.T) {
	g := newPipeline(t)
	session := g.session(alice, inBandAgent, "2025-06-18", formCapability)
	s := g.stream(alice, inBandAgent, toolCall(7, "delete", `{"x":1}`), session...)
	id := s.asked()
	s.close()
	if left := g.approvals("pending"); len(left) != 1 {
		t.Fatalf("left: %v", left)
	}
	if status := g.replyTo(alice, inBandAgent, id, yes, session...); status != http.StatusAccepted {
		t.Errorf("answered: %d", status)
	}
	if got := g.calls(); len(got) != 0 {
		t.Fatalf("nobody waited, and the upstream got %v", got)
	}
	// The next try has its approval.
	if _, answer := g.rpc(alice, inBandAgent, toolCall(8, "delete", `{"x":1}`), session...); answer["id"] != 8.0 || len(g.calls()) != 1 {
		t.Errorf("%v", answer)
	}

	for i, spelled := range []struct{ called, canceled string }{{`9`, `9`}, {`"c1"`, `"c1"`}, {`"c1"`, `"\u00631"`}, {`"\u00631"`, `"c1"`}, {`9`, `9.0`}} {
		call := strings.Replace(toolCall(9, "delete", `{"x":1`+strconv.Itoa(i)+`}`), `"id":9`, `"id":`+spelled.called, 1)
		s = g.stream(alice, inBandAgent, call, session...)
		id = s.asked()
		g.rpc(alice, inBandAgent, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+spelled.canceled+`}}`, session...)
		g.replyTo(alice, inBandAgent, id, yes, session...)
		if m := s.next(); m != nil {
			t.Errorf("%v: taken back: %v", spelled, m)
		}
		if got := g.calls(); len(got) != 1 || got[0].method != "notifications/cancelled" {
			t.Errorf("%v: the upstream got %v", spelled, got)
		}
	}
}

// TestHoldTakenBackInABatch takes a held call back beside another message. A session of the revision that has batches can hold calls
// whose client names a later one with them.
func TestHoldTakenBackInABatch(t *testing.T) {
	g := newPipeline(t)
	id := g.initialize(alice, inBandAgent, "2025-03-26", formCapability)
	calls := []string{"Mcp-Session-Id", id, "MCP-Protocol-Version", "2025-06-18"}
	takes := []string{"Mcp-Session-Id", id, "MCP-Protocol-Version", "2025-03-26"}
	const refused = `{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"drop"}}`
	for i, tc := range []struct {
		beside    string
		takenBack bool
	}{
		{`{"jsonrpc":"2.0","id":8,"method":"ping"}`, true},
		{`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, true},
		{refused, false}, // nothing of the batch is done
	} {
		g.calls()
		s := g.stream(alice, inBandAgent, toolCall(7, "delete", `{"x":`+strconv.Itoa(i)+`}`), calls...)
		asked := s.asked()
		g.rpc(alice, inBandAgent, `[`+tc.beside+`,{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}]`, takes...)
		g.replyTo(alice, inBandAgent, asked, yes, calls...)
		switch m := s.next(); {
		case tc.takenBack && m != nil:
			t.Errorf("beside %s: taken back: %v", tc.beside, m)
		case !tc.takenBack && m == nil:
			t.Errorf("beside %s: the call has no answer", tc.beside)
		}
		for _, got := range g.calls() {
			if got.method == "tools/call" && tc.takenBack {
				t.Errorf("beside %s: the upstream got %v", tc.beside, got)
			}
		}
	}
}

// TestHoldRestart checks that a call that was held before a restart is decided after it, over another connection.
func TestHoldRestart(t *testing.T) {
	g := newPipeline(t)
	session := g.session(alice, inBandAgent, "2025-06-18", formCapability)
	s := g.stream(alice, inBandAgent, toolCall(7, "delete", `{}`), session...)
	id := s.asked()
	http.DefaultClient.CloseIdleConnections()
	g.load()
	if status := g.replyTo(alice, inBandAgent, id, yes, session...); status != http.StatusAccepted {
		t.Errorf("answered: %d", status)
	}
	// The stream of before a reload goes on.
	if text, _ := toolText(s.next()); text != "done" {
		t.Errorf("%q", text)
	}
}

// TestHoldPolicyChange checks that an approval is not valid for a call under another policy than it was asked for under
// (M15).
func TestHoldPolicyChange(t *testing.T) {
	g := newPipeline(t)
	session := g.session(alice, inBandAgent, "2025-06-18", formCapability)

	s := g.stream(alice, inBandAgent, toolCall(7, "delete", `{"x":1}`), session...)
	first := s.asked()
	g.api(console, http.MethodPatch, "/api/v2/policies/"+g.policy, object{"description": "changed"})
	g.replyTo(alice, inBandAgent, first, yes, session...)
	second := s.asked() // asked anew
	if got := g.calls(); len(got) != 0 {
		t.Fatalf("the upstream got %v", got)
	}
	g.replyTo(alice, inBandAgent, second, yes, session...)
	if text, _ := toolText(s.next()); text != "done" {
		t.Errorf("%q", text)
	}

	s = g.stream(alice, inBandAgent, toolCall(7, "delete", `{"x":2}`), session...)
	first = s.asked()
	g.calls()
	denying := append(askingRules(), object{"name": "no", "authorized": false, "actions": []string{"tools/call:delete"}})
	g.api(console, http.MethodPatch, "/api/v2/policies/"+g.policy, object{"rules": denying})
	g.replyTo(alice, inBandAgent, first, yes, session...)
	if text, failed := toolText(s.next()); !strings.HasPrefix(text, "Denied by policy") || !failed || len(g.calls()) != 0 {
		t.Errorf("%q", text)
	}
}

// TestHoldOnce checks that of 1,000 calls that come with one approval exactly one is made (M15).
func TestHoldOnce(t *testing.T) {
	g := newPipeline(t)
	body := toolCall(3, "delete", `{}`)
	g.rpc(alice, stranger, body)
	g.api(console, http.MethodPost, "/api/approvals/"+g.approvals("pending")[0]["id"].(string)+"/approve", nil)
	var wg sync.WaitGroup
	var made, held atomic.Int64
	work := make(chan struct{})
	for range 32 {
		wg.Go(func() {
			for range work {
				_, answer := g.rpc(alice, stranger, body)
				switch text, failed := toolText(answer); {
				case text == "done" && !failed:
					made.Add(1)
				case failed:
					held.Add(1)
				default:
					t.Errorf("%v", answer)
				}
			}
		})
	}
	for range 1000 {
		work <- struct{}{}
	}
	close(work)
	wg.Wait()
	if got := len(g.calls()); got != 1 || made.Load() != 1 || held.Load() != 999 {
		t.Errorf("the upstream got %d, made %d, held %d", got, made.Load(), held.Load())
	}
}

// TestHoldCap checks that calls too many are denied, with nothing to decide on (M16).
func TestHoldCap(t *testing.T) {
	g := newPipeline(t)
	for i := range 25 {
		_, answer := g.rpc(alice, stranger, toolCall(3, "delete", `{"i":`+string(rune('a'-49+i%10))+`,"j":"`+strings.Repeat("x", i)+`"}`))
		text, failed := toolText(answer)
		if full := strings.HasPrefix(text, "Denied: too many"); !failed || full != (i >= 20) {
			t.Errorf("%d: %v", i, answer)
		}
	}
	if pending := g.approvals("pending"); len(pending) != 20 {
		t.Errorf("%d pending", len(pending))
	}
}

// TestHoldLarge checks that a call that nobody could read before they approve it is not held: not a byte of it is kept
// (M16).
func TestHoldLarge(t *testing.T) {
	g := newPipeline(t)
	session := g.session(alice, inBandAgent, "2025-06-18", formCapability)
	large := `{"a":"` + strings.Repeat("x", 64<<10) + `"}`
	for name, call := range map[string]func() object{
		"page": func() object { _, answer := g.rpc(alice, stranger, toolCall(3, "delete", large)); return answer },
		"in band": func() object {
			_, answer := g.rpc(alice, inBandAgent, toolCall(3, "delete", large), session...)
			return answer
		},
		"2026-07-28": func() object { return g.modernRPC(alice, inBandAgent, modernCall("delete", large, showsForms, "")) },
		"beside the arguments": func() object {
			_, answer := g.rpc(alice, stranger, strings.Replace(toolCall(3, "delete", `{}`), `"params":{`, `"params":{"task":`+large+`,`, 1))
			return answer
		},
	} {
		if text, failed := toolText(call()); !failed || !strings.HasPrefix(text, "Denied: the arguments of this call are too large") {
			t.Errorf("%s: %.200s", name, text)
		}
	}
	if held := g.approvals(""); len(held) != 0 || len(g.calls()) != 0 {
		t.Errorf("held: %v", held)
	}
	// Blanks are not the call's.
	g.rpc(alice, stranger, toolCall(3, "delete", `{"a":1`+strings.Repeat(" ", 128<<10)+`}`))
	if held := g.approvals("pending"); len(held) != 1 {
		t.Errorf("held: %v", held)
	}
}

// TestApprovalsAPI checks which callers see which parts of held calls.
func TestApprovalsAPI(t *testing.T) {
	g := newPipeline(t)
	g.rpc(bob, stranger, toolCall(3, "delete", `{"b":[1.0],"a":"<x>"}`))
	if status, answer := g.tryAPI(bob, stranger, http.MethodGet, "/api/approvals", nil); status != 200 || len(answer["data"].([]any)) != 1 {
		t.Fatalf("%d %v", status, answer)
	}
	status, answer := g.tryAPI(alice, stranger, http.MethodGet, "/api/approvals", nil)
	if status != 200 || len(answer["data"].([]any)) != 0 {
		t.Errorf("another user's: %d %v", status, answer)
	}
	seen := g.approvals("") // of an administrator
	if len(seen) != 1 || seen[0]["arguments"] != nil || len(seen[0]["arguments_digest"].(string)) != 64 || seen[0]["status"] != "pending" {
		t.Fatalf("an administrator sees %v", seen)
	}
	path := "/api/approvals/" + seen[0]["id"].(string)
	if status, _ := g.tryAPI(alice, stranger, http.MethodGet, path, nil); status != http.StatusNotFound {
		t.Errorf("another user reads it: %d", status)
	}
	status, own := g.tryAPI(bob, stranger, http.MethodGet, path, nil)
	if status != 200 {
		t.Fatalf("%d %v", status, own)
	}
	if diff := cmp.Diff(object{"a": "<x>", "b": []any{1.0}}, own["arguments"]); diff != "" {
		t.Error(diff)
	}
	if own["decided_at"] != nil || own["decided_via"] != nil || own["agent_id"] != nil || own["channel"] != "out_of_band" {
		t.Errorf("%v", own)
	}
	status, denied := g.tryAPI(bob, console, http.MethodPost, path+"/deny", nil)
	if status != 200 || denied["status"] != "denied" || denied["decided_via"] != "out_of_band" {
		t.Errorf("%d %v", status, denied)
	}
	for path, want := range map[string]int{
		"/api/approvals/x": 422, "/api/approvals/0192f0c1-5bd2-7000-8000-000000000000": 404, "/api/approvals?status=maybe": 422, "/api/approvals?status=denied,used": 200,
	} {
		if status, answer := g.tryAPI(bob, console, http.MethodGet, path, nil); status != want {
			t.Errorf("%s: %d %v", path, status, answer)
		}
	}
}

// TestHoldAlive checks that a client that waits sees that its call is alive, by progress when it asked for that.
func TestHoldAlive(t *testing.T) {
	g := newPipeline(t)
	session := g.session(alice, inBandAgent, "2025-06-18", formCapability)
	body := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"delete","_meta":{"progressToken":"p1"}}}`
	s := g.stream(alice, inBandAgent, body, session...)
	id := s.asked()
	last := 0.0
	for range 2 {
		m := s.next()
		params, _ := m["params"].(object)
		progress, _ := params["progress"].(float64)
		if m["method"] != "notifications/progress" || params["progressToken"] != "p1" || progress <= last {
			t.Fatalf("%v", m)
		}
		last = progress
	}
	g.replyTo(alice, inBandAgent, id, yes, session...)
	for m := s.next(); ; m = s.next() {
		if text, _ := toolText(m); text == "done" {
			break
		}
		if m["method"] != "notifications/progress" {
			t.Fatalf("%v", m)
		}
	}

	s = g.stream(alice, inBandAgent, toolCall(8, "delete", `{}`), session...)
	id = s.asked()
	if event, err := s.events.Next(); err != nil || !event.Comment {
		t.Errorf("%+v, %v", event, err)
	}
	g.replyTo(alice, inBandAgent, id, no, session...)
}

// TestHoldToolChanged checks that a tool whose definition has changed needs another approval (M13).
func TestHoldToolChanged(t *testing.T) {
	g := newPipeline(t)
	body := toolCall(3, "delete", `{}`)
	seen := func(description string) {
		t.Helper()
		g.answer(func(w http.ResponseWriter, _ []byte) {
			writeJSON(w, `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"delete","description":"`+description+`","inputSchema":{"type":"object"}}]}}`)
		})
		if status, answer := g.rpc(alice, stranger, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); status != http.StatusOK {
			t.Fatalf("%d %v", status, answer)
		}
		g.answer(nil)
		g.calls()
	}
	approve := func() {
		t.Helper()
		g.rpc(alice, stranger, body)
		g.api(console, http.MethodPost, "/api/approvals/"+g.approvals("pending")[0]["id"].(string)+"/approve", nil)
	}
	seen("first")
	approve()
	seen("second")
	_, answer := g.rpc(alice, stranger, body)
	if _, failed := toolText(answer); !failed || len(g.calls()) != 0 {
		t.Errorf("M13 the approval of another tool: %v", answer)
	}
	approve()
	if _, answer = g.rpc(alice, stranger, body); len(g.calls()) != 1 {
		t.Errorf("%v", answer)
	}
}

// TestHoldQuestion checks that characters that would be hidden in a client's dialog are spelled out, and a question
// does not grow with its call (M17).
func TestHoldQuestion(t *testing.T) {
	g := newPipeline(t)
	session := g.session(alice, inBandAgent, "2025-06-18", formCapability)
	long := strings.Repeat("x", 5_000)
	for name, tc := range map[string]struct {
		arguments, want string
		whole           bool
	}{
		"M17 bidi and blanks":      {`{"file":"a\u202etxt\u2800\u001b[2J"}`, `"file": "a⟨U+202E⟩txt⟨U+2800⟩\u001b[2J"`, true},
		"M17 long":                 {`{"a":"` + long + `","file":"b"}`, "bytes more, not shown,\n  \"file\": \"b\"\n}\n(shortened: 5019 bytes in all, SHA-256 ", false},
		"M17 long, with an escape": {`{"a":"` + long + `\u202e","recursive":true}`, "not shown,\n  \"recursive\": true\n}", false},
		"M17 many":                 {`{"a":[` + strings.Repeat("1,", 5_000) + `1]}`, "bytes more, not shown\n(shortened: ", false},
		"M17 blank":                {`{"a":"` + strings.Repeat("\u200b", 5_000) + `","file":"b"}`, "not shown,\n  \"file\": \"b\"\n}", false},
	} {
		t.Run(name, func(t *testing.T) {
			g.T = t
			s := g.stream(alice, inBandAgent, toolCall(7, "delete", tc.arguments), session...)
			params, _ := s.next()["params"].(object)
			text, _ := params["message"].(string)
			// The warning stands where no argument can push it out of sight.
			warned := strings.Contains(text, " once?\nNot everything is shown. ")
			if !strings.Contains(text, tc.want) || warned == tc.whole || len(text) > 5_000 {
				t.Errorf("%d bytes: %s", len(text), text)
			}
		})
	}
}

// TestHoldStateless checks that an upstream without sessions is no reason not to ask a client that can be asked. It
// never sees the session that the client has with the gateway.
func TestHoldStateless(t *testing.T) {
	g := newPipeline(t)
	g.stateless = true
	session := g.session(alice, inBandAgent, "2025-06-18", formCapability)
	other := g.session(alice, inBandAgent, "2025-06-18", formCapability)
	s := g.stream(alice, inBandAgent, toolCall(7, "delete", `{"x":1}`), session...)
	id := s.asked()
	if status := g.replyTo(alice, inBandAgent, id, yes, other...); status != http.StatusBadRequest {
		t.Errorf("M18 answered from another session: %d", status)
	}
	if status := g.replyTo(alice, inBandAgent, id, yes, session...); status != http.StatusAccepted {
		t.Errorf("answered: %d", status)
	}
	if text, failed := toolText(s.next()); text != "done" || failed {
		t.Errorf("%q", text)
	}
	s = g.stream(alice, inBandAgent, toolCall(8, "delete", `{"x":2}`), session...)
	id = s.asked()
	g.rpc(alice, inBandAgent, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}`, session...)
	g.replyTo(alice, inBandAgent, id, yes, session...)
	if m := s.next(); m != nil {
		t.Errorf("taken back: %v", m)
	}
	for method, want := range map[string]int{http.MethodGet: http.StatusMethodNotAllowed, http.MethodDelete: http.StatusNoContent} {
		response := g.do(t.Context(), alice, inBandAgent, method, "/mcp/tracker", nil, append([]string{"Last-Event-ID", "another's"}, session...)...)
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: %d", method, response.StatusCode)
		}
	}
	var methods []string
	for _, got := range g.calls() {
		methods = append(methods, got.method)
		if got.session != "" {
			t.Errorf("the upstream is told of session %s", got.session)
		}
		if got.resumes != "" {
			t.Errorf("M25 the upstream is asked for what came after event %q, and of no session", got.resumes)
		}
	}
	if diff := cmp.Diff([]string{"tools/call", "notifications/cancelled", http.MethodGet}, methods); diff != "" {
		t.Errorf("the upstream got\n%s", diff)
	}
	page := g.session(alice, externalAgent, "2025-11-25", `{"elicitation":{"url":{}}}`)
	_, answer := g.rpc(alice, externalAgent, toolCall(3, "delete", `{"x":3}`), page...)
	if failure, _ := answer["error"].(object); failure["code"] != -32042.0 {
		t.Errorf("%v", answer)
	}
	if id := g.initialize(alice, inBandAgent, "2025-06-18", `{}`); id != "" {
		t.Errorf("a client that cannot be asked has session %s", id)
	}
}

// TestHoldTask checks that an approved call is not made as a task, or with anything else that was not there when it was
// approved (M15).
func TestHoldTask(t *testing.T) {
	g := newPipeline(t)
	plain := toolCall(3, "delete", `{}`)
	with := func(more string) string { return strings.Replace(plain, `"params":{`, `"params":{`+more+`,`, 1) }
	for _, tc := range []struct{ approved, other, same string }{
		{plain, with(`"task":{}`), with(`"_meta":{"progressToken":1}`)},
		{with(`"task":{"ttl":1}`), with(`"task":{"ttl":2}`), with(`"t\u0061sk":{ "ttl" : 1}`)},
		{with(`"task":{}`), plain, with(`"task":{ }`)},
		{with(`"x-as":"admin"`), plain, with(`"x-as":"\u0061dmin"`)},
		{plain, with(`"_meta":{"com.example/as":"admin"}`), with(`"_meta":{"traceparent":"00-1","tracestate":"a=1","baggage":"b","dev.mcp/x":1}`)},
		{with(`"_meta":{"as":"alice","progressToken":1}`), with(`"_meta":{"as":"admin","progressToken":1}`), with(`"_meta":{"as":"alice","progressToken":2}`)},
		{with(`"_meta":{"as":{}}`), plain, with(`"_meta":{"\u0061s":{ },"io.modelcontextprotocol/clientInfo":{}}`)},
	} {
		g.rpc(alice, stranger, tc.approved)
		pending := g.approvals("pending")
		if len(pending) != 1 {
			t.Fatalf("pending: %v", pending)
		}
		if beside := pending[0]["other_params"]; (beside == nil) != (tc.approved == plain) {
			t.Errorf("%s is shown as %v", tc.approved, beside)
		}
		g.api(console, http.MethodPost, "/api/approvals/"+pending[0]["id"].(string)+"/approve", nil)
		_, answer := g.rpc(alice, stranger, tc.other)
		if _, failed := toolText(answer); !failed || len(g.calls()) != 0 {
			t.Errorf("%s approved, and made: %s", tc.approved, tc.other)
		}
		for _, left := range g.approvals("pending") {
			g.api(console, http.MethodPost, "/api/approvals/"+left["id"].(string)+"/deny", nil)
		}
		if _, answer = g.rpc(alice, stranger, tc.same); len(g.calls()) != 1 {
			t.Errorf("%s approved: %v", tc.same, answer)
		}
	}
	session := g.session(alice, inBandAgent, "2025-06-18", formCapability)
	s := g.stream(alice, inBandAgent, with(`"task":{"ttl":60}`), session...)
	params, _ := s.next()["params"].(object)
	if text, _ := params["message"].(string); !strings.HasSuffix(text, "\nBeside them: {\n  \"task\": {\n    \"ttl\": 60\n  }\n}") {
		t.Errorf("%s", text)
	}
}

// TestHoldMoved checks that an approved call is not made at another address, or with another account of theirs (M15).
func TestHoldMoved(t *testing.T) {
	g := newPipeline(t)
	connect := func(key string) {
		t.Helper()
		g.api(stranger, http.MethodPost, "/api/servers/"+g.server+"/connect", object{"api_key": key})
	}
	put := func(change func(entry object)) {
		t.Helper()
		entry := g.entryAt(g.base)
		entry["provider"], entry["requires_auth"] = "api_key", true
		change(entry)
		g.api(console, http.MethodPut, "/api/server-directory/"+g.entry, entry)
	}
	elsewhere := g.serveUpstream()
	put(func(object) {})
	connect("key-of-A")
	session := g.session(alice, inBandAgent, "2025-06-18", formCapability)
	for name, tc := range map[string]struct {
		arguments string
		change    func()
	}{
		"another account":  {`{"a":1}`, func() { connect("key-of-B") }},
		"the same account": {`{"a":2}`, func() { connect("key-of-B") }}, // nobody can tell
		"another address": {`{"a":3}`, func() {
			g.base = elsewhere
			put(func(object) {})
			connect("key-of-A")
		}},
		"another path": {`{"a":4}`, func() { put(func(entry object) { entry["url"] = g.base + "/mcp/v2" }) }},
	} {
		t.Run(name, func(t *testing.T) {
			g.T = t
			approve := func() {
				t.Helper()
				g.rpc(alice, stranger, toolCall(3, "delete", tc.arguments))
				g.api(console, http.MethodPost, "/api/approvals/"+g.approvals("pending")[0]["id"].(string)+"/approve", nil)
			}
			approve()
			waiting := g.stream(alice, inBandAgent, toolCall(7, "delete", tc.arguments), session...)
			asked := waiting.asked()
			tc.change()
			_, answer := g.rpc(alice, stranger, toolCall(3, "delete", tc.arguments))
			if text, failed := toolText(answer); !failed || !strings.Contains(text, "/approvals/") {
				t.Errorf("approved before: %v", answer)
			}
			// A call that waited meanwhile asks again.
			g.replyTo(alice, inBandAgent, asked, yes, session...)
			again := waiting.asked()
			if got := g.calls(); len(got) != 0 {
				t.Fatalf("the upstream got %v", got)
			}
			g.replyTo(alice, inBandAgent, again, yes, session...)
			answer = waiting.next()
			if text, failed := toolText(answer); text != "done" || failed {
				t.Errorf("approved anew: %v", answer)
			}
			g.api(console, http.MethodPost, "/api/approvals/"+g.approvals("pending")[0]["id"].(string)+"/approve", nil)
			_, answer = g.rpc(alice, stranger, toolCall(3, "delete", tc.arguments))
			if text, failed := toolText(answer); text != "done" || failed {
				t.Errorf("approved anew: %v", answer)
			}
			if got := g.calls(); len(got) != 2 {
				t.Errorf("the upstream got %v", got)
			}
		})
	}
}

// TestHoldWithoutAPage checks that agents are not sent to a page that is not there, nor asked to open one.
func TestHoldWithoutAPage(t *testing.T) {
	g := newPipeline(t)
	page := g.config
	for name, tc := range map[string]struct {
		login, clients any
		want           string
	}{
		"nobody can decide":              {nil, nil, "`login_client`"},
		"approval clients, and no login": {nil, []string{console}, "/api/approvals/"},
		"a login, and other clients":     {console, []string{"another"}, "/api/approvals/"},
	} {
		t.Run(name, func(t *testing.T) {
			g.T = t
			var config object
			if err := json.Unmarshal(page, &config); err != nil {
				t.Fatal(err)
			}
			option := config["apps"].(map[string]any)["durward"].(map[string]any)
			option["approval_clients"] = tc.clients
			option["identity"].([]any)[0].(map[string]any)["login_client"] = tc.login
			var err error
			if g.config, err = json.Marshal(config); err != nil {
				t.Fatal(err)
			}
			g.load()
			for _, session := range [][]string{nil, g.session(alice, inBandAgent, "2025-11-25", `{"elicitation":{"url":{}}}`)} {
				_, answer := g.rpc(alice, inBandAgent, toolCall(3, "delete", `{"n":1}`), session...)
				text, failed := toolText(answer)
				if !failed || !strings.Contains(text, tc.want) || strings.Contains(text, "gate.example.com/approvals") || strings.Contains(text, "http") {
					t.Errorf("%v", answer)
				}
			}
		})
	}
}
