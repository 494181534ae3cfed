package app

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/internal/proxy/loopback"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/modules/app/paths"
)

// A server whose address is the gateway's own would call itself until descriptors run out, and so would one that leads
// back here through other servers. The first is refused when its address is entered, the second when its call comes
// back (RFC 8586).

// CheckUpstream returns the reason why calls may not go to an address: an error of netguard, or
// directory.ErrOwnAddress.
func (c *Core) CheckUpstream(u *url.URL) error {
	if c.ownAddress(u) {
		return directory.ErrOwnAddress
	}
	return c.Guard.CheckURL(u)
}

// UpstreamProblem returns the reason why calls may not go to an address, in words for its author; "" when they may.
func (c *Core) UpstreamProblem(u *url.URL) (reason string) {
	var refused *netguard.URLError
	switch err := c.CheckUpstream(u); {
	case errors.Is(err, directory.ErrOwnAddress):
		return err.Error()
	case errors.As(err, &refused):
		return refused.Reason
	case err != nil:
		return "this URL cannot be used"
	}
	return ""
}

// ownAddress reports whether an address is one at which the gateway carries calls. Other paths of its host may belong
// to other services.
func (c *Core) ownAddress(u *url.URL) bool {
	own, err := url.Parse(c.PublicURL)
	if err != nil || port(u) != port(own) || !sameHost(u.Hostname(), own.Hostname()) {
		return false
	}
	path := strings.ToLower(u.Path) + "/"
	for _, prefix := range []string{paths.MCPPrefix, paths.SSEPrefix, paths.ModelsPrefix} {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if strings.EqualFold(u.Scheme, "http") {
		return "80"
	}
	return "443"
}

// sameHost reports whether two hosts name the same machine: case, a dot at the end, the spelling of an address and the
// names of this machine make no difference.
func sameHost(a, b string) bool {
	plain := func(host string) string {
		host = strings.ToLower(strings.TrimSuffix(host, "."))
		if address, err := netip.ParseAddr(host); err == nil {
			host = address.Unmap().WithZone("").String()
		}
		if loopback.IsHost(host) {
			return "localhost"
		}
		return host
	}
	return plain(a) == plain(b)
}

// loopID returns the gateway's name in CDN-Loop. Every node has the same name, and it tells no more than the public
// address.
func loopID(publicURL string) string {
	sum := sha256.Sum256([]byte("durward CDN-Loop " + publicURL))
	return "durward-" + hex.EncodeToString(sum[:8])
}

// Returned reports whether a request was sent by the gateway, and sent back by others.
func (c *Core) Returned(r *http.Request) bool {
	for _, value := range r.Header["Cdn-Loop"] {
		for id := range strings.SplitSeq(value, ",") {
			name, _, _ := strings.Cut(id, ";")
			if strings.EqualFold(strings.TrimSpace(name), c.loopID) {
				return true
			}
		}
	}
	return false
}
