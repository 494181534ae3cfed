package app

import (
	"net"
	"net/url"
	"slices"
	"strings"
)

// doors are the names under which clients may call the gateway and the web pages that may.
type doors struct {
	hosts       []string // host names without ports, lower case
	origins     []string // scheme://host[:port], lower case
	development bool     // every loopback name and origin is fine
}

// hostAllowed reports whether the Host header of a request names this gateway. A name that merely resolves to us is a
// DNS rebinding attack: the browser that sends it believes to speak to somebody else.
func (d *doors) hostAllowed(hostport string) bool {
	host := strings.ToLower(hostport)
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	return slices.Contains(d.hosts, host) || (d.development && IsLoopbackHost(host))
}

// originAllowed reports whether a page of that origin may call the gateway (MCP transports, "Origin validation").
func (d *doors) originAllowed(origin string) bool {
	origin = strings.ToLower(origin)
	if slices.Contains(d.origins, origin) {
		return true
	}
	if !d.development {
		return false
	}
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.User == nil && u.Path == "" && IsLoopbackHost(u.Hostname())
}
