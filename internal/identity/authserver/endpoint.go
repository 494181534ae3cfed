package authserver

import (
	"net/http"
	"slices"
	"strings"

	"github.com/durward-gateway/durward/internal/proxy/loopback"
)

// Public returns the handler of a document that any web page may read.
func Public(h http.HandlerFunc) http.Handler {
	return endpoint(h, func(http.ResponseWriter, *http.Request) (string, bool) { return "*", true }, http.MethodGet, http.MethodHead)
}

// Restricted returns the handler of an endpoint that browsers may call from pages of this machine, and of the origins
// that allowed accepts; nil accepts none. A request with any other Origin, or with two, is refused before h gets it
// (attack row H15).
func Restricted(h http.HandlerFunc, allowed func(origin string) bool, methods ...string) http.Handler {
	return endpoint(h, func(w http.ResponseWriter, r *http.Request) (string, bool) {
		w.Header().Add("Vary", "Origin")
		origins := r.Header.Values("Origin")
		if len(origins) == 0 {
			return "", true
		}
		return origins[0], len(origins) == 1 && (loopback.IsOrigin(origins[0]) || allowed != nil && allowed(origins[0]))
	}, methods...)
}

func endpoint(h http.HandlerFunc, origin func(http.ResponseWriter, *http.Request) (string, bool), methods ...string) http.Handler {
	allow := strings.Join(append(slices.Clone(methods), http.MethodOptions), ", ")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		allowed, ok := origin(w, r)
		if !ok {
			WriteJSON(w, http.StatusForbidden, map[string]string{"error": "Forbidden", "message": "requests from this origin are refused"})
			return
		}
		header := w.Header()
		header.Set("X-Content-Type-Options", "nosniff")
		if allowed != "" {
			header.Set("Access-Control-Allow-Origin", allowed)
			header.Set("Access-Control-Expose-Headers", "WWW-Authenticate")
		}
		switch {
		case r.Method == http.MethodOptions:
			header.Set("Allow", allow)
			header.Set("Access-Control-Allow-Methods", allow)
			header.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, MCP-Protocol-Version")
			header.Set("Access-Control-Max-Age", "600")
			w.WriteHeader(http.StatusNoContent)
		case !slices.Contains(methods, r.Method):
			header.Set("Allow", allow)
			WriteJSON(w, http.StatusMethodNotAllowed, map[string]string{"error": "MethodNotAllowed", "message": "this endpoint does not know the method"})
		default:
			h(w, r)
		}
	})
}
