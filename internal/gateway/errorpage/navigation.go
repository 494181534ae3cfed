package errorpage

import (
	"net/http"
	"strings"
)

// Navigates reports whether a request comes from a browser that opens a page or sends a form. Programs get JSON:
// clients that send a credential or a header of MCP, or that accept JSON or an event stream.
func Navigates(r *http.Request) bool {
	accept := r.Header["Accept"]
	if len(accept) != 1 || !strings.Contains(accept[0], "text/html") || (r.Method != http.MethodGet && r.Method != http.MethodPost) {
		return false
	}
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" && mode != "navigate" {
		return false // from a script or for a picture
	}
	for _, name := range [...]string{"Authorization", "X-Api-Key", "Mcp-Session-Id", "Mcp-Protocol-Version", "Mcp-Method", "Last-Event-Id"} {
		if r.Header[name] != nil {
			return false
		}
	}
	html := false
	for kind := range strings.SplitSeq(accept[0], ",") {
		kind, parameters, _ := strings.Cut(kind, ";")
		switch strings.ToLower(strings.TrimSpace(kind)) {
		case "application/json", "text/event-stream":
			return false
		case "text/html":
			html = !refuses(parameters)
		}
	}
	return html
}

// refuses reports whether the parameters of a media range give it the weight 0 (RFC 9110 section 12.4.2).
func refuses(parameters string) bool {
	for p := range strings.SplitSeq(parameters, ";") {
		if weight, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(p)), "q="); ok {
			return strings.Trim(weight, "0.") == ""
		}
	}
	return false
}
