// Package probe lets tests look at the app of a configuration that they load.
package probe

import (
	"errors"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/caddytest"
)

// Handler is the handler of a site that keeps the app's values when it is provisioned.
var Handler = caddytest.Named("app_probe")

// Found holds the values of the configuration that was provisioned last.
var Found struct {
	App       *app.App
	PublicURL string
}

type probe struct{}

func init() { caddy.RegisterModule(probe{}) }

// CaddyModule returns the Caddy module information.
func (probe) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.app_probe", New: func() caddy.Module { return new(probe) }}
}

// Provision implements caddy.Provisioner.
func (probe) Provision(ctx caddy.Context) error {
	a, err := app.Attach(ctx)
	if err != nil {
		return err
	}
	core, unpin, ok := a.Pin()
	if !ok {
		return errors.New("no core")
	}
	defer unpin()
	Found.App, Found.PublicURL = a, core.PublicURL
	return nil
}

// ServeHTTP implements caddyhttp.MiddlewareHandler. It does nothing.
func (probe) ServeHTTP(http.ResponseWriter, *http.Request, caddyhttp.Handler) error { return nil }
