package policy_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// breakPins makes the pins unreadable, and mend makes them readable again.
func (g *pipeline) breakPins() (mend func()) {
	g.Helper()
	var config struct {
		Apps struct {
			Durward struct{ Store struct{ Path string } }
		}
	}
	if err := json.Unmarshal(g.config, &config); err != nil {
		g.Fatal(err)
	}
	rename := func(from, to string) {
		g.Helper()
		db, err := sql.Open("sqlite", config.Apps.Durward.Store.Path+"?_pragma=busy_timeout(10000)")
		if err != nil {
			g.Fatal(err)
		}
		defer db.Close()
		if _, err := db.ExecContext(g.Context(), "ALTER TABLE "+from+" RENAME TO "+to); err != nil {
			g.Fatal(err)
		}
		g.api(console, http.MethodPost, "/api/server-directory", object{"name": to, "url": "https://x.example/", "provider": "none", "requires_auth": false}) // the cached values are read anew
	}
	rename("tool_pins", "gone")
	return func() { rename("gone", "tool_pins") }
}

// TestPinsUnreadable checks that with `pin enforce` nothing is shown or called when it cannot be told what is pinned;
// without, lists and calls go on.
func TestPinsUnreadable(t *testing.T) {
	g := newPipeline(t)
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	tools := func(w http.ResponseWriter, body []byte) {
		if bytes.Contains(body, []byte("tools/list")) {
			writeJSON(w, `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"list","description":"Lists."}]}}`)
			return
		}
		writeJSON(w, `{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"done"}]}}`)
	}
	g.answer(tools)
	shown := func() bool {
		t.Helper()
		_, answer := g.rpc(alice, stranger, list)
		result, _ := answer["result"].(object)
		found, _ := result["tools"].([]any)
		return len(found) == 1
	}
	called := func() bool {
		t.Helper()
		g.calls()
		_, answer := g.rpc(alice, stranger, toolCall(3, "list", `{}`))
		text, _ := toolText(answer)
		if passed := len(g.calls()) == 1; passed != (text == "done") {
			t.Errorf("%v", answer)
		}
		return text == "done"
	}
	mend := g.breakPins()
	if !shown() || !called() {
		t.Error("without pin enforce, a list or a call is refused")
	}
	mend()
	g.config = bytes.Replace(g.config, []byte(`"public_url"`), []byte(`"pin":{"enforce":true},"public_url"`), 1)
	if !strings.Contains(string(g.config), `"enforce"`) {
		t.Fatal("the configuration has no place for pin")
	}
	g.load()
	if !shown() || !called() {
		t.Error("a list or a call is refused")
	}
	mend = g.breakPins()
	if shown() || called() {
		t.Error("M13 unreadable, and shown or called")
	}
	mend()
	if !shown() || !called() {
		t.Error("a list or a call is refused")
	}
}
