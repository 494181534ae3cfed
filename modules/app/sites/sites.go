// Package sites reads Caddy's sites and servers, and judges whether the gateway can work in them: which of them hold its
// handlers, at which address clients reach it, what takes requests from it, and who may call it under which name.
package sites

import (
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// handlerMarker is the beginning of the names of the gateway's handlers in the JSON of a route.
const handlerMarker = `"durward_`

// site holds the settings of a Caddy server for the address of the gateway.
type site struct {
	listen []string
	hosts  []string // of the route's host matchers; none: any host
	plain  bool     // served without TLS
}

// ofGateway lists the sites that hold handlers of the gateway. ctx is that of such a handler being provisioned: the
// HTTP app above it is found among the modules it descends from. Handlers that were provisioned before the first one of
// the gateway are no longer in the JSON, but none of those is the gateway's.
func ofGateway(ctx caddy.Context) []site {
	var sites []site
	for _, server := range servers(ctx) {
		sites = append(sites, sitesOf(server)...)
	}
	return sites
}

// servers yields the servers of the HTTP app to which the handler of ctx belongs, in the order of their names.
func servers(ctx caddy.Context) iter.Seq2[string, *caddyhttp.Server] {
	return func(yield func(string, *caddyhttp.Server) bool) {
		for _, module := range ctx.Modules() {
			app, ok := module.(*caddyhttp.App)
			if !ok {
				continue
			}
			for _, name := range slices.Sorted(maps.Keys(app.Servers)) {
				if !yield(name, app.Servers[name]) {
					return
				}
			}
		}
	}
}

// Hosts lists the names of the sites that hold the gateway, which can differ from the public name.
func Hosts(ctx caddy.Context) []string {
	var hosts []string
	for _, s := range ofGateway(ctx) {
		hosts = append(hosts, s.hosts...)
	}
	return hosts
}

// sitesOf lists the routes of a server that hold the gateway. Named routes and error routes can be reached from every
// route, so they count for the whole server.
func sitesOf(server *caddyhttp.Server) []site {
	var sites []site
	for _, route := range server.Routes {
		if mentions(route.HandlersRaw) {
			sites = append(sites, newSite(server, hostsOf(route)))
		}
	}
	named := slices.ContainsFunc(slices.Collect(maps.Values(server.NamedRoutes)), func(r *caddyhttp.Route) bool { return mentions(r.HandlersRaw) })
	onError := server.Errors != nil && slices.ContainsFunc(server.Errors.Routes, func(r caddyhttp.Route) bool { return mentions(r.HandlersRaw) })
	if named || onError {
		sites = append(sites, newSite(server, nil))
	}
	return sites
}

func newSite(server *caddyhttp.Server, hosts []string) site {
	return site{listen: server.Listen, hosts: hosts, plain: servedPlain(server, hosts)}
}

func mentions(handlers []json.RawMessage) bool {
	return slices.ContainsFunc(handlers, func(raw json.RawMessage) bool { return strings.Contains(string(raw), handlerMarker) })
}

func hostsOf(route caddyhttp.Route) []string {
	var hosts []string
	for _, set := range route.MatcherSets {
		for _, matcher := range set {
			if host, ok := matcher.(*caddyhttp.MatchHost); ok {
				hosts = append(hosts, *host...)
			}
		}
	}
	return hosts
}

// servedPlain reports whether a server serves the hosts without TLS. Caddy has decided by now which servers have no
// part in automatic HTTPS; it skips hosts written as http://.
func servedPlain(server *caddyhttp.Server, hosts []string) bool {
	auto := server.AutoHTTPS
	if auto == nil || len(server.TLSConnPolicies) > 0 {
		return false
	}
	skipped := len(hosts) > 0 && !slices.ContainsFunc(hosts, func(h string) bool { return !slices.Contains(auto.Skip, h) })
	return auto.Disabled || skipped
}
