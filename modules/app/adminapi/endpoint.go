// Package adminapi shows facts about the process on Caddy's admin endpoint, to operators and to other processes of the
// gateway.
package adminapi

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/durward-gateway/durward/internal/identity/refused"
)

// RefusedTokens holds the tokens that this process refused last. They outlive reloads: an operator changes the
// configuration because of them.
var RefusedTokens refused.Book

func init() {
	caddy.RegisterModule(endpoint{})
}

// endpoint shows the operator all refused tokens on Caddy's admin endpoint, for `durward doctor tokens`,
// and identifies this process.
type endpoint struct{}

// RefusedTokensPath is the endpoint's address there.
const RefusedTokensPath = "/durward/refused-tokens"

// CaddyModule returns the Caddy module information.
func (endpoint) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "admin.api.durward", New: func() caddy.Module { return new(endpoint) }}
}

// Routes implements caddy.AdminRouter.
func (endpoint) Routes() []caddy.AdminRoute {
	return []caddy.AdminRoute{
		{Pattern: RefusedTokensPath, Handler: caddy.AdminHandlerFunc(showRefusedTokens)},
		{Pattern: ProcessPath, Handler: caddy.AdminHandlerFunc(showProcess)},
	}
}

func showRefusedTokens(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet {
		return caddy.APIError{HTTPStatus: http.StatusMethodNotAllowed}
	}
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(append([]refused.Entry{}, RefusedTokens.Entries(time.Now())...))
}

var _ caddy.AdminRouter = endpoint{}
