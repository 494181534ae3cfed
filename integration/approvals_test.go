package integration

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// said is the output of clients/approvals.mjs.
type said struct {
	Asked   []string `json:"asked"`
	Text    string   `json:"text"`
	IsError bool     `json:"isError"`
	Version string   `json:"version"`
	Took    int      `json:"took"` // milliseconds
}

// approvalPage is the address at which a user decides, in a text for a model.
var approvalPage = regexp.MustCompile(`(http://127\.0\.0\.1:[0-9]+)/approvals/([0-9a-f-]{36})`)

// consoleToken returns a token of the client with which developers decide on held calls.
func (d *dev) consoleToken(t *testing.T) string {
	t.Helper()
	return d.tokenWith(t, clientUser, "dev-console")
}

// callTool calls a tool of the demo server as a client of 2026-07-28 that cannot ask its user, and returns the answer.
func (d *dev) callTool(t *testing.T, tool, arguments string) string {
	t.Helper()
	return d.callToolWith(t, tool, arguments, "")
}

// callToolWith does the work of callTool with more members of _meta, each after a comma.
func (d *dev) callToolWith(t *testing.T, tool, arguments, meta string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.url+"/mcp/demo", strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+tool+`","arguments":`+arguments+
			`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`+meta+`}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + d.token(t), "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool,
	} {
		request.Header.Set(name, value)
	}
	_, body := devAnswer(t, request)
	return body
}

// TestApprovalsOfficialClients checks that unmodified official clients of both eras meet a tool that asks: their user
// accepts or declines; those who cannot ask are told where to approve, and pass with the next try.
func TestApprovalsOfficialClients(t *testing.T) {
	t.Parallel()
	tools := conformanceTools(t)
	clients := officialClients(t)
	d := newDevHome(t).start(t)
	token := d.token(t)
	d.connect(t, token, clientAccount)
	for id := 4; id <= 6; id++ {
		if got := d.callTool(t, "create_issue", `{"title":"One more"}`); !strings.Contains(got, `"id":`+strconv.Itoa(id)) {
			t.Fatal(got)
		}
	}
	issue := 0
	run := func(t *testing.T, era, word string, id int) said {
		t.Helper()
		var got said
		output := runNode(t, tools, "clients/approvals.mjs", d.url+"/mcp/demo", token, clients, era, word, strconv.Itoa(id), d.consoleToken(t))
		if err := json.Unmarshal([]byte(output), &got); err != nil {
			t.Fatalf("%s: %v", output, err)
		}
		if modern := got.Version == "2026-07-28"; modern != (era == "modern") {
			t.Errorf("agreed on %q", got.Version)
		}
		return got
	}
	for _, era := range []string{"legacy", "modern"} {
		issue++
		t.Run(era+" decline", func(t *testing.T) {
			got := run(t, era, "decline", issue)
			if len(got.Asked) != 1 || !got.IsError || !strings.HasPrefix(got.Text, "Denied: ") {
				t.Errorf("%+v", got)
			}
		})
		t.Run(era+" accept", func(t *testing.T) {
			got := run(t, era, "accept", issue)
			question := []string{`Allow the agent "dev-agent" to run the tool "delete_issue" of the server "demo" once?` + "\nArguments: {\n  \"id\": " + strconv.Itoa(issue) + "\n}"}
			for i := range got.Asked { // the server's name is its owner's to choose
				got.Asked[i] = regexp.MustCompile(`of the server "[^"]*"`).ReplaceAllString(got.Asked[i], `of the server "demo"`)
			}
			if diff := cmp.Diff(question, got.Asked); diff != "" || got.IsError || !strings.Contains(got.Text, `"id":`+strconv.Itoa(issue)) {
				t.Errorf("%+v\n%s", got, diff)
			}
		})
		issue++
		t.Run(era+" none", func(t *testing.T) {
			got := run(t, era, "none", issue)
			page := approvalPage.FindStringSubmatch(got.Text)
			if page == nil || page[1] != d.url || !got.IsError || len(got.Asked) != 0 {
				t.Fatalf("%+v", got)
			}
			address := "/api/approvals/" + page[2]
			if status, body := d.api(t, token, http.MethodPost, address+"/approve"); status != http.StatusForbidden {
				t.Errorf("R05 the agent approves its own call: %d %s", status, body)
			}
			if status, body := d.api(t, d.consoleToken(t), http.MethodPost, address+"/approve"); status != http.StatusOK {
				t.Fatalf("%d %s", status, body)
			}
			if got = run(t, era, "none", issue); got.IsError || !strings.Contains(got.Text, `"id":`+strconv.Itoa(issue)) {
				t.Errorf("%+v", got)
			}
			if got = run(t, era, "none", issue); !got.IsError || approvalPage.FindString(got.Text) == "" {
				t.Errorf("M15 once more: %+v", got)
			}
		})
	}
	for _, era := range []string{"legacy", "modern"} {
		issue++
		if era == "modern" { // before it, a client that opens pages tells the gateway nothing of a no
			t.Run(era+" page, declined", func(t *testing.T) {
				got := run(t, era, "page-decline", issue)
				if len(got.Asked) != 1 || !got.IsError || !strings.HasPrefix(got.Text, "Denied: ") || got.Took > 10_000 {
					t.Errorf("%+v", got)
				}
			})
		}
		t.Run(era+" page", func(t *testing.T) {
			got := run(t, era, "page", issue)
			if len(got.Asked) != 1 || got.IsError || !strings.Contains(got.Text, `"id":`+strconv.Itoa(issue)) {
				t.Errorf("%+v", got)
			}
		})
	}
	d.process.stop(t)
	d.process.checkLog(t)
}

