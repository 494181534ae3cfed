package auth

import (
	"net/http"
	"strings"

	"github.com/durward-gateway/durward/internal/slug"
	"github.com/durward-gateway/durward/modules/app"
)

// slashed answers a request at a server's address with a slash at its end with the address that it has. Some servers take
// both, so that people write either. Paths are exact here, and clients that were sent elsewhere would repeat a POST as a GET, or
// not at all. Whether there is such a server is not told.
func slashed(w http.ResponseWriter, path string, core *app.Core) bool {
	address, ok := strings.CutSuffix(path, "/")
	if !ok {
		return false
	}
	if _, name, ok := app.ProxiedName(address); !ok || !slug.Valid(name) {
		return false
	}
	app.WriteError(w, app.NotFound, "There is nothing at this address. The address of an MCP server has no slash at its end: "+core.PublicURL+address)
	return true
}
