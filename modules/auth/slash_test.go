package auth_test

import (
	"encoding/json"
	"net/http"
	"testing"
)

// TestSlashAtTheEnd checks that a client whose address has a slash too many is told the right one with every method,
// whatever it presents, and is never sent there (W32).
func TestSlashAtTheEnd(t *testing.T) {
	g := newGateway(t, nil)
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		for path, right := range map[string]string{
			"/mcp/demo/": public + "/mcp/demo", "/mcp/nothing/?x=1": public + "/mcp/nothing", "/sse/demo/": public + "/sse/demo",
		} {
			for _, lines := range [][]string{nil, {"Authorization: Bearer x"}, {"Authorization: Bearer " + g.token()}} {
				got := g.send(method + " " + path + " HTTP/1.1\nHost: gate.example.com\nConnection: close\nContent-Length: 0" + join(lines))
				var body struct{ Error, Message string }
				if err := json.Unmarshal([]byte(got.body), &body); err != nil || got.status != http.StatusNotFound || body.Error != "NotFound" ||
					body.Message != "There is nothing at this address. The address of an MCP server has no slash at its end: "+right {
					t.Errorf("%s %s: %d %s", method, path, got.status, got.body)
				}
			}
		}
	}
	for _, path := range []string{"/mcp/", "/mcp/demo//", "/mcp/Demo/", "/mcp/demo/x/", "/api/servers/"} {
		if got := g.get(path); got.status == http.StatusNotFound {
			t.Errorf("%s: %s", path, got.body)
		}
	}
	if got := g.get("/mcp/demo/", "Origin: https://evil.tld"); got.status != http.StatusForbidden {
		t.Errorf("a foreign page: %d", got.status)
	}
}
