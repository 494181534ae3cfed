// Package loopback recognises the hosts, origins and addresses of this machine, and keeps development services on it.
// Guard refuses every request for another host or through a proxy. Listen listens on this machine only. The package
// resolves no name and connects to nothing.
package loopback

import (
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// IsHost reports whether host, with or without a port, names this machine: localhost, 127.0.0.0/8 or ::1. Other
// spellings of those addresses (0x7f.1, ::ffff:127.0.0.1, a trailing dot) are not recognised, so they are refused.
func IsHost(host string) bool {
	name, ok := Hostname(host)
	if !ok {
		return false
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Zone() == "" && !addr.Is4In6() && addr.IsLoopback()
}

// Hostname returns host without its port and brackets. It reports false when what stands behind the colon is no port, or
// what stands in brackets is no IPv6 address: net.SplitHostPort takes "localhost:80.evil" and "[localhost]:80", of which
// others read another name.
func Hostname(host string) (name string, ok bool) {
	name, port, err := net.SplitHostPort(host)
	bracketed := strings.HasPrefix(host, "[")
	switch {
	case err == nil:
	case bracketed && strings.HasSuffix(host, "]"):
		name = host[1 : len(host)-1]
	default:
		name = host
	}
	if bracketed {
		if addr, err := netip.ParseAddr(name); err != nil || !addr.Is6() {
			return "", false
		}
	}
	return name, !strings.ContainsFunc(port, func(c rune) bool { return c < '0' || c > '9' })
}

// IsURL reports whether u is a plain http or https address on this machine.
func IsURL(u *url.URL) bool {
	return (u.Scheme == "http" || u.Scheme == "https") && u.User == nil && IsHost(u.Host)
}

// IsOrigin reports whether origin, a value of the Origin header, is a page of this machine. The opaque origin "null"
// is not.
func IsOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && IsURL(u) && u.Path == "" && u.RawQuery == "" && u.Fragment == ""
}

// Guard refuses with 403 any request whose Host is not this machine (DNS rebinding, attack row H15) and any that
// carries Forwarded or X-Forwarded-*: a proxy in front means that the development identities are exposed to others.
func Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !IsHost(r.Host) {
			refuse(w, "the development providers answer on loopback addresses only")
			return
		}
		for name := range r.Header {
			if name == "Forwarded" || strings.HasPrefix(name, "X-Forwarded-") {
				refuse(w, "the development providers do not answer through a proxy")
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

func refuse(w http.ResponseWriter, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusForbidden)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": "Forbidden", "message": message})
}
