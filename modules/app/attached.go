package app

import (
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
)

// Handlers that others need before them.
const (
	AuthHandler       = "durward_auth"
	PolicyHandler     = "durward_policy"
	CredentialHandler = "durward_credential" //nolint:gosec // the name of a handler
)

// attached are the handlers of the gateway that a configuration has provisioned so far, by the last part of their ids.
type attached map[string]bool

// add takes the handler that is being provisioned, and warns when one that it needs does not come before it: such a
// configuration is valid, and refuses every request that the handler answers. Routes are provisioned in the order in which
// a request passes them, so that what was not is not before it; only named routes come later. Whether what was is in the
// same site is not asked: a warning that is wrong would be worse than one that is missing.
func (h *attached) add(ctx caddy.Context, needs []string, logger *zap.Logger) {
	module := ctx.Module()
	if module == nil {
		return
	}
	if *h == nil {
		*h = make(attached)
	}
	name := module.CaddyModule().ID.Name()
	(*h)[name] = true
	for _, need := range needs {
		if !(*h)[need] && !inNamedRoute(ctx, need) {
			logger.Warn("a handler will refuse every request: one that it needs does not come before it", zap.String("handler", name), zap.String("needs", need))
		}
	}
}

// inNamedRoute reports whether a named route has the handler, which `invoke` can put before any other.
func inNamedRoute(ctx caddy.Context, handler string) bool {
	for _, module := range ctx.Modules() {
		server, ok := module.(*caddyhttp.App)
		if !ok {
			continue
		}
		for _, s := range server.Servers {
			for route := range maps.Values(s.NamedRoutes) {
				for raw := range slices.Values(route.HandlersRaw) {
					if strings.Contains(string(raw), `"`+handler+`"`) {
						return true
					}
				}
			}
		}
	}
	return false
}
