package sites

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// A site without the gateway takes the gateway's requests when its host is more specific on the same address, or when it listens on
// a more specific address of the same port: Caddy and the operating system ask it first. It looks like a gateway that has nothing at
// any address. A site for health checks is the usual one.

// redirectsServer is the name of the server that Caddy makes for redirects to https.
const redirectsServer = "remaining_auto_https_redirects"

// CheckReach refuses a configuration in which no request for the public URL can come to the gateway, because another site takes all
// of them. It returns what else other sites take, for the operator to judge. ctx is that of the first of the gateway's handlers,
// as in CheckOrder.
func CheckReach(ctx caddy.Context, public *url.URL) (taken []string, err error) {
	var all []reached
	for name, server := range servers(ctx) {
		if name != redirectsServer {
			all = append(all, reach(server, public.Hostname()))
		}
	}
	port := portOf(public)
	candidates := slices.DeleteFunc(slices.Clone(all), func(r reached) bool { return !r.gateway && r.by == "" || !r.listensOn(port) })
	if len(candidates) == 0 { // a proxy before the gateway has the public URL's port
		candidates = slices.DeleteFunc(slices.Clone(all), func(r reached) bool { return !r.gateway && r.by == "" })
	}
	if len(candidates) > 0 && !slices.ContainsFunc(candidates, func(r reached) bool { return r.gateway }) {
		first := candidates[0]
		if !slices.ContainsFunc(candidates, func(r reached) bool { return r.proxies }) {
			return nil, takes(first.by, first.listenAt(port), public)
		}
		taken = append(taken, fmt.Sprintf("the site %s on %s takes every request for %s from the gateway's site, unless it proxies them there", first.by, first.listenAt(port), public))
	}
	for _, r := range candidates {
		for _, other := range all {
			if address, ok := other.narrows(r); ok && isAt(public, address) && !other.proxies {
				return nil, takes(other.site, address, public)
			} else if ok {
				taken = append(taken, fmt.Sprintf("the site %s on %s takes what connects to that address from the gateway's site on %s", other.site, address, r.listenAt(port)))
			}
		}
	}
	return taken, nil
}

func takes(site string, listen fmt.Stringer, public *url.URL) error {
	return fmt.Errorf("the site %s on %s takes every request for %s from the gateway's site: give it another port", site, listen, public)
}

// reached holds the fate of requests for the public URL's host that come to a server.
type reached struct {
	listen  []caddy.NetworkAddress
	gateway bool   // they reach the gateway
	by      string // they would reach it, and this site takes them
	proxies bool   // a site that gets some of them before sends them on, perhaps to the gateway
	site    string // the site that gets the first request of this server, for people
}

// reach follows requests for a host through a server's routes. In doubt they reach the gateway.
func reach(server *caddyhttp.Server, host string) reached {
	r := reached{site: "without a host"}
	for _, listen := range server.Listen {
		if address, err := caddy.ParseNetworkAddress(listen); err == nil && !address.IsUnixNetwork() && !address.IsFdNetwork() {
			address.Network = "" // it says how to listen, not where
			r.listen = append(r.listen, address)
		}
	}
	if len(r.listen) == 0 {
		return r
	}
	if len(server.Routes) > 0 {
		r.site = siteName(server.Routes[0])
	}
	by := ""
	for _, route := range server.Routes {
		whole, some := takesHost(route, host)
		switch {
		case some && servesGateway(route, server.NamedRoutes):
			r.gateway, r.by = by == "", by
			return r
		case whole && route.Terminal && by == "":
			by = siteName(route)
		}
		r.proxies = r.proxies || some && sendsOn(route)
	}
	return r
}

func siteName(route caddyhttp.Route) string {
	if hosts := hostsOf(route); len(hosts) > 0 {
		return strings.Join(hosts, ",")
	}
	return "without a host"
}

// takesHost reports whether a route takes every request for a host, and whether it takes any.
func takesHost(route caddyhttp.Route, host string) (whole, some bool) {
	if len(route.MatcherSets) == 0 {
		return true, true
	}
	for _, set := range route.MatcherSets {
		fits, alone := true, true
		for _, matcher := range set {
			hosts, ok := matcher.(*caddyhttp.MatchHost)
			fits = fits && (!ok || slices.ContainsFunc(*hosts, func(pattern string) bool { return isHostOf(pattern, host) || isOpen(pattern) }))
			alone = alone && ok && slices.ContainsFunc(*hosts, func(pattern string) bool { return isHostOf(pattern, host) })
		}
		some = some || fits
		whole = whole || fits && alone
	}
	return whole, some
}

// isHostOf reports whether a host is one that Caddy's matcher takes for a pattern, where that has a label `*` for any.
func isHostOf(pattern, host string) bool {
	labels, names := strings.Split(strings.Trim(pattern, "[]"), "."), strings.Split(host, ".")
	return slices.EqualFunc(labels, names, func(label, name string) bool { return label == "*" || strings.EqualFold(label, name) })
}

