package integration

import (
	"net/http"
	"strings"
	"testing"
)

// TestBrokenHead checks that an event stream that breaks off with its head, or before its first event, is a failure of
// the server like any other: nothing was written yet, so that the client gets a status and the id of its request.
func TestBrokenHead(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	for name, answer := range map[string]string{
		"the head":                    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
		"a length":                    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 100\r\n\r\n",
		"a comment, which has passed": "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n: x\n\r\n",
		"half an event":               "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n7\r\ndata: {\r\n",
		"nothing of a stream":         "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n",
		"JSON, for comparison":        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
	} {
		t.Run(name, func(t *testing.T) {
			address, _ := rawUpstream(t, answer)
			s := g.createServer("http://"+address+"/mcp", nil)
			for range 5 {
				a, err := g.try(http.MethodPost, s.path, g.token(alice), echoCall)
				if err != nil {
					t.Fatalf("no status line: %v", err)
				}
				status := http.StatusBadGateway
				if strings.Contains(name, "has passed") {
					status = http.StatusOK // and the error is an event
				}
				if a.status != status || !strings.Contains(string(a.body), "-32603") || !strings.Contains(string(a.body), `"id":1`) {
					t.Errorf("%d %s", a.status, a.body)
				}
			}
		})
	}
}
