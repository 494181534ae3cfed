package sites

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/durward-gateway/durward/internal/proxy/loopback"
	"github.com/durward-gateway/durward/modules/app/paths"
)

// A server whose address is the gateway's own would call itself until descriptors run out, and so would one that leads
// back here through other servers. The first is refused when its address is entered, the second when its call comes
// back (RFC 8586).

// IsOwn reports whether an address is one at which the gateway carries calls. Other paths of its host may belong to
// other services.
func IsOwn(u *url.URL, publicURL string) bool {
	own, err := url.Parse(publicURL)
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

func loopID(publicURL string) string {
	sum := sha256.Sum256([]byte("durward CDN-Loop " + publicURL))
	return "durward-" + hex.EncodeToString(sum[:8])
}

// Returned reports whether a request was sent by the gateway, and sent back by others.
func (n *Names) Returned(r *http.Request) bool {
	for _, value := range r.Header["Cdn-Loop"] {
		for id := range strings.SplitSeq(value, ",") {
			name, _, _ := strings.Cut(id, ";")
			if strings.EqualFold(strings.TrimSpace(name), n.LoopID) {
				return true
			}
		}
	}
	return false
}
