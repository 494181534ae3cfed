package oidclogin

import (
	"net/url"
	"strings"
)

// maxReturn bounds the address to which a browser returns after logging in: it has room in a cookie, whose limit is 4096
// bytes, and for the requests of OAuth clients.
const maxReturn = 2048

// LocalPath returns the address on this site to which a browser may go after logging in: raw when it is a path,
// possibly with a query, that every browser reads as one of this site; else fallback. So no link can make a login end
// elsewhere (CWE-601).
func LocalPath(raw, fallback string) string {
	if len(raw) > maxReturn || !strings.HasPrefix(raw, "/") || strings.HasPrefix(raw, "//") {
		return fallback
	}
	for i := range len(raw) {
		// Browsers drop tabs and line breaks, and take a backslash for a slash: /\evil.example.
		if c := raw[i]; c <= ' ' || c >= 0x7f || c == '\\' {
			return fallback
		}
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Fragment != "" || u.RawPath != "" || strings.Contains(u.Path, "//") {
		return fallback
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		if segment == "." || segment == ".." {
			return fallback
		}
	}
	return raw
}
