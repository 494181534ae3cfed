package app

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
)

// TestW09UpstreamThatIsTheGateway checks that calls may go neither to the gateway's own address nor to where egress does not
// lead, and that whoever enters such an address is told why.
func TestW09UpstreamThatIsTheGateway(t *testing.T) {
	core := &Core{PublicURL: "https://gate.example.com", Guard: netguard.New(netguard.Policy{})}
	for _, test := range []struct {
		url    string
		own    bool
		reason string
	}{
		{"https://gate.example.com/mcp/a", true, directory.ErrOwnAddress.Error()},
		{"https://other.example.com/mcp/a", false, ""},
		{"http://other.example.com/mcp/a", false, "https"},
	} {
		u, err := url.Parse(test.url)
		if err != nil {
			t.Fatal(err)
		}
		if got := errors.Is(core.CheckUpstream(u), directory.ErrOwnAddress); got != test.own {
			t.Errorf("%s: its own address: %v", test.url, got)
		}
		if got := core.UpstreamProblem(u); (got == "") != (test.reason == "") || !strings.Contains(got, test.reason) {
			t.Errorf("%s: %q, want %q", test.url, got, test.reason)
		}
	}
}
