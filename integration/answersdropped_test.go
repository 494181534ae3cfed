package integration

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// TestDroppedIsCounted checks that a message of a server that does not belong to its request is counted under the
// reason for which it was dropped, and the log names the server and the reason (W8).
func TestDroppedIsCounted(t *testing.T) {
	t.Parallel()
	const (
		answered = `{"jsonrpc":"2.0","id":7,"result":{"content":[]}}`
		sampling = `{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}`
	)
	g := startGateway(t, settings{global: "metrics"})
	token := g.token(alice)
	events := func(texts ...string) string { return "data: " + strings.Join(texts, "\n\ndata: ") + "\n\n" }
	count := func(reason string) int {
		t.Helper()
		n, _ := strconv.Atoi(g.metric(`durward_mcp_answers_dropped_total{reason="` + reason + `"}`))
		return n
	}
	reasons := []string{"unreadable", "other_id", "second_answer", "server_request", "event_name"}
	for _, tc := range []struct {
		name, reason string
		status       int // of the server's answer
		body         string
		times        int
		want         int // status for the client
	}{
		{"an event that is no JSON", "unreadable", 200, events("hello", answered), 1, 200},
		{"JSON that two readers read in two ways", "unreadable", 200, `{"jsonrpc":"2.0","id":7,"result":{},"result":{}}`, 1, 502},
		{"an array that the revision has not", "unreadable", 200, "[" + answered + "]", 1, 502},
		{"a notification that is none", "unreadable", 200, events(`{"jsonrpc":"2.0","method":"tools/call"}`, answered), 1, 200},
		{"an answer to another request", "other_id", 200, events(strings.Replace(answered, "7", "8", 1), answered), 1, 200},
		{"the same in JSON", "other_id", 200, strings.Replace(answered, "7", "8", 1), 1, 502},
		{"a second answer, and a third", "second_answer", 200, events(answered, answered, answered), 2, 200},
		{"a request of the client's own kind", "server_request", 200, events(strings.Replace(sampling, "sampling/createMessage", "tools/call", 1), answered), 1, 200},
		{"a request in an error's body", "server_request", 400, sampling, 1, 502},
		{"an event that tells where to send", "event_name", 200, "event: endpoint\ndata: /mcp/other\n\n" + events(answered), 1, 200},
	} {
		upstream := newUpstream(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			w.Header().Set("Content-Type", "application/json")
			if !strings.HasPrefix(tc.body, "{") && !strings.HasPrefix(tc.body, "[") {
				w.Header().Set("Content-Type", "text/event-stream")
			}
			w.WriteHeader(tc.status)
			_, _ = io.WriteString(w, tc.body)
		})
		s := g.createServer(upstream.url, nil)
		want := map[string]int{}
		for _, reason := range reasons {
			want[reason] = count(reason)
		}
		want[tc.reason] += tc.times
		g.send(http.MethodPost, s.path, token, toolCall("echo"), "Accept", bothKinds, "MCP-Protocol-Version", "2025-06-18").want(t, tc.want)
		for _, reason := range reasons {
			if got := count(reason); got != want[reason] {
				t.Errorf("%s: %s counts %d instead of %d", tc.name, reason, got, want[reason])
			}
		}
		g.eventually(tc.name+": the log names server and reason", func() bool {
			return g.logs(`"dropping what does not belong to the request"`, `"server":"`+s.Slug+`"`, `"reason":"`+tc.reason+`"`)
		})
	}
}

// TestEncodingIsLogged checks that a server that encodes its answers in a way that nobody decodes is a 502, and the log
// names the encoding beside the server (W6).
func TestEncodingIsLogged(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	token := g.token(alice)
	for _, encoding := range []string{"br", "deflate", "compress"} {
		upstream := newUpstream(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
			w.Header().Set("Content-Encoding", encoding)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "\x8b\x12\x80")
		})
		s := g.createServer(upstream.url, upstream.eventsEntry())
		for _, tc := range []struct {
			method, path string
			body         any
			logger       string
		}{
			{http.MethodPost, s.path, toolCall("echo"), "durward_mcp"},
			{http.MethodGet, "/sse/" + s.Slug, nil, "durward_sse"},
		} {
			g.send(tc.method, tc.path, token, tc.body, "Accept", bothKinds).want(t, http.StatusBadGateway)
			g.eventually(tc.path+": the log names "+encoding, func() bool {
				return g.logs(tc.logger, `"server":"`+s.Slug+`"`, `content is encoded with \"`+encoding+`\"`)
			})
		}
	}
}

// logs reports whether the gateway has written a line that holds all of the texts.
func (g *gateway) logs(texts ...string) bool {
lines:
	for line := range strings.Lines(g.output.String()) {
		for _, text := range texts {
			if !strings.Contains(line, text) {
				continue lines
			}
		}
		return true
	}
	return false
}
