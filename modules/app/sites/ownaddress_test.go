package sites

import (
	"net/http"
	"net/url"
	"testing"
)

// TestW09OwnAddress checks that the gateway's own address is refused in every spelling, and its host's other paths are
// not.
func TestW09OwnAddress(t *testing.T) {
	for address, own := range map[string]bool{
		"https://gate.example.com/mcp/a": true, "https://GATE.example.com./mcp/a": true, "HTTPS://gate.example.com:443/sse/x": true,
		"https://gate.example.com/mcp": true, "https://gate.example.com/MCP/a": true, "https://gate.example.com/api/llm-gateway/v1": true,
		"https://gate.example.com/other/mcp": false, "https://gate.example.com:8443/mcp/a": false, "https://other.example.com/mcp/a": false,
		"http://gate.example.com/mcp/a": false,
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := IsOwn(u, "https://gate.example.com"); got != own {
			t.Errorf("%s: %v", address, got)
		}
	}
	for address, own := range map[string]bool{
		"http://localhost:8080/mcp/a": true, "http://[::1]:8080/mcp/a": true, "http://127.0.0.2:8080/mcp/a": true,
		"http://[::ffff:127.0.0.1]:8080/mcp/a": true, "http://localhost:8081/mcp/a": false,
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := IsOwn(u, "http://127.0.0.1:8080"); got != own {
			t.Errorf("%s: %v", address, got)
		}
	}
}

// TestW09Returned checks that a request that others have sent back names the gateway among those that it came through.
func TestW09Returned(t *testing.T) {
	id := loopID("https://gate.example.com")
	names := Names{LoopID: id}
	for value, returned := range map[string]bool{
		"": false, "other": false, id: true, "other; a=b, " + id: true, "x," + id + ";v=1 , y": true, id + "x": false, loopID("https://gate2.example.com"): false,
	} {
		r := &http.Request{Header: http.Header{"Cdn-Loop": {value}}}
		if got := names.Returned(r); got != returned {
			t.Errorf("%q: %v", value, got)
		}
	}
}
