package commands

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
)

// takingSite matches the way in which an error names a site that takes the gateway's requests: by its hosts and its
// listen address. The configuration that Caddy loads has no places of the Caddyfile's sites.
var takingSite = regexp.MustCompile(`^the site (without a host|\S+) on (\S+) takes `)

// placeOfSite returns the place of the site that an error names so; "" when there is none, or several that fit as
// well.
func placeOfSite(file, text string) string {
	found := takingSite.FindStringSubmatch(text)
	if found == nil || file == "" || filepath.Ext(file) == ".json" {
		return ""
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	blocks, err := caddyfile.Parse(file, content)
	if err != nil {
		return ""
	}
	hosts := strings.Split(strings.Replace(found[1], "without a host", "", 1), ",")
	host, port, _ := net.SplitHostPort(found[2])
	var at, bound []string
	for _, block := range blocks {
		key := slices.IndexFunc(block.Keys, func(k caddyfile.Token) bool { return isSite(k.Text, hosts, port) })
		if key < 0 || servesGateway(block) {
			continue
		}
		place := fmt.Sprintf("%s:%d", block.Keys[key].File, block.Keys[key].Line)
		at = append(at, place)
		if host != "" && binds(block, host) {
			bound = append(bound, place)
		}
	}
	switch {
	case len(bound) == 1:
		return bound[0]
	case len(at) == 1:
		return at[0]
	}
	return ""
}

// isSite reports whether an address of the Caddyfile belongs to a site that Caddy knows by these hosts and that port.
func isSite(key string, hosts []string, port string) bool {
	address, err := httpcaddyfile.ParseAddress(key)
	if err != nil {
		return false
	}
	address = address.Normalize()
	usual := map[string]string{"": "443", "https": "443", "http": "80"}[address.Scheme]
	return slices.Contains(hosts, address.Host) && (address.Port == port || address.Port == "" && usual == port)
}

// servesGateway reports whether a site of the Caddyfile has more of the gateway than its health.
func servesGateway(block caddyfile.ServerBlock) bool {
	for _, segment := range block.Segments {
		for i, token := range segment {
			switch token.Text {
			case "durward_auth", "durward_session":
			case "durward_platform":
				if i+1 == len(segment) || segment[i+1].Text != "health_only" {
					return true
				}
			default:
				if token.Text == "durward" || strings.HasPrefix(token.Text, "durward_") {
					return true
				}
			}
		}
	}
	return false
}

func binds(block caddyfile.ServerBlock, host string) bool {
	return slices.ContainsFunc(block.Segments, func(s caddyfile.Segment) bool {
		return s.Directive() == "bind" && slices.ContainsFunc(s, func(t caddyfile.Token) bool { return t.Text == host })
	})
}
