package app

import (
	"errors"
	"net/url"

	"github.com/durward-gateway/durward/internal/api/slug"
	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/modules/app/sites"
)

// CheckUpstream returns the reason why calls may not go to an address: an error of netguard, or
// directory.ErrOwnAddress.
func (c *Core) CheckUpstream(u *url.URL) error { return CheckUpstream(u, c.Guard, c.PublicURL) }

// CheckUpstream judges an address as a gateway with this guard at this public URL does.
func CheckUpstream(u *url.URL, guard *netguard.Guard, publicURL string) error {
	if sites.IsOwn(u, publicURL) {
		return directory.ErrOwnAddress
	}
	return guard.CheckURL(u)
}

// UpstreamProblem returns the reason why calls may not go to an address, in words for its author; "" when they may.
func (c *Core) UpstreamProblem(u *url.URL) (reason string) {
	return UpstreamProblem(c.CheckUpstream(u))
}

// UpstreamProblem returns the reason of an error of CheckUpstream, in words for the author of the address; "" without one.
func UpstreamProblem(err error) (reason string) {
	var refused *netguard.URLError
	switch {
	case errors.Is(err, directory.ErrOwnAddress):
		return err.Error()
	case errors.As(err, &refused):
		return refused.Reason
	case err != nil:
		return "this URL cannot be used"
	}
	return ""
}

// Challenge returns what a 401 at a path tells a client. sent reports whether the request carried a token; the token
// was then wrong.
func (c *Core) Challenge(path string, sent bool) gateway.Challenge {
	challenge := gateway.Challenge{Sent: sent, Scopes: c.ClientScopes()}
	if prefix, name, ok := paths.ProxiedName(path); ok && prefix == paths.MCPPrefix && slug.Valid(name) {
		challenge.Metadata = c.PublicURL + paths.ResourceMetadata + paths.MCPPrefix + name
	}
	return challenge
}
