package integration

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestEras checks that clients of every revision work through the gateway with servers that keep sessions and such that
// do not, that answer with JSON and with event streams.
func TestEras(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	for _, era := range []struct {
		version string
		options mcp.StreamableHTTPOptions
	}{
		{"2025-03-26", mcp.StreamableHTTPOptions{}},
		{"2025-03-26", mcp.StreamableHTTPOptions{JSONResponse: true}},
		{"2025-06-18", mcp.StreamableHTTPOptions{}},
		{"2025-06-18", mcp.StreamableHTTPOptions{JSONResponse: true}},
		{"2025-11-25", mcp.StreamableHTTPOptions{}},
		{"2025-11-25", mcp.StreamableHTTPOptions{JSONResponse: true}},
		{"2025-11-25", mcp.StreamableHTTPOptions{Stateless: true}},
		{"2026-07-28", mcp.StreamableHTTPOptions{Stateless: true}},
		{"2026-07-28", mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}},
	} {
		t.Run(eraName(era.version, era.options), func(t *testing.T) {
			t.Parallel()
			upstream := newMCPServer(t, &era.options)
			path := g.createServer(upstream.url, nil).path
			client := connectMCP(t, g.url+path, g.token(alice), era.version, nil)
			if got := client.InitializeResult().ProtocolVersion; got != era.version {
				t.Errorf("agreed on %s", got)
			}
			tools, err := client.ListTools(within(t, callTimeout), nil)
			if err != nil || len(tools.Tools) != 3 {
				t.Fatalf("%+v, %v", tools, err)
			}
			if got := client.call(t, "echo", map[string]any{"text": "grüezi"}); got != "grüezi" {
				t.Errorf("echo says %q", got)
			}
			if withSession := !era.options.Stateless; (client.http.sessionID() != "") != withSession {
				t.Errorf("the client's session id is %q", client.http.sessionID())
			}
			if err := client.Close(); err != nil {
				t.Error(err)
			}
			if !era.options.Stateless && upstream.count(http.MethodDelete) != 1 {
				t.Errorf("the upstream got %d DELETE requests", upstream.count(http.MethodDelete))
			}
		})
	}
}

func eraName(version string, o mcp.StreamableHTTPOptions) string {
	name := []string{version, "stateful", "events"}
	if o.Stateless {
		name[1] = "stateless"
	}
	if o.JSONResponse {
		name[2] = "json"
	}
	return strings.Join(name, " ")
}

// TestProgressStreamsThrough checks that a notification reaches the client while the call is still running, not with
// its answer.
func TestProgressStreamsThrough(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			upstream := newMCPServer(t, &mcp.StreamableHTTPOptions{Stateless: version == "2026-07-28"})
			progress := make(chan string, 1)
			client := connectMCP(t, g.url+g.createServer(upstream.url, nil).path, g.token(alice), version, &mcp.ClientOptions{
				ProgressNotificationHandler: clientProgress(progress),
			})
			answered := make(chan string, 1)
			go func() {
				params := &mcp.CallToolParams{Name: "wait"}
				params.SetProgressToken("p1")
				result, err := client.CallTool(within(t, callTimeout), params)
				if err != nil {
					answered <- err.Error()
					return
				}
				answered <- textOf(result)
			}()
			if got := receive(t, progress, "progress"); got != "halfway" {
				t.Errorf("progress says %q", got)
			}
			select {
			case got := <-answered:
				t.Fatalf("answered %q before it was told to", got)
			default:
			}
			upstream.proceed <- struct{}{}
			if got := receive(t, answered, "the answer"); got != "done" {
				t.Errorf("answered %q", got)
			}
		})
	}
}

// TestServerMessagesOnTheGETStream checks that messages that the server sends of its own accord arrive.
func TestServerMessagesOnTheGETStream(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	upstream := newMCPServer(t, nil)
	changed := make(chan string, 8)
	client := connectMCP(t, g.url+g.createServer(upstream.url, nil).path, g.token(alice), "2025-11-25", &mcp.ClientOptions{
		ToolListChangedHandler: clientListChanged(changed),
	})
	client.call(t, "echo", map[string]any{"text": "x"})
	upstream.RemoveTools("upper")
	receive(t, changed, "notifications/tools/list_changed")
	tools, err := client.ListTools(within(t, callTimeout), nil)
	if err != nil || len(tools.Tools) != 2 {
		t.Errorf("%+v, %v", tools, err)
	}
}

// TestLargeMessages checks that messages pass up to the bounds in both directions, and are refused beyond.
func TestLargeMessages(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	echo := g.createServer(newMCPServer(t, nil).url, nil)
	client := connectMCP(t, g.url+echo.path, g.token(alice), "2025-11-25", nil)
	large := strings.Repeat("a", 4<<20-1000)
	if got := client.call(t, "echo", map[string]any{"text": large}); got != large {
		t.Errorf("of %d bytes %d came back", len(large), len(got))
	}
	g.send(http.MethodPost, echo.path, g.token(alice), strings.Repeat(" ", 4<<20+1), "Accept", acceptBoth).
		want(t, http.StatusRequestEntityTooLarge)

	scripted := g.createServer(newUpstream(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
		size, err := strconv.Atoi(r.Header.Get("Baggage"))
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("data: " + sized(size) + "\n\n"))
	}).url, nil)
	for size, whole := range map[int]bool{15 << 20: true, 17 << 20: false} {
		response := g.open(within(t, callTimeout), http.MethodPost, scripted.path, g.token(alice), ping, "Accept", acceptBoth, "Baggage", strconv.Itoa(size))
		n, err := io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if got := err == nil && n == int64(len(sized(size))+len("data: \n\n")); got != whole || whole && response.StatusCode != http.StatusOK {
			t.Errorf("of an event of %d bytes %d came, with status %d: %v", size, n, response.StatusCode, err)
		}
	}
}

// sized returns an answer to ping whose result has that size.
func sized(size int) string {
	return `{"jsonrpc":"2.0","id":2,"result":"` + strings.Repeat("a", size) + `"}`
}
