package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// handlerMarker is how the handler that begins the pipeline appears in the JSON of a route.
const handlerMarker = `"durward_auth"`

// site is what a Caddy server says about the address of the gateway.
type site struct {
	listen  []string
	hosts   []string // of the route's host matchers; none: any host
	plain   bool     // served without TLS
	address string   // "host:port" when the server listens on one address
}

func parsePublicURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") || u.User != nil ||
		(u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("public_url: %q is not an address such as https://gate.example.com", text)
	}
	return &url.URL{Scheme: u.Scheme, Host: strings.ToLower(u.Host)}, nil
}

// publicURL derives the public URL from the sites that hold the gateway. ctx is that of a handler being provisioned; the
// HTTP app above it is found among the modules it descends from.
func publicURL(ctx caddy.Context, development bool) (*url.URL, error) {
	sites := gatewaySites(ctx)
	if len(sites) == 0 {
		return nil, errors.New("set public_url in the durward option: the gateway's address cannot be read from this configuration")
	}
	first := sites[0]
	if development {
		if first.address == "" {
			return nil, errors.New("set public_url in the durward option: the site does not listen on one address")
		}
		return &url.URL{Scheme: "http", Host: first.address}, nil
	}
	var hosts []string
	for _, s := range sites {
		hosts = append(hosts, s.hosts...)
	}
	slices.Sort(hosts)
	hosts = slices.Compact(hosts)
	if len(hosts) != 1 || strings.Contains(hosts[0], "*") || len(sites) != 1 {
		return nil, errors.New("set public_url in the durward option: the site of the gateway is not a single host")
	}
	return first.url(hosts[0])
}

func (s site) url(host string) (*url.URL, error) {
	scheme, standard := "https", "443"
	if s.plain {
		scheme, standard = "http", "80"
	}
	address, err := caddy.ParseNetworkAddress(s.listen[0])
	if err != nil {
		return nil, fmt.Errorf("reading the site's address: %w", err)
	}
	if port := strconv.FormatUint(uint64(address.StartPort), 10); port != standard {
		host = net.JoinHostPort(host, port)
	}
	return &url.URL{Scheme: scheme, Host: host}, nil
}

func gatewaySites(ctx caddy.Context) []site {
	var sites []site
	for _, module := range ctx.Modules() {
		server, ok := module.(*caddyhttp.App)
		if !ok {
			continue
		}
		for _, name := range slices.Sorted(mapKeys(server.Servers)) {
			sites = append(sites, sitesOf(server.Servers[name])...)
		}
	}
	return sites
}

func mapKeys[V any](m map[string]V) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

// sitesOf lists the routes of a server that hold the gateway.
func sitesOf(server *caddyhttp.Server) []site {
	var sites []site
	for _, route := range server.Routes {
		if !mentions(route.HandlersRaw, handlerMarker) {
			continue
		}
		s := site{listen: server.Listen, hosts: hostsOf(route), address: soleAddress(server.Listen)}
		s.plain = servedPlain(server, s.hosts)
		sites = append(sites, s)
	}
	return sites
}

func mentions(handlers []json.RawMessage, marker string) bool {
	return slices.ContainsFunc(handlers, func(raw json.RawMessage) bool { return strings.Contains(string(raw), marker) })
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

func servedPlain(server *caddyhttp.Server, hosts []string) bool {
	if auto := server.AutoHTTPS; auto != nil {
		if auto.Disabled || (len(hosts) > 0 && !slices.ContainsFunc(hosts, func(h string) bool { return !slices.Contains(auto.Skip, h) })) {
			return len(server.TLSConnPolicies) == 0
		}
	}
	address, err := caddy.ParseNetworkAddress(server.Listen[0])
	return err == nil && address.StartPort == caddyhttp.DefaultHTTPPort && len(server.TLSConnPolicies) == 0
}

func soleAddress(listen []string) string {
	if len(listen) != 1 {
		return ""
	}
	address, err := caddy.ParseNetworkAddress(listen[0])
	if err != nil || address.PortRangeSize() != 1 || address.IsUnixNetwork() || address.IsFdNetwork() {
		return ""
	}
	return address.JoinHostPort(0)
}

// requireLoopback refuses a development identity provider on a site that others could reach.
func requireLoopback(ctx caddy.Context) error {
	for _, s := range gatewaySites(ctx) {
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
	return address.IsUnixNetwork() || IsLoopbackHost(address.Host)
}

// IsLoopbackHost reports whether a host name, without a port, names this machine only.
func IsLoopbackHost(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && ip.Unmap().IsLoopback() && ip.Zone() == ""
}
