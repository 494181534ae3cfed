package caddyfile

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/settings"
)

// parsePrices reads the reference to the price list. Syntax:
//
//	prices {file.<path>}
func parsePrices(d *caddyfile.Dispenser, a *app.App) error {
	if a.Prices != "" {
		return d.Err("prices may be given once")
	}
	if !d.AllArgs(&a.Prices) {
		return d.ArgErr()
	}
	if !settings.IsReference(a.Prices) {
		return d.Err("prices takes a reference such as {file./path}")
	}
	return nil
}
