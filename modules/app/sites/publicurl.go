package sites

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
)

// ParsePublicURL reads the public URL that a configuration names.
func ParsePublicURL(text string) (*url.URL, error) {
	u, err := parseAddress(text)
	if err != nil {
		return nil, fmt.Errorf("public_url: %q is not an address such as https://gate.example.com", text)
	}
	return u, nil
}

// PublicURL derives the public URL from the sites that hold the gateway.
func PublicURL(ctx caddy.Context, development bool) (*url.URL, error) {
	sites := ofGateway(ctx)
	if len(sites) == 0 {
		return nil, errors.New("set public_url in the durward option: the gateway's address cannot be read from this configuration")
	}
	if len(sites) > 1 {
		return nil, errors.New("set public_url in the durward option: the gateway is part of several sites")
	}
	s := sites[0]
	port, err := s.port()
	if err != nil {
		return nil, err
	}
	if development {
		return s.listenURL(port)
	}
	hosts := slices.Compact(slices.Sorted(slices.Values(s.hosts)))
	if len(hosts) != 1 || strings.Contains(hosts[0], "*") {
		return nil, errors.New("set public_url in the durward option: the site of the gateway is not a single host")
	}
	scheme := "https"
	if s.plain {
		scheme = "http"
	}
	return ParsePublicURL(scheme + "://" + net.JoinHostPort(hosts[0], port))
}

// port returns the one port that the site listens on.
func (s site) port() (string, error) {
	ambiguous := errors.New("set public_url in the durward option: the site of the gateway does not listen on one known port")
	var ports []string
	for _, listen := range s.listen {
		address, err := caddy.ParseNetworkAddress(listen)
		if err != nil {
			return "", fmt.Errorf("reading the site's address: %w", err)
		}
		if address.IsUnixNetwork() || address.IsFdNetwork() || address.PortRangeSize() != 1 || address.StartPort == 0 {
			return "", ambiguous
		}
		ports = append(ports, strconv.FormatUint(uint64(address.StartPort), 10))
	}
	if ports = slices.Compact(slices.Sorted(slices.Values(ports))); len(ports) != 1 {
		return "", ambiguous
	}
	return ports[0], nil
}

// listenURL returns the address that a development site listens on: its users are on the same machine.
func (s site) listenURL(port string) (*url.URL, error) {
	if len(s.listen) != 1 {
		return nil, errors.New("set public_url in the durward option: the site listens on several addresses")
	}
	address, err := caddy.ParseNetworkAddress(s.listen[0])
	if err != nil {
		return nil, fmt.Errorf("reading the site's address: %w", err)
	}
	return ParsePublicURL("http://" + net.JoinHostPort(address.Host, port))
}
