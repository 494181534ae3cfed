package settings

import (
	"fmt"
	"net/netip"

	"github.com/durward-gateway/durward/internal/proxy/netguard"
)

// Egress allows more addresses than the gateway may otherwise connect to. Without it the gateway connects to public
// addresses over https only.
type Egress struct {
	// Ranges of addresses that are not public, in CIDR notation, to which the gateway may connect over https. Default:
	// none; with the development identity provider, loopback addresses.
	Allow []string `json:"allow,omitempty"`
	// Ranges in CIDR notation to which plain http may be spoken. They need not be listed under `allow` too. Default: none;
	// with the development identity provider, loopback addresses.
	HTTP []string `json:"http,omitempty"`
}

// loopbackRanges are the addresses that development mode may connect to.
var loopbackRanges = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

func (e *Egress) policy(development bool) (netguard.Policy, error) {
	var policy netguard.Policy
	if e != nil {
		var err error
		if policy.HTTP, err = prefixes("http", e.HTTP); err != nil {
			return policy, err
		}
		if policy.Allow, err = prefixes("allow", e.Allow); err != nil {
			return policy, err
		}
	}
	if development {
		policy.HTTP = append(policy.HTTP, loopbackRanges...)
	}
	policy.Allow = append(policy.Allow, policy.HTTP...)
	return policy, nil
}

// Guard returns the guard for the connections under these rules. e may be nil. development adds loopback addresses.
func (e *Egress) Guard(development bool) (*netguard.Guard, error) {
	policy, err := e.policy(development)
	if err != nil {
		return nil, err
	}
	return netguard.New(policy), nil
}

func prefixes(word string, texts []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range texts {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("egress %s: %q is not a range such as 10.1.0.0/16", word, text)
		}
		out = append(out, prefix.Masked())
	}
	return out, nil
}
