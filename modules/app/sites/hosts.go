package sites

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/durward-gateway/durward/internal/proxy/loopback"
)

// Names holds the names under which clients may call the gateway, the origins of web pages that may call it, and its name
// towards upstreams.
type Names struct {
	hosts       []string // host names without ports, lower case
	origins     []string // scheme://host[:port], lower case
	development bool     // every loopback name and origin is allowed

	// LoopID is the gateway's name towards upstreams, in CDN-Loop. Every node has the same name, and it tells no more than
	// the public address.
	LoopID string
}

// NewNames allows the public URL and the configured origins.
func NewNames(public *url.URL, origins []string, development bool) (Names, error) {
	allowed, err := parseOrigins(origins)
	if err != nil {
		return Names{}, err
	}
	return Names{
		hosts: []string{public.Hostname()}, origins: append(allowed, public.String()), development: development, LoopID: loopID(public.String()),
	}, nil
}

// Add lets clients use more names. Patterns with a wildcard are ignored.
func (n *Names) Add(hosts []string) {
	for _, host := range hosts {
		host = strings.ToLower(host)
		if !strings.Contains(host, "*") && !slices.Contains(n.hosts, host) {
			n.hosts = append(n.hosts, host)
		}
	}
}

// HostAllowed reports whether the Host header of a request names this gateway. A foreign name that only resolves to the
// gateway's address is a sign of a DNS rebinding attack: the browser that sends it believes to speak to somebody else.
func (n *Names) HostAllowed(hostport string) bool {
	name, ok := loopback.Hostname(hostport)
	return ok && slices.Contains(n.hosts, strings.ToLower(name)) || (n.development && loopback.IsHost(hostport))
}

// OriginAllowed reports whether a page of that origin may call the gateway (MCP transports, "Origin validation").
func (n *Names) OriginAllowed(origin string) bool {
	return slices.Contains(n.origins, strings.ToLower(origin)) || (n.development && loopback.IsOrigin(origin))
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
