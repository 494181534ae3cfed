package integration

import (
	"net/http"
	"testing"
)

// TestServerWithoutMCP checks that a server that has an event stream only is refused on /mcp like an upstream that
// cannot answer, after what the caller could change: the connection.
func TestServerWithoutMCP(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	upstream := answering(t)
	entry := bearerEntry()
	entry["protocol"] = "sse"
	s := g.createServer(upstream.url, entry)
	g.send(http.MethodPost, s.path, g.token(alice), pingMessage).wantError(t, http.StatusForbidden, "ServerNotConnected")
	g.connectBearer(g.token(alice), s, "the-credential")
	g.send(http.MethodPost, s.path, g.token(alice), pingMessage).wantRPC(t, http.StatusBadGateway, -32603, "1", "UpstreamError")
	upstream.wantNothing(t)
}
