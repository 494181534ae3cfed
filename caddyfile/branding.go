package caddyfile

import (
	"cmp"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/settings"
)

// parseBranding reads what the pages show of whoever runs the gateway. Syntax:
//
//	branding {
//		name   <name>
//		logo   <path or data URL>
//		accent <colour>
//	}
func parseBranding(d *caddyfile.Dispenser, a *app.App) error {
	if a.Branding != nil {
		return d.Err("branding may be given once")
	}
	a.Branding = new(settings.Branding)
	if d.NextArg() {
		return d.ArgErr()
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		word, values := d.Val(), d.RemainingArgs()
		if word == "accent" && len(values) == 0 {
			return d.Err(`accent takes a colour such as 1f4fd1; a # needs quotes, "#1f4fd1", because it begins a comment`)
		}
		if len(values) != 1 {
			return d.ArgErr()
		}
		if err := cmp.Or(a.Branding.Set(word, values[0]), a.Branding.Check()); err != nil {
			return d.WrapErr(err)
		}
	}
	return nil
}