// TestApprovalsOutliveTheProcess checks that a call that was held before a crash is approved after it, and passes then.
func TestApprovalsOutliveTheProcess(t *testing.T) {
	t.Parallel()
	home := newDevHome(t)
	d := home.start(t)
	d.connect(t, d.token(t), clientAccount)
	const issue = `{"id":1}`
	held := approvalPage.FindStringSubmatch(d.callTool(t, "delete_issue", issue))
	if held == nil {
		t.Fatal("the call was not held")
	}
	d.end(t, syscall.SIGKILL)
	if err := os.Remove(home.file("data", "address")); err != nil { // a process that was killed leaves its address
		t.Fatal(err)
	}
	d = home.start(t)
	if status, body := d.api(t, d.consoleToken(t), http.MethodPost, "/api/approvals/"+held[2]+"/approve"); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	if got := d.callTool(t, "delete_issue", issue); strings.Contains(got, "isError\":true") || !strings.Contains(got, "content") {
		t.Errorf("after the word: %s", got)
	}
	d.process.stop(t)
}

// TestApprovalsBindMeta checks that a call that was approved is not made with another _meta, of which its user sees
// what counts; progress and traces differ from one request to the next (M15).
func TestApprovalsBindMeta(t *testing.T) {
	t.Parallel()
	d := newDevHome(t).start(t)
	d.connect(t, d.token(t), clientAccount)
	const issue = `{"id":1}`
	call := func(meta string) (answer, held string) {
		t.Helper()
		answer = d.callToolWith(t, "delete_issue", issue, meta)
		if page := approvalPage.FindStringSubmatch(answer); page != nil {
			held = page[2]
		}
		return answer, held
	}
	_, held := call(`,"com.example/as":"alice","progressToken":1,"traceparent":"00-1"`)
	if held == "" {
		t.Fatal("the call was not held")
	}
	var shown struct {
		Other map[string]map[string]any `json:"other_params"`
	}
	_, body := d.api(t, d.token(t), http.MethodGet, "/api/approvals/"+held)
	if err := json.Unmarshal([]byte(body), &shown); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	if diff := cmp.Diff(map[string]map[string]any{"_meta": {"com.example/as": "alice"}}, shown.Other); diff != "" {
		t.Errorf("what is bound is shown as\n%s", diff)
	}
	if status, body := d.api(t, d.consoleToken(t), http.MethodPost, "/api/approvals/"+held+"/approve"); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	for _, meta := range []string{``, `,"com.example/as":"admin"`, `,"com.example/as":"alice","com.example/force":true`} {
		if answer, other := call(meta); other == "" || other == held {
			t.Errorf("approved with another _meta, and made with %q: %s", meta, answer)
		}
	}
	if answer, other := call(`,"com.example/as":"\u0061lice","progressToken":2,"baggage":"a=1","io.modelcontextprotocol/logLevel":"debug"`); other != "" ||
		strings.Contains(answer, `isError":true`) || !strings.Contains(answer, "content") {
		t.Errorf("the call that was approved: %s", answer)
	}
	d.process.stop(t)
}
