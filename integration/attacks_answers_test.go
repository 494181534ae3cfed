package integration

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestAttackUnaskedAnswers checks that a client's answers reach the server with the user's credential when the server
// asked for them in that session, and no others do.
func TestAttackUnaskedAnswers(t *testing.T) {
	t.Parallel()
	const (
		question = `{"jsonrpc":"2.0","id":"q\u002d1","method":"elicitation/create","params":{"message":"Which?","requestedSchema":{"type":"object","properties":{}}}}`
		takeBack = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q\u002d1"}}`
	)
	g := startGateway(t, settings{})
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		switch {
		case strings.Contains(string(body), `"initialize"`):
			w.Header().Set("Mcp-Session-Id", "session-"+r.Header.Get("User-Agent"))
			answerTo(w, body, `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`)
		case r.Method == http.MethodGet:
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: "+question+"\n\ndata: "+takeBack+"\n\n")
		default:
			answerTo(w, body, `{}`)
		}
	})
	s := g.createServer(upstream.url, nil)
	begin := func(token, agent string) string {
		t.Helper()
		a := g.send(http.MethodPost, s.path, token, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"x","version":"1"}}}`,
			"Accept", bothKinds, "User-Agent", agent).want(t, http.StatusOK)
		return a.header.Get("Mcp-Session-Id")
	}
	token, session := g.token(alice), ""
	session = begin(token, "first")
	header := func(session string) []string {
		return []string{"Accept", bothKinds, "MCP-Protocol-Version", "2025-06-18", "Mcp-Session-Id", session}
	}
	// asked returns the ids under which the client of a session is asked, and told that the question is cancelled.
	asked := func(token, session string) string {
		t.Helper()
		events := string(g.send(http.MethodGet, s.path, token, nil, header(session)...).want(t, http.StatusOK).body)
		var ids []string
		for line := range strings.SplitSeq(events, "\n") {
			data, is := strings.CutPrefix(line, "data: ")
			if !is {
				continue
			}
			var m struct {
				ID     string
				Params struct{ RequestID string }
			}
			if err := json.Unmarshal([]byte(data), &m); err != nil {
				t.Fatalf("%s: %v", data, err)
			}
			ids = append(ids, m.ID+m.Params.RequestID)
		}
		if len(ids) != 2 || ids[0] != ids[1] || ids[0] == "q-1" {
			t.Fatalf("asked under %q: %s", ids, events)
		}
		return ids[0]
	}
	id := asked(token, session)
	if again := asked(token, session); again != id {
		t.Errorf("asked again under %s instead of %s", again, id)
	}
	response := func(id string) string {
		return `{ "jsonrpc":"2.0", "id":` + id + `, "result":{"action":"accept","content":{"n":1.50}}}`
	}
	other := begin(token, "second")
	others := g.token(bob)
	bobs := begin(others, "third")
	for name, tc := range map[string]struct{ token, session, body string }{
		"the server's own id":        {token, session, response(`"q-1"`)},
		"an id of its kind":          {token, session, response(`"durward-q-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"`)},
		"a number":                   {token, session, response(`1`)},
		"an error about nothing":     {token, session, `{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"x"}}`},
		"an error":                   {token, session, `{"jsonrpc":"2.0","id":"q-1","error":{"code":-1,"message":"x"}}`},
		"from another session":       {token, other, response(`"` + id + `"`)},
		"from another user":          {others, bobs, response(`"` + id + `"`)},
		"of another user's question": {token, session, response(`"` + asked(others, bobs) + `"`)},
	} {
		upstream.forget()
		a := g.send(http.MethodPost, s.path, tc.token, tc.body, header(tc.session)...)
		if a.status != http.StatusAccepted && a.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
		if got := upstream.all(); len(got) != 0 {
			t.Errorf("%s: the server got %s", name, got[0].body)
		}
	}
	upstream.forget()
	g.restart() // another process takes the answer
	g.send(http.MethodPost, s.path, token, response(`"`+id+`"`), header(session)...).want(t, http.StatusAccepted)
	if got := upstream.last(t).body; got != response(`"q\u002d1"`) {
		t.Errorf("the server got %s", got)
	}
}