// isOpen reports whether a pattern has a placeholder, which stands for who knows what once there are requests.
func isOpen(pattern string) bool { return strings.Contains(pattern, "{") }

// sendsOn reports whether a route may send requests on, which may lead to the gateway all the same: it proxies, or invokes a route
// that might.
func sendsOn(route caddyhttp.Route) bool {
	for _, raw := range route.HandlersRaw {
		if strings.Contains(string(raw), `"reverse_proxy"`) || strings.Contains(string(raw), `"invoke"`) {
			return true
		}
	}
	return slices.ContainsFunc(route.Handlers, func(handler caddyhttp.MiddlewareHandler) bool {
		switch handler := handler.(type) {
		case *caddyhttp.Subroute:
			return slices.ContainsFunc(handler.Routes, sendsOn)
		case caddy.Module:
			id := handler.CaddyModule().ID
			return id == "http.handlers.reverse_proxy" || id == "http.handlers.invoke"
		}
		return false
	})
}

// servesGateway reports whether a route holds more of the gateway than its health. One that was provisioned before the first of the
// gateway's handlers holds none of them, unless it invokes a named route.
func servesGateway(route caddyhttp.Route, named map[string]*caddyhttp.Route) bool {
	if len(route.HandlersRaw) == 0 {
		return slices.ContainsFunc(slices.Collect(maps.Values(named)), func(r *caddyhttp.Route) bool { return mentions(r.HandlersRaw) })
	}
	return slices.ContainsFunc(route.HandlersRaw, func(raw json.RawMessage) bool {
		var handler any
		return json.Unmarshal(raw, &handler) == nil && holdsGateway(handler, named)
	})
}

func holdsGateway(value any, named map[string]*caddyhttp.Route) bool {
	switch value := value.(type) {
	case []any:
		return slices.ContainsFunc(value, func(member any) bool { return holdsGateway(member, named) })
	case map[string]any:
		name, _ := value["handler"].(string)
		switch {
		case name == "invoke":
			route, _ := value["name"].(string)
			return named[route] != nil && mentions(named[route].HandlersRaw)
		case name == "durward_platform":
			return value["health_only"] != true
		case strings.HasPrefix(name, "durward_") && name != "durward_pipeline" && name != "durward_auth" && name != "durward_session" && name != "durward_console":
			return true
		}
		for _, member := range value {
			if holdsGateway(member, named) {
				return true
			}
		}
	}
	return false
}

func portOf(u *url.URL) string {
	if port := u.Port(); port != "" {
		return port
	}
	return map[string]string{"https": "443", "http": "80"}[u.Scheme]
}

func (r reached) listensOn(port string) bool {
	return slices.ContainsFunc(r.listen, func(a caddy.NetworkAddress) bool { return hasPort(a, port) })
}

// listenAt is the address by which a server gets requests for a port, else its first one, for people.
func (r reached) listenAt(port string) caddy.NetworkAddress {
	if i := slices.IndexFunc(r.listen, func(a caddy.NetworkAddress) bool { return hasPort(a, port) }); i >= 0 {
		return r.listen[i]
	}
	return r.listen[0]
}

func hasPort(a caddy.NetworkAddress, port string) bool {
	for offset := range a.PortRangeSize() {
		if strings.HasSuffix(a.JoinHostPort(offset), ":"+port) {
			return true
		}
	}
	return false
}

// narrows returns the address by which a server takes connections from a gateway's that listens on every address.
func (r reached) narrows(gateway reached) (caddy.NetworkAddress, bool) {
	if r.gateway {
		return caddy.NetworkAddress{}, false
	}
	for _, every := range gateway.listen {
		if ip, err := netip.ParseAddr(every.Host); every.Host != "" && (err != nil || !ip.IsUnspecified()) {
			continue
		}
		for _, one := range r.listen {
			ip, err := netip.ParseAddr(one.Host)
			specific := one.Host == "localhost" || err == nil && !ip.IsUnspecified() && (every.Host != "0.0.0.0" || ip.Is4())
			if specific && one.StartPort <= every.EndPort && every.StartPort <= one.EndPort {
				return one, true
			}
		}
	}
	return caddy.NetworkAddress{}, false
}

// isAt reports whether the public URL leads to an address that a server listens on, and nowhere else. The name localhost need not:
// it is 127.0.0.1 and ::1 for clients, and the first of them for who listens on it.
func isAt(public *url.URL, listen caddy.NetworkAddress) bool {
	host := public.Hostname()
	return hasPort(listen, portOf(public)) && host != "localhost" && (host == listen.Host || host == "127.0.0.1" && listen.Host == "localhost")
}
