package auth

import (
	"net/http"

	"github.com/durward-gateway/durward/modules/app"
)

const (
	corsExpose  = "Mcp-Session-Id, WWW-Authenticate, MCP-Protocol-Version"
	corsMethods = "GET, POST, PUT, PATCH, DELETE"
	corsHeaders = "Authorization, Content-Type, Accept, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID, X-Mcp-Session-Id"
)

// checkOrigin refuses requests of foreign web pages and answers preflights. Requests without an Origin header do not come
// from a page of another origin. It reports whether the request is answered.
func checkOrigin(w http.ResponseWriter, r *http.Request, core *app.Core) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return false
	}
	if len(origins) > 1 || !core.OriginAllowed(origins[0]) {
		app.WriteError(w, app.Forbidden, "Pages of this origin may not call the gateway; the operator can allow it with `origins`")
		return true
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Allow-Origin", origins[0])
	h.Set("Access-Control-Expose-Headers", corsExpose)
	return preflight(w, r, corsHeaders)
}

// preflight answers a CORS preflight request (Fetch standard, section 4.8).
func preflight(w http.ResponseWriter, r *http.Request, headers string) bool {
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", corsMethods)
	h.Set("Access-Control-Allow-Headers", allowedHeaders(r, headers))
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}
