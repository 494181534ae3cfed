package app

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/durward-gateway/durward/internal/proxy/loopback"
)

// allowedHosts holds the names under which clients may call the gateway, and the origins of web pages that may call it.
type allowedHosts struct {
	hosts       []string // host names without ports, lower case
	origins     []string // scheme://host[:port], lower case
	development bool     // every loopback name and origin is allowed
}

// addHost lets clients use a name. Patterns with a wildcard are ignored.
func (d *allowedHosts) addHost(host string) {
	host = strings.ToLower(host)
	if !strings.Contains(host, "*") && !slices.Contains(d.hosts, host) {
		d.hosts = append(d.hosts, host)
	}
}

// hostAllowed reports whether the Host header of a request names this gateway. A foreign name that only resolves to the
// gateway's address is a sign of a DNS rebinding attack: the browser that sends it believes to speak to somebody else.
func (d *allowedHosts) hostAllowed(hostport string) bool {
	return slices.Contains(d.hosts, hostname(hostport)) || (d.development && loopback.IsHost(hostport))
}

// hostname returns the host of a Host header, in lower case, without port and brackets.
func hostname(hostport string) string {
	host := strings.ToLower(hostport)
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	if inside, ok := strings.CutPrefix(host, "["); ok {
		return strings.TrimSuffix(inside, "]")
	}
	return host
}

// originAllowed reports whether a page of that origin may call the gateway (MCP transports, "Origin validation").
func (d *allowedHosts) originAllowed(origin string) bool {
	return slices.Contains(d.origins, strings.ToLower(origin)) || (d.development && loopback.IsOrigin(origin))
}

// parseOrigins reads configured origins. An origin that could never match is refused. So is one that would match more
// than one site, such as `null` for every sandboxed page.
func parseOrigins(texts []string) ([]string, error) {
	var out []string
	for _, text := range texts {
		address, err := parseAddress(text)
		if err != nil {
			return nil, fmt.Errorf("origins: %q is not an origin such as https://app.example.com", text)
		}
		out = append(out, address.String())
	}
	return out, nil
}

// parseAddress reads scheme://host[:port], as browsers write an origin: lower case, no standard port (RFC 6454 section
// 6.2). A slash at the end is dropped.
func parseAddress(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, err
	}
	isASCII := !strings.ContainsFunc(u.Host, func(r rune) bool { return r <= ' ' || r > '~' || r == '*' })
	if u.Hostname() == "" || !isASCII || (u.Scheme != "https" && u.Scheme != "http") || u.User != nil ||
		(u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return nil, fmt.Errorf("%q has more or less than scheme, host and port", text)
	}
	host := strings.ToLower(u.Host)
	if port := u.Port(); port == "" || port == map[string]string{"https": "443", "http": "80"}[u.Scheme] {
		host = strings.TrimSuffix(host, ":"+port)
	}
	return &url.URL{Scheme: u.Scheme, Host: host}, nil
}
