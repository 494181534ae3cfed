// Package greeting is the smallest Caddy plugin: a handler that says hello. It
// stands for the plugin of an operator in the tests of durward-build.
package greeting

import (
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

func init() { caddy.RegisterModule(Handler{}) }

// Handler answers every request with a greeting.
type Handler struct{}

// CaddyModule returns the module's id and constructor.
func (Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.greeting", New: func() caddy.Module { return new(Handler) }}
}

// ServeHTTP greets.
func (Handler) ServeHTTP(w http.ResponseWriter, _ *http.Request, _ caddyhttp.Handler) error {
	_, err := w.Write([]byte("hello\n"))
	return err
}
