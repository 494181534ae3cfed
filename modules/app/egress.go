package app

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"

	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/modules/app/sites"
)

// Guard checks the gateway's outgoing connections.
type Guard = *netguard.Guard

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

// GuardOf returns the guard for the connections under a configuration's egress rules.
func GuardOf(e *Egress, development bool) (Guard, error) {
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

// CheckUpstream returns the reason why calls may not go to an address: an error of netguard, or
// directory.ErrOwnAddress.
func (c *Core) CheckUpstream(u *url.URL) error {
	if sites.IsOwn(u, c.PublicURL) {
		return directory.ErrOwnAddress
	}
	return c.Guard.CheckURL(u)
}

// UpstreamProblem returns the reason why calls may not go to an address, in words for its author; "" when they may.
func (c *Core) UpstreamProblem(u *url.URL) (reason string) {
	var refused *netguard.URLError
	switch err := c.CheckUpstream(u); {
	case errors.Is(err, directory.ErrOwnAddress):
		return err.Error()
	case errors.As(err, &refused):
		return refused.Reason
	case err != nil:
		return "this URL cannot be used"
	}
	return ""
}
