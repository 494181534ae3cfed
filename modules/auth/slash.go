package auth

import (
	"net/http"
	"strings"

	"github.com/durward-gateway/durward/internal/api/slug"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/paths"
)

// slashed answers a request for a server's address with a slash at its end, and names the right address. Some servers
// take both, so people write either. The gateway's paths are exact, and clients that get a redirect would repeat a POST
// as a GET, or not at all. The answer does not tell whether the server exists.
func slashed(w http.ResponseWriter, path string, core *app.Core) bool {
	address, ok := strings.CutSuffix(path, "/")
	if !ok {
		return false
	}
	if _, name, ok := paths.ProxiedName(address); !ok || !slug.Valid(name) {
		return false
	}
	gateway.RefuseSlash(w, core.PublicURL+address)
	return true
}
