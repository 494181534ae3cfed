package app

import (
	"github.com/durward-gateway/durward/internal/api/slug"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/modules/app/paths"
)

// Challenge returns what a 401 at a path tells a client. sent reports whether the request carried a token; the token
// was then wrong.
func (c *Core) Challenge(path string, sent bool) gateway.Challenge {
	challenge := gateway.Challenge{Sent: sent, Scopes: c.Scopes()}
	if prefix, name, ok := paths.ProxiedName(path); ok && prefix == paths.MCPPrefix && slug.Valid(name) {
		challenge.Metadata = c.PublicURL + paths.ResourceMetadata + paths.MCPPrefix + name
	}
	return challenge
}
