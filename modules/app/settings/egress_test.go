package settings

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/proxy/netguard"
)

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
