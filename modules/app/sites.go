package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/durward-gateway/durward/internal/proxy/loopback"
)

// handlerMarker is the beginning of the names of the gateway's handlers in the JSON of a route.
const handlerMarker = `"durward_`

// site holds the settings of a Caddy server for the address of the gateway.
type site struct {
	listen []string
	hosts  []string // of the route's host matchers; none: any host
	plain  bool     // served without TLS
}

// gatewaySites lists the sites that hold handlers of the gateway. ctx is that of such a handler being provisioned: the
// HTTP app above it is found among the modules it descends from. Handlers that were provisioned before the first one of
// the gateway are no longer in the JSON, but none of those is the gateway's.
func gatewaySites(ctx caddy.Context) []site {
	var sites []site
	for _, module := range ctx.Modules() {
		server, ok := module.(*caddyhttp.App)
		if !ok {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(server.Servers)) {
			sites = append(sites, sitesOf(server.Servers[name])...)
		}
	}
	return sites
}

// These are the bounds for the time of a request's body: this long, and a second more for each so many bytes that have
// come (contract 4.3). Without them a slowly sent body would hold its connection, and its configuration, for as long as
// its sender likes.
const (
	bodyTime = 30 * time.Second
	bodyRate = 16 << 10 // bytes a second
)

// boundBodies sets these bounds, as Caddy's `read_body_idle` does, when the operator has set none. They apply to a
// whole server, also to addresses that are not the gateway's.
func boundBodies(ctx caddy.Context) {
	for _, module := range ctx.Modules() {
		app, ok := module.(*caddyhttp.App)
		if !ok {
			continue
		}
		for _, server := range app.Servers {
			if server.ReadIdleTimeout == 0 && server.ReadMinRate == 0 && len(sitesOf(server)) > 0 {
				server.ReadIdleTimeout, server.ReadMinRate = caddy.Duration(bodyTime), bodyRate
			}
		}
	}
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

// requireLoopback refuses a development identity provider on a site that other machines could reach, or that is not in
// the JSON.
func requireLoopback(ctx caddy.Context) error {
	sites := gatewaySites(ctx)
	if len(sites) == 0 {
		return errors.New("identity dev: the site of the gateway cannot be read from this configuration; put the gateway's handlers into the site itself")
	}
	for _, s := range sites {
		for _, listen := range s.listen {
			if !isLoopbackAddress(listen) {
				return fmt.Errorf("identity dev: the site listens on %q, which others can reach; bind it to 127.0.0.1", listen)
			}
		}
	}
	return nil
}

func isLoopbackAddress(listen string) bool {
	address, err := caddy.ParseNetworkAddress(listen)
	if err != nil {
		return false
	}
	return address.IsUnixNetwork() || loopback.IsHost(address.Host)
}
