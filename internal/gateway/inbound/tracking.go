package inbound

import (
	"net/http"
	"strings"
)

// maxTracking is the longest tracking tag, in bytes.
const maxTracking = 256

// TrackingTag returns the client's tracking tag, for the log: the value of a header whose name ends in -session-id,
// other than Mcp-Session-Id. ok is false when one is too long or not visible ASCII (CVE-2025-25294: logs are read by
// programs). It is never forwarded and never an identity.
func TrackingTag(h http.Header) (tag string, ok bool) {
	for name, values := range h {
		// Mcp-Param-* mirrors an argument of a tool (SEP-2243), whatever the argument is called: it is not for the log.
		if name == "Mcp-Session-Id" || !strings.HasSuffix(name, "-Session-Id") || strings.HasPrefix(name, "Mcp-Param-") {
			continue
		}
		for _, value := range values {
			if len(value) > maxTracking || strings.ContainsFunc(value, func(r rune) bool { return r < '!' || r > '~' }) {
				return "", false
			}
			if tag == "" || name == "X-Mcp-Session-Id" {
				tag = value
			}
		}
	}
	return tag, true
}
