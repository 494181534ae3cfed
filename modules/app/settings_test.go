package app

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
)

func TestSizes(t *testing.T) {
	var standard *Sizes
	if diff := cmp.Diff(Sizes{API: 1 << 20, Meta: 64 << 10, MCP: 4 << 20, SSE: 64 << 10, LLM: 16 << 20, Event: 1 << 20}, standard.withDefaults()); diff != "" {
		t.Errorf("defaults (-want +got)\n%s", diff)
	}
	if got := standard.withDefaults().MCPEvent(); got != 16<<20 {
		t.Errorf("an event on /mcp may have %d bytes", got)
	}
	var s Sizes
	for _, test := range []struct{ word, size, refused string }{
		{"api", "2MiB", ""},
		{"meta", "1", ""},
		{"mcp", "1GiB", ""},
		{"event", "4MB", ""},
		{"event", "4MB", "event may be given once"},
		{"llm", "1MiB", ""},
		{"llm", "much", "llm may be given once"},
		{"stream", "1MiB", "unrecognized size"},
		{"sse", "0", "is not a size"},
		{"sse", "", "is not a size"},
		{"sse", "-1", "is not a size"},
		{"sse", "1025MiB", "is not a size"},
		{"sse", "1e30", "is not a size"},
		{"sse", "{env.SIZE}", "is not a size"},
	} {
		err := s.Set(test.word, test.size)
		if (err == nil) != (test.refused == "") || (err != nil && !strings.Contains(err.Error(), test.refused)) {
			t.Errorf("%s %s: %v", test.word, test.size, err)
		}
	}
	if diff := cmp.Diff(Sizes{API: 2 << 20, Meta: 1, MCP: 1 << 30, LLM: 1 << 20, Event: 4_000_000}, s); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, wrong := range []Sizes{{MCP: -1}, {Event: 1<<30 + 1}, {API: -1 << 62}} {
		if wrong.check() == nil {
			t.Errorf("%+v was taken from JSON", wrong)
		}
	}
}

func TestEgressPolicy(t *testing.T) {
	p := netip.MustParsePrefix
	ranges := []netip.Prefix{p("127.0.0.0/8"), p("::1/128")}
	for _, test := range []struct {
		name        string
		egress      *Egress
		development bool
		want        netguard.Policy
	}{
		{"nothing is widened", nil, false, netguard.Policy{}},
		{"an empty block widens nothing", &Egress{}, false, netguard.Policy{}},
		{"development may speak to this machine", nil, true, netguard.Policy{Allow: ranges, HTTP: ranges}},
		{"allow is https only", &Egress{Allow: []string{"10.1.2.3/16"}}, false, netguard.Policy{Allow: []netip.Prefix{p("10.1.0.0/16")}}},
		{"http is allowed too", &Egress{Allow: []string{"fd00::/8"}, HTTP: []string{"10.2.0.0/24"}}, false,
			netguard.Policy{Allow: []netip.Prefix{p("fd00::/8"), p("10.2.0.0/24")}, HTTP: []netip.Prefix{p("10.2.0.0/24")}}},
	} {
		got, err := test.egress.policy(test.development)
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		if diff := cmp.Diff(test.want, got, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.name, diff)
		}
	}
	for _, text := range []string{"", "10.0.0.1", "10.0.0.0/33", "localhost", "10.0.0.0-10.0.0.9", "10.0.0.0/8 ", "fe80::%eth0/64"} {
		for _, e := range []*Egress{{Allow: []string{text}}, {HTTP: []string{text}}} {
			if _, err := e.policy(false); err == nil || !strings.Contains(err.Error(), "is not a range such as") {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
}

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
